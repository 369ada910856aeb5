"""The cost of the queue laws for one packet: what their program takes, above an empty program.

The packet is a data segment that the window program has passed, and about which it has handed on the slot of
its port and the time (``agent/bpf/lib/handed_on.h``). Each law is measured with an empty queue, and with one
that is half full, where the laws that act mark the ECN-capable segment. The last line is the program that
drops a packet before a full queue would, also half full.
"""

from __future__ import annotations

import statistics
import time
from ctypes import c_uint32

from bench.program import REPEAT, ROUNDS, bridge, connect
from bench.program_run import LoadedProgram
from fairq_ryu.agent import layout
from fairq_ryu.agent.programs.bridge import BridgePrograms
from fairq_ryu.agent.programs.program import DROP_PRIORITY, QUEUE_LAW_PRIORITY
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.agent.queue_law_table import parameters
from fairq_ryu.laws.afcd import AfcdLaw
from fairq_ryu.laws.afq import AfqLaw
from fairq_ryu.laws.codel import CodelLaw
from fairq_ryu.laws.mark import MarkLaw
from fairq_ryu.laws.red import RedLaw
from fairq_ryu.laws.sfb import SfbLaw
from fairq_ryu.model import Thresholds
from fairq_ryu.queue_law_spec import QueueLawSpec, Variant

BUFFER, RATE = 125_000, 6_250_000
_HOUR_NS = 3600 * 10**9
WANTED = {"afcd": 110, "afq": None, "sfb": None}
"""Nanoseconds above an empty program; the other laws 60."""


def main() -> None:
    """Print the figures."""
    with bridge() as (datapath, indexes):
        to_1 = indexes[0]
        with LoadedProgram.attached(to_1) as window, LoadedProgram.empty() as empty:
            data = _ecn_capable(connect(window, indexes))
            handed_on = window.run(data, to_1).control
            _laws(datapath, empty, data, to_1, handed_on)
            _drop(datapath, empty, data, to_1, handed_on)


def _ecn_capable(frame: bytes) -> bytes:
    """The IPv4 frame with ECT(0). Its header checksum stays wrong, which no program looks at."""
    return frame[:15] + bytes([frame[15] | 2]) + frame[16:]


def _laws(
    datapath: BridgePrograms, empty: LoadedProgram, data: bytes, ifindex: int, handed_on: tuple[int, ...]
) -> None:
    lease = time.monotonic_ns() + _HOUR_NS
    cases: list[QueueLawSpec] = [MarkLaw(), RedLaw(ecn=1), CodelLaw(ecn=1)]
    for variant in (Variant.PAPER, Variant.OURS):
        cases += [AfqLaw(ecn=1, variant=variant), AfcdLaw(ecn=1, variant=variant)]
    cases += [SfbLaw(ecn=1)]
    for spec in cases:
        datapath.remove_queue_law(1)
        datapath.install_queue_law(1, 1, parameters(spec, QueueLimits("bench", BUFFER, RATE)), lease)
        with LoadedProgram.attached(ifindex, QUEUE_LAW_PRIORITY) as judge:
            shown = spec.shown_variant
            name = f"{spec.name} ({Variant(shown).name.lower()})" if shown else spec.name
            for what, backlog in (("empty queue", 0), ("half full", BUFFER // 2)):
                _set_backlog(datapath, ifindex, backlog)
                cost = _above(judge, empty, data, ifindex, handed_on)
                print(_line(f"{name}, {what}", cost, WANTED.get(spec.name, 60)))
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
