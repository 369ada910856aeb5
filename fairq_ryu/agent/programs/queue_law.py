"""The program of the queue laws: it drops or marks packets before they enter the queue of a port.

Ports are interface indices here. ``bpf/queue_law.bpf.c`` says how a packet is judged.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from ctypes import c_uint32
from typing import Any, NamedTuple

from fairq_ryu.agent import layout
from fairq_ryu.agent.libbpf import BpfError, BpfObject
from fairq_ryu.agent.programs.drops import DropProgram
from fairq_ryu.agent.programs.program import QUEUE_LAW_PRIORITY, FilterProgram
from fairq_ryu.agent.programs.queue import QueueProgram
from fairq_ryu.agent.programs.queue_law_maps import TABLES
from fairq_ryu.agent.programs.window import WindowProgram
from fairq_ryu.agent.tc import TcFilter

NO_TABLE = 0
_FLOWS, _BINS = layout.CONSTANTS["FQ_QLAW_FLOWS"], layout.CONSTANTS["FQ_QLAW_BINS"]
# Of a kernel that reports no drops: nobody reads this ring buffer.
_UNREAD_RING = 4096


class _Installed(NamedTuple):
    """A law as it is installed on a port or transmit queue. Another one begins with an empty state."""

    law_id: int
    kind: int
    unit: int
    """of its state"""
    flags: int
    seed: int
    asked_seed: int
    table: int | None
    slot: int
    """of its state; it stays there until the slot has another law"""


class QueueLawProgram(FilterProgram):
    """``queue_law.bpf.o`` at tc egress of the ports that have a queue law. It is loaded for the first of
    them: agents without queue laws neither need it nor have its costs.

    A port with several transmit queues has a law in each of them, with the same parameters. Bounded: as many
    ports as the window program has, and :data:`TABLES` of laws with a flow table or bins.
    """

    def __init__(
        self, lib: Any, window: WindowProgram, queue: QueueProgram, drops: DropProgram, max_ports: int
    ) -> None:
        """``window``, ``queue`` and ``drops``: the loaded programs whose maps this one uses."""
        super().__init__(lib)
        self._window, self._queue, self._drops = window, queue, drops
        self._max_ports = max_ports
        self.filter = TcFilter(lib, QUEUE_LAW_PRIORITY)
        self._laws: dict[int, dict[int, _Installed]] = {}  # by ifindex, by ifindex or id of a transmit queue
        self._ended: dict[int, Any] = {}  # what laws of a port counted that have ended, by ifindex
        self._observed: set[int] = set()
        self._free_tables = list(range(TABLES - 1, -1, -1))

    def load(self) -> None:
        """Nothing: :meth:`install` loads the program."""

    def add_port(self, ifindex: int) -> None:
        """Remove what a dead agent may have left on the port."""
        self.filter.detach(ifindex)

    def remove_port(self, ifindex: int) -> None:
        """Stop on a port, which may have been deleted already."""
        self.remove(ifindex)
        self._ended.pop(ifindex, None)
        self._observed.discard(ifindex)

    def observe(self, ifindex: int, observed: bool) -> None:
        """Whether a port is only observed: nothing is dropped or marked. Raises :class:`BpfError`."""
        (self._observed.add if observed else self._observed.discard)(ifindex)
        if observed:
            self._detach(ifindex)
        elif ifindex in self._laws:
            self._attach(ifindex)

    def install(self, ifindex: int, law_id: int, law: Any, expires_ns: int) -> None:
        """Install a law (an ``fq_queue_law``), change its parameters, or renew its lease. Its state stays
        unless the port had another law, one of another kind, or with another unit or seed; the
        counts of the port go on in any case. Seed 0: one is drawn. ``table`` is chosen here.

        Raises :class:`BpfError` or :class:`UserError` where the kernel cannot run the program, and
        :class:`BpfError` if there is no room for another flow table; then the port has no law.
        """
        if self._object is None:
            self._load()
        ids = self._window.ids(ifindex)
        installed = self._laws.setdefault(ifindex, {})
        try:
            for known in set(installed) - set(ids):
                self._forget(ifindex, known, installed.pop(known))
            for known in ids:
                installed[known] = self._install_at(ifindex, known, law_id, law, expires_ns)
            if ids != (ifindex,):
                self._write(ifindex, layout.fq_port_queue_law(queues=len(ids)))
            self._count_bins()
            if ifindex not in self._observed:
                self._attach(ifindex)
        except BaseException:
            self.remove(ifindex)
            raise

    def _install_at(self, ifindex: int, known: int, law_id: int, law: Any, expires_ns: int) -> _Installed:
        installed = self._laws[ifindex]
        before = installed.get(known)
        identity = (law_id, law.kind, law.unit)
        if before is None or (*before[:3], before.asked_seed) != (*identity, law.seed):
            # Without parameters nothing runs: the program must not meet the new state with the old law.
            self._write(known, layout.fq_port_queue_law())
            if before is not None:
                self._release(ifindex, before)
                del installed[known]
            drawn, slot = law.seed or secrets.randbits(32) or 1, self._window.slots[known]
            before = _Installed(*identity, law.flags, drawn, law.seed, self._take_table(law.flags), slot)
            self._states.set(c_uint32(slot), layout.fq_locked_queue_law())
        given = layout.fq_queue_law.from_buffer_copy(law)
        given.seed = before.seed
        given.table = NO_TABLE if before.table is None else before.table
        self._write(known, layout.fq_port_queue_law(law=given, expires_ns=expires_ns, id=law_id))
        return before

    def remove(self, ifindex: int) -> None:
        """Remove the law of a port and its state."""
        installed = self._laws.pop(ifindex, None)
        if installed is None:
            return
        self._detach(ifindex)
        for known, each in installed.items():
            self._forget(ifindex, known, each)
        if ifindex in self._window.slots:
            self._write(ifindex, layout.fq_port_queue_law())
        self._count_bins()

    def state(self, ifindex: int) -> Any | None:
        """The state of a port's law, an ``fq_queue_law_state``; None: it has none. Of several transmit queues
        that with the longest delay. The counts are :meth:`counts`.
        """
        found = self._found(ifindex)
        if not found:
            return None
        longest = max(found, key=lambda state: (state.backlog, state.last_ns))
        longest.counts = self._sum(ifindex, found)
        return longest

    def counts(self, ifindex: int) -> Any:
        """What the laws of a port have counted since it was added, an ``fq_queue_law_counts``: those of all
        transmit queues, and those that have ended.
        """
        return self._sum(ifindex, self._found(ifindex))

    # The parts

    def _load(self) -> None:
        queue = self._queue
        read = (queue.queues, queue.checks, queue.threshold_map, queue.config)
        shared = self._window.queue_law_maps | queue.law_maps.shared
        shared |= {table.name: table.fd for table in read}
        sizes = {"queue_law_states": self._max_ports, "flow_tables": TABLES}
        handed_over = self._drops.maps
        if not handed_over:
            sizes["drops"] = _UNREAD_RING
        path = layout.BPF_DIR / "queue_law.bpf.o"
        loaded = BpfObject(self._lib, path, sizes, shared | handed_over)
        try:
            self._states = loaded.map("queue_law_states", c_uint32, layout.fq_locked_queue_law)
            self._tables = loaded.map("flow_tables", c_uint32, layout.fq_flow_table)
            self._program = loaded.program_fd("fq_judge")
        except BaseException:
            loaded.close()
            raise
        self._object = loaded

    def _attach(self, ifindex: int) -> None:
        if ifindex not in self._ports:
            self.filter.attach(ifindex, self._program)
            self._ports.add(ifindex)

    def _detach(self, ifindex: int) -> None:
        if ifindex in self._ports:
            self.filter.detach(ifindex)
            self._ports.discard(ifindex)

    def _write(self, known: int, law: Any) -> None:
        self._queue.law_maps.laws.set(c_uint32(self._window.slots[known]), law)

    def _found(self, ifindex: int) -> list[Any]:
        """The states of a port's law, one for each transmit queue."""
        entries = [self._states.get(c_uint32(each.slot)) for each in self._laws.get(ifindex, {}).values()]
        return [entry.state for entry in entries if entry is not None]

    def _sum(self, ifindex: int, states: list[Any]) -> Any:
        """The counts in these states of a port's law, and of its laws that have ended."""
        ended = self._ended.get(ifindex)
        counts = [each.counts for each in states] + ([] if ended is None else [ended])
        if not counts:
            return layout.fq_queue_law_counts()
        names = [name for name, _ in layout.fq_queue_law_counts._fields_]
        return layout.fq_queue_law_counts(
            **{name: sum(getattr(each, name) for each in counts) for name in names}
        )

    def _forget(self, ifindex: int, known: int, installed: _Installed) -> None:
        """A port or transmit queue has no law any more."""
        if known in self._window.slots:
            self._write(known, layout.fq_port_queue_law())
        self._release(ifindex, installed)

    def _take_table(self, flags: int) -> int | None:
        """An empty flow table, or bins, for a law that needs them."""
        if not flags & (_FLOWS | _BINS):
            return None
        if not self._free_tables:
            raise BpfError(f"{TABLES} ports have queue laws with flow tables: no room for another")
        table = self._free_tables.pop()
        make: tuple[Any, Callable[[], Any]] = (self._tables, layout.fq_flow_table)
        if flags & _BINS:
            make = (self._queue.law_maps.bins, layout.fq_sfb_bins)
        make[0].set(c_uint32(table), make[1]())
        return table

    def _release(self, ifindex: int, installed: _Installed) -> None:
        """A law that runs no more leaves its counts to the port and its flow table to others."""
        entry = self._states.get(c_uint32(installed.slot))
        if entry is not None:
            self._ended[ifindex] = self._sum(ifindex, [entry.state])
        if installed.table is not None:
            self._free_tables.append(installed.table)

    def _count_bins(self) -> None:
        flags = [each.flags for laws in self._laws.values() for each in laws.values()]
        self._queue.set_bins(sum(bool(each & _BINS) for each in flags))
