"""The history of events: which events are reported at once, which are counted, and which are evicted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.control.reports.events import History, Kind, Occurrence
from fairq_ryu.model import FlowKey, PortKey

FLOW = FlowKey("10.0.0.1", "10.0.0.2", 33000, 80)


def test_the_first_event_is_reported_and_repetitions_are_counted():
    history = History()
    first = history.add(10.0, Occurrence(Kind.CNG, "one", PortKey(1, 2)))
    assert first is not None
    assert (first.id, first.time, first.times, first.dpid, first.port) == (1, 10.0, 1, 1, 2)
    for number in range(1, 6):
        assert history.add(10.0 + number / 10, Occurrence(Kind.CNG, f"again {number}", PortKey(1, 2))) is None
    assert history.due(10.9) == []
    (reported,) = history.due(11.0)
    assert (reported.id, reported.time, reported.times, reported.message) == (2, 10.5, 5, "again 5")
    assert history.since() == [first, reported]
    assert history.due(99.0) == []


def test_events_with_a_gap_between_them_are_all_reported():
    history = History()
    reported = [history.add(second, Occurrence(Kind.LOSS, "lost", PortKey(1, 2))) for second in (0.0, 1.0)]
    assert [event.id for event in reported if event] == [1, 2]


def test_the_gap_counts_for_each_place_and_kind_alone():
    history = History()
    assert history.add(0.0, Occurrence(Kind.CNG, "a", PortKey(1, 1)))
    assert history.add(0.0, Occurrence(Kind.NOM, "b", PortKey(1, 1)))
    assert history.add(0.0, Occurrence(Kind.CNG, "c", PortKey(1, 2)))
    assert history.add(0.0, Occurrence(Kind.CNG, "d", PortKey(2, 1)))


def test_the_last_state_is_reported_last():
    """A queue that flaps: events that are reported together are in the order of their last occurrence."""
    history = History()
    for step in range(9):
        history.add(step / 100, Occurrence(Kind.CNG if step % 2 == 0 else Kind.NOM, "x", PortKey(1, 1)))
    assert [event.kind for event in history.due(2.0)] == [Kind.NOM, Kind.CNG]


def test_a_flapping_port_evicts_its_own_events_only():
    history = History(capacity=50, share=5)
    gone = history.add(0.0, Occurrence(Kind.BRIDGE, "gone", 1))
    other = history.add(0.0, Occurrence(Kind.CNG, "once", PortKey(2, 1)))
    for second in range(1000):
        history.add(second * 2.0, Occurrence(Kind.CNG, "flap", PortKey(1, 1)))
    found = history.since()
    assert gone in found and other in found
    assert len(found) == 2 + 5
    assert [event.id for event in found] == sorted(event.id for event in found)


def test_many_ports_evict_the_oldest_events_of_their_kind():
    history = History(capacity=50, share=5)
    gone = history.add(0.0, Occurrence(Kind.BRIDGE, "gone", 1))
    for port in range(1000):
        history.add(1.0, Occurrence(Kind.CNG, "x", PortKey(1, port)))
    found = history.since(kind=Kind.CNG)
    assert [event.port for event in found] == list(range(950, 1000))
    assert history.since(kind=Kind.BRIDGE) == [gone]


def test_since_kind_and_limit():
    history = History()
    for port in range(6):
        history.add(0.0, Occurrence(Kind.CNG if port % 2 else Kind.NOM, "x", PortKey(1, port), FLOW))
    assert [event.id for event in history.since(4)] == [5, 6]
    assert [event.id for event in history.since(limit=2)] == [5, 6]
    assert [event.id for event in history.since(0, Kind.CNG, 2)] == [4, 6]
    assert history.since(6) == [] and history.last == 6


@given(
    st.lists(
        st.tuples(
            st.floats(0, 3),
            st.sampled_from(list(Kind)),
            st.integers(1, 2),
            st.integers(1, 3),
            st.integers(1, 9),
        ),
        max_size=200,
    )
)
def test_only_the_oldest_events_are_evicted(steps):
    """All occurrences are in the counts; the history is bounded, and in order."""
    history, now, reported = History(capacity=10_000, share=10_000, gap=1.0), 0.0, 0
    for wait, kind, dpid, port, times in steps:
        now += wait
        history.due(now)
        history.add(now, Occurrence(kind, "x", PortKey(dpid, port), times=times))
        reported += times
    history.due(now + 2.0)  # the sum of the pauses is rounded: not exactly the gap
    found = history.since()
    assert sum(event.times for event in found) == reported
    assert [event.id for event in found] == list(range(1, history.last + 1))
    small, now = History(capacity=7, share=3), 0.0
    for wait, kind, dpid, port, times in steps:
        now += wait
        small.due(now)
        small.add(now, Occurrence(kind, "x", PortKey(dpid, port), times=times))
    assert len(small) <= 7 * len(Kind)
    for kind in Kind:
        places = [(event.dpid, event.port) for event in small.since(kind=kind)]
        assert len(places) <= 7 and all(places.count(place) <= 3 for place in places)
