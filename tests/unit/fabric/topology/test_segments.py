"""Two ports into one foreign segment: one of them is used."""

from fairq_ryu.fabric.topology.segments import HOLD, Segments
from fairq_ryu.model import PortKey

A, B, C, D = (PortKey(dpid, port) for dpid in (1, 2) for port in (1, 2))


def both(segments, one, other, now):
    segments.seen(one, other, now)
    segments.seen(other, one, now)


def test_the_first_port_of_a_segment_is_used():
    segments = Segments(lambda _: True)
    assert segments.unused(0.0) == {}
    both(segments, B, A, 0.0)
    both(segments, B, C, 0.0)
    assert segments.unused(1.0) == {B: A, C: A}
    both(segments, B, A, 5.0)
    assert segments.unused(HOLD + 1) == {B: A}
    assert segments.unused(HOLD + 6) == {}


def test_a_probe_must_pass_in_both_directions():
    """A mirror's copies pass in one only."""
    segments = Segments(lambda _: True)
    segments.seen(A, B, 0.0)
    segments.seen(C, C, 0.0)
    assert segments.unused(0.0) == {}


def test_another_port_takes_the_place_of_one_that_is_down():
    down = set()
    segments = Segments(lambda port: port not in down)
    for pair in ((A, B), (B, D), (A, D)):
        both(segments, *pair, 0.0)
    assert segments.unused(1.0) == {B: A, D: A}
    down.add(A)
    assert segments.unused(1.0) == {D: B}
