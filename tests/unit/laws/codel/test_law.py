"""CoDel, held against the kernel's: include/net/codel_impl.h (Linux 6.1), written down here independently."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from fairq_ryu.laws.codel import CodelLaw
from tests.support.host_queue_laws import HostQueueLaw, Packet, QueueLawParameters, Verdict

MS = 1_000_000
RATE = 12_500_000
INTERVAL = 100 * MS
LONG, SHORT = 125_000, 30_000  # bytes: 10 ms, and 2.4 ms, of a target of 5 ms


def codel(**changes: int) -> HostQueueLaw:
    return HostQueueLaw(QueueLawParameters(CodelLaw.kind, RATE, **changes))


def packet(now: int, backlog: int, low: int | None = None, ect: bool = False) -> Packet:
    return Packet(now, backlog, backlog if low is None else low, 1514, 1, 0, ect)


class KernelCoDel:
    """codel_dequeue() with its u16 rec_inv_sqrt, times in ns in place of units of 1,024 ns."""

    def __init__(self) -> None:
        self.first_above = self.drop_next = self.count = self.lastcount = self.rec_inv_sqrt = 0
        self.dropping = False

    def should_drop(self, above: bool, now: int) -> bool:
        if not above:
            self.first_above = 0
        elif not self.first_above:
            self.first_above = now + INTERVAL
        else:
            return now > self.first_above
        return False

    def newton_step(self) -> None:
        invsqrt = self.rec_inv_sqrt << 16
        invsqrt2 = invsqrt * invsqrt >> 32
        val = (3 << 32) - self.count * invsqrt2
        val >>= 2
        val = val * invsqrt >> (32 - 2 + 1)
        self.rec_inv_sqrt = (val >> 16) & 0xFFFF

    def control_law(self, t: int) -> int:
        return t + (INTERVAL * (self.rec_inv_sqrt << 16) >> 32)

    def dequeue(self, above: bool, now: int) -> bool:
        drop = self.should_drop(above, now)
        if self.dropping:
            if not drop:
                self.dropping = False
            elif now >= self.drop_next:
                self.count += 1
                self.newton_step()
                self.drop_next = self.control_law(self.drop_next)
                return True
        elif drop:
            self.dropping = True
            delta = self.count - self.lastcount
            if delta > 1 and now - self.drop_next < 16 * INTERVAL:
                self.count = delta
                self.newton_step()
            else:
                self.count, self.rec_inv_sqrt = 1, 0xFFFF
            self.lastcount = self.count
            self.drop_next = self.control_law(now)
            return True
        return False


def phases() -> Iterator[tuple[int, bool]]:
    """Long queues, interrupted for shorter and longer than 16 intervals. No packet arrives exactly at the end
    of an interval: the kernel passes that one, and RFC 8289 (section 5.5) drops it, as we do.
    """
    now = 10**12
    for above, milliseconds in ((1, 900), (0, 50), (1, 600), (0, 2500), (1, 400), (0, 1), (1, 1500)):
        for _ in range(milliseconds * 10):
            now += 100_003
            yield now, bool(above)


def test_it_drops_when_the_kernel_does() -> None:
    law, kernel, times = codel(), KernelCoDel(), []
    for now, above in phases():
        dropped = law.judge(packet(now, LONG if above else SHORT)) == Verdict.DROP
        assert dropped == kernel.dequeue(above, now), now
        times += [now] * dropped
    assert len(times) == law.counts.dropped > 50
    assert law.state.codel.inv_sqrt_q32 == kernel.rec_inv_sqrt << 16


def test_the_gaps_are_the_interval_by_the_root_of_the_count() -> None:
    """RFC 8289: interval / sqrt(count). The kernel's one Newton step for each drop begins with 1, 0.5,
    0.5625: from the fifth drop on it is near the root.
    """
    law, gaps, last = codel(), {}, 0
    for tick in range(40_000):
        now = 10**12 + tick * MS // 20
        if law.judge(packet(now, LONG)) == Verdict.DROP:
            gaps[law.state.codel.count - 1] = now - last
            last = now
    assert max(gaps) > 100
    assert [gaps[count] / MS for count in (1, 2, 3)] == pytest.approx([100, 50, 56.25], abs=0.1)
    for count in range(5, max(gaps) + 1):
        assert gaps[count] == pytest.approx(INTERVAL / math.sqrt(count), rel=0.02, abs=MS / 10)


def test_nothing_is_dropped_before_an_interval_above_the_target() -> None:
    law = codel()
    start = 10**12
    assert law.judge(packet(start, LONG)) == Verdict.PASS
    assert law.judge(packet(start + INTERVAL - 1, LONG)) == Verdict.PASS
    assert law.judge(packet(start + INTERVAL, LONG)) == Verdict.DROP


@pytest.mark.parametrize(("backlog", "low"), [(LONG, SHORT), (SHORT, SHORT), (LONG, 0)])
def test_a_queue_that_was_short_between_two_packets_was_below_the_target(backlog: int, low: int) -> None:
    law = codel()
    law.judge(packet(10**12, LONG))
    law.judge(packet(10**12 + INTERVAL // 2, backlog, low))
    assert law.state.codel.first_above_ns == 0


def test_less_than_a_frame_is_never_too_long() -> None:
    """Otherwise a slow port could send nothing at all: a frame takes longer than the target."""
    law = HostQueueLaw(QueueLawParameters(CodelLaw.kind, 10_000))
    assert {law.judge(packet(10**12 + n * INTERVAL, 1514)) for n in range(20)} == {Verdict.PASS}
    verdicts = [law.judge(packet(10**12 + n * INTERVAL, 1515)) for n in range(20, 23)]
    assert verdicts == [Verdict.PASS, Verdict.DROP, Verdict.DROP]


def test_with_ecn_it_marks_and_drops_what_is_not_capable() -> None:
    law = codel(ecn=True)
    verdicts = [law.judge(packet(10**12 + n * INTERVAL, LONG, ect=n % 2 == 1)) for n in range(4)]
    assert verdicts == [Verdict.PASS, Verdict.MARK, Verdict.DROP, Verdict.MARK]
    assert (law.counts.marked, law.counts.dropped, law.counts.unmarked) == (2, 1, 1)
