"""The fair share in the controller: that of the switch for equal updates, and calmer for later ones."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.model import QueueSample
from fairq_ryu.policies.parts.fair_share import FairShare
from fairq_ryu.queue_law_spec import SHADOW

RATE, TARGET = 25_000_000, 25_000
backlogs = st.lists(st.integers(0, 125_000), min_size=2, max_size=40)


def sample(backlog: int) -> QueueSample:
    return QueueSample(backlog, backlog, 125_000, RATE, 0, 1, float(backlog))


def counted(flows: int, samples: int = SHADOW) -> SimpleNamespace:
    return SimpleNamespace(flows=flows, samples=samples, target_bytes=TARGET)


@given(backlogs, st.integers(1, 40))
def test_it_is_that_of_the_switch(trace: list[int], flows: int) -> None:
    """The first update is that of Eq. 4, from then on each is one of Eq. 1: alpha = 1.7, beta = 1.8."""
    share, old = FairShare(0.001, 0.00625), trace[0]
    share.update(sample(old), counted(flows), 0)
    assert share.fair_q16 == (SHADOW << 16) // flows
    for backlog in trace[1:]:
        moved = (Fraction(17, 10) * (old - TARGET) - Fraction(18, 10) * (backlog - TARGET)) / 1514
        fair = share.fair_q16 / Fraction(1 << 16) + moved
        wanted = min(max(fair, Fraction(SHADOW, 8 * flows)), Fraction(SHADOW))
        share.update(sample(backlog), counted(flows), 0)
        assert abs(share.fair_q16 - wanted * (1 << 16)) < 1
        old = backlog


def test_before_the_shadow_buffer_is_full_it_is_the_mean() -> None:
    share = FairShare(0.02, 0.00625)
    share.queue_read(sample(50_000), None, 0.0)
    assert share.fair_q16 == 0, "no report"
    share.queue_read(sample(50_000), counted(0, 0), 0.0)
    assert share.fair_q16 == 0, "no flows"
    share.queue_read(sample(50_000), counted(4, 100), 0.0)
    assert share.fair_q16 == 25 << 16
    share.queue_read(sample(90_000), counted(5, 500), 0.1)
    assert share.fair_q16 == 100 << 16


def test_the_authors_share_does_not_follow_the_queue() -> None:
    share = FairShare(0.02, 0.00625, by_queue=False)
    for place, backlog in enumerate((0, 125_000, 0)):
        share.queue_read(sample(backlog), counted(4), place)
        assert share.fair_q16 == (SHADOW << 16) // 4


def test_updates_are_an_interval_apart() -> None:
    share, moved = FairShare(0.025, 0.00625), []
    for step in range(100):
        before = share.fair_q16
        share.queue_read(sample(25_000 + 100 * step), counted(4), step / 1000)
        moved += [step] if share.fair_q16 != before else []
    # A reading that comes a little early counts.
    assert moved == [0, 23, 46, 69, 92]


def test_a_late_update_moves_by_as_much_as_one_in_the_switch() -> None:
    def moved(elapsed_ns: int) -> int:
        share = FairShare(0.02, 0.00625)
        share.update(sample(25_000), counted(2), 0)
        before = share.fair_q16
        share.update(sample(100_000), counted(2), elapsed_ns)
        return before - share.fair_q16

    assert moved(6_250_000) == moved(1) > 0
    assert moved(25_000_000) == moved(1) // 4
