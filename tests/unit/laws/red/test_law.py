"""RED, held against Floyd and Jacobson (ToN 1993), its "gentle" variant, and the kernel's average (red.h)."""

from __future__ import annotations

import ctypes
import math
from collections import Counter

import pytest

from fairq_ryu.laws.red import RedLaw
from tests.support.host_queue_laws import ONE, HostQueueLaw, Packet, QueueLawParameters, Verdict, library

RATE = 12_500_000


def red(**changes: int) -> HostQueueLaw:
    return HostQueueLaw(QueueLawParameters(RedLaw.kind, RATE, **changes))


def packet(now: int, backlog: int, random: int = ONE - 1, ect: bool = False, length: int = 1514) -> Packet:
    return Packet(now, backlog, backlog, length, 1, random, ect)


def at_average(law: HostQueueLaw, average: int) -> HostQueueLaw:
    """The law with an average that does not change while the backlog is as long."""
    law.own("red_state").average = average << law.parameters.weight_shift
    law.state.last_ns = 1
    return law


def probability(law: HostQueueLaw, backlog: int, length: int = 1514) -> float:
    """With which probability the next packet is dropped; while no random number is drawn."""
    assert not law.own("red_state").draw_q32
    return law.least_passing(packet(10**12, backlog, length=length)) / ONE


def left(distance: int, packets: int) -> int:
    """What is left of a distance between average and queue after so many packets of weight 1/512."""
    return int(library().fq_host_red_left(ctypes.c_uint64(distance), ctypes.c_uint64(packets), 9))


def average_after_burst(weight: float, packets: int) -> float:
    """Section 6 of the paper: the average after a queue has grown from 0 to L packets, one at a time."""
    return packets + 1 + ((1 - weight) ** (packets + 1) - 1) / weight


def test_the_average_follows_a_burst_as_in_the_paper() -> None:
    """Its examples: for w = 0.001 and 100 packets the average is 4.88; and w = 0.0042 lets 50 packets pass
    with min_th = 5.
    """
    assert average_after_burst(0.001, 100) == pytest.approx(4.88, abs=0.01)
    assert average_after_burst(0.0042, 50) == pytest.approx(5, abs=0.01)
    law = red(weight_shift=10)
    for number in range(1, 101):
        law.judge(packet(10**12, 1514 * number))
    found = law.own("red_state").average / (1 << 10) / 1514
    assert found == pytest.approx(average_after_burst(1 / 1024, 100), abs=0.001)


def test_the_average_is_that_of_the_kernel() -> None:
    """red_calc_qavg_no_idle_time() of include/net/red.h: qavg + (backlog - (qavg >> Wlog))."""
    law, qavg = red(min_bytes=10**6, max_bytes=10**7), 0
    for number in range(2000):
        backlog = 1 + number * 7919 % 120_000
        qavg = qavg + (backlog - (qavg >> 9))
        law.judge(packet(10**12 + number, backlog))
        assert law.own("red_state").average == qavg


@pytest.mark.parametrize("packets", [0, 1, 2, 3, 255, 1000, 10_000])
def test_the_average_decays_while_the_queue_is_empty(packets: int) -> None:
    """Section 4: avg * (1 - w)^m, for the m packets that could have been sent."""
    average = 30_000 << 9
    assert left(average, packets) == pytest.approx(average * (1 - 1 / 512) ** packets, rel=1e-6, abs=9)
    law = at_average(red(), 30_000)
    law.state.last_ns = 10**12
    law.judge(packet(10**12 + math.ceil(packets * 1514 * 1e9 / RATE), 0))
    if packets:
        assert law.own("red_state").average == left(average, packets)


def test_the_packets_between_two_drops_are_uniformly_distributed() -> None:
    """Section 7, method 2, as section 11 computes it: every number of packets from 1 to 1 / p_b is as likely
    as another.
    """
    law = at_average(red(min_bytes=10_000, max_bytes=30_000, max_p_q32=ONE // 25), 20_000)
    found: Counter[int] = Counter()
    for number in range(500):
        draw, packets = (2 * number + 1) * ONE // 1000, 1
        while law.judge(packet(10**12, 20_000, draw)) == Verdict.PASS:
            packets += 1
        found[packets] += 1
    assert found == dict.fromkeys(range(1, 51), 10)


def test_a_random_number_serves_until_the_next_drop() -> None:
    law = at_average(red(min_bytes=10_000, max_bytes=30_000, max_p_q32=ONE // 25), 20_000)
    law.judge(packet(10**12, 20_000, ONE // 10 - 100))
    verdicts = [law.judge(packet(10**12, 20_000, 1)) for _ in range(4)]
    assert verdicts == [Verdict.PASS] * 3 + [Verdict.DROP] and law.own("red_state").draw_q32 == 0
    # Without one nothing is dropped.
    assert law.judge(packet(10**12, 20_000, 0)) == Verdict.PASS
    assert law.judge(packet(10**12, 20_000, 1)) == Verdict.DROP


@pytest.mark.parametrize(
    ("average", "expected"),
    [(9_999, 0), (10_000, 0), (15_000, 0.025), (29_999, 0.1), (30_000, 0.1), (45_000, 0.55), (60_000, 1)],
)
def test_the_probability_is_linear_and_gentle(average: int, expected: float) -> None:
    """Figure 2, and Floyd's note of 2000: from max_p at max_th it grows to 1 at twice max_th."""
    law = at_average(red(min_bytes=10_000, max_bytes=30_000, max_p_q32=429_496_730), average)
    assert probability(law, average) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(("average", "expected"), [(29_999, 0.1), (30_000, 1), (45_000, 1)])
def test_not_gentle_the_probability_is_one_from_the_maximum_on(average: int, expected: float) -> None:
    """Figure 2, and red_cmp_thresh() of include/net/red.h."""
    law = at_average(red(min_bytes=10_000, max_bytes=30_000, max_p_q32=429_496_730, abrupt=True), average)
    assert probability(law, average) == pytest.approx(expected, abs=1e-5)


def test_short_packets_are_dropped_less_often_when_bytes_count() -> None:
    law = at_average(red(min_bytes=10_000, max_bytes=30_000, max_p_q32=ONE // 10, by_bytes=True), 20_000)
    assert probability(law, 20_000, 757) == pytest.approx(0.025, rel=1e-6)
    assert probability(law, 20_000, 1514) == pytest.approx(0.05, rel=1e-6)


def test_marks_replace_drops_up_to_the_maximum_only() -> None:
    for average, verdict in ((20_000, Verdict.MARK), (40_000, Verdict.DROP), (70_000, Verdict.DROP)):
        law = at_average(red(min_bytes=10_000, max_bytes=30_000, ecn=True), average)
        assert law.judge(packet(10**12, average, random=1, ect=True)) == verdict
