"""Runs the queue laws as compiled for eBPF: the input of each packet is given."""

from __future__ import annotations

import os
import platform
import subprocess
from ctypes import c_uint32
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.program_run import LoadedProgram
from fairq_ryu.agent import law_header, layout
from fairq_ryu.agent.libbpf import BpfObject, load_library
from fairq_ryu.laws.sfb import SfbLaw
from tests.support.host_laws import WARNINGS
from tests.support.host_queue_laws import HostQueueLaw, Packet, QueueLawParameters, Verdict

SOURCE = Path(__file__).with_suffix(".bpf.c")
HEADER = bytes(14)
SLOT = 3


def compile_run(into: Path) -> Path:
    """The object of ``queue_law_run.bpf.c``, compiled as ``scripts/setup.sh`` compiles those of the agent."""
    made = into / "queue_law_run.bpf.o"
    flags = ["-O2", "-g", "-target", "bpf", "-mcpu=v3", *WARNINGS]
    include = [f"-I/usr/include/{platform.machine()}-linux-gnu", f"-I{layout.BPF_DIR}", f"-I{into}"]
    law_header.write(into)
    subprocess.run(["clang", *flags, *include, "-c", str(SOURCE), "-o", str(made)], check=True)
    return made


class GivenJudge:
    """The loaded program, and one law in it; close it."""

    def __init__(self, compiled: Path) -> None:
        sizes = dict.fromkeys(("queue_laws", "queue_law_states", "depths"), SLOT + 1)
        self._object = loaded = BpfObject(load_library(), compiled, sizes | {"flow_tables": 2, "sfb_bins": 2})
        self._program = LoadedProgram(os.dup(loaded.program_fd("fq_judge_given")))
        self._laws = loaded.map("queue_laws", c_uint32, layout.fq_port_queue_law)
        self._states = loaded.map("queue_law_states", c_uint32, layout.fq_locked_queue_law)
        self._flows = loaded.map("flow_tables", c_uint32, layout.fq_flow_table)
        self._bins = loaded.map("sfb_bins", c_uint32, layout.fq_sfb_bins)

    def close(self) -> None:
        """Free the program and its maps."""
        self._program.close()
        self._object.close()

    def install(self, parameters: QueueLawParameters) -> None:
        """A law in its first state."""
        law = parameters.made(table=1)
        self._laws.set(c_uint32(SLOT), layout.fq_port_queue_law(law=law, expires_ns=1))
        self._states.set(c_uint32(SLOT), layout.fq_locked_queue_law())
        self._flows.set(c_uint32(1), layout.fq_flow_table())
        self._bins.set(c_uint32(1), layout.fq_sfb_bins())

    def judge(self, packet: Packet) -> int:
        """The verdict about a packet."""
        given = bytes(c_uint32(SLOT)) + bytes(layout.fq_queue_law_input(**asdict(packet)))
        return self._program.run(HEADER + given, 1).verdict

    def parts(self) -> tuple[bytes, ...]:
        """As :attr:`tests.support.host_queue_laws.HostQueueLaw.parts`."""
        entry = self._states.get(c_uint32(SLOT))
        flows, bins = self._flows.get(c_uint32(1)), self._bins.get(c_uint32(1))
        assert entry is not None and flows is not None and bins is not None
        return bytes(entry.state), bytes(flows), bytes(bins)

    def set_queued(self, queued: Any) -> None:
        """The packets in the bins of SFB, which another program counts."""
        bins = self._bins.get(c_uint32(1))
        assert bins is not None
        bins.queued[:] = list(queued)
        self._bins.set(c_uint32(1), bins)

    def agrees(self, parameters: QueueLawParameters, trace: list[Packet], every: int) -> None:
        """Whether it decides about these packets as the law on the host, and both have the same state after
        each
        ``every`` of them. Of SFB's packets the last 40 that passed are in the queue.
        """
        law = HostQueueLaw(parameters)
        self.install(parameters)
        waiting: list[int] = []
        for number, packet in enumerate(trace):
            verdict = law.judge(packet)
            assert self.judge(packet) == verdict, (number, packet)
            if parameters.kind == SfbLaw.kind and verdict != Verdict.DROP:
                law.entered(packet.hash)
                waiting.append(packet.hash)
                if len(waiting) > 40:
                    law.left(waiting.pop(0))
                self.set_queued(law.bins.queued)
            if number % every == 0:
                assert self.parts() == law.parts
        assert self.parts() == law.parts
