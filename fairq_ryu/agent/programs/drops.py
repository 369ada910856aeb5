"""The drop program: reports packets that the queue of a port drops, if a controller has requested that."""

from __future__ import annotations

import contextlib
import ctypes
import logging
from ctypes import c_uint32
from typing import Any, NamedTuple

from fairq_ryu.agent import layout
from fairq_ryu.agent.libbpf import BpfError, BpfObject, Map, in_short
from fairq_ryu.agent.programs.program import DROP_PRIORITY, LoadedProgram, on_the_wire
from fairq_ryu.agent.programs.queue import QueueProgram
from fairq_ryu.agent.ringbuf import RingBuffer
from fairq_ryu.agent.tc import NoPlaceError, TcFilter
from fairq_ryu.packet.checksum import completed

BEFORE_FULL = layout.CONSTANTS["FQ_DROP_BEFORE_FULL"]

log = logging.getLogger(__name__)


class DropRecord(NamedTuple):
    """A dropped packet."""

    ifindex: int
    frame: bytes
    """The packet or its beginning."""
    length: int
    """Of the whole packet, bytes."""


class DropProgram(LoadedProgram):
    """``drops.bpf.o``: a tracepoint that sees packets freed unsent, attached only while a port reports drops,
    and a filter at tc egress of the ports that do, which drops a packet before the queue refuses it.

    Where the kernel cannot report drops it does nothing: :attr:`available` is False, :attr:`reason` says why.
    """

    def __init__(self, lib: Any, queue: QueueProgram) -> None:
        """``queue``: the loaded program whose maps this one reads."""
        super().__init__(lib)
        self._queue = queue
        self.filter = TcFilter(lib, DROP_PRIORITY)
        self._packets: list[DropRecord] = []
        self._before_full: dict[int, int] = {}
        self._wanted: set[int] = set()
        self._attached = False
        self._ring_map: Map | None = None
        self.reason = ""

    def load(self) -> None:
        """Load the program, if the kernel can run it."""
        queue = self._queue
        shared = (queue.config, queue.threshold_map, queue.queues, queue.checks)
        try:
            self._object = BpfObject(
                self._lib,
                layout.BPF_DIR / "drops.bpf.o",
                {},
                {table.name: table.fd for table in shared},
            )
            self._count = self._object.map("drop_count", c_uint32, layout.fq_ring_count)
            self._ring_map = self._object.map("drops", c_uint32, layout.fq_drop)
            self._ring = RingBuffer(self._lib, self._ring_map, self._on_drop)
        except BpfError as error:
            self.close()
            self.reason = f"this kernel does not report dropped packets: {error}"
            log.warning("%s", in_short(self.reason))

    @property
    def available(self) -> bool:
        """Whether this kernel can report drops."""
        return self._object is not None

    @property
    def maps(self) -> dict[str, int]:
        """The maps by which the program of queue laws hands over what it drops: their file descriptors, by
        name. None where the kernel cannot report drops.
        """
        if self._object is None or self._ring_map is None:
            return {}
        return {table.name: table.fd for table in (self._ring_map, self._count)}

    def add_port(self, ifindex: int) -> None:
        """Remove what a dead agent may have left on the port; reports start with :meth:`report`."""
        self.filter.detach(ifindex)
        self._before_full[ifindex] = 0

    def remove_port(self, ifindex: int) -> None:
        """Detach from a port, which may have been deleted already."""
        self.filter.detach(ifindex)
        self._before_full.pop(ifindex, None)
        self._wanted.discard(ifindex)

    def close(self) -> None:
        """Detach and free. A second call does nothing."""
        super().close()
        self._attached = False

    def report(self, ifindex: int, wanted: bool) -> None:
        """Start or stop to report the drops of a port. Raises :class:`BpfError`."""
        if not wanted:
            self._wanted.discard(ifindex)
            self.filter.detach(ifindex)
        elif self._object is not None:
            self._wanted.add(ifindex)
            # Without a place for the filter, packets are dropped by the queue, and reported.
            with contextlib.suppress(NoPlaceError):
                self.filter.attach(ifindex, self._object.program_fd("fq_drop_before_full"))

    def restore(self, ifindex: int) -> bool:
        """As :meth:`TcFilter.restore`; also attach where there was no place before."""
        restored = self.filter.restore(ifindex)
        if ifindex in self._wanted and not self.filter.is_there(ifindex):
            self.report(ifindex, True)
        return restored

    def watch_kernel(self, wanted: bool) -> None:
        """Attach or detach the tracepoint, which takes time for every packet that the machine frees unsent.

        Raises :class:`BpfError`.
        """
        if self._object is None or wanted == self._attached:
            return
        if wanted:
            self._object.attach("fq_dropped")
        else:
            self._object.detach_all()
        self._attached = wanted

    @property
    def fd(self) -> int | None:
        """Readable when dropped packets wait: then call :meth:`take`. None where there can be none."""
        return self._ring.fd if self._ring else None

    def take(self, limit: int) -> list[DropRecord]:
        """Dropped packets that have arrived, at most ``limit``."""
        if self._ring is None:
            return []
        self._ring.read(limit)
        packets, self._packets = self._packets, []
        return packets

    def _on_drop(self, address: int, size: int) -> None:
        if size < ctypes.sizeof(layout.fq_drop):
            return
        head = ctypes.string_at(address, layout.fq_drop.data.offset)
        drop = layout.fq_drop.from_buffer_copy(head.ljust(ctypes.sizeof(layout.fq_drop), b"\0"))
        frame = ctypes.string_at(address + layout.fq_drop.data.offset, drop.captured)
        length = drop.len - drop.captured
        frame = on_the_wire(frame, drop.vlan_proto, drop.vlan_tci)
        length += len(frame)
        if drop.cause == BEFORE_FULL and drop.ifindex in self._before_full:
            self._before_full[drop.ifindex] += 1
        # If it is sent again, no card completes its checksum.
        self._packets.append(DropRecord(drop.ifindex, completed(frame), length))

    def dropped_before_full(self, ifindex: int) -> int:
        """Packets of a port that the program dropped before the queue could refuse them: no qdisc counts
        them.
        """
        return self._before_full.get(ifindex, 0)

    @property
    def lost(self) -> int:
        """Packets for which the ring buffer had no room."""
        if self._object is None:
            return 0
        count = self._count.get(c_uint32(0))
        return int(count.lost) if count else 0
