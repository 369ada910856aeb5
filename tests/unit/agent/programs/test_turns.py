"""The turns program's class without a kernel: what it writes and reads, and that it fails open."""

from __future__ import annotations

from ctypes import addressof, sizeof
from types import SimpleNamespace
from typing import Any

import pytest

from fairq_ryu.agent import layout
from fairq_ryu.agent.libbpf import BpfError
from fairq_ryu.agent.programs import turns
from fairq_ryu.agent.programs.turns import ALIVE_NS, TurnProgram, mark_of
from fairq_ryu.agent.turn_room import Room
from tests.support.tables import Table

NOW = 5_000_000_000


class Frames:
    def __init__(self) -> None:
        self.sent: list[tuple[str, bytes, int]] = []
        self.failure = False

    def open(self) -> None:
        pass

    def send(self, interface: str, frame: bytes, mark: int) -> bool:
        self.sent.append((interface, frame, mark))
        return not self.failure

    def close(self) -> None:
        pass


class Filter:
    def __init__(self) -> None:
        self.attached: set[int] = set()
        self.fails = False

    def attach(self, ifindex: int, program: int) -> None:
        if self.fails:
            raise BpfError("no such device")
        self.attached.add(ifindex)

    def detach(self, ifindex: int) -> None:
        self.attached.discard(ifindex)


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(turns, "TcFilter", lambda lib, priority: Filter())
    monkeypatch.setattr(turns, "FrameSocket", Frames)
    counts = layout.fq_port()
    counts.sharing[3] = 70 << 32 | 5
    window = SimpleNamespace(
        port_laws=Table(),
        law_states=Table(),
        queues=Table(),
        queue_checks=Table(),
        slots={7: 2},
        bucket_ns=NOW // 70,
        port_state=lambda ifindex: counts,
        tenant_of=lambda ifindex, family, address: (ifindex, address[0]),
    )
    made: Any = TurnProgram(None, window, 4)
    made.loads = 0

    def load() -> None:
        made.loads += 1
        made._object, made._program = SimpleNamespace(close=lambda: None), 3
        made._turns, made._turn_ports, made._agent = Table(), Table(), Table()

    made._load = load
    return made


def test_nothing_is_loaded_before_a_port_asks(program: Any) -> None:
    program.load()
    program.add_port(7)
    program.renew(NOW)
    program.remove_port(7)
    assert program.loads == 0 and program.take(10) == []
    assert program.start(7) and program.start(7) and program.start(8)
    assert program.loads == 1 and program.filter.attached == {7, 8}
    program.close()
    assert program.filter.attached == set()


def test_a_port_whose_filter_fails_leaves_nothing_behind_and_is_tried_again(program: Any) -> None:
    program.filter.fails = True
    assert not program.start(7)
    assert not program._turns and not program._turn_ports
    program.filter.fails = False
    assert program.start(7)


def test_a_program_that_the_kernel_refuses_is_not_tried_again(program: Any, caplog: Any) -> None:
    def load() -> None:
        program.loads += 1
        raise BpfError("refused")

    program._load = load
    assert not program.start(7) and not program.start(8)
    assert program.loads == 1 and len(caplog.records) == 1
    program.remove_port(7)


def test_the_program_holds_while_the_agent_renews(program: Any) -> None:
    program.start(7)
    program.renew(NOW)
    assert program._agent[0].until_ns == NOW + ALIVE_NS
    program.set_waiting(7, 3)
    assert program._turn_ports[7].waiting == 3
    program.set_waiting(9, 3)
    program._turn_ports.full = True
    program.set_waiting(7, 0)


def test_a_packet_is_sent_with_the_time_that_it_has_waited(
    program: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {7: "s1-eth7"}

    def name_of(ifindex: int) -> str:
        if ifindex not in names:
            raise OSError("no such device")
        return names[ifindex]

    monkeypatch.setattr(turns.socket, "if_indextoname", name_of)
    program.send(7, b"frame", 1_234_567)
    program.send(7, b"frame", 1_234_567, closed=True)
    assert [mark for _, _, mark in program._frames.sent] == [4001 << 20 | 1234, 4002 << 20 | 1234]
    assert program._frames.sent[0] == ("s1-eth7", b"frame", 4001 << 20 | 1234)
    assert program.unsent == 0
    # An interface that is gone, and a queue that is full.
    program.send(8, b"frame", 0)
    program._frames.failure = True
    program.send(7, b"frame", 0)
    assert program.unsent == 2


@pytest.mark.parametrize(("waited", "micros"), [(-5, 0), (999, 0), (10**9, 10**6), (10**12, (1 << 20) - 1)])
def test_the_mark_has_room_for_the_longest_wait(waited: int, micros: int) -> None:
    assert mark_of(waited) == layout.CONSTANTS["FQ_TURN_MARK"] << 20 | micros
    assert mark_of(waited) < 1 << 32


def test_the_room_of_a_port_is_read_from_the_maps(program: Any) -> None:
    program.start(7)
    window = program._window
    assert program.room(7, NOW) is None, "no law"
    law = layout.fq_law(limit=125_000, rate=25_000_000, syn_allowance=300)
    window.port_laws[2] = layout.fq_port_law(law=law, expires_ns=NOW + 1)
    window.law_states[2] = layout.fq_law_state(segment=1448, proven=35)
    window.queues[7] = layout.fq_queue(backlog=30_000, last_ns=NOW - 9)
    window.queue_checks[7] = layout.fq_queue_check(drain_ns=9)
    program._turns[7] = layout.fq_turns(
        expected_ns=NOW - 1_000_000,
        hold_ns=1_000_001,
        expected=40_000,
        earlier=20_000,
        floor=2_000,
        first=3_000,
        held=9,
        full=2,
        begun=12,
        begun_ns=NOW,
        proven=30,
    )
    wanted = Room(
        limit=125_000,
        backlog=30_000,
        flows=5,
        frame=1514,
        floor=2_000,
        first=3_000,
        expected=60_000,
        half_open=7,
        allowance=300,
    )
    assert program.room(7, NOW) == wanted
    program._turns[7].hold_ns -= 1
    wanted = wanted._replace(expected=40_000)
    assert program.room(7, NOW) == wanted
    window.queues[7].last_ns -= 1
    assert program.room(7, NOW) == wanted._replace(backlog=0), "a stale backlog is none"
    assert program.handed_over(7) == (9, 2) and program.handed_over(8) == (0, 0)
    assert program.room(7, NOW + 1) is None, "the lease has ended"
    assert program.room(8, NOW) is None, "no such port"


def test_a_packet_is_handed_over_as_it_would_be_on_the_wire(program: Any) -> None:
    frame = bytes(range(14)) + b"rest"
    ends = (1,) * 16, (2,) * 16
    key = layout.fq_flow_key(ends[0], ends[1], lo_port=1, family=4, dir=1)
    held = layout.fq_held(ns=9, ifindex=7, captured=len(frame), vlan_proto=0x81, vlan_tci=5, key=key)
    held.data[: len(frame)] = frame
    program._on_held(addressof(held), sizeof(held))
    program._on_held(addressof(held), 8)
    (packet,) = program._packets
    same = bytes(key)[:37] + b"\0" + bytes(key)[38:]
    sent = frame[:12] + bytes.fromhex("81000005") + frame[12:]
    assert packet == (7, bytes(key), same, b"\2" * 16, sent, 9, 7, 2), "the tenant of its sender, too"
    held.key.dir = 0
    program._on_held(addressof(held), sizeof(held))
    assert program._packets[1].sender == b"\1" * 16
