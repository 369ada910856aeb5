"""The qdiscs of the kernel with which experiments compare: how ``tc`` makes each of them, with the buffer of
the bottleneck, and what it counts.

All but CAKE are below tbf, as the FIFO of the other policies; CAKE shapes by itself, as it is used. RED,
CoDel and SFB have the settings of the policies of these names, so that only the implementation differs; but
RED of the kernel is never gentle. The others have their own defaults.

The buffer in bytes: RED and the FIFO below SFB have it. FQ-CoDel, CoDel, PIE and fq count packets, so they
have as many as the buffer holds full frames. CAKE counts memory: it has as much as so many full frames take.
Those in `DEFAULTS` have the buffer that the kernel gives them if nobody names one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from fairq_ryu.config.loader import Config
from fairq_ryu.errors import UserError
from fairq_ryu.law_spec import FRAME
from fairq_ryu.laws.red import RedLaw
from fairq_ryu.laws.sfb import SfbLaw
from fairq_ryu.model import PortKey
from fairq_ryu.policies.base import find, queue_law
from fairq_ryu.queue_law_spec import QueueLawSpec
from mininet_topos.qdiscs import PortQdisc

MEMORY = 2304
"""Bytes of memory that the kernel counts for a full frame (its ``truesize``)."""
_LEAST_PACKET = 60
_SFB_ONE = 65535
_SFB_STEPS = {"increment": 66, "decrement": 11}
"""The kernel's own, in 1 / `_SFB_ONE`, which are those of our SFB; ``tc`` would have others."""


class Port(NamedTuple):
    """A port that gets a qdisc: ``rate`` in bit/s, ``buffer`` in bytes."""

    rate: int
    buffer: int


def frames(buffer: int) -> int:
    """Full frames that a buffer of so many bytes holds."""
    return max(1, buffer // FRAME)


def _packets(buffer: int) -> int:
    """More packets than a buffer of so many bytes holds: the FIFO's limit is in force."""
    return max(1000, buffer // _LEAST_PACKET)


def _fq_codel(port: Port, _law: QueueLawSpec | None) -> str:
    return f"limit {frames(port.buffer)} memory_limit {frames(port.buffer) * MEMORY}"


def _cake(port: Port, _law: QueueLawSpec | None) -> str:
    return f"bandwidth {port.rate}bit memlimit {frames(port.buffer) * MEMORY}"


def _of_packets(port: Port, _law: QueueLawSpec | None) -> str:
    return f"limit {frames(port.buffer)}"


def _nothing(_port: Port, _law: QueueLawSpec | None) -> str:
    return ""


def _only_rate(port: Port, _law: QueueLawSpec | None) -> str:
    return f"bandwidth {port.rate}bit"


def _cake_frames(port: Port) -> int:
    """CAKE takes four times what leaves in its interval of 100 ms: from 4 MiB of memory to 10,240 frames."""
    return min(max(4 << 20, port.rate // 8 * 4 // 10), 10_240 * FRAME) // MEMORY


def _red(port: Port, law: QueueLawSpec | None) -> str:
    assert isinstance(law, RedLaw)
    least, most = (port.buffer * ppm // 1_000_000 for ppm in (law.min_ppm, law.max_ppm))
    # Above max_th ours drops packets that could be marked, too.
    ecn = " ecn harddrop" if law.ecn else ""
    return (
        f"limit {port.buffer} min {least} max {most} avpkt {FRAME} burst {red_burst(law.weight_shift, least)}"
        f" probability {law.max_p_ppm / 1e6:g} bandwidth {port.rate}bit{ecn}"
    )


def red_burst(weight_shift: int, least: int) -> int:
    """What ``tc`` takes as burst, of full frames, for which it finds this weight of the mean: it takes the
    first for which burst + 1 - min_th is at most (1 - (1 - w)^burst) / w. ``UserError`` if there is none.
    """
    burst = math.ceil(least / FRAME)
    while (found := _red_shift(burst, least)) < weight_shift:
        burst += 1
    if found > weight_shift:
        raise UserError(
            f"tc has no burst for a weight of 1/2^{weight_shift} with a min_th of {least} bytes",
            "choose another [red] low",
        )
    return burst


def _red_shift(burst: int, least: int) -> int:
    """The weight that ``tc`` finds for a burst (``tc_red_eval_ewma``)."""
    excess = burst + 1 - least / FRAME
    for shift in range(1, 32):
        weight = 0.5**shift
        if excess <= (1 - (1 - weight) ** burst) / weight:
            return shift
    return 32


def _codel(port: Port, law: QueueLawSpec | None) -> str:
    assert law is not None
    times = law.delay_times(port.buffer, port.rate // 8)
    ecn = " ecn" if law.ecn else ""
    return f"limit {frames(port.buffer)} target {times.target_us}us interval {times.interval_us}us{ecn}"


def _sfb(port: Port, law: QueueLawSpec | None) -> str:
    assert isinstance(law, SfbLaw)
    # tc rounds to whole steps.
    steps = " ".join(f"{name} {steps / _SFB_ONE:.9f}" for name, steps in _SFB_STEPS.items())
    return f"limit {_packets(port.buffer)} max {law.bin_most} target {law.bin_packets} {steps}"


@dataclass(frozen=True)
class KernelQdisc:
    """A qdisc of the kernel."""

    kind: str
    options: Callable[[Port, QueueLawSpec | None], str]
    """what ``tc`` takes after the kind"""
    law: str = ""
    """the policy whose settings it has"""
    shapes: bool = False
    """it sends at the port's rate by itself"""
    fifo: bool = False
    """a FIFO below it has the buffer"""
    full: tuple[str, ...] = ()
    """its counters of packets that were dropped because the buffer was full"""
    marked: str = "ecn_mark"
    """its counter of marks"""
    own_frames: Callable[[Port], int] | None = None
    """full frames that its buffer holds, whatever that of the port is; None: it has that of the port"""

    def holds(self, rate: float, buffer: int) -> int:
        """Its buffer in bytes, of full frames, at a port with this rate in Mbit/s and this buffer."""
        if self.own_frames is None:
            return buffer
        return self.own_frames(Port(round(rate * 1e6), buffer)) * FRAME

    def at(self, rate: float, buffer: int, config: Config) -> PortQdisc:
        """The qdisc of a port; ``rate`` in Mbit/s, ``buffer`` in bytes. ``UserError`` when the kernel's
        cannot have the settings in ``config``.
        """
        spec = queue_law(find(self.law)(config.section(self.law)), PortKey(0, 0)) if self.law else None
        options = self.options(Port(round(rate * 1e6), buffer), spec)
        return PortQdisc(f"{self.kind} {options}".rstrip(), self.shapes, buffer if self.fifo else 0)

    def counts(self, listed: Sequence[Mapping[str, Any]]) -> QdiscCounts:
        """What it has counted, from tc's JSON of the qdiscs of its port. ``LookupError`` if it is not
        there.
        """
        found = next((each for each in listed if each["kind"] == self.kind), None)
        if found is None:
            raise LookupError(self.kind)
        dropped = int(found["drops"])
        full = sum(int(found.get(name, 0)) for name in self.full)
        marks = [int(each.get(self.marked, 0)) for each in found.get("tins", [found])]
        sent = int(found["packets"]) + int(found["qlen"])
        return QdiscCounts(sent + dropped, dropped - full, sum(marks), full)


class QdiscCounts(NamedTuple):
    """Packets of a qdisc: that it was given, that it dropped by its law, that it marked, and that it dropped
    because the buffer was full.
    """

    judged: int
    dropped: int
    marked: int
    full: int


QDISCS = {
    each.kind: each
    for each in (
        KernelQdisc("fq_codel", _fq_codel, full=("drop_overlimit",)),
        KernelQdisc("cake", _cake, shapes=True),
        KernelQdisc("fq", _of_packets, full=("drops",)),
        KernelQdisc("pie", _of_packets, full=("overlimit",)),
        KernelQdisc("red", _red, law="red", full=("pdrop",), marked="marked"),
        KernelQdisc("codel", _codel, law="codel", full=("drop_overlimit",)),
        KernelQdisc("sfb", _sfb, law="sfb", fifo=True, full=("queuedrop", "childdrop"), marked="marked"),
    )
}
"""By kind."""

DEFAULTS = {
    "fq_codel": replace(QDISCS["fq_codel"], options=_nothing, own_frames=lambda _port: 10_240),
    "cake": replace(QDISCS["cake"], options=_only_rate, own_frames=_cake_frames),
    "fq": replace(QDISCS["fq"], options=_nothing, own_frames=lambda _port: 10_000),
    "pie": replace(QDISCS["pie"], options=_nothing, own_frames=lambda _port: 1000),
}
"""The same with their own buffers, by kind: those that people take as they are."""
