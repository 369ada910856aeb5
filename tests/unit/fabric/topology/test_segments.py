"""Two ports into one foreign segment: one of them is used."""

from fairq_ryu.fabric.topology.segments import HOLD, Segments
from fairq_ryu.model import PortKey

A, B, C, D = (PortKey(dpid, port) for dpid in (1, 2) for port in (1, 2))


def made(may_be_used=lambda _: True, is_ready=lambda _: True, parts=lambda: {1: 1, 2: 1}):
    """By default links join both bridges."""
    return Segments(may_be_used, is_ready, parts)


def both(segments, one, other, now):
    segments.seen(one, other, now)
    segments.seen(other, one, now)


def test_the_first_port_of_a_segment_is_used():
    segments = made()
    assert segments.unused(0.0) == {}
    both(segments, B, A, 0.0)
    both(segments, B, C, 0.0)
    assert segments.unused(1.0) == {B: A, C: A}
    both(segments, B, A, 5.0)
    assert segments.unused(HOLD + 1) == {B: A}
    assert segments.unused(HOLD + 6) == {}


def test_a_probe_must_pass_in_both_directions():
    """A mirror's copies pass in one only."""
    segments = made()
    segments.seen(A, B, 0.0)
    segments.seen(C, C, 0.0)
    assert segments.unused(0.0) == {}


def test_another_port_takes_the_place_of_one_that_is_down():
    down = set()
    segments = made(lambda port: port not in down)
    for pair in ((A, B), (B, D), (A, D)):
        both(segments, *pair, 0.0)
    assert segments.unused(1.0) == {B: A, D: A}
    down.add(A)
    assert segments.unused(1.0) == {D: B}


def test_bridges_that_no_link_joins_keep_a_port_each():
    """Two machines, each with an uplink to the same switch, and the second one with two."""
    segments = made(parts=lambda: {1: 1, 2: 2})
    for pair in ((A, C), (A, D), (C, D)):
        both(segments, *pair, 0.0)
    assert segments.unused(1.0) == {D: A}


def test_a_ring_through_two_segments_is_cut():
    segments = made(parts=lambda: {1: 1, 2: 2})
    both(segments, A, C, 0.0)
    both(segments, B, D, 0.0)
    assert segments.unused(1.0) == {D: B}


def test_a_port_that_is_flooded_to_is_used_before_one_that_is_not():
    """The first one has just come up."""
    waiting = {A}
    segments = made(is_ready=lambda port: port not in waiting)
    both(segments, A, B, 0.0)
    assert segments.unused(1.0) == {A: B}
    waiting.clear()
    assert segments.unused(1.0) == {B: A}
