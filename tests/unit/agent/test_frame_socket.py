"""The socket of the agent's own frames, with a fake in the place of the kernel's."""

from __future__ import annotations

import socket
import struct
from typing import Any

import pytest

from fairq_ryu.agent import frame_socket
from fairq_ryu.agent.frame_socket import FrameSocket
from tests.switch.packets import Segment

FRAME = Segment(payload=b"x").frame()
TAGGED = Segment(payload=b"x", vlans=((0x8100, 7),)).frame()


class Kernel:
    """Stands for the class ``socket.socket``."""

    def __init__(self) -> None:
        self.opened: list[tuple[Any, ...]] = []
        self.sent: list[tuple[bytes, tuple[str, int]]] = []
        self.blocking = True
        self.error: OSError | None = None
        self.forced: OSError | None = None
        self.closed = 0
        self.marks: list[bytes] = []
        self.unmarked: OSError | None = None

    def __call__(self, *arguments: Any) -> Kernel:
        self.opened.append(arguments)
        return self

    def setblocking(self, wanted: bool) -> None:
        self.blocking = wanted

    def setsockopt(self, _level: int, name: int, value: Any) -> None:
        if name == socket.SO_MARK:
            if self.unmarked:
                raise self.unmarked
            self.marks.append(value)
        elif self.forced:
            raise self.forced

    def sendto(self, frame: bytes, address: tuple[str, int]) -> None:
        if self.error:
            raise self.error
        self.sent.append((frame, address))

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    made = Kernel()
    monkeypatch.setattr(frame_socket.socket, "socket", made)
    return made


def test_frames_leave_by_the_interface_with_their_own_type(kernel):
    frames = FrameSocket()
    assert kernel.opened == []
    assert frames.send("s1-eth1", FRAME) and frames.send("s1-eth2", TAGGED)
    assert kernel.sent == [(FRAME, ("s1-eth1", 0x0800)), (TAGGED, ("s1-eth2", 0x8100))]
    # Opened once; protocol 0 receives nothing, and a full queue must not stop the agent.
    assert kernel.opened == [(socket.AF_PACKET, socket.SOCK_RAW, 0)] and not kernel.blocking


@pytest.mark.parametrize("error", [BlockingIOError(), OSError(105, "No buffer space available")])
def test_what_the_kernel_refuses_is_not_sent(kernel, error):
    frames = FrameSocket()
    kernel.error = error
    assert not frames.send("s1-eth1", FRAME)


def test_the_default_buffer_is_enough_to_go_on(kernel):
    kernel.forced = PermissionError()
    assert FrameSocket().send("s1-eth1", FRAME)


def test_a_mark_holds_for_its_frame_only(kernel):
    frames = FrameSocket()
    for mark in (0, 0xFA100001, 0xFA100001, 0):
        assert frames.send("s1-eth1", FRAME, mark)
    assert kernel.marks == [struct.pack("=I", mark) for mark in (0xFA100001, 0)]
    # Without its mark, a frame that has waited would be held again.
    kernel.unmarked = PermissionError()
    assert not frames.send("s1-eth1", FRAME, 1) and len(kernel.sent) == 4


def test_it_is_opened_before_descriptors_are_used_up(kernel):
    frames = FrameSocket()
    frames.open()
    frames.open()
    assert len(kernel.opened) == 1
    assert frames.send("s1-eth1", FRAME) and len(kernel.opened) == 1


def test_closing_twice(kernel):
    frames = FrameSocket()
    frames.close()
    frames.send("s1-eth1", FRAME)
    frames.close()
    frames.close()
    assert kernel.closed == 1
