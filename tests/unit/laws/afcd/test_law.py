"""AFCD: Eq. 6 of the paper, its dropping state, and the other variants."""

from __future__ import annotations

import ctypes
import dataclasses

import pytest

from fairq_ryu.laws.afcd import AfcdLaw
from fairq_ryu.queue_law_spec import Variant
from tests.support.host_queue_laws import (
    ONE,
    HostQueueLaw,
    Packet,
    QueueLawParameters,
    Recent,
    Verdict,
    library,
)

MS = 1_000_000
RATE = 12_500_000
FULL = QueueLawParameters(
    AfcdLaw.kind, RATE, shadow_packets=100, sample_every=1, update_ns=1 << 60, target_ns=5 * MS
)


def afcd(variant: Variant, *shares: int) -> HostQueueLaw:
    """A law whose ring has these samples of the flows 1, 2, ..., and samples nothing more."""
    law = HostQueueLaw(dataclasses.replace(FULL, variant=variant))
    for number, samples in enumerate(shares):
        for _ in range(samples):
            law.judge(packet(number + 1, 10**9, 0))
    law.parameters = dataclasses.replace(law.parameters, sample_every=1 << 30)
    law.state.update_at_ns = 1 << 62
    return law


def packet(flow: int, now: int, delay_ms: float, random: int = ONE - 1) -> Packet:
    backlog = int(delay_ms * RATE / 1000)
    return Packet(now, backlog, backlog, 1514, flow, random)


@pytest.mark.parametrize(
    ("variant", "samples", "target"),
    [
        (Variant.PAPER, 50, 5),
        (Variant.PAPER, 100, 5 / 8),
        (Variant.PAPER, 25, 40),
        (Variant.PAPER, 400, 5 / 64),
        (Variant.PAPER, 10, 320),  # at most 64 times
        (Variant.PAPER, 0, 5),
        (Variant.AUTHORS, 50, 50),
        (Variant.AUTHORS, 100, 50 / 16),
    ],
)
def test_the_target_of_a_flow(variant: Variant, samples: int, target: float) -> None:
    """Eq. 6: target (m_i / m_f)^-3; the authors' code: 10 target (m_i / m_f)^-4."""
    law = afcd(variant, 50, 50)
    law.state.fair_q16 = 50 << 16
    assert law.target(samples) / MS == pytest.approx(target, rel=1e-4)


def test_a_lone_flow_has_the_target_of_the_port() -> None:
    assert afcd(Variant.PAPER, 100).target(100) == 5 * MS


def recent(law: HostQueueLaw, flow: int, now: int) -> int:
    """The recent samples of a flow, as they count now."""
    return int(library().fq_host_recent(ctypes.byref(law.table.recent[flow]), ctypes.c_uint64(now)))


def verdicts(
    law: HostQueueLaw, flow: int, delay_ms: float, start: int, count: int, gap: int = 10 * MS
) -> list[int]:
    return [law.judge(packet(flow, start + n * gap, delay_ms)) for n in range(count)]


def test_the_fast_flow_is_dropped_at_a_delay_that_the_slow_one_is_allowed() -> None:
    """75 and 25 samples: targets of 1.48 and 40 ms."""
    law = afcd(Variant.PAPER, 75, 25)
    slow = verdicts(law, 2, 4, 10**12, 30)
    fast = verdicts(law, 1, 4, 10**12, 11)
    assert set(slow) == {Verdict.PASS}
    assert fast == [Verdict.PASS] * 10 + [Verdict.DROP]


def test_a_packet_that_is_below_its_target_ends_the_dropping_state_of_the_port() -> None:
    """The control variables are those of the port."""
    law = afcd(Variant.PAPER, 75, 25)
    assert verdicts(law, 1, 4, 10**12, 11)[-1] == Verdict.DROP
    assert law.state.codel.dropping == 1
    law.judge(packet(2, 10**12 + 110 * MS, 4))
    assert law.state.codel.dropping == 0


def test_a_flow_that_waits_for_its_interval_does_not_end_the_dropping_state() -> None:
    law = afcd(Variant.PAPER, 40, 40, 20)
    assert verdicts(law, 1, 20, 10**12, 11)[-1] == Verdict.DROP
    law.judge(packet(2, 10**12 + 101 * MS, 20))
    assert law.state.codel.dropping == 1


def test_the_authors_drop_sooner_but_never_a_slow_flow() -> None:
    law = afcd(Variant.AUTHORS, 75, 25)
    assert verdicts(law, 1, 30, 10**12, 2) == [Verdict.PASS, Verdict.DROP]  # a tenth of the interval
    assert set(verdicts(law, 2, 10**4, 10**12, 30)) == {Verdict.PASS}


def ours(*recent: int, mean: int) -> HostQueueLaw:
    """The variant ours with 50 and 50 samples in the ring, so that nothing is dropped for its share, and so
    many recent ones of the flows 1, 2, ...; the flow of a packet has ``mean`` of them.
    """
    law = afcd(Variant.OURS, 50, 50)
    for number, samples in enumerate(recent):
        law.table.recent[number + 1] = Recent(samples << 16, 10**12 >> 20)
    law.state.mean = Recent(mean << 16, 10**12 >> 20)
    return law


@pytest.mark.parametrize(("flow", "spared"), [(1, 0), (2, 0), (3, 10), (4, 10)])
def test_ours_drops_for_the_delay_from_flows_that_have_sent_most(flow: int, spared: int) -> None:
    """500, 400 and 399 recent samples, and none; a packet's flow has 400. A drop that is due waits for one of
    the first two flows as long as the delay had to be above the target, an interval of 100 ms.
    """
    law = ours(500, 400, 399, mean=400)
    others = verdicts(law, 4, 6, 10**12, 10)
    due = 10**12 + 100 * MS
    found = verdicts(law, flow, 6, due, spared + 1)
    assert set(others + found[:-1]) <= {Verdict.PASS} and found[-1] == Verdict.DROP
    # In the dropping state as well: the next one is due after another interval.
    since = due + spared * 10 * MS
    assert verdicts(law, flow, 6, since + 10 * MS, 9 + spared) == [Verdict.PASS] * (9 + spared)
    assert law.judge(packet(flow, since + 100 * MS + spared * 10 * MS, 6)) == Verdict.DROP
    # A packet below the target ends it, whichever flow's it is.
    law.judge(packet(4, since + 250 * MS, 4))
    assert law.state.codel.dropping == 0 and law.state.codel.first_above_ns == 0


def test_ours_drops_from_a_larger_flow_when_it_comes_between() -> None:
    law = ours(500, 400, 300, mean=400)
    assert verdicts(law, 3, 6, 10**12, 15) == [Verdict.PASS] * 15
    assert law.judge(packet(1, 10**12 + 150 * MS, 6)) == Verdict.DROP


def test_ours_counts_what_a_flow_has_sent_without_its_drops() -> None:
    """50 packets of each of two flows, one of which is dropped."""
    law = afcd(Variant.OURS)
    law.parameters = dataclasses.replace(law.parameters, sample_every=1)
    for number in range(100):
        law.judge(packet(1 + number % 2, 10**12, 6 if number else 0))
    assert [law.table.recent[flow].samples_q16 >> 16 for flow in (1, 2, 3)] == [50, 50, 0]
    before = [recent(law, flow, 10**12 + 101 * MS) for flow in (1, 2)]
    results = [law.judge(packet(flow, 10**12 + 101 * MS, 6)) for flow in (1, 2)]
    assert results == [Verdict.DROP, Verdict.PASS]
    after = [recent(law, flow, 10**12 + 101 * MS) for flow in (1, 2)]
    assert after == [before[0], before[1] + (1 << 16)]


def test_ours_counts_packets_that_are_marked() -> None:
    law = afcd(Variant.OURS, 75, 25)
    law.parameters = dataclasses.replace(law.parameters, sample_every=1, ecn=True)
    before = law.table.recent[1].samples_q16
    marked = dataclasses.replace(packet(1, 10**9, 1, 0), ect=True)
    assert law.judge(marked) == Verdict.MARK
    assert law.table.recent[1].samples_q16 == before + (1 << 16)


def test_ours_counts_one_packet_of_so_many() -> None:
    law = afcd(Variant.OURS)
    law.parameters = dataclasses.replace(law.parameters, sample_every=3)
    for _ in range(30):
        law.judge(packet(1, 10**12, 0))
    assert law.table.recent[1].samples_q16 >> 16 == 10


@pytest.mark.parametrize(("samples", "recent", "dropped"), [(69, 99, False), (70, 99, True), (69, 100, True)])
def test_ours_lets_a_flow_that_has_sent_less_have_a_quarter_more(
    samples: int, recent: int, dropped: bool
) -> None:
    """The fair share is 56, so D is about a fifth; the random number is 0."""
    law = afcd(Variant.OURS, samples, 100 - samples)
    law.state.fair_q16 = 56 << 16
    law.table.recent[1] = Recent(recent << 16, 10**12 >> 20)
    law.state.mean = Recent(100 << 16, 10**12 >> 20)
    assert (law.judge(packet(1, 10**12, 1, 0)) == Verdict.DROP) is dropped


def test_ours_drops_what_a_flow_has_above_the_fair_share_at_once() -> None:
    """75 of 100 samples: D is a third, whatever the delay."""
    law = afcd(Variant.OURS, 75, 25)
    edge = ((1 << 16) - (50 << 16) // 75) << 16
    results = [law.judge(packet(1, 10**12, 1, random)) for random in (edge - 1, edge)]
    assert results == [Verdict.DROP, Verdict.PASS]
    assert law.judge(packet(2, 10**12, 1, 0)) == Verdict.PASS
    assert law.judge(packet(1, 10**12, 0, 0)) == Verdict.PASS  # into an empty queue
    assert afcd(Variant.PAPER, 75, 25).judge(packet(1, 10**12, 1, 0)) == Verdict.PASS
