"""The rate of a line that neither the configuration nor the link says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.agent.found_rate import FoundRate, Seen

LINE = 6_250_000
NOTHING = Seen(served=0, peak=0, lost=0, at_most=False)


def test_it_is_not_known_before_the_queue_has_stood_or_lost_anything() -> None:
    rate = FoundRate()
    assert not rate.look(NOTHING, 0) and not rate.look(Seen(0, LINE, 0, False), 1) and rate.rate == 0


def test_it_is_that_of_arrivals_while_the_queue_stood() -> None:
    rate = FoundRate()
    assert rate.look(Seen(LINE, LINE * 2, 5, False), 1) and rate.rate == LINE


def test_a_burst_that_was_too_short_to_stand_has_lost_segments() -> None:
    rate = FoundRate()
    assert rate.look(Seen(0, LINE, 1, False), 1) and rate.rate == LINE


@pytest.mark.parametrize("seen", [Seen(0, 15_000, 1, False), Seen(15_000, 15_000, 1, False)])
def test_a_trickle_shows_no_line(seen: Seen) -> None:
    rate = FoundRate()
    assert not rate.look(seen, 1) and rate.rate == 0


def found() -> FoundRate:
    rate = FoundRate()
    rate.look(Seen(LINE, LINE, 0, False), 0)
    return rate


def test_it_follows_what_it_sees_later() -> None:
    rate = found()
    assert not rate.look(Seen(LINE * 101 // 100, 2 * LINE, 9, False), 1), "nearly the same"
    assert rate.look(Seen(2 * LINE, 2 * LINE, 0, False), 2) and rate.rate == 2 * LINE


def test_a_little_more_is_tried_after_ten_seconds_at_the_whole_rate() -> None:
    rate, at_most = found(), Seen(0, LINE, 0, True)
    assert not any(rate.look(at_most, second) for second in range(1, 11))
    assert rate.look(at_most, 11) and rate.rate == int(LINE * 1.03)
    assert not any(rate.look(at_most, second) for second in range(12, 22))
    assert rate.look(at_most, 22)


def risen(most: int) -> tuple[FoundRate, int]:
    """A rate that was tried by larger and larger steps until it was ``most``, and the seconds it took."""
    rate, second = found(), 0
    while rate.rate < most:
        second += 1
        rate.look(Seen(0, rate.rate, 0, True), second)
    return rate, second


def test_what_went_well_is_tried_with_twice_the_step() -> None:
    """From a rate that was far too low to ten thousand times as much within five minutes."""
    _, second = risen(10_000 * LINE)
    assert second <= 300


def test_a_step_that_was_too_large_is_taken_back() -> None:
    rate, second = risen(10 * LINE)
    assert rate.look(Seen(9 * LINE, 9 * LINE, 5, False), second + 1) and rate.rate == 9 * LINE
    assert not any(rate.look(Seen(0, rate.rate, 0, True), second + later) for later in range(2, 60))
    assert rate.look(Seen(0, rate.rate, 0, True), second + 62) and rate.rate == int(9 * LINE * 1.03)


def test_a_rate_that_was_seen_is_tried_by_small_steps_again() -> None:
    rate, second = risen(4 * LINE)
    assert rate.look(Seen(9 * LINE, 9 * LINE, 5, False), second + 1) and rate.rate == 9 * LINE
    assert not any(rate.look(Seen(0, LINE, 0, True), second + later) for later in range(2, 12))
    assert rate.look(Seen(0, LINE, 0, True), second + 12) and rate.rate == int(9 * LINE * 1.03)


def test_arrivals_at_more_than_the_rate_show_without_round_trips_that_it_is_wrong() -> None:
    rate, more = found(), Seen(0, 10 * LINE, 0, False)
    assert not any(rate.look(each, 0) for each in [more, more, more, NOTHING, more, more, more])
    assert rate.look(more, 0) and rate.rate == 5 * LINE


def test_not_if_it_was_at_the_whole_rate_only_now_and_then() -> None:
    rate = found()
    assert not any(rate.look(Seen(0, LINE, 0, bool(second % 9)), second) for second in range(1, 100))


def test_what_was_too_much_is_not_tried_again_for_a_minute() -> None:
    rate, at_most = found(), Seen(0, LINE, 0, True)
    for second in range(1, 12):
        rate.look(at_most, second)
    assert rate.look(Seen(LINE, LINE, 0, False), 13) and rate.rate == LINE
    assert not any(rate.look(at_most, second) for second in range(14, 73))
    assert rate.look(at_most, 73)


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_what_others_leave_is_not_the_rate_of_the_line(part: float) -> None:
    rate = found()
    assert not rate.look(Seen(int(part * LINE), LINE, 0, False), 1) and rate.rate == LINE


@given(
    st.lists(
        st.builds(Seen, st.integers(0, 10**11), st.integers(0, 10**11), st.integers(0, 100), st.booleans())
    )
)
def test_it_is_never_more_than_was_seen_and_a_little(looks: list[Seen]) -> None:
    rate, most, known = FoundRate(), 0, False
    for second, seen in enumerate(looks):
        changed = rate.look(seen, second)
        most = max(most, seen.served, seen.peak)
        assert rate.rate <= most * 2 ** (1 + second // 10)
        assert rate.rate or not known, "it is not forgotten"
        assert changed or rate.rate or not known
        known = bool(rate.rate)
