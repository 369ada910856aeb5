"""When the agent looks after turns: a loop whose time the test sets."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from fairq_ryu.agent.turn_clock import TurnClock
from fairq_ryu.agent.turn_queue import HeldPacket


class Loop:
    def __init__(self) -> None:
        self.readers: dict[int, Callable[[], None]] = {}
        self.timers: list[tuple[float, Callable[[], None], Any]] = []

    def add_reader(self, fd: int, callback: Callable[[], None]) -> None:
        self.readers[fd] = callback

    def remove_reader(self, fd: int) -> None:
        del self.readers[fd]

    def call_later(self, delay: float, callback: Callable[[], None]) -> Any:
        timer = (delay, callback, SimpleNamespace(cancel=lambda: self.timers.remove(timer)))
        self.timers.append(timer)
        return timer[2]

    def run(self, delay: float) -> None:
        """The timer with this delay fires."""
        (timer,) = [each for each in self.timers if each[0] == delay]
        self.timers.remove(timer)
        timer[1]()

    @property
    def delays(self) -> list[float]:
        return sorted(delay for delay, _, _ in self.timers)


class Turns:
    def __init__(self) -> None:
        self.packets: list[HeldPacket] = []
        self.served, self.fails = 0, False

    @property
    def waiting(self) -> bool:
        return bool(self.packets)

    def arrived(self, packet: HeldPacket, now_ns: int) -> None:
        self.packets.append(packet)

    def serve(self, now_ns: int) -> None:
        self.served += 1
        if self.fails:
            raise RuntimeError


@pytest.fixture
def parts() -> tuple[Loop, Any, Turns, TurnClock]:
    loop, turns = Loop(), Turns()
    program: Any = SimpleNamespace(on_load=None, renewed=0, held=[], paused=0)

    def renew(now_ns: int) -> None:
        program.renewed += 1

    program.renew = renew

    def pause() -> None:
        program.paused += 1

    program.pause = pause
    program.take = lambda limit: program.held
    return loop, program, turns, TurnClock(loop, program, turns)  # type: ignore[arg-type]


def test_nothing_runs_until_the_program_is_loaded(parts: Any) -> None:
    loop, program, _, clock = parts
    assert not loop.readers and not loop.timers
    program.on_load(5)
    assert list(loop.readers) == [5] and loop.delays == [0.05] and program.renewed == 1
    loop.run(0.05)
    assert program.renewed == 2 and loop.delays == [0.05]
    clock.stop()
    clock.stop()
    assert not loop.readers and not loop.timers and program.on_load is None


def test_packets_are_looked_after_every_millisecond_while_any_waits(parts: Any) -> None:
    loop, program, turns, _ = parts
    program.on_load(5)
    program.held = [HeldPacket(1, b"k", b"k", b"s", b"f", 0)]
    loop.readers[5]()
    assert turns.served == 1 and loop.delays == [0.001, 0.05]
    loop.readers[5]()
    assert turns.served == 1 and loop.delays == [0.001, 0.05], "the timer is set already"
    loop.run(0.001)
    assert turns.served == 2
    turns.packets.clear()
    loop.run(0.001)
    assert loop.delays == [0.05]


def test_what_the_program_has_handed_over_is_not_lost_at_the_end(parts: Any) -> None:
    loop, program, turns, clock = parts
    program.on_load(5)
    left: list[list[HeldPacket]] = [[HeldPacket(1, k, k, b"s", b"f", 0)] for k in (b"k", b"l")]
    # Only what was handed over before the pause: nothing comes after it.
    program.take = lambda limit: left.pop(0) if program.paused and left else []
    clock.stop()
    assert [packet.key for packet in turns.packets] == [b"k", b"l"] and not loop.timers


def test_a_failure_does_not_end_the_service(parts: Any) -> None:
    loop, program, turns, _ = parts
    program.on_load(5)
    program.held = [HeldPacket(1, b"k", b"k", b"s", b"f", 0)]
    turns.fails = True
    with pytest.raises(RuntimeError):
        loop.readers[5]()
    assert 0.001 in loop.delays
