"""The program of far queues: a virtual queue of what arrives by a port, for a queue that nobody sees.

``bpf/far.bpf.c`` says how. It is loaded with the first far queue. Ports are interface indices; far queues are
known by their ids (:mod:`fairq_ryu.agent.far_ports`).
"""

from __future__ import annotations

import time
from ctypes import c_uint32
from typing import Any

from fairq_ryu.agent import layout
from fairq_ryu.agent.far_ports import far_id, port_index
from fairq_ryu.agent.libbpf import BpfObject
from fairq_ryu.agent.programs.program import FAR_PRIORITY, FilterProgram
from fairq_ryu.agent.programs.queue import QueueProgram
from fairq_ryu.agent.programs.window import WindowProgram
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.agent.tc import INGRESS, OwnFilter

_PROGRAM = "fq_arrives"


class FarProgram(FilterProgram):
    """``far.bpf.o`` at tc ingress of ports with a far queue. They have entries in the maps of
    ports and queues, as ports have.
    """

    def __init__(self, lib: Any, window: WindowProgram, queues: QueueProgram, max_ports: int) -> None:
        super().__init__(lib)
        self._window, self._queues, self._max_ports = window, queues, max_ports
        self.filter = OwnFilter(lib, FAR_PRIORITY, _PROGRAM)

    def load(self) -> None:
        """Nothing: :meth:`start` loads the program."""

    def _load(self) -> BpfObject:
        if self._object is None:
            maps = self._window.law_maps | self._window.hidden_maps | self._queues.event_maps
            self._object = BpfObject(
                self._lib, layout.BPF_DIR / "far.bpf.o", {"far_queues": self._max_ports}, maps
            )
            self._far_queues = self._object.map("far_queues", c_uint32, layout.fq_far_queue)
        return self._object

    def add_port(self, ifindex: int) -> None:
        """Remove what a dead agent may have left on the port."""
        self.filter.filter.detach(ifindex, INGRESS)

    def start(self, known: int, bridge: int, observed: bool) -> None:
        """A port of the bridge with this number has a far queue: empty, and without limits. Raises
        :class:`BpfError`; then nothing is left.
        """
        loaded = self._load()
        self._window.add_far(known, bridge, observed)
        try:
            self._queues.add_port(known)
            slot = c_uint32(self._window.slots[known])
            self._window.hidden.set(slot, layout.fq_hidden())
            self._far_queues.set(slot, layout.fq_far_queue())
            self.filter.attach(port_index(known), loaded.program_fd(_PROGRAM), INGRESS)
        except BaseException:
            self._queues.remove_port(known)
            self._window.remove_far(known)
            raise
        self._ports.add(port_index(known))

    def set_limits(self, known: int, limits: QueueLimits, line: int, buffer: int) -> None:
        """What the virtual queue holds, and its rate while nothing is known of the hidden queue. ``line``:
        the rate of that one, bytes per second (0: not known), ``buffer``: what it holds, bytes (0: likewise).
        Raises :class:`BpfError`.
        """
        entry = layout.fq_far_queue(line=line, base=limits.rate, limit=buffer, is_kept=1)
        self._far_queues.set(c_uint32(self._window.slots[known]), entry)
        self._queues.set_limits({known: limits}, [known])

    def hidden(self, known: int) -> Any:
        """What is known of the queue that a far queue stands for, an ``fq_hidden``."""
        found = self._window.hidden.get(c_uint32(self._window.slots[known])) or layout.fq_hidden()
        # The program forgets a peak when data arrives; since then none may have.
        age = ((time.monotonic_ns() >> 30) - found.peak_span) & 0xFFFFFFFF
        if age:
            found.peak, found.peak_before = (found.peak if age == 1 else 0), 0
        return found

    def stop(self, known: int) -> None:
        """A port, which may have been deleted already, has no far queue any more."""
        if port_index(known) not in self._ports:
            return
        self.filter.detach(port_index(known))
        self._queues.remove_port(known)
        self._window.remove_far(known)
        self._ports.discard(port_index(known))

    def remove_port(self, ifindex: int) -> None:
        """Its far queue goes with it."""
        self.stop(far_id(ifindex))
