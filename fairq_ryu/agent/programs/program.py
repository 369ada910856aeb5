"""What the eBPF programs of the agent have in common: interface, limits, and order on a port."""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

from fairq_ryu.agent import layout
from fairq_ryu.agent.libbpf import BpfObject
from fairq_ryu.agent.ringbuf import RingBuffer
from fairq_ryu.agent.turn_queue import CAPACITY
from fairq_ryu.packet.tcp_options import MAX_WSCALE

# Priorities of the tc egress filters, which run in this order. They are high, so that filters of others see a
# packet first; a filter left by a dead agent is recognised by them.
WINDOW_PRIORITY = 0xFA17
# At ingress: before other filters, which may take packets away that have waited in the far queue as well.
# Hardware, ingress policing, XDP and tcx come before all filters. Others may use this priority: the name of
# the program tells which filter is the agent's.
FAR_PRIORITY = 0xFA
# A packet that waits for its turn is not recorded before it leaves.
TURN_PRIORITY = WINDOW_PRIORITY - 1
# At the uplink of a host, where no agent is.
SHIM_PRIORITY = WINDOW_PRIORITY - 2
# What a queue law drops has been recorded, and needs no room in the queue.
QUEUE_LAW_PRIORITY = WINDOW_PRIORITY + 1
DROP_PRIORITY = WINDOW_PRIORITY + 2
# What is dropped on a controller's request is also reported, so plain tail drop comes last.
TAILDROP_PRIORITY = WINDOW_PRIORITY + 3

# A SYN may have left before any was seen, and be sent again; the other end may count in the scale of the
# first. Linux repeats a SYN for the last time after 67 s (tcp_syn_retries = 6, tcp_syn_linear_timeouts = 4;
# 63 s without), a SYN-ACK after 31 s; BSDs give up after 75 s.
UNIFY_GRACE_S = 75.0


# Each processor keeps up to 128 free entries of an LRU map for itself. Before 6.17 (commit d4adf1c9ee77)
# Linux did so in small maps, too: one with little more than that in all forgets its newest entries while
# others are free.
LRU_ENTRIES_OF_A_PROCESSOR = 256


@dataclass(frozen=True, slots=True)
class ProgramLimits:
    """Sizes of the maps: ``flows`` and ``ports`` of all bridges, ``rules`` of each; the time without data
    (seconds) after which a flow takes no share of a pool; and the number of bridges. ``unify_scale``: the
    largest window scale that leaves the bridges (14: any); ``unify_grace``: handshakes that begin so soon
    (seconds) after the start keep theirs. ``processors``: of this machine, for the least sizes of LRU maps.
    """

    flows: int = 65536
    rules: int = 4096
    ports: int = 1024
    active_timeout: float = 0.2
    bridges: int = 1
    unify_scale: int = MAX_WSCALE
    unify_grace: float = UNIFY_GRACE_S
    processors: int = 1

    @property
    def least_lru(self) -> int:
        """Entries that an LRU map needs to forget the oldest ones first, on every Linux."""
        return LRU_ENTRIES_OF_A_PROCESSOR * self.processors

    @property
    def counters(self) -> int:
        """Rules of a bridge, each with its counters."""
        return self.rules + self.ports

    @property
    def silent(self) -> int:
        """Established connections without packets whose state is kept."""
        return max(self.least_lru, self.flows // 2)

    @property
    def rivals(self) -> int:
        """Addresses and ports for which two connections may be recorded at a time."""
        return max(self.least_lru, self.flows // 16)

    @property
    def closed_windows(self) -> int:
        """Connections that may wait for their turns with closed windows, on all bridges."""
        return CAPACITY

    @property
    def law_flows(self) -> int:
        """Flows of which a law keeps a state; one beyond them begins anew."""
        return max(self.least_lru, self.flows // 4)

    @property
    def tenant_ports(self) -> int:
        """Tenants at ports, counted for each port: as many ports as one in 16 with 64 tenants each."""
        return max(64, self.ports * 4)

    @property
    def bucket_ns(self) -> int:
        """Length of one of the time buckets in which active flows are counted, ns."""
        return max(1, int(self.active_timeout * 1e9) // layout.BUCKETS)


def on_the_wire(frame: bytes, vlan_proto: int, vlan_tci: int) -> bytes:
    """A frame with the VLAN tag that the kernel keeps beside it: its type in network byte order, as the
    programs read it (0: no tag), and its TCI.
    """
    if not vlan_proto or len(frame) < 12:
        return frame
    return frame[:12] + bytes(ctypes.c_uint16(vlan_proto)) + vlan_tci.to_bytes(2, "big") + frame[12:]


class Program(Protocol):
    """One compiled eBPF object with its maps, on the ports of a bridge. Ports are interface indices here.

    The methods are called in this order: ``load`` once, ``add_port`` and ``remove_port`` as ports are added
    and removed, ``close`` once. After ``close`` nothing of the program is left in the kernel.
    """

    def load(self) -> None:
        """Load the object and attach what belongs to no single port. Raises :class:`BpfError`."""

    def add_port(self, ifindex: int) -> None:
        """Start on a port. Raises :class:`BpfError`; then nothing is left on the port."""

    def remove_port(self, ifindex: int) -> None:
        """Stop on a port, which may have been deleted already."""

    def close(self) -> None:
        """Detach and free. A second call does nothing."""


class LoadedProgram:
    """What the programs' classes have in common: the object, and its ring buffer if it has one."""

    def __init__(self, lib: Any) -> None:
        self._lib = lib
        self._object: BpfObject | None = None
        self._ring: RingBuffer | None = None

    def close(self) -> None:
        """Detach and free program and maps. A second call does nothing."""
        if self._ring is not None:
            self._ring.close()
        if self._object is not None:
            self._object.close()
        self._ring = self._object = None


class FilterProgram(LoadedProgram, ABC):
    """A program with a tc filter on each of its ports, ``_ports``, from which it has to be detached."""

    def __init__(self, lib: Any) -> None:
        super().__init__(lib)
        self._ports: set[int] = set()

    @abstractmethod
    def remove_port(self, ifindex: int) -> None:
        """As :meth:`Program.remove_port`; the port is then none of ``_ports``."""

    def close(self) -> None:
        """Detach from every port and free program and maps. A second call does nothing."""
        for ifindex in list(self._ports):
            self.remove_port(ifindex)
        super().close()
