"""Whether a port has room for one more new connection: the twin in Python and the C that decides."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairq_ryu.agent import layout
from fairq_ryu.agent.law_table import parameters as in_force
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.agent.turn_room import FirstWindows, Room, frame_of, half_open, still_expected
from fairq_ryu.law_spec import LawSpec
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.laws.fairswitch import FairSwitchLaw
from fairq_ryu.laws.iqm import IqmLaw
from fairq_ryu.laws.las import LasLaw
from tests.support.host_laws import HostLaw, fq_law, library
from tests.support.law_traces import parameters
from tests.unit.agent.test_turns import EMPTY

S = 1_000_000_000


BYTES = st.integers(0, 1 << 30)


@settings(max_examples=400)
@given(
    st.builds(
        Room,
        limit=st.one_of(BYTES, st.integers(0, 200_000)),
        backlog=st.one_of(BYTES, st.integers(0, 200_000)),
        flows=st.one_of(st.integers(0, 200), st.integers(0, (1 << 32) - 1)),
        frame=st.integers(1, 70_000),
        floor=st.integers(1, 700_000),
        first=st.integers(0, 200_000),
        expected=st.one_of(st.just(0), BYTES),
        half_open=st.integers(0, 400),
        allowance=st.integers(1, 500),
    )
)
def test_both_twins_see_the_same_room(room: Room) -> None:
    given_room = layout.STRUCTS["fq_room"](**room._asdict())
    assert bool(library().fq_host_has_room(ctypes.byref(given_room))) == room.has_room


def test_the_room_is_that_of_the_buffer() -> None:
    # 81 segments of 1,526 bytes fit into 125,000 bytes.
    assert EMPTY._replace(flows=80).has_room and not EMPTY._replace(flows=81).has_room
    # With two segments for each flow, 40 flows and one more first window.
    two = EMPTY._replace(floor=3052)
    assert two._replace(flows=40).has_room and not two._replace(flows=41).has_room
    # First windows come in addition to the queue, not to the windows of the flows that they are counted in.
    assert EMPTY._replace(flows=70, expected=11 * 1526).has_room
    assert EMPTY._replace(flows=70, backlog=70 * 1526, expected=10 * 1526).has_room
    assert not EMPTY._replace(flows=70, backlog=70 * 1526, expected=11 * 1526).has_room
    assert EMPTY._replace(flows=8, backlog=123_000).has_room
    assert not EMPTY._replace(flows=8, backlog=124_000).has_room
    # A buffer that holds less than a few segments must not stop everybody.
    assert EMPTY._replace(limit=3_000, flows=3).has_room and not EMPTY._replace(limit=3_000, flows=4).has_room


@settings(max_examples=300)
@given(
    parameters(),
    st.integers(1, 200_000_000),
    st.lists(
        st.tuples(
            st.one_of(st.integers(0, 100_000_000), st.integers(0, 2_000_000_000)), st.integers(0, 1 << 30)
        ),
        max_size=20,
    ),
)
def test_first_windows_are_expected_for_the_hold_and_at_most_twice_as_long(
    values: Any, hold: int, steps: Any
) -> None:
    """Whatever the port sends meanwhile."""
    law = layout.STRUCTS["fq_law"](rate=values["rate"], limit=values["limit"])
    state, of_law = layout.STRUCTS["fq_turns"](hold_ns=hold), layout.STRUCTS["fq_law_state"]()
    admitted: list[tuple[int, int]] = []
    twin = FirstWindows()
    now = 10**12
    for elapsed, first in steps:
        now += elapsed
        found = library().fq_host_expected(ctypes.byref(law), ctypes.byref(state), ctypes.c_uint64(now))
        age = now - state.expected_ns
        assert found == still_expected(state.expected, state.earlier, values["limit"], age, hold)
        surely = sum(each for at, each in admitted if now - at < hold)
        at_most = sum(each for at, each in admitted if now - at < 2 * hold)
        assert min(surely, values["limit"]) <= found <= min(at_most, values["limit"])
        assert found == twin.still_expected(hold, values["limit"], now)
        twin.add(first, hold, values["limit"], now)
        state.first = first
        library().fq_host_admit(
            ctypes.byref(law), ctypes.byref(of_law), ctypes.byref(state), ctypes.c_uint64(now)
        )
        admitted.append((now, first))


@settings(max_examples=300)
@given(parameters(), BYTES, st.integers(0, 9000), st.integers(1, 5000), st.booleans())
def test_the_first_window_is_the_law_s_and_at_most_what_a_host_sends_at_once(
    values: Any, pool: int, segment: int, flows: int, young: bool
) -> None:
    law, youngest = HostLaw(fq_law(**values)), flows if young else 1
    law.state.pool, law.state.segment = pool << 8, segment
    found = library().fq_host_first_window(*law.refs, flows, youngest)
    size = segment or 1460
    window = max(min(law.window(flows, youngest, 0, size), law.parameters.first_window * size), size)
    floor = library().fq_host_floor(*law.refs, flows, youngest)
    assert found == max(min(window + -(-window // size) * 66, 1 << 30), floor)
    assert floor >= frame_of(size)


@pytest.mark.parametrize(
    ("kind", "flows", "young", "segments"),
    [
        (FairQLaw, 42, 42, 2),
        (FairQLaw, 43, 43, 1),  # the law's own bound
        (LasLaw, 42, 4, 2),
        (LasLaw, 42, 5, 1),
        (FairSwitchLaw, 42, 42, 1),
    ],
)
def test_a_flow_counts_with_the_minimum_that_its_law_grants(
    kind: type[LawSpec], flows: int, young: int, segments: int
) -> None:
    law = fq_law(kind, floor_segments=2, limit=125_000, first_window=10)
    state = layout.STRUCTS["fq_law_state"](segment=1460)
    found = library().fq_host_floor(ctypes.byref(law), ctypes.byref(state), flows, young)
    assert found == segments * frame_of(1460)


@pytest.mark.parametrize(
    ("rate", "rtt_ms", "hold_ms"),
    [(6_250_000, 0, 21), (6_250_000, 10, 30), (6_250_000, 300, 40), (125_000, 0, 200), (0, 0, 1)],
)
def test_a_first_window_comes_behind_the_queue_and_a_round_trip_later(
    rate: int, rtt_ms: int, hold_ms: int
) -> None:
    law = layout.STRUCTS["fq_law"](limit=125_000, rate=rate, base_rtt_ns=S // 1000)
    state = layout.STRUCTS["fq_law_state"](rtt_ns=rtt_ms * S // 1000)
    assert library().fq_host_hold(ctypes.byref(law), ctypes.byref(state)) == hold_ms * S // 1000


def test_a_flood_leaves_no_room_behind_it_for_longer_than_twice_the_hold() -> None:
    """A thousand first windows are expected, of which none comes; the port is free after 40 ms."""
    law = layout.STRUCTS["fq_law"](rate=6_250_000, limit=125_000)
    of_law, now = layout.STRUCTS["fq_law_state"](), 10**12
    state = layout.STRUCTS["fq_turns"](first=14_600, hold_ns=S // 50)
    pointers = ctypes.byref(law), ctypes.byref(of_law), ctypes.byref(state)
    for _ in range(1000):
        library().fq_host_admit(*pointers, ctypes.c_uint64(now))
    assert state.expected == 125_000
    for after, left in ((S // 25 - 1, 125_000), (S // 25, 0)):
        at = ctypes.c_uint64(now + after)
        assert library().fq_host_expected(ctypes.byref(law), ctypes.byref(state), at) == left


def test_nobody_waits_when_the_allowance_is_used_up() -> None:
    full = EMPTY._replace(flows=1000, backlog=125_000, expected=125_000)
    assert not full._replace(half_open=336).has_room and not full._replace(half_open=336).flooded
    assert full._replace(half_open=337).has_room and full._replace(half_open=337).flooded


EVENTS = st.lists(
    st.tuples(st.sampled_from("bbbp"), st.integers(0, 30), st.sampled_from([0, 1000, S, 4 * S, 10 * S - 1])),
    max_size=40,
)


@settings(max_examples=300)
@given(EVENTS)
def test_both_twins_count_the_same_incomplete_handshakes(events: Any) -> None:
    """Against a model: those of the last window that began, less those that were completed in it."""
    law, state = layout.STRUCTS["fq_law"](limit=125_000), layout.STRUCTS["fq_turns"]()
    of_law = layout.STRUCTS["fq_law_state"](proven=5)
    now, began, begun, proven = 10**12, 0, 0, 0
    for what, number, elapsed in events:
        now += elapsed
        for _ in range(number):
            if what == "p":
                of_law.proven += 1
                proven += 1
                continue
            if now - began >= 10 * S:
                began, begun, proven = now, 0, 0
            library().fq_host_admit(
                ctypes.byref(law), ctypes.byref(of_law), ctypes.byref(state), ctypes.c_uint64(now)
            )
            begun += 1
        wanted = max(begun - proven, 0) if now - began < 10 * S else 0
        found = library().fq_host_half_open(ctypes.byref(state), ctypes.byref(of_law), ctypes.c_uint64(now))
        twin = half_open(state.begun, state.begun_ns, of_law.proven - state.proven, now)
        assert found == twin == wanted


def test_another_law_starts_its_count_again() -> None:
    """Then fewer handshakes are complete than before: none of those that began counts as complete."""
    state = layout.STRUCTS["fq_turns"](begun=9, begun_ns=10**12, proven=50)
    of_law = layout.STRUCTS["fq_law_state"](proven=3)
    at = ctypes.c_uint64(10**12 + 1)
    assert library().fq_host_half_open(ctypes.byref(state), ctypes.byref(of_law), at) == 9
    assert half_open(9, 10**12, 3 - 50, 10**12 + 1) == 9


@pytest.mark.parametrize("kind", [FairQLaw, FairSwitchLaw, LasLaw])
def test_the_allowance_is_at_least_what_the_buffer_holds(kind: type[LawSpec]) -> None:
    limits = QueueLimits("htb", 819 * 1526, 1_250_000_000)
    assert in_force(kind(turns=1), limits).syn_allowance == 256 + 819
    assert in_force(kind(), limits).syn_allowance == 256
    assert in_force(IqmLaw(turns=1), limits).syn_allowance == 256
