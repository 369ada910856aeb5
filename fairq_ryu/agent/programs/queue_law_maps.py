"""The maps that the queue program and the program of queue laws share."""

from __future__ import annotations

from ctypes import c_uint32

from fairq_ryu.agent import layout
from fairq_ryu.agent.libbpf import BpfObject

TABLES = 64
"""Ports and transmit queues whose laws may have a flow table or bins."""


class QueueLawMaps:
    """Laws and depths of queues, by slot, and the bins of laws that have some. A queue is known by the index
    of its port, or as a transmit queue by its id.
    """

    def __init__(self, queue_program: BpfObject) -> None:
        self._slots: dict[int, int] = {}
        self.laws = queue_program.map("queue_laws", c_uint32, layout.fq_port_queue_law)
        self.depths = queue_program.map("depths", c_uint32, layout.fq_depth)
        self.bins = queue_program.map("sfb_bins", c_uint32, layout.fq_sfb_bins)

    @staticmethod
    def sizes(max_ports: int) -> dict[str, int]:
        """Their numbers of entries, by name."""
        return {"queue_laws": max_ports, "depths": max_ports, "sfb_bins": TABLES}

    @property
    def shared(self) -> dict[str, int]:
        """Their file descriptors, by name."""
        return {table.name: table.fd for table in (self.laws, self.depths, self.bins)}

    def add(self, known: int, slot: int) -> None:
        """A queue is added, in this slot."""
        self._slots[known] = slot
        self._clear(slot)

    def remove(self, known: int) -> None:
        """A queue is removed. Slots are used again: no law is left in one."""
        if known in self._slots:
            self._clear(self._slots.pop(known))

    def _clear(self, slot: int) -> None:
        self.laws.set(c_uint32(slot), layout.fq_port_queue_law())
        self.depths.set(c_uint32(slot), layout.fq_depth())
