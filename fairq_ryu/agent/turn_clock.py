"""When the agent looks after connections that take turns: as they arrive, every millisecond while any wait,
and often enough for the eBPF program to know that the agent lives.
"""

from __future__ import annotations

import asyncio
import time

from fairq_ryu.agent.programs.turns import ALIVE_NS, TurnProgram
from fairq_ryu.agent.turns import Turns

_RENEWAL = ALIVE_NS / 4e9
_LOOK = 0.001
# Packets that are taken over before other tasks of the loop run.
_MAX_PACKETS = 256


class TurnClock:
    """Serves the turns of a bridge in an asyncio loop, from the first port that has turns until :meth:`stop`.

    If it stops to run, the program holds no more packets after ``ALIVE_NS``.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, program: TurnProgram, turns: Turns) -> None:
        self._loop, self._program, self._turns = loop, program, turns
        self._fd: int | None = None
        self._renewal: asyncio.TimerHandle | None = None
        self._look: asyncio.TimerHandle | None = None
        program.on_load = self._start

    def stop(self) -> None:
        """Stop. Packets that wait leave when their ports are removed. A second call does nothing."""
        self._program.on_load = None
        if self._fd is not None:
            self._loop.remove_reader(self._fd)
            self._program.pause()
            while packets := self._program.take(_MAX_PACKETS):
                for packet in packets:
                    self._turns.arrived(packet, time.monotonic_ns())
        for timer in (self._renewal, self._look):
            if timer is not None:
                timer.cancel()
        self._fd = self._renewal = self._look = None

    def _start(self, fd: int) -> None:
        self._fd = fd
        self._loop.add_reader(fd, self._on_packets)
        self._renew()

    def _renew(self) -> None:
        self._renewal = self._loop.call_later(_RENEWAL, self._renew)
        self._program.renew(time.monotonic_ns())

    def _on_packets(self) -> None:
        now = time.monotonic_ns()
        for packet in self._program.take(_MAX_PACKETS):
            self._turns.arrived(packet, now)
        if self._look is None:
            self._serve()

    def _serve(self) -> None:
        # First the timer: nothing waits for ever, whatever goes wrong below.
        self._look = self._loop.call_later(_LOOK, self._serve) if self._turns.waiting else None
        self._turns.serve(time.monotonic_ns())
