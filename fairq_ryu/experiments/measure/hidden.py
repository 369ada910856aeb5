"""The queue of a switch that no agent sees, as the experiment itself measures it."""

from __future__ import annotations

import socket
import time

from fairq_ryu.agent.libbpf import BpfError, load_library
from fairq_ryu.agent.programs.queue import QueueProgram
from fairq_ryu.errors import UserError
from fairq_ryu.experiments.measure.queues import QueueReading
from fairq_ryu.experiments.traffic.workers import RunError


class HiddenQueue:
    """The queue of the interface ``name``, which holds ``limit`` bytes, until :meth:`close`."""

    def __init__(self, name: str, limit: int) -> None:
        """`RunError` where the machine cannot measure it."""
        self._limit = limit
        self._program: QueueProgram | None = None
        try:
            self._ifindex = socket.if_nametoindex(name)
            self._program = QueueProgram(load_library(), 1)
            self._program.load()
            self._program.add_port(self._ifindex)
        except (BpfError, OSError, UserError) as error:
            self.close()
            raise RunError(f"the queue of {name} cannot be measured: {error}") from error

    def reading(self, rewritten: int) -> QueueReading:
        """Its counters; ``rewritten``: ACKs that were lowered because of it."""
        assert self._program is not None
        state = self._program.state(self._ifindex)
        return QueueReading(
            limit=self._limit,
            byte_ns=state.byte_ns,
            clock_ns=time.monotonic_ns(),
            drops=state.drops,
            packets=state.packets,
            rewritten=rewritten,
            histogram=[(low, high, ns) for low, high, ns in self._program.histogram(self._ifindex)],
        )

    def close(self) -> None:
        """Measure no longer. A second call does nothing."""
        if self._program is not None:
            self._program.close()
            self._program = None
