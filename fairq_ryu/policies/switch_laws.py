"""The window laws that run in the switch, in Python: the twin of ``agent/bpf/laws/*.h``.

Same integers, same order, no floating point: for the same trace both give the same state, bit for bit, and a
test drives both with random traces. The twin is the reference for readers and for models of a network; the C
code decides in the switch. Units: bytes, ns and bytes/s; ``pool`` is bytes << 8 and ``incr`` bytes << 16.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum, IntFlag

from fairq_ryu.law_spec import Gain, LawFlags, LawKind, LimitedBy, Mode

NS_PER_S = 1_000_000_000
MAX_POOL = 1 << 30
POOL_SHIFT = 8
DEFAULT_SEGMENT, MOST_SEGMENT, SEGMENT_NS = 1460, 8960, NS_PER_S
MOST_TICKS, MOST_STARTS = 64, 1_000_000
MOST_RTT, RTT_KNOWN_NS, MOST_DRAIN_NS = NS_PER_S // 2, NS_PER_S, 10 * NS_PER_S
LAS_WEIGHT, LAS_FEW, SEGMENT_HEADERS = 8, 4, 66
FAIRSWITCH_LEAST, FAIRSWITCH_EMPTY = 2048, 80
UNPROVEN_NS = 10 * NS_PER_S
NO_WINDOW = 0xFFFFFFFF
_U32, _U64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


@dataclass(frozen=True, slots=True)
class LawParameters:
    """``fq_law`` of ``layout.h``."""

    kind: int
    rate: int
    limit: int
    target: int
    interval_ns: int = 200_000
    base_rtt_ns: int = 1_000_000
    gain: int = Gain.OURS
    gain_q16: int = 983
    increments: int = 8
    flags: int = 0
    floor_segments: int = 2
    linger_ns: int = 50_000_000
    calm: int = 0
    trim_step: int = 40
    young_bytes: int = 100_000
    first_window: int = 10
    limiting_segments: int = 2
    syn_allowance: int = 256
    weight_shift: int = 4


class Opening(IntEnum):
    """The steps of a handshake at which a law may count a direction (``FQ_OPENING_...``): its SYN leaves, and
    once more; it is answered; the answer is acknowledged.
    """

    SYN = 1
    AGAIN = 2
    SYN_ACK = 3
    PROVEN = 4


class OpeningFlags(IntFlag):
    """Of a direction: a law has counted it as one that begins, before its handshake was complete."""

    BEGUN = 4096
    UNPROVEN = 8192


@dataclass(frozen=True, slots=True)
class LawInput:
    """``fq_law_input`` of ``layout.h``: what a law knows at a tick."""

    now_ns: int
    byte_ns: int
    backlog: int
    flows: int
    young: int = 0


class Law:
    """One law on one port; its fields are those of ``fq_law_state``."""

    def __init__(self, parameters: LawParameters) -> None:
        self.parameters = parameters
        self.pool = self.incr = 0
        self.last_ns = self.byte_ns = self.limited_ns = self.calm_ns = self.expected_ns = 0
        self.updates = self.late = self.proven = 0
        self.granted = self.flows = self.young = self.window_in_force = self.segment = 0
        self.trim = self.beta = self.count = self.expected = self.queue = 0
        self.mode = self.limited_by = 0
        self.unproven = self.unproven_ns = 0
        self.rtt_ns = self.rtt_seen_ns = 0
        self.segment_ns = self.segment_now = self.segment_before = 0

    # Events

    def saw_segment(self, one: int, other: int, now_ns: int) -> None:
        """A flow has been seen whose ends announce these MSS (0: none): it uses the smaller one. The largest
        of the flows of the last one to two periods counts.
        """
        mss = min(min(one, other) if one and other else one + other, MOST_SEGMENT)
        age = max(0, now_ns - self.segment_ns)
        if age >= SEGMENT_NS:
            self.segment_before = self.segment_now if age < 2 * SEGMENT_NS else 0
            self.segment_now, self.segment_ns = 0, now_ns
        self.segment_now = max(self.segment_now, mss)
        self.segment = max(self.segment_now, self.segment_before) or self.segment

    def tick(self, seen: LawInput) -> bool:
        """Run the law if it is due; returns whether it did."""
        p = self.parameters
        if not self.last_ns or not self.pool:  # another processor may have written to a cleared state
            self.segment = self.segment or DEFAULT_SEGMENT
            self._start_pool()
            self._bound_pool(seen.flows)
            self.queue = seen.backlog
        else:
            elapsed = seen.now_ns - self.last_ns
            area = (seen.byte_ns - self.byte_ns) & _U64  # the integral wraps
            if elapsed <= 0 or area >> 63 or elapsed < p.interval_ns:
                return False
            ticks = min(max(_div(elapsed, p.interval_ns), 1), MOST_TICKS)
            self.late += ticks > 2
            self.queue = min(area // elapsed, MAX_POOL)
            self.limited_by = LimitedBy.QUEUE
            _TICKS[p.kind](self, seen, ticks)
        self.last_ns, self.byte_ns = seen.now_ns, seen.byte_ns
        self.flows, self.young = seen.flows, seen.young
        return True

    def flow_began(self, backlog: int, now_ns: int) -> None:
        """A flow begins whose data leaves by the port."""
        if self.parameters.kind == LawKind.IQM:
            self.beta = min(self.beta + 1, MOST_STARTS)
            self._predict(backlog)
        elif self.parameters.kind == LawKind.SED_BASE:
            self._expect(backlog, now_ns)

    def opening(self, step: int, flags: int, backlog: int, now_ns: int) -> int:
        """A handshake has come to a step (:class:`Opening`); ``flags`` (:class:`OpeningFlags`) of its
        direction. Returns the new flags. ``laws/opening.h`` says when a flow counts.
        """
        self.proven += step == Opening.PROVEN
        counts, flags = self._counts(step, flags, now_ns)
        if counts:
            self.segment = self.segment or DEFAULT_SEGMENT
            self.flow_began(backlog, now_ns)
        return flags

    def _counts(self, step: int, flags: int, now_ns: int) -> tuple[bool, int]:
        counted, unproven = bool(flags & OpeningFlags.BEGUN), bool(flags & OpeningFlags.UNPROVEN)
        if step == Opening.AGAIN:
            return False, flags & ~OpeningFlags.BEGUN
        if step == Opening.PROVEN:
            self.unproven -= unproven and self.unproven > 0
            flags &= ~OpeningFlags.UNPROVEN
        elif not counted and not unproven:
            if (step == Opening.SYN and self.parameters.kind != LawKind.IQM) or not self._allows(now_ns):
                return False, flags
            flags |= OpeningFlags.UNPROVEN
        return not counted, flags | OpeningFlags.BEGUN

    def _allows(self, now_ns: int) -> bool:
        if max(now_ns - self.unproven_ns, 0) >= UNPROVEN_NS:
            self.unproven, self.unproven_ns = 0, now_ns
        allowed = self.unproven < self.parameters.syn_allowance
        self.unproven += allowed
        return allowed

    def flow_ended(self) -> None:
        """A flow has ended."""
        if self.parameters.kind == LawKind.IQM and self.beta:
            self.beta -= 1

    def limited(self, flight: int, granted: int, rtt_ns: int, now_ns: int) -> None:
        """An ACK shows that a flow had ``flight`` of its ``granted`` bytes under way. Its handshake took
        ``rtt_ns``; 0: not known.
        """
        if flight + self.segment <= granted:
            return
        self.limited_ns = now_ns
        known = max(now_ns - self.rtt_seen_ns, 0) < RTT_KNOWN_NS
        if rtt_ns and not (self.rtt_ns and rtt_ns > self.rtt_ns and known):
            self.rtt_ns, self.rtt_seen_ns = min(rtt_ns, MOST_RTT), now_ns

    def window(self, flows: int, young: int, sent: int, mss: int = DEFAULT_SEGMENT) -> int:
        """The window of a flow, which has sent so much in segments of ``mss``; :data:`NO_WINDOW`: its own."""
        p, n = self.parameters, max(flows, 1)
        if p.kind == LawKind.FAIRQ:
            return self._fairq_window(n, sent)
        if p.kind == LawKind.FAIRSWITCH:
            return self._fairswitch_window(flows)
        if p.kind == LawKind.LAS:
            return self._las_window(flows, young, sent)
        if p.kind == LawKind.SED_BASE:
            return self._sed_base_window(mss)
        if p.kind == LawKind.ACDC:
            return p.first_window * mss
        return self._iqm_window(n, sent)

    # The pool

    def _cap(self) -> int:
        p = self.parameters
        held = p.limit + _bytes(p.rate, p.base_rtt_ns)
        return min(max(held, _bytes(p.rate, self.rtt_ns)), MAX_POOL)

    def _floor_window(self, n: int) -> int:
        window = self.parameters.floor_segments * self.segment
        return window if n * window <= self.parameters.limit else self.segment

    def _raise_pool(self, seen: LawInput, amount: int) -> None:
        p = self.parameters
        answer = max(p.base_rtt_ns, self.rtt_ns) + _div(self.queue * NS_PER_S, p.rate)
        patience = max(p.increments * p.interval_ns, 2 * answer)
        if not self.limited_ns or max(seen.now_ns - self.limited_ns, 0) > patience:
            self.limited_by = LimitedBy.FLOWS
        else:
            self.pool += amount

    def _bound_pool(self, n: int) -> None:
        cap, floors = self._cap() << POOL_SHIFT, n * self._floor_window(n)
        if self.pool >= cap:
            self.pool, self.limited_by = cap, LimitedBy.CAP
        self.pool = max(self.pool, self.segment << POOL_SHIFT)
        self.granted = self.pool >> POOL_SHIFT
        self.mode &= ~Mode.FLOORED
        if floors > self.granted:
            self.mode |= Mode.FLOORED
            self.granted, self.limited_by = min(floors, MAX_POOL), LimitedBy.FLOOR

    def _start_pool(self) -> None:
        p = self.parameters
        self.pool, self.incr, self.count = p.target << POOL_SHIFT, 0, 0
        self.mode = Mode.SLOW_START if p.flags & LawFlags.SLOW_START else 0

    def _is_frozen(self) -> bool:
        return bool(self.mode & Mode.FLOORED) and self.queue > self.parameters.target

    def _distance_q16(self) -> int:
        target = self.parameters.target
        return min(_div(abs(self.queue - target) << 16, target), 64 << 16)

    def _gain_q16(self, ticks: int) -> int:
        p = self.parameters
        gain = min(p.gain_q16 * ticks, 1 << 15)
        if self.rtt_ns <= p.base_rtt_ns:
            return gain
        drain = min(_div(p.target * NS_PER_S, p.rate), MOST_DRAIN_NS)
        return _div(gain * (p.base_rtt_ns + drain), self.rtt_ns + drain)

    def _scale_pool(self, seen: LawInput, ticks: int) -> None:
        moved = min(self.pool, 2 * self.parameters.target << POOL_SHIFT)
        move = (moved * self._gain_q16(ticks) >> 16) * self._distance_q16() >> 16
        if self._is_frozen():
            return
        if self.queue <= self.parameters.target:
            self._raise_pool(seen, move)
        else:
            self.pool -= min(move, self.pool >> 1)
        self.updates += 1

    # FairQ, FairSwitch and least attained service

    def _fairq(self, seen: LawInput, ticks: int) -> None:
        p, frozen = self.parameters, self._is_frozen()
        if not seen.flows:
            self._start_pool()
        elif p.gain == Gain.OURS:
            self._scale_pool(seen, ticks)
        elif self.mode & Mode.SLOW_START and self.queue >= p.target and not frozen:
            self.mode &= ~Mode.SLOW_START
            above = (self.queue - p.target) << POOL_SHIFT
            self.pool = max(self.pool - above, p.target << POOL_SHIFT)
            self.incr = self.count = 0
            self.updates += 1
        elif not frozen:
            self.incr += self._increment() * ticks
            self.count += ticks
            if self.count >= p.increments:
                self._update_pool(seen)
        self._bound_pool(seen.flows)

    def _fairq_window(self, n: int, sent: int) -> int:
        p = self.parameters
        floors = n * p.floor_segments * (self.segment + SEGMENT_HEADERS)
        if not sent and floors + p.target > p.limit:
            return self.segment
        return max(((self.pool >> POOL_SHIFT) & _U32) // n, self._floor_window(n))

    def _increment(self) -> int:
        p = self.parameters
        if p.gain == Gain.LISTING:
            return (p.target - self.queue) << 16
        step = _div(self._distance_q16() * self.segment, p.increments)
        return -step if self.queue > p.target else step

    def _update_pool(self, seen: LawInput) -> None:
        listing = self.parameters.gain == Gain.LISTING
        move = abs(self.incr)
        if listing:
            move = _div(move, self.count)
        move >>= 16 - POOL_SHIFT
        if self.mode & Mode.SLOW_START:
            segments = 2 * self.segment << POOL_SHIFT
            self._raise_pool(seen, segments if listing else segments * seen.flows)
        elif self.incr < 0:
            self.pool = max(self.pool - move, 0)
        else:
            self._raise_pool(seen, move)
        self.incr = self.count = 0
        self.updates += 1

    def _fairswitch_window(self, n: int) -> int:
        base = max(FAIRSWITCH_LEAST, self.parameters.target // max(n, 1))
        return min(max(base + self.trim, self.segment), self._cap())

    def _fairswitch(self, seen: LawInput, ticks: int) -> None:
        p, dead, step = self.parameters, self.segment // 4, self.parameters.trim_step * ticks
        if not seen.flows:
            self.trim = 0
        elif self.queue > p.target + dead:
            self.trim = max(self.trim - step, 0)
            self.updates += 1
        elif self.queue > FAIRSWITCH_EMPTY and self.queue + dead < p.target:
            self.trim = min(self.trim + step, p.limit)
            self.updates += 1
        self.granted = min(seen.flows * self._fairswitch_window(seen.flows), MAX_POOL)

    def _las(self, seen: LawInput, ticks: int) -> None:
        if seen.flows:
            self._scale_pool(seen, ticks)
        else:
            self._start_pool()
        self._bound_pool(seen.flows)

    def _las_window(self, n: int, young: int, sent: int) -> int:
        p, segment = self.parameters, self.segment
        pool, old, is_young = self.pool >> POOL_SHIFT, max(n - young, 0), sent < p.young_bytes
        if young > LAS_FEW:
            if not is_young or not sent:
                return segment
            rest = max(pool - old * segment, 0) // young
            rest = _div(rest * (segment + 2 * min(sent, p.young_bytes)), 2 * segment)
            room = max(p.limit - p.target - n * (segment + SEGMENT_HEADERS), 0)
            return max(min(rest, segment + room // young), segment)
        share = pool // max(LAS_WEIGHT * young + old, 1)
        return max(share * LAS_WEIGHT if is_young else share, self._floor_window(n))

    # AC/DC: its windows are those of flows (acdc_flow.py)

    def _unmoved(self, seen: LawInput, ticks: int) -> None:
        pass

    # IQM and SED's base window

    def _begin_limiting(self) -> None:
        self.updates += not self.mode & Mode.LIMITING
        self.mode |= Mode.LIMITING
        self.window_in_force = self.parameters.limiting_segments * self.segment
        self.calm_ns = 0

    def _leave_limiting(self, now_ns: int, ticks: int) -> None:
        p = self.parameters
        if not self.mode & Mode.LIMITING:
            for _ in range(min(8, ticks)):
                if self.window_in_force:
                    self.window_in_force += max(self.window_in_force >> 3, 1)
                if self.window_in_force >= p.limit:
                    self.window_in_force = 0
            return
        if self.queue >= p.calm:
            self.calm_ns = 0
        elif not self.calm_ns:
            self.calm_ns = self.last_ns if ticks > 2 else now_ns
        if self.calm_ns and now_ns - self.calm_ns >= p.linger_ns:
            self.mode &= ~Mode.LIMITING
            self.calm_ns = 0
            self.updates += 1

    def _predict(self, backlog: int) -> None:
        p = self.parameters
        if self.beta * p.first_window * self.segment + backlog > p.limit:
            self._begin_limiting()

    def _iqm(self, seen: LawInput, ticks: int) -> None:
        p = self.parameters
        self._leave_limiting(seen.now_ns, ticks)
        if not self.mode & Mode.LIMITING:
            if self.window_in_force >= self._iqm_share(max(seen.flows, 1)):
                self.window_in_force = 0
            if not seen.flows:
                self.pool = p.target << POOL_SHIFT
            elif not self.window_in_force and p.target < p.limit:
                self._scale_pool(seen, ticks)
            self._bound_pool(seen.flows)
        self._predict(seen.backlog)
        self.beta = 0

    def _iqm_share(self, n: int) -> int:
        if self.parameters.target >= self.parameters.limit:
            return NO_WINDOW
        return max(((self.pool >> POOL_SHIFT) & _U32) // n, self._floor_window(n))

    def _iqm_window(self, n: int, sent: int) -> int:
        if not self.window_in_force:
            return self._iqm_share(n)
        p = self.parameters
        congested = self.mode & Mode.LIMITING and not self.calm_ns
        if congested and not sent and p.target < p.limit:
            return self.segment
        old = sent >= p.first_window * self.segment
        return self.segment if congested and old else self.window_in_force

    def _sed_base(self, seen: LawInput, ticks: int) -> None:
        self._leave_limiting(seen.now_ns, ticks)
        if seen.backlog >= self.parameters.target:
            self._begin_limiting()
            self.expected = 0

    def _expect(self, backlog: int, now_ns: int) -> None:
        p = self.parameters
        if self.mode & Mode.LIMITING or not p.flags & LawFlags.ANTICIPATE:
            return
        spent = min(max(now_ns - self.expected_ns, 0), NS_PER_S)
        left = max(self.expected - _bytes(p.rate, spent), 0)
        self.expected = min(left + p.first_window * self.segment, MAX_POOL)
        self.expected_ns = now_ns
        if backlog + self.expected > p.target:
            self._begin_limiting()
            self.expected = 0

    def _sed_base_window(self, mss: int) -> int:
        if self.mode & Mode.LIMITING:
            return self.parameters.limiting_segments * mss
        if not self.window_in_force:
            return NO_WINDOW
        return min(_div(self.window_in_force * mss, self.segment), MAX_POOL)


_TICKS: dict[int, Callable[[Law, LawInput, int], None]] = {
    LawKind.FAIRQ: Law._fairq,
    LawKind.FAIRSWITCH: Law._fairswitch,
    LawKind.IQM: Law._iqm,
    LawKind.SED_BASE: Law._sed_base,
    LawKind.LAS: Law._las,
    LawKind.ACDC: Law._unmoved,
}


def _div(a: int, b: int) -> int:
    return a // b if b else 0


def _bytes(rate: int, ns: int) -> int:
    return rate // 1000 * ns // 1_000_000
