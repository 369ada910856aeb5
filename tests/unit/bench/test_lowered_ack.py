"""ACKs as they leave a switch: which frames are ACKs, and when the first has a lower window."""

import math

import pytest

from bench.lowered_ack import Ack, delay_to_lowered, read_ack
from tests.switch.packets import Segment

FIRST, SECOND = (5001, 40000), (5002, 40001)


def segment(flags="A", **what):
    return Segment("10.0.0.2", "10.0.0.1", *FIRST, seq=1, ack=2, flags=flags, window=700, **what).frame()


def test_an_ack_is_read():
    assert read_ack(9, segment()) == Ack(9, FIRST, 700)
    assert read_ack(9, segment(payload=b"d" * 100)[:60]) == Ack(9, FIRST, 700)
    assert read_ack(9, segment("FA")) == Ack(9, FIRST, 700)


@pytest.mark.parametrize(
    "frame", [segment("S"), segment("SA"), segment("RA"), segment()[:50], bytes(60), b""]
)
def test_other_frames_are_no_acks(frame):
    assert read_ack(9, frame) is None


def found(*acks):
    """The delay after the moment 1000, with 100 before it and 50 after it."""
    return delay_to_lowered(1000, [Ack(*ack) for ack in acks], before=100, within=50)


def test_the_first_ack_that_is_lower_counts():
    before = [(900, FIRST, 20), (950, FIRST, 18), (999, FIRST, 19)]
    assert found(*before, (1000, FIRST, 18), (1007, FIRST, 17), (1008, FIRST, 16)) == 7


def test_an_ack_at_the_moment_itself_comes_after_it():
    assert found((999, FIRST, 20), (1000, FIRST, 19)) == 0


def test_a_window_is_compared_with_those_of_its_own_flow():
    assert found((950, FIRST, 20), (951, SECOND, 10), (1003, FIRST, 20), (1004, SECOND, 10)) == math.inf
    assert found((950, FIRST, 20), (951, SECOND, 10), (1003, FIRST, 20), (1004, SECOND, 9)) == 4


def test_a_flow_without_acks_before_the_moment_does_not_count():
    assert found((899, FIRST, 20), (1001, FIRST, 10), (1002, SECOND, 5)) == math.inf


def test_an_ack_that_is_too_late_does_not_count():
    assert found((950, FIRST, 20), (1050, FIRST, 10)) == math.inf
    assert found((950, FIRST, 20), (1049, FIRST, 10)) == 49
