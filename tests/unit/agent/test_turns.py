"""Turns of new connections: order, bounds, and the twin in C that decides whether there is room."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairq_ryu.agent import layout
from fairq_ryu.agent.turn_deadlines import KEEP_NS
from fairq_ryu.agent.turns import HeldPacket, Room, TurnCounts, Turns, frame_of, still_expected
from fairq_ryu.law_spec import LawKind
from fairq_ryu.policies.switch_laws import Law, LawParameters
from tests.support.host_laws import build, parameters

MS = 1_000_000
EMPTY = Room(limit=125_000, backlog=0, flows=0, frame=1526, first=1526, expected=0)
FULL = EMPTY._replace(flows=82)


@dataclass
class Sink:
    """A port: each packet that leaves is one more flow."""

    rooms: dict[int, Room | None] = field(default_factory=dict)
    left: list[tuple[int, bytes, int]] = field(default_factory=list)
    told: list[tuple[int, int]] = field(default_factory=list)

    def room(self, port: int, now_ns: int) -> Room | None:
        return self.rooms.get(port, FULL)

    def send(self, port: int, frame: bytes, waited_ns: int) -> None:
        self.left.append((port, frame, waited_ns))
        room = self.rooms.get(port)
        if room is not None:
            self.rooms[port] = room._replace(flows=room.flows + 1)

    def set_waiting(self, port: int, waiting: int) -> None:
        self.told.append((port, waiting))

    @property
    def frames(self) -> list[bytes]:
        return [frame for _, frame, _ in self.left]


@pytest.fixture
def sink() -> Sink:
    return Sink()


def turns(sink: Sink, **bounds: int) -> Turns:
    made = Turns(sink, **bounds)
    made.start(1)
    return made


def packet(name: bytes, now: int = 0, port: int = 1, back: bool = False) -> HeldPacket:
    """Of the connection that the first letter names; ``back``: of its other direction."""
    return HeldPacket(port, name[:1] + b"<>"[back : back + 1], name[:1], name, now)


def arrive(made: Turns, name: bytes, now: int = 0, deadline: int | None = None, port: int = 1) -> None:
    if deadline is not None:
        made.set_deadline(name[:1], deadline, now)
    made.arrived(packet(name, now, port), now)


def test_packets_wait_while_there_is_no_room_and_leave_in_order_of_arrival(sink: Sink) -> None:
    made = turns(sink)
    for name in (b"a", b"b", b"c"):
        arrive(made, name)
    made.serve(MS)
    assert sink.left == [] and made.waiting
    # 81 flows and two first windows more.
    sink.rooms[1] = FULL._replace(flows=79)
    made.serve(7 * MS)
    assert sink.left == [(1, b"a", 7 * MS), (1, b"b", 7 * MS)]
    assert made.counts(1) == TurnCounts(waiting=1, released=2)
    sink.rooms[1] = EMPTY
    made.serve(8 * MS)
    assert sink.frames == [b"a", b"b", b"c"] and not made.waiting


def test_announced_deadlines_come_first_and_the_earliest_before_all(sink: Sink) -> None:
    made = turns(sink)
    for name, deadline in ((b"a", None), (b"b", 90), (b"c", 50), (b"d", None), (b"e", 90)):
        arrive(made, name, 0, deadline)
    sink.rooms[1] = EMPTY
    made.serve(MS)
    assert sink.frames == [b"c", b"b", b"e", b"a", b"d"]


def test_a_deadline_that_becomes_known_moves_what_waits_already(sink: Sink) -> None:
    made = turns(sink)
    for name in (b"a", b"b", b"c", b"d"):
        arrive(made, name)
    made.set_deadline(b"c", 90, MS)
    made.set_deadline(b"d", 50, MS)
    made.set_deadline(b"unknown", 1, MS)
    sink.rooms[1] = FULL._replace(flows=80)
    made.serve(2 * MS)
    assert sink.frames == [b"d"]
    made.set_deadline(b"b", 90, 3 * MS)
    sink.rooms[1] = EMPTY
    made.serve(4 * MS)
    assert sink.frames == [b"d", b"b", b"c", b"a"], "of equal deadlines, the first to arrive is first"
    made.set_deadline(b"d", 20, 5 * MS)  # it has left


def test_a_deadline_can_be_withdrawn_or_changed(sink: Sink) -> None:
    made = turns(sink)
    for name, deadline in ((b"a", None), (b"b", 50), (b"c", 60), (b"d", 70)):
        arrive(made, name, 0, deadline)
    made.set_deadline(b"b", None, MS)
    made.set_deadline(b"d", 10, MS)
    made.set_deadline(b"a", None, MS)
    sink.rooms[1] = EMPTY
    made.serve(2 * MS)
    assert sink.frames == [b"d", b"c", b"a", b"b"]


def test_a_deadline_counts_for_both_directions_at_every_port(sink: Sink) -> None:
    """A SYN and its SYN-ACK leave by different ports, and the connection waits for both."""
    made = turns(sink)
    made.start(2)
    for port in (1, 2):
        made.arrived(packet(b"x", port=port), 0)
    made.arrived(packet(b"a", port=1), 0)
    made.set_deadline(b"a", 50, 0)
    made.arrived(packet(b"a", port=2, back=True), 0)
    made.arrived(packet(b"a back", port=1, back=True), 0)
    sink.rooms[1] = sink.rooms[2] = EMPTY
    made.serve(MS)
    assert [(port, frame) for port, frame, _ in sink.left] == [
        (1, b"a"),
        (1, b"a back"),
        (1, b"x"),
        (2, b"a"),
        (2, b"x"),
    ]
    assert made._places == {}


def test_an_old_deadline_is_forgotten(sink: Sink) -> None:
    made = turns(sink)
    made.set_deadline(b"b", 50, 0)
    made.set_deadline(b"c", 60, 1)
    for name in (b"a", b"b", b"c"):
        arrive(made, name, KEEP_NS)
    sink.rooms[1] = EMPTY
    made.serve(KEEP_NS)
    assert sink.frames == [b"c", b"a", b"b"]


def test_many_changes_of_a_deadline_take_no_memory(sink: Sink) -> None:
    made = turns(sink)
    for name in (b"a", b"b", b"c"):
        arrive(made, name)
    for number in range(1000):
        made.set_deadline(b"b", number, number)
        assert len(made._ports[1].order) <= 6
    sink.rooms[1] = EMPTY
    made.serve(MS)
    assert sink.frames == [b"b", b"a", b"c"]


def test_a_retransmission_takes_the_place_of_the_packet_that_waits(sink: Sink) -> None:
    made = turns(sink)
    arrive(made, b"a", 0)
    arrive(made, b"b", 1)
    arrive(made, b"a again", 2 * MS)
    sink.rooms[1] = EMPTY
    made.serve(3 * MS)
    assert sink.left == [(1, b"a again", 3 * MS), (1, b"b", 3 * MS - 1)]
    # The next one of this flow is a packet of its own.
    sink.rooms[1] = FULL
    arrive(made, b"x", 4 * MS)
    arrive(made, b"a", 4 * MS)
    sink.rooms[1] = EMPTY
    made.serve(5 * MS)
    assert sink.frames[2:] == [b"x", b"a"]


def test_nothing_waits_longer_than_the_bound(sink: Sink) -> None:
    made = turns(sink)
    arrive(made, b"a", 0, deadline=9)
    arrive(made, b"b", 100 * MS)
    made.serve(500 * MS - 1)
    assert sink.left == []
    made.serve(500 * MS)
    assert sink.left == [(1, b"a", 500 * MS)]
    made.serve(600 * MS)
    assert made.counts(1) == TurnCounts(waiting=0, late=2)


def test_a_packet_for_which_there_is_no_place_leaves_at_once(sink: Sink) -> None:
    made = turns(sink, capacity=2)
    for name in (b"a", b"b", b"c", b"b2"):
        arrive(made, name)
    assert sink.frames == [b"c"]
    assert made.counts(1) == TurnCounts(waiting=2, full=1)


def test_later_packets_wait_as_well_while_any_waits(sink: Sink) -> None:
    made = turns(sink)
    arrive(made, b"a")
    arrive(made, b"b")
    assert sink.told == [(1, 1)]
    sink.rooms[1] = FULL._replace(flows=80)
    made.serve(MS)
    assert sink.frames == [b"a"] and sink.told == [(1, 1)], "one still waits"
    sink.rooms[1] = EMPTY
    made.serve(2 * MS)
    assert sink.told == [(1, 1), (1, 0)]


def test_all_leave_when_the_port_stops_and_when_its_law_has_ended(sink: Sink) -> None:
    made = turns(sink)
    made.start(2)
    for port in (1, 2):
        arrive(made, b"a", port=port)
        arrive(made, b"b", port=port)
    made.stop(1, MS)
    assert sink.left == [(1, b"a", MS), (1, b"b", MS)]
    assert made.ports == (2,) and made.counts(1) == TurnCounts()
    sink.rooms[2] = None
    made.serve(2 * MS)
    assert sink.left[2:] == [(2, b"a", 2 * MS), (2, b"b", 2 * MS)]
    # What was under way when the port stopped.
    arrive(made, b"late", 3 * MS)
    assert sink.left[4:] == [(1, b"late", 0)]
    made.stop(1, MS)


def test_who_has_left_late_and_comes_again_is_last(sink: Sink) -> None:
    made = turns(sink)
    arrive(made, b"a")
    made.serve(500 * MS)
    for name in (b"b", b"a"):
        arrive(made, name, 501 * MS)
    sink.rooms[1] = EMPTY
    made.serve(502 * MS)
    assert sink.frames == [b"a", b"b", b"a"]


def test_what_has_left_late_takes_no_memory(sink: Sink) -> None:
    made = turns(sink)
    for number in range(100):
        arrive(made, b"%d" % number, number * 600 * MS)
        made.serve((number + 1) * 600 * MS)
    assert made.counts(1).late == 100 and len(made._ports[1].order) <= 2


def test_one_call_does_not_hold_up_the_agent(sink: Sink) -> None:
    made = turns(sink)
    for number in range(200):
        made.arrived(HeldPacket(1, bytes([number]), bytes([number]), b"", 0), 0)
    for wanted in (64, 128, 192, 200):
        made.serve(600 * MS)
        assert len(sink.left) == wanted


EVENTS = st.lists(
    st.tuples(
        st.sampled_from("anoesd"), st.integers(0, 40), st.none() | st.integers(0, 3), st.integers(0, 90)
    ),
    max_size=300,
)


def urgency(deadline: int | None) -> int:
    return 1 << 64 if deadline is None else deadline


@settings(max_examples=300)
@given(EVENTS)
def test_every_packet_leaves_once_in_order_and_in_time(events: list[Any]) -> None:
    """Against a list that is searched for the first at each step."""
    sink = Sink()
    made = turns(sink, capacity=8, longest_ns=100)
    now, number, waiting, known = 0, 0, {}, {}
    wanted: list[bytes] = []
    for what, name, deadline, spent in events:
        now += spent
        if what == "s":
            sink.rooms[1] = EMPTY._replace(flows=80 - name % 4)
            made.serve(now)
            room = 1 + name % 4
            while waiting:
                oldest = min(waiting, key=lambda key: waiting[key][2])
                if now - waiting[oldest][1] >= 100:
                    wanted.append(waiting.pop(oldest)[3])
                elif room > 0:
                    first = min(waiting, key=lambda key: (waiting[key][0], waiting[key][2]))
                    wanted.append(waiting.pop(first)[3])
                else:
                    break
                room -= 1
        elif what == "d":
            key = bytes([name])
            made.set_deadline(key, deadline, now)
            known[key] = deadline
            if key in waiting:
                waiting[key][0] = urgency(deadline)
        else:
            number += 1
            key, frame = bytes([name]), f"{name} {number}".encode()
            made.arrived(HeldPacket(1, key, key, frame, now), now)
            if key in waiting:
                waiting[key][3] = frame
            elif len(waiting) >= 8:
                wanted.append(frame)
            else:
                waiting[key] = [urgency(known.get(key)), now, number, frame]
        assert sink.frames == wanted
        assert made.counts(1).waiting == len(waiting)


# The twin


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    found = build(layout.BPF_DIR, tmp_path_factory.mktemp("turns"))
    found.fq_host_first_window.restype = ctypes.c_uint32
    found.fq_host_expected.restype = ctypes.c_uint32
    return found


BYTES = st.integers(0, 1 << 30)


@settings(max_examples=400)
@given(
    st.builds(
        Room,
        limit=st.one_of(BYTES, st.integers(0, 200_000)),
        backlog=st.one_of(BYTES, st.integers(0, 200_000)),
        flows=st.one_of(st.integers(0, 200), st.integers(0, (1 << 32) - 1)),
        frame=st.integers(1, 70_000),
        first=st.integers(0, 200_000),
        expected=st.one_of(st.just(0), BYTES),
    )
)
def test_both_twins_see_the_same_room(library: Any, room: Room) -> None:
    given_room = layout.STRUCTS["fq_room"](**room._asdict())
    assert bool(library.fq_host_has_room(ctypes.byref(given_room))) == room.has_room


def test_the_room_is_that_of_the_buffer() -> None:
    # 81 segments of 1,526 bytes fit into 125,000 bytes.
    assert EMPTY._replace(flows=80).has_room and not EMPTY._replace(flows=81).has_room
    assert not EMPTY._replace(flows=70, expected=11 * 1526).has_room
    assert EMPTY._replace(flows=8, backlog=123_000).has_room
    assert not EMPTY._replace(flows=8, backlog=124_000).has_room
    # A buffer that holds less than a few segments must not stop everybody.
    assert EMPTY._replace(limit=3_000, flows=3).has_room and not EMPTY._replace(limit=3_000, flows=4).has_room


@settings(max_examples=300)
@given(
    parameters(LawParameters, LawKind),
    st.lists(st.tuples(st.integers(0, 2_000_000_000), st.integers(0, 1 << 30)), max_size=20),
)
def test_expected_windows_are_sent_at_the_rate_of_the_port(library: Any, values: Any, steps: Any) -> None:
    law = layout.STRUCTS["fq_law"](rate=values.rate)
    state, expected, since, now = layout.STRUCTS["fq_turns"](), 0, 0, 10**12
    for elapsed, first in steps:
        now += elapsed
        left = library.fq_host_expected(ctypes.byref(law), ctypes.byref(state), ctypes.c_uint64(now))
        assert left == still_expected(expected, since, values.rate, now)
        state.first = first
        library.fq_host_admit(ctypes.byref(law), ctypes.byref(state), ctypes.c_uint64(now))
        expected, since = min(left + first, 1 << 30), now
        assert (state.expected, state.expected_ns) == (expected, since)


@settings(max_examples=300)
@given(parameters(LawParameters, LawKind), BYTES, st.integers(0, 9000), st.integers(1, 5000), st.booleans())
def test_the_first_window_is_the_law_s_and_at_most_what_a_host_sends_at_once(
    library: Any, values: Any, pool: int, segment: int, flows: int, young: bool
) -> None:
    law = Law(values)
    law.pool, law.segment = pool << 8, segment
    compiled = layout.STRUCTS["fq_law"](
        **{name: getattr(values, name) for name in LawParameters.__dataclass_fields__}
    )
    state = layout.STRUCTS["fq_law_state"](pool=pool << 8, segment=segment)
    found = library.fq_host_first_window(
        ctypes.byref(compiled), ctypes.byref(state), flows, flows if young else 1
    )
    size = segment or 1460
    window = max(min(law.window(flows, flows if young else 1, 0, size), values.first_window * size), size)
    assert found == min(window + -(-window // size) * 66, 1 << 30)
    assert found >= frame_of(size)
