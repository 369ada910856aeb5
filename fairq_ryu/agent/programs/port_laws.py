"""The laws of ports: parameters that the agent writes, and states that the programs keep.

The window program asks a port's law for the window of each flow; the queue program runs its ticks. A law
without a living lease does nothing.
"""

from __future__ import annotations

from ctypes import c_uint32
from typing import Any

from fairq_ryu.agent import layout
from fairq_ryu.agent.programs.queue import QueueProgram
from fairq_ryu.agent.programs.window import WindowProgram

_FLOWS = layout.CONSTANTS["FQ_LAW_FLOWS"]


class PortLaws:
    """The laws of the ports of a bridge, at most one for each port. Ports are interface indices here."""

    def __init__(self, window: WindowProgram, queues: QueueProgram) -> None:
        self._window, self._queues = window, queues
        self._laws: dict[int, int] = {}  # their flags

    def install(self, ifindex: int, law_id: int, law: Any, expires_ns: int) -> None:
        """Install a law (an ``fq_law``), change its parameters, or renew its lease. Its state stays unless
        the port had another law, or one of another kind. Each of several transmit queues of a port has a
        state of its own. Raises :class:`BpfError`.
        """
        for known in self._window.ids(ifindex):
            slot = c_uint32(self._window.slots[known])
            before = self._window.port_laws.get(slot)
            if before is None or (before.id, before.law.kind) != (law_id, law.kind):
                # Without parameters nothing runs: the programs must not meet the new state with the old law.
                self._window.port_laws.set(slot, layout.fq_port_law())
                self._window.law_states.set(slot, layout.fq_law_state())
            self._window.port_laws.set(slot, layout.fq_port_law(law=law, expires_ns=expires_ns, id=law_id))
        self._laws[ifindex] = law.flags
        self._count()

    def remove(self, ifindex: int) -> None:
        """Remove the law of a port and its state."""
        if self._laws.pop(ifindex, None) is None:
            return
        for known in {ifindex, *self._window.ids(ifindex)}:
            if known in self._window.slots:
                slot = c_uint32(self._window.slots[known])
                self._window.port_laws.set(slot, layout.fq_port_law())
                self._window.law_states.set(slot, layout.fq_law_state())
        self._count()

    def _count(self) -> None:
        self._queues.set_laws(len(self._laws))
        self._window.set_flow_laws(sum(bool(flags & _FLOWS) for flags in self._laws.values()))

    def state(self, ifindex: int) -> Any | None:
        """The state of a port's law, an ``fq_law_state``, of several transmit queues that of the longest in
        the last interval; None: it has none.
        """
        if ifindex not in self._laws:
            return None
        slots = [c_uint32(self._window.slots[known]) for known in self._window.ids(ifindex)]
        found = [state for slot in slots if (state := self._window.law_states.get(slot)) is not None]
        return max(found, key=lambda state: (state.queue, state.flows, state.last_ns), default=None)
