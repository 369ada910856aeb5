"""Tail drop, packet by packet, on ports of Open vSwitch's userspace datapath, for experiments.

That datapath throws away the rest of a batch of up to 32 packets when a queue refuses one of them. A baseline
measured so is worse than any switch. :class:`TailDrop` drops exactly the packet that does not fit, before the
queue can refuse it. ``bpf/taildrop.bpf.c`` says how.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from ctypes import c_uint32
from pathlib import Path

from fairq_ryu.agent import layout
from fairq_ryu.agent.libbpf import BpfObject, TcFilter, load_library
from fairq_ryu.agent.programs.programs import TC_PRIORITY

PRIORITY = TC_PRIORITY + 2
"""Behind the filters of an agent: what those drop on a controller's order, they also report."""


class TailDrop:
    """Tail drop on the ports named, from now on until :meth:`close`."""

    def __init__(self, limits: Mapping[str, int]) -> None:
        """``limits``: by the name of an interface of this network namespace, what its queue holds, bytes.
        The queues must be empty. Raises :class:`UserError`, :class:`BpfError` or ``OSError`` (no such
        interface), and then nothing is attached.
        """
        lib = load_library()
        self._filter = TcFilter(lib, PRIORITY)
        self._ports: dict[str, int] = {}
        self._objects: list[BpfObject] = []
        room = max(1, len(limits))
        try:
            sizes = {"queues": room, "histograms": room, "thresholds": 1}
            queue = BpfObject(lib, layout.BPF_DIR / "queue.bpf.o", sizes)
            self._objects.append(queue)
            queues = queue.map("queues", c_uint32, layout.fq_queue)
            drop = BpfObject(
                lib, layout.BPF_DIR / "taildrop.bpf.o", {"taildrops": room}, {"queues": queues.fd}
            )
            self._objects.append(drop)
            netns = os.stat("/proc/thread-self/ns/net").st_ino
            queue.map("queue_config", c_uint32, layout.fq_queue_config).set(
                c_uint32(0), layout.fq_queue_config(netns=netns, peak_epoch=1)
            )
            self._counts = drop.map("taildrops", c_uint32, layout.fq_taildrop)
            indices = {name: socket.if_nametoindex(name) for name in limits}
            for name, index in indices.items():
                queues.set(c_uint32(index), layout.fq_queue(peak_epoch=1))
                self._counts.set(c_uint32(index), layout.fq_taildrop(limit=limits[name]))
            for program in ("fq_enqueue", "fq_dequeue"):
                queue.attach(program)
            for name, index in indices.items():
                self._filter.attach(index, drop.program_fd("fq_taildrop"))
                self._ports[name] = index
        except BaseException:
            self.close()
            raise

    def dropped(self, name: str) -> int:
        """Packets dropped so far at the port ``name``. ``KeyError`` when it is none of those named."""
        counted = self._counts.get(c_uint32(self._ports[name]))
        return int(counted.packets) if counted else 0

    def close(self) -> None:
        """Take the programs off the ports. A second call does nothing."""
        for name, index in self._ports.items():
            if Path(f"/sys/class/net/{name}").exists():
                self._filter.detach(index)
        self._ports.clear()
        for each in self._objects:
            each.close()
        self._objects.clear()
