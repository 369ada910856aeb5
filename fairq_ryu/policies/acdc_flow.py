"""One flow under the law ``acdc``: the twin of ``agent/bpf/laws/acdc.h``.

DCTCP (RFC 8257) for a flow whose sender does not know it. Same integers, same order as the C code, and a test
drives both with random traces; as :mod:`.switch_laws`. Units: bytes; ``alpha`` is << 20; counts and sequence
numbers wrap at 32 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from fairq_ryu.policies.switch_laws import MAX_POOL, LawParameters

SHIFT = 20
ONE = 1 << SHIFT
WHOLE, HALF = 1, 4
_U32 = 0xFFFFFFFF


class Reduced(IntEnum):
    """Why a window was reduced (``FQ_ACDC_...``)."""

    FOR_MARKS = 1
    FOR_LOSS = 2


@dataclass(frozen=True, slots=True)
class AcdcAck:
    """``fq_acdc_ack`` of ``acdc_layout.h``."""

    ack: int
    next: int
    total: int
    flight: int
    mss: int
    floor: int
    echo: int = 0


class AcdcFlow:
    """One flow on one port; its fields are those of ``fq_acdc``."""

    def __init__(self, parameters: LawParameters) -> None:
        self.parameters = parameters
        self.sent = self.marks = self.losses = 0
        self.window = self.threshold = self.alpha = self.end = 0
        self.sent_then = self.marks_then = self.acked = self.echoed = self.used = 0
        self.marks_met = self.losses_met = self.total = 0
        self.reduced = self.recover = self.credit = self.echoes = self.reductions = 0

    def data_sent(self, backlog: int, length: int, payload: int, mss: int, again: bool) -> None:
        """Data leaves in a frame of ``length`` bytes, at this backlog. ``again``: it has left before."""
        above = max(backlog + length - self.parameters.target, 0)
        self.sent = (self.sent + payload) & _U32
        if above:
            self.marks = (self.marks + min(payload, max(above, mss))) & _U32
        self.losses = (self.losses + again) & _U32

    def acknowledged(self, seen: AcdcAck) -> int:
        """An ACK. Returns the window of the flow, bytes."""
        marked = self.marks != self.marks_met or bool(seen.echo)
        lost = self.losses != self.losses_met
        fresh = (seen.total - self.total) & _U32
        self.marks_met, self.losses_met = self.marks, self.losses
        if not self.window:
            self._begin(seen)
            fresh = 0
        if fresh > MAX_POOL:
            fresh = 0
        self.total = seen.total
        self.acked = (self.acked + fresh) & _U32
        if seen.echo:
            self.echoed = (self.echoed + fresh) & _U32
            self.echoes = (self.echoes + 1) & _U32
        if seen.flight > self.window // 2:
            self.used |= HALF
        if seen.flight + seen.mss > self.window:
            self.used |= WHOLE
        if fresh and _after(seen.ack, self.end):
            self._observe(seen.next)
        if self.reduced and _after(seen.ack, self.recover):
            self.reduced = 0
        answers = self.reduced != Reduced.FOR_LOSS if lost else marked and not self.reduced
        if answers:
            self._reduce(seen.next, lost)
        elif not marked and not self.reduced:
            self._grow(seen, fresh)
        self.window = max(self.window, min(seen.floor, MAX_POOL))
        return self.window

    def _begin(self, seen: AcdcAck) -> None:
        first = max(self.parameters.first_window * seen.mss, seen.flight)
        self.window = max(min(first, MAX_POOL), 1)
        self.threshold, self.alpha = MAX_POOL, ONE
        self.end, self.total = seen.next, seen.total

    def _observe(self, next_seq: int) -> None:
        sent, marked = (self.sent - self.sent_then) & _U32, (self.marks - self.marks_then) & _U32
        here = (marked << SHIFT) // sent if sent else 0
        elsewhere = (self.echoed << SHIFT) // self.acked if self.acked else 0
        fraction, g = min(max(here, elsewhere), ONE), self.parameters.weight_shift
        self.alpha = self.alpha - (self.alpha >> g) + (fraction >> g)
        self.end, self.sent_then, self.marks_then = next_seq, self.sent, self.marks
        self.acked = self.echoed = 0
        self.used = (self.used & (WHOLE | HALF)) << 1

    def _reduce(self, next_seq: int, lost: bool) -> None:
        self.window -= self.window * (ONE if lost else self.alpha) >> (SHIFT + 1)
        self.threshold = self.window
        self.reduced = Reduced.FOR_LOSS if lost else Reduced.FOR_MARKS
        self.recover, self.credit = next_seq, 0
        self.reductions = (self.reductions + 1) & _U32

    def _grow(self, seen: AcdcAck, fresh: int) -> None:
        if self.window < self.threshold:
            if self.used & (HALF | HALF << 1):
                self.window = min(self.window + fresh, self.threshold)
            return
        if not self.used & (WHOLE | WHOLE << 1):
            return
        self.credit += fresh
        if self.credit >= self.window:
            self.credit = min(self.credit - self.window, self.window)
            self.window = min(self.window + seen.mss, MAX_POOL)


def _after(number: int, other: int) -> bool:
    """Whether a sequence number is behind another."""
    return bool(((other - number) & _U32) >> 31)
