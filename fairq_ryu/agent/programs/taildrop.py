"""Tail drop, packet by packet, on ports of Open vSwitch's userspace datapath, for experiments.

That datapath throws away the rest of a batch of up to 32 packets when a queue refuses one of them. A baseline
measured so is worse than any switch. :class:`TailDrop` drops exactly the packet that does not fit, before the
queue can refuse it. ``bpf/taildrop.bpf.c`` says how.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from ctypes import c_uint32

from fairq_ryu.agent import layout
from fairq_ryu.agent.libbpf import BpfObject, load_library
from fairq_ryu.agent.programs.program import TAILDROP_PRIORITY, FilterProgram
from fairq_ryu.agent.programs.queue import QueueProgram
from fairq_ryu.agent.tc import TcFilter


class TailDrop(FilterProgram):
    """``taildrop.bpf.o`` at tc egress of ports, with a queue program of its own that counts their backlog."""

    def __init__(self, limits: Mapping[int, int], groups: Mapping[int, int] | None = None) -> None:
        """``limits``: by interface index, what its queue holds, bytes. ``groups``: of ports that share a
        memory, the number of those with which they do, from 1; their limit is that of the memory. The queues
        must be empty when their ports are added. Raises :class:`UserError` where the machine cannot run eBPF
        programs.
        """
        super().__init__(load_library())
        self._limits, self._groups = dict(limits), dict(groups or {})
        self._filter = TcFilter(self._lib, TAILDROP_PRIORITY)
        self._queue = QueueProgram(self._lib, max(1, len(self._limits)))

    def load(self) -> None:
        """Load the programs. Raises :class:`UserError` or :class:`BpfError`; then nothing is left."""
        try:
            self._queue.load()
            self._object = BpfObject(
                self._lib,
                layout.BPF_DIR / "taildrop.bpf.o",
                {"taildrops": max(1, len(self._limits))},
                {table.name: table.fd for table in (self._queue.queues, self._queue.checks)},
            )
            self._counts = self._object.map("taildrops", c_uint32, layout.fq_taildrop)
        except BaseException:
            self.close()
            raise

    def add_port(self, ifindex: int) -> None:
        """Start on one of the ports that have a limit. Raises :class:`BpfError`."""
        assert self._object is not None
        self._queue.add_port(ifindex)
        start = layout.fq_taildrop(limit=self._limits[ifindex], group=self._groups.get(ifindex, 0))
        self._counts.set(c_uint32(ifindex), start)
        self._filter.attach(ifindex, self._object.program_fd("fq_taildrop"), create=True)
        self._ports.add(ifindex)

    def remove_port(self, ifindex: int) -> None:
        """Stop on a port, which may have been deleted already."""
        self._filter.detach(ifindex)
        self._queue.remove_port(ifindex)
        self._ports.discard(ifindex)

    def dropped(self, ifindex: int) -> int:
        """Packets dropped so far at a port that was added."""
        counted = self._counts.get(c_uint32(ifindex))
        return int(counted.packets) if counted else 0

    def close(self) -> None:
        """Remove the programs from the ports and free them. A second call does nothing."""
        super().close()
        self._queue.close()


def start_taildrop(limits: Mapping[str, int], groups: Mapping[str, int] | None = None) -> TailDrop:
    """Tail drop on the interfaces named, of this network namespace; ``limits`` and ``groups`` as for
    :class:`TailDrop`.

    Raises :class:`UserError`, :class:`BpfError` or ``OSError`` (no such interface); then nothing is attached.
    """
    by_index = {socket.if_nametoindex(name): limit for name, limit in limits.items()}
    sharing = {socket.if_nametoindex(name): group for name, group in (groups or {}).items()}
    taildrop = TailDrop(by_index, sharing)
    taildrop.load()
    try:
        for ifindex in by_index:
            taildrop.add_port(ifindex)
    except BaseException:
        taildrop.close()
        raise
    return taildrop
