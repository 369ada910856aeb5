"""IQM's Algorithm 1, worked by hand from the listing.

Buffer 100,000 bytes, alpha 1/5: 20,000 bytes. x = 2 segments of 1,000 bytes: each new connection adds 2,000.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.laws.iqm_paper import algorithm as source
from fairq_ryu.laws.iqm_paper.algorithm import Algorithm1
from tests.support.listings import line_numbers

LIMIT, CALM, MSS = 100_000, 20_000, 1000


def law(syns: int = 0) -> Algorithm1:
    found = Algorithm1(0.2, 2, LIMIT)
    for _ in range(syns):
        found.syn(MSS)
    return found


def incast() -> Algorithm1:
    """One in which the incast flag is set."""
    found = law(1)
    found.incast_detection_timeout(LIMIT)
    assert found.incast_flag
    return found


def test_lines_3_and_4_keep_the_largest_segment() -> None:
    algorithm = law()
    for size, largest in ((900, 900), (1460, 1460), (536, 1460)):
        algorithm.syn(size)
        assert algorithm.max_size == largest


def test_lines_6_to_10_count_syns_less_fins_and_not_below_0() -> None:
    algorithm = law(3)
    algorithm.fin()
    assert algorithm.beta == 2
    for _ in range(5):
        algorithm.fin()
    algorithm.syn(MSS)
    assert algorithm.beta == 1


def test_lines_19_to_21_predict_at_the_timeout_only() -> None:
    # 25 * 2 * 1,000 + 50,000 = 100,000 is not more than the buffer; 26 * 2 * 1,000 + 50,000 = 102,000 is.
    for syns, flag in ((25, False), (26, True)):
        algorithm = law(syns)
        assert not algorithm.incast_flag
        algorithm.incast_detection_timeout(50_000)
        assert algorithm.incast_flag is flag


def test_line_20_asks_for_more_than_the_buffer() -> None:
    algorithm = law(25)
    algorithm.incast_detection_timeout(50_001)
    assert algorithm.incast_flag


def test_line_23_counts_anew_in_the_next_interval() -> None:
    algorithm = law(25)
    algorithm.incast_detection_timeout(50_000)
    assert algorithm.beta == 0
    for _ in range(25):
        algorithm.syn(MSS)
    algorithm.incast_detection_timeout(50_000)  # 50 in two intervals, and 25 in each
    assert not algorithm.incast_flag


def test_lines_12_to_14_write_one_segment_while_the_flag_is_set_and_nothing_else() -> None:
    assert law(3).receive_window() is None
    algorithm = incast()
    assert algorithm.receive_window() == MSS
    algorithm.syn(1460)
    assert algorithm.receive_window() == 1460


def test_lines_16_to_17_clear_the_flag_at_once_below_alpha() -> None:
    algorithm = incast()
    algorithm.incast_detection_timeout(CALM)
    assert algorithm.incast_flag
    algorithm.incast_detection_timeout(CALM - 1)
    assert not algorithm.incast_flag and algorithm.receive_window() is None


def test_the_prediction_comes_after_the_release() -> None:
    # The queue is short, and 50 * 2,000 + 1 is more than the buffer: line 21 sets what line 17 has cleared.
    algorithm = incast()
    for _ in range(50):
        algorithm.syn(MSS)
    algorithm.incast_detection_timeout(1)
    assert algorithm.incast_flag


EVENTS = st.lists(st.one_of(st.sampled_from(["syn", "fin"]), st.integers(0, LIMIT)), max_size=80)


@given(EVENTS)
def test_the_flag_is_that_of_the_text(events: list[str | int]) -> None:
    """A second reading, from the prose of section III-A: the sum of an interval, and the state between."""
    algorithm, sums, flag = law(), [0], False
    algorithm.max_size = MSS
    for event in events:
        if event == "syn":
            algorithm.syn(MSS)
            sums.append(sums[-1] + 1)
        elif event == "fin":
            algorithm.fin()
            sums.append(sums[-1] - 1 if sums[-1] else 0)
        elif isinstance(event, int):
            algorithm.incast_detection_timeout(event)
            overflows = 2 * MSS * sums[-1] > LIMIT - event
            flag = overflows or (flag and 5 * event >= LIMIT)
            sums = [0]
        assert algorithm.incast_flag is flag


def test_the_file_has_every_line_of_the_listing_in_its_order() -> None:
    assert line_numbers(source) == list(range(1, 25))
