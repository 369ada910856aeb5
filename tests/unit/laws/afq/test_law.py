"""AFQ: Eq. 2 of the AFCD paper, what its authors' code does, and ours."""

from __future__ import annotations

import dataclasses

import pytest

from fairq_ryu.laws.afq import AfqLaw
from fairq_ryu.queue_law_spec import Variant
from tests.support.host_queue_laws import ONE, HostQueueLaw, Packet, QueueLawParameters, Recent, Verdict

FRAME, TARGET = 1514, 20 * 1514


def full(
    variant: Variant = Variant.PAPER, shares: tuple[int, ...] = (75, 25), size: int = 100
) -> HostQueueLaw:
    """A law whose ring has these samples of the flows 1, 2, ..."""
    law = HostQueueLaw(
        QueueLawParameters(
            AfqLaw.kind,
            12_500_000,
            shadow_packets=size,
            sample_every=1,
            variant=variant,
            target_bytes=TARGET,
            update_ns=1 << 60,
        )
    )
    for number, samples in enumerate(shares):
        for _ in range(samples):
            law.judge(packet(number + 1))
    law.parameters = QueueLawParameters(
        AfqLaw.kind, 12_500_000, shadow_packets=size, sample_every=1 << 30, variant=variant
    )
    law.state.update_at_ns = 1 << 62
    return law


def packet(flow: int, random: int = ONE - 1, backlog: int = TARGET) -> Packet:
    return Packet(10**12, backlog, backlog, FRAME, flow, random)


@pytest.mark.parametrize(
    ("samples", "expected"), [(25, 0), (50, 0), (51, 1 - 50 / 51), (100, 0.5), (200, 0.75), (2000, 0.975)]
)
def test_a_flow_keeps_its_fair_share(samples: int, expected: float) -> None:
    """Eq. 2: D_i = max(0, 1 - m_f / m_i): m_i (1 - D_i) is m_f."""
    law = full()
    law.state.fair_q16, law.table.samples[1] = 50 << 16, samples
    assert law.least_passing(packet(1)) / ONE == pytest.approx(expected, abs=2 / 65536)


def test_the_fast_flow_is_dropped_with_that_probability_and_the_slow_one_never() -> None:
    law = full()
    assert law.state.fair_q16 == 50 << 16
    grid = range(0, ONE, ONE // 3000)
    dropped = sum(law.judge(packet(1, random)) == Verdict.DROP for random in grid)
    assert dropped / len(grid) == pytest.approx(1 / 3, abs=1 / 1000)
    assert {law.judge(packet(2, random)) for random in grid} == {Verdict.PASS}


@pytest.mark.parametrize(("shares", "size"), [((75, 24), 100), ((100,), 100), ((100, 100), 201)])
def test_it_drops_nothing_of_a_lone_flow_or_before_the_ring_is_full(
    shares: tuple[int, ...], size: int
) -> None:
    law = full(shares=shares, size=size)
    assert law.judge(packet(1, 0)) == Verdict.PASS and law.counts.dropped == 0


@pytest.mark.parametrize(("backlog", "verdict"), [(0, "PASS"), (FRAME, "PASS"), (FRAME + 1, "DROP")])
def test_it_drops_nothing_into_an_empty_queue(backlog: int, verdict: str) -> None:
    assert full().judge(packet(1, 0, backlog)) == Verdict[verdict]
    assert full(Variant.AUTHORS).judge(packet(1, 0, backlog)) == Verdict.DROP


def test_the_authors_drop_a_thousandth_of_it_and_not_near_the_fair_share() -> None:
    law = full(Variant.AUTHORS)
    limit = ((1 << 16) - (50 << 16) // 75 << 16) // 1000
    assert law.judge(packet(1, limit - 1)) == Verdict.DROP
    assert law.judge(packet(1, limit)) == Verdict.PASS
    near = full(Variant.AUTHORS, (60, 40))
    assert near.judge(packet(1, 0)) == Verdict.PASS
    assert full(Variant.PAPER, (60, 40)).judge(packet(1, 0)) == Verdict.DROP


@pytest.mark.parametrize(
    ("samples", "recent", "verdict"), [(69, 99, "PASS"), (70, 99, "DROP"), (69, 100, "DROP"), (69, 0, "PASS")]
)
def test_ours_lets_a_flow_that_has_sent_less_have_a_quarter_more(
    samples: int, recent: int, verdict: str
) -> None:
    """The fair share is 56, so D is about a fifth; the random number is 0."""
    law = full(Variant.OURS, (samples, 100 - samples))
    law.state.fair_q16 = 56 << 16
    law.table.recent[1] = Recent(recent << 16, 10**12 >> 20)
    law.state.mean = Recent(100 << 16, 10**12 >> 20)
    assert law.judge(packet(1, 0)) == Verdict[verdict]


def test_ours_counts_what_flows_have_sent_without_their_drops() -> None:
    law = full(Variant.OURS, (75, 25))
    assert [law.table.recent[flow].samples_q16 >> 16 for flow in (1, 2, 3)] == [75, 25, 0]
    law.parameters = dataclasses.replace(law.parameters, sample_every=1)
    assert [law.judge(packet(1, random)) for random in (0, ONE - 1)] == [Verdict.DROP, Verdict.PASS]
    assert law.table.recent[1].samples_q16 >> 16 == 76


def test_the_paper_and_the_authors_count_nothing() -> None:
    for variant in (Variant.PAPER, Variant.AUTHORS):
        assert not any(each.samples_q16 for each in full(variant).table.recent)
