"""The cost of the queue laws for one packet: what their program takes, above an empty program.

The packet is a data segment that the window program has passed, and about which it has handed on the slot of
its port and the time (``agent/bpf/lib/handed_on.h``). Each law meets it with an empty queue, and with a queue
that is half full, where it marks the ECN-capable segment if it acts. Last: the drop before it is full.
"""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import c_uint32
from pathlib import Path

from bench.program import ACK, PORTS, PSH, REPEAT, ROUNDS, SYN, segment
from bench.program_run import LoadedProgram
from fairq_ryu.agent import layout
from fairq_ryu.agent.ovsdb import BridgePort
from fairq_ryu.agent.programs.bridge import BridgePrograms
from fairq_ryu.agent.programs.program import DROP_PRIORITY, QUEUE_LAW_PRIORITY, ProgramLimits
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.agent.queue_law_table import parameters
from fairq_ryu.model import Thresholds
from fairq_ryu.queue_law_spec import QueueLawFlags, QueueLawKind, QueueLawSpec, Variant

BUFFER, RATE = 125_000, 6_250_000
_HOUR_NS = 3600 * 10**9
WANTED = {QueueLawKind.AFCD: 110, QueueLawKind.AFQ: None, QueueLawKind.SFB: None}
"""Nanoseconds above an empty program; the other laws 60."""


def main() -> None:
    """Print the figures."""
    with _bridge() as (datapath, indexes):
        to_1, to_2 = indexes
        with LoadedProgram.attached(to_1) as window, LoadedProgram.empty() as empty:
            options = bytes([2, 4, 5, 180, 1, 3, 3, 9])
            window.run(segment(1, 2, 100, 0, SYN, options), to_2)
            window.run(segment(2, 1, 500, 101, SYN | ACK, options), to_1)
            data = _ecn_capable(segment(2, 1, 501, 101, ACK | PSH, payload=1448))
            handed_on = window.run(data, to_1).control
            _laws(datapath, empty, data, to_1, handed_on)
            _drop(datapath, empty, data, to_1, handed_on)


@contextmanager
def _bridge() -> Iterator[tuple[BridgePrograms, list[int]]]:
    subprocess.run(["ip", "link", "add", PORTS[0], "type", "veth", "peer", "name", PORTS[1]], check=True)
    datapath = BridgePrograms(ProgramLimits())
    try:
        indexes = [int(Path(f"/sys/class/net/{name}/ifindex").read_text()) for name in PORTS]
        ports = [
            BridgePort(n + 1, name, index, "02:00:00:00:00:01", True, True, 0)
            for n, (name, index) in enumerate(zip(PORTS, indexes, strict=True))
        ]
        datapath.load(ports)
        for port in ports:
            datapath.add_port(port)
        yield datapath, indexes
    finally:
        datapath.close()
        subprocess.run(["ip", "link", "del", PORTS[0]], check=True)


def _ecn_capable(frame: bytes) -> bytes:
    """The IPv4 frame with ECT(0). Its header checksum stays wrong, which no program looks at."""
    return frame[:15] + bytes([frame[15] | 2]) + frame[16:]


def _laws(
    datapath: BridgePrograms, empty: LoadedProgram, data: bytes, ifindex: int, handed_on: tuple[int, ...]
) -> None:
    lease = time.monotonic_ns() + _HOUR_NS
    cases = [(kind, Variant.OURS) for kind in (QueueLawKind.MARK, QueueLawKind.RED, QueueLawKind.CODEL)]
    cases += [(QueueLawKind.AFQ, Variant.PAPER), (QueueLawKind.AFCD, Variant.PAPER)]
    cases += [(QueueLawKind.AFCD, Variant.OURS), (QueueLawKind.SFB, Variant.OURS)]
    for kind, variant in cases:
        flags = QueueLawFlags(0) if kind is QueueLawKind.MARK else QueueLawFlags.ECN
        spec = QueueLawSpec(kind, variant, flags)
        datapath.remove_queue_law(1)
        datapath.install_queue_law(1, 1, parameters(spec, QueueLimits("bench", BUFFER, RATE)), lease)
        with LoadedProgram.attached(ifindex, QUEUE_LAW_PRIORITY) as judge:
            name = f"{kind.name} ({variant.name.lower()})" if kind.name.startswith("AF") else kind.name
            for what, backlog in (("empty queue", 0), ("half full", BUFFER // 2)):
                _set_backlog(datapath, ifindex, backlog)
                cost = _above(judge, empty, data, ifindex, handed_on)
                print(_line(f"{name}, {what}", cost, WANTED.get(kind, 60)))
    datapath.remove_queue_law(1)


def _drop(
    datapath: BridgePrograms, empty: LoadedProgram, data: bytes, ifindex: int, handed_on: tuple[int, ...]
) -> None:
    datapath.set_thresholds(1, Thresholds(0, 0, drops=True))
    _set_backlog(datapath, ifindex, BUFFER // 2)
    with LoadedProgram.attached(ifindex, DROP_PRIORITY) as drop:
        print(_line("drop before full, half full", _above(drop, empty, data, ifindex, handed_on), 60))
    datapath.set_thresholds(1, None)


def _set_backlog(datapath: BridgePrograms, ifindex: int, backlog: int) -> None:
    """The queue has this length, by a clock that is an hour ahead: no event corrects it."""
    depth = layout.fq_depth(last_ns=time.monotonic_ns() + _HOUR_NS, backlog=backlog, low=backlog)
    datapath.queues.law_maps.depths.set(c_uint32(datapath.window.slots[ifindex]), depth)


def _above(
    program: LoadedProgram, empty: LoadedProgram, data: bytes, ifindex: int, handed_on: tuple[int, ...]
) -> list[float]:
    """Nanoseconds a packet above the empty program, of each round; the two are measured in turn."""

    def cost(each: LoadedProgram) -> float:
        return each.run(data, ifindex, REPEAT, handed_on).duration_ns

    return sorted(cost(program) - cost(empty) for _ in range(ROUNDS))


def _line(what: str, costs: list[float], wanted: int | None) -> str:
    aim = "" if wanted is None else f", wanted {wanted} at most"
    return (
        f"{what:34} {statistics.median(costs):5.0f} ns a packet above an empty program "
        f"(rounds {costs[0]:.0f} to {costs[-1]:.0f}){aim}"
    )
