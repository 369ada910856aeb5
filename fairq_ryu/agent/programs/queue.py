"""The queue program: keeps the exact backlog of every port, and reports when it crosses a threshold.

Times are CLOCK_MONOTONIC nanoseconds, as the program counts them. Ports are interface indices.
"""

from __future__ import annotations

import ctypes
import os
import time
from ctypes import c_uint32
from typing import Any, NamedTuple

from fairq_ryu.agent import layout
from fairq_ryu.agent.libbpf import BpfError, BpfObject
from fairq_ryu.agent.programs import backlog
from fairq_ryu.agent.programs.program import LoadedProgram
from fairq_ryu.agent.programs.queue_law_maps import QueueLawMaps
from fairq_ryu.agent.programs.window import WindowProgram
from fairq_ryu.agent.qdisc import NO_LIMITS, QueueLimits
from fairq_ryu.agent.ringbuf import RingBuffer
from fairq_ryu.agent.tx_queues import device_of
from fairq_ryu.errors import UserError
from fairq_ryu.model import Thresholds

_ZERO = c_uint32(0)
# Size of the flow map without a window program, which would write to it.
_NO_FLOWS = 64
# Threshold events read in one call.
_MAX_EVENTS = 4096


class QueueState(NamedTuple):
    """The queue of a port now; bytes, packets, ns as in ``layout.h``."""

    backlog: int
    peak: int
    drops: int
    byte_ns: int
    packets: int
    bytes: int
    clock_ns: int


def _empty(now: int) -> QueueState:
    return QueueState(0, 0, 0, 0, 0, 0, now)


class _LongestMean:
    """An integral of the backlog for a port with several transmit queues: each time it is read, it grows as
    much as that of the queue with the largest mean since the last time.
    """

    def __init__(self) -> None:
        self._sum = 0
        self._last: list[int] = []

    def integral(self, found: list[int]) -> int:
        """The integral, given those of the queues, byte ns; both wrap at 64 bits."""
        if len(self._last) == len(found):
            grown = [(now - last) % 2**64 for now, last in zip(found, self._last, strict=True)]
            self._sum += max((each for each in grown if each < 2**63), default=0)
        self._last = found
        return self._sum % 2**64


class QueueProgram(LoadedProgram):
    """``queue.bpf.o`` at the tracepoints of enqueue and dequeue, and the thresholds of ports."""

    def __init__(
        self, lib: Any, max_ports: int, window: WindowProgram | None = None, bridges: int = 1
    ) -> None:
        """``window``: the loaded window program, whose laws this one runs; None: there are no laws.
        ``bridges``: their number.
        """
        super().__init__(lib)
        self._max_ports, self._window = max_ports, window
        self._ports: set[int] = set()
        self._tx_queues: dict[int, tuple[int, ...]] = {}
        self._means: dict[int, _LongestMean] = {}
        self._limits: dict[int, QueueLimits] = {}
        self._checks: dict[int, Any] = {}  # what the map `checks` has
        self._drop_base: dict[int, tuple[int, int]] = {}
        self._thresholds: dict[int, Thresholds] = {}
        self._peak_epochs = [1] * bridges
        self._laws = self._bins = 0
        self._crossed: set[int] = set()
        self._events_lost = 0

    def load(self) -> None:
        """Load the program and attach it to the tracepoints. Raises :class:`UserError` where the kernel has
        none.
        """
        ports = self._max_ports
        shared = self._window.shared_maps if self._window is not None else {}
        sizes = dict.fromkeys(("queues", "queue_checks", "histograms", "thresholds"), ports)
        sizes |= QueueLawMaps.sizes(ports)
        sizes |= {"flows": _NO_FLOWS, "queue_config": len(self._peak_epochs)}
        try:
            self._object = loaded = BpfObject(
                self._lib,
                layout.BPF_DIR / "queue.bpf.o",
                {name: entries for name, entries in sizes.items() if name not in shared},
                shared,
            )
        except BpfError as error:
            raise UserError(
                f"the kernel cannot run the queue tracepoints ({error})",
                "`fairq doctor` says what the kernel lacks",
            ) from error
        self.config = loaded.map("queue_config", c_uint32, layout.fq_queue_config)
        self.queues = loaded.map("queues", c_uint32, layout.fq_queue)
        self.checks = loaded.map("queue_checks", c_uint32, layout.fq_queue_check)
        self.threshold_map = loaded.map("thresholds", c_uint32, layout.fq_threshold)
        self._histograms = loaded.map("histograms", c_uint32, layout.fq_histogram)
        self.law_maps = QueueLawMaps(loaded)
        self._event_count = loaded.map("event_count", c_uint32, layout.fq_ring_count)
        self._events = loaded.map("threshold_events", c_uint32, layout.fq_threshold_event)
        self._ring = RingBuffer(self._lib, self._events, self._on_event)
        self._write_config()
        loaded.attach("fq_enqueue")
        loaded.attach("fq_dequeue")

    def _write_config(self) -> None:
        netns = os.stat("/proc/thread-self/ns/net").st_ino
        for bridge, peak_epoch in enumerate(self._peak_epochs):
            self.config.set(
                c_uint32(bridge),
                layout.fq_queue_config(
                    netns=netns,
                    peak_epoch=peak_epoch,
                    thresholds=len(self._thresholds),
                    laws=self._laws,
                    bins=self._bins,
                ),
            )

    @property
    def event_maps(self) -> dict[str, int]:
        """The maps that another program needs which keeps queues: their file descriptors, by name."""
        kept = (self.config, self.threshold_map, self._events, self._event_count)
        return {table.name: table.fd for table in kept}

    def set_laws(self, count: int) -> None:
        """The number of ports with a law; 0 spares every packet a lookup."""
        if count != self._laws:
            self._laws = count
            self._write_config()

    def set_bins(self, count: int) -> None:
        """The number of queues with a queue law with bins, whose packets are counted; likewise."""
        if count != self._bins:
            self._bins = count
            self._write_config()

    def add_port(self, ifindex: int) -> None:
        """Start accounting for a port's queue, as empty. Raises :class:`BpfError`; then no entry is left."""
        self._add_entries(ifindex)
        self._ports.add(ifindex)

    def remove_port(self, ifindex: int) -> None:
        """Stop accounting for a port's queue, and forget its thresholds."""
        self._ports.discard(ifindex)
        self.set_thresholds(ifindex, None)
        for each in (ifindex, *self._tx_queues.pop(ifindex, ())):
            self._remove_entries(each)
        self._means.pop(ifindex, None)
        self._limits.pop(ifindex, None)

    def set_queues(self, ifindex: int, ids: tuple[int, ...]) -> None:
        """A port has transmit queues with these ids; none: one queue for all. Raises :class:`BpfError`; then
        it has one for all.
        """
        for each in set(self._tx_queues.get(ifindex, ())) - set(ids):
            self._remove_entries(each)
        try:
            for each in ids:
                if each not in self._checks:
                    self._add_entries(each)
        except BaseException:
            for each in set(ids) & self._checks.keys():
                self._remove_entries(each)
            ids = ()
            raise
        finally:
            self._tx_queues[ifindex] = ids
            self._means[ifindex] = _LongestMean()
            if not ids:
                del self._tx_queues[ifindex], self._means[ifindex]
        if ifindex in self._thresholds:
            self._write_thresholds(ifindex, self._thresholds[ifindex])

    def _add_entries(self, known: int) -> None:
        """Make the entries of a port, or of a transmit queue by its id. Raises :class:`BpfError`."""
        slot = bridge = 0
        if self._window is not None:
            slot, bridge = self._window.slots[known], self._window.bridge_of(device_of(known))
        check = layout.fq_queue_check(drain_ns=backlog.drain_ns(NO_LIMITS))
        self.law_maps.add(known, slot)
        entries = (
            (self.checks, check),
            (self._histograms, layout.fq_histogram()),
            (self.queues, layout.fq_queue(slot=slot, bridge=bridge)),
        )
        try:
            for table, entry in entries:
                table.set(c_uint32(known), entry)
        except BaseException:
            self._remove_entries(known)
            raise
        self._checks[known] = check

    def _remove_entries(self, known: int) -> None:
        for table in (self.queues, self._histograms, self.checks, self.threshold_map):
            table.delete(c_uint32(known))
        self._checks.pop(known, None)
        self._drop_base.pop(known, None)
        self.law_maps.remove(known)

    # The queue of a port

    def state(self, ifindex: int) -> QueueState:
        """The queue of a port now. Of a port with several transmit queues: backlog and peak of the longest,
        packets, bytes and drops of all, and the integral of that which had the largest mean each time.
        """
        # Most ports of a switch have no queue, and controllers request the queues 500 times per second.
        if self.is_unqueued(ifindex):
            return _empty(time.monotonic_ns())
        found = self.tx_states(ifindex)
        if not found:
            return self._state(ifindex, time.monotonic_ns())
        return QueueState(
            backlog=max(each.backlog for each in found),
            peak=max(each.peak for each in found),
            drops=sum(each.drops for each in found),
            byte_ns=self._means[ifindex].integral([each.byte_ns for each in found]),
            packets=sum(each.packets for each in found),
            bytes=sum(each.bytes for each in found),
            clock_ns=found[0].clock_ns,
        )

    def tx_states(self, ifindex: int) -> list[QueueState]:
        """The transmit queues of a port with several, in order; of another port none."""
        now = time.monotonic_ns()
        return [self._state(each, now) for each in self._tx_queues.get(ifindex, ())]

    def _state(self, known: int, now: int) -> QueueState:
        state = self.queues.get(c_uint32(known))
        if state is None:
            return _empty(now)
        depth, byte_ns = backlog.believed(state, self._checks[known], now)
        epoch = self._peak_epochs[state.bridge]
        return QueueState(
            backlog=depth,
            peak=max(state.peak, depth) if state.peak_epoch == epoch else depth,
            drops=self._drops(known, state.drops),
            byte_ns=byte_ns,
            packets=state.packets,
            bytes=state.bytes,
            clock_ns=now,
        )

    def _drops(self, ifindex: int, counted: int) -> int:
        """Packets that qdiscs have dropped since the port was added: the count of a new qdisc starts at 0."""
        base, last = self._drop_base.get(ifindex, (0, 0))
        if counted < last:
            base += last
        self._drop_base[ifindex] = (base, counted)
        return base + counted

    def restart_peaks(self, bridge: int = 0) -> None:
        """Let all peaks of the bridge with this number start again from the present backlog."""
        self._peak_epochs[bridge] = (self._peak_epochs[bridge] + 1) & 0xFFFFFFFF
        self._write_config()

    def histogram(self, ifindex: int) -> list[tuple[int, int, int]]:
        """Time spent at each depth: ``(lowest, highest, ns)`` for the depths that were seen, in bytes; summed
        over the transmit queues of a port.
        """
        ids = self._tx_queues.get(ifindex) or (ifindex,)
        tables = [table for each in ids if (table := self._histograms.get(c_uint32(each))) is not None]
        spent = [sum(column) for column in zip(*(table.ns for table in tables), strict=True)]
        return [(*layout.histogram_bounds(i), ns) for i, ns in enumerate(spent) if ns]

    def limits(self, ifindex: int) -> QueueLimits:
        """Buffer and rate of a port as its qdisc has them."""
        return self._limits.get(ifindex, NO_LIMITS)

    def set_limits(self, limits: dict[int, QueueLimits], read: list[int]) -> None:
        """Store the ``limits`` that were read of interfaces ``read``; those without an entry have none."""
        for ifindex in read:  # ports that were added meanwhile keep theirs
            self._limits.pop(ifindex, None)
        self._limits.update(limits)
        wanted = set(read)
        for known in self._checks:
            if device_of(known) in wanted:
                self._set_check(known, drain_ns=backlog.drain_ns(self.limits(device_of(known))))
        for ifindex, thresholds in self._thresholds.items():
            if thresholds.drops:
                self._write_thresholds(ifindex, thresholds)

    def is_unqueued(self, ifindex: int) -> bool:
        """Whether the port is known to have no queue at all."""
        limits = self._limits.get(ifindex)
        return limits is not None and limits.kind == "noqueue"

    # Missed events

    def _set_check(self, ifindex: int, **values: int) -> None:
        before = self._checks[ifindex]
        check = layout.fq_queue_check.from_buffer_copy(before)
        for name, value in values.items():
            setattr(check, name, value)
        if bytes(check) != bytes(before):
            self.checks.set(c_uint32(ifindex), check)
            self._checks[ifindex] = check

    def silent(self, now_ns: int) -> dict[int, int]:
        """The ports whose queues have had no event for longer than they need to drain, although they had a
        backlog then, each with the time of its last event. Their qdiscs are to be read, for :meth:`correct`.
        """
        found = {}
        for ifindex, check in self._checks.items():
            if ifindex in self._tx_queues:
                continue  # its packets are in these
            queue = None if self.is_unqueued(ifindex) else self.queues.get(c_uint32(ifindex))
            if queue is not None and backlog.is_silent(queue, check, now_ns):
                found[ifindex] = int(queue.last_ns)
        return found

    def correct(self, ifindex: int, event_ns: int, read_ns: int, found: int) -> bool:
        """The qdisc of a port that was silent since ``event_ns`` had a backlog of ``found`` bytes when it was
        read, at ``read_ns`` or later. That is believed until the next event. Returns whether events were
        missed: the last one had another backlog.
        """
        queue = self.queues.get(c_uint32(ifindex)) if ifindex in self._checks else None
        if queue is None or queue.last_ns != event_ns:
            return False  # there was an event since, which has the exact backlog
        _, byte_ns = backlog.believed(queue, self._checks[ifindex], read_ns)
        since = (byte_ns - queue.byte_ns) % 2**64
        self._set_check(ifindex, event_ns=event_ns, ns=read_ns, byte_ns=since, backlog=found)
        return bool(found != queue.backlog)

    # Thresholds

    @property
    def thresholds(self) -> dict[int, Thresholds]:
        """The thresholds in force."""
        return self._thresholds

    def set_thresholds(self, ifindex: int, thresholds: Thresholds | None) -> None:
        """Set a port's thresholds, or remove them. Raises :class:`BpfError`."""
        if thresholds is None:
            if self._thresholds.pop(ifindex, None) is None:
                return
            for each in (ifindex, *self._tx_queues.get(ifindex, ())):
                self.threshold_map.delete(c_uint32(each))
        else:
            self._write_thresholds(ifindex, thresholds)
            self._thresholds[ifindex] = thresholds
        self._write_config()

    def _write_thresholds(self, ifindex: int, thresholds: Thresholds) -> None:
        flags = layout.CONSTANTS["FQ_REPORT_DROPS"] * thresholds.drops
        limit, bounds = self.limits(ifindex).limit, {"cng": thresholds.cng, "nom": thresholds.nom}
        if ifindex in self._tx_queues:
            # Which queue has no room for a packet is not known before it is there: none is dropped before.
            limit, bounds = 0, {}
            for each in self._tx_queues[ifindex]:
                entry = layout.fq_threshold(cng=thresholds.cng, nom=thresholds.nom)
                self.threshold_map.set(c_uint32(each), entry)
        self.threshold_map.set(c_uint32(ifindex), layout.fq_threshold(flags=flags, limit=limit, **bounds))

    def congested(self, ifindex: int) -> tuple[bool, int]:
        """Whether a port is congested by its thresholds, and its backlog in bytes. Between the two thresholds
        its state is kept. Of several transmit queues, one that is congested is enough; the backlog is that of
        the longest.
        """
        limits = self._thresholds.get(ifindex, Thresholds(0, 0))
        found = [self._congested(each, limits) for each in self._tx_queues.get(ifindex) or (ifindex,)]
        return any(congested for congested, _ in found), max(depth for _, depth in found)

    def _congested(self, known: int, limits: Thresholds) -> tuple[bool, int]:
        queue = self.queues.get(c_uint32(known))
        if queue is None:
            return False, 0
        depth, _ = backlog.believed(queue, self._checks[known], time.monotonic_ns())
        # The program updates the state only when a packet passes; thresholds may have changed since.
        congested = bool(queue.state == layout.CONSTANTS["FQ_CNG"])
        if not limits.cng or depth <= limits.nom:
            congested = False
        elif depth >= limits.cng:
            congested = True
        return congested, depth

    @property
    def event_fd(self) -> int:
        """Readable when a queue has crossed a threshold: then call :meth:`crossed`."""
        assert self._ring is not None
        return self._ring.fd

    def _on_event(self, address: int, size: int) -> None:
        event = layout.fq_threshold_event.from_buffer_copy(ctypes.string_at(address, size))
        self._crossed.add(device_of(event.ifindex))

    def crossed(self) -> set[int]:
        """The ports whose queues have crossed a threshold since the last call, or may have."""
        assert self._ring is not None
        self._ring.read(_MAX_EVENTS)
        crossed, self._crossed = self._crossed, set()
        count = self._event_count.get(_ZERO)
        if count is not None and count.lost != self._events_lost:
            # Events were lost: the queue of any port may have crossed a threshold.
            self._events_lost = count.lost
            return set(self._thresholds)
        return crossed & self._thresholds.keys()
