"""Turns of volleys that take longer than a handshake can wait: handshakes are completed with closed windows,
and the connections wait on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairq_ryu.agent.turn_queue import HeldPacket
from fairq_ryu.agent.turn_room import Room
from fairq_ryu.agent.turns import (
    CLOSE_AFTER_NS,
    CLOSED_LEASE_NS,
    LONGEST_CLOSED_NS,
    LONGEST_NS,
    Closing,
    Opening,
    Turns,
)
from tests.unit.agent.test_turns import EMPTY, FULL, MS

ONE = FULL._replace(flows=80)
"""Room for one flow more."""


@dataclass
class Sink:
    """A port whose room the test sets. A packet that leaves, or a window that opens, takes room."""

    room_of: Room | None = FULL
    left: list[bytes] = field(default_factory=list)
    closed: list[bytes] = field(default_factory=list)
    opened: list[bytes] = field(default_factory=list)
    leases: dict[bytes, int] = field(default_factory=dict)
    incomplete: set[bytes] = field(default_factory=set)
    gone: set[bytes] = field(default_factory=set)
    told: list[int] = field(default_factory=list)
    closing: Closing = Closing.DONE
    never: set[bytes] = field(default_factory=set)
    unsent: set[bytes] = field(default_factory=set)
    floor: int = 0

    def room(self, port: int, now_ns: int) -> Room | None:
        return self.room_of

    def _take(self) -> None:
        if self.room_of is not None:
            self.room_of = self.room_of._replace(flows=self.room_of.flows + 1)

    def hold_ns(self, port: int) -> int:
        return 40 * MS

    def whole_floor(self, port: int) -> int:
        return self.floor

    def send(self, port: int, frame: bytes, waited_ns: int, closed: bool = False) -> None:
        (self.closed if closed else self.left).append(frame)
        if not closed:
            self._take()

    def close_window(self, key: bytes, frame: bytes, until_ns: int) -> Closing:
        if key in self.never:
            return Closing.NEVER
        if self.closing is Closing.DONE:
            self.leases[key] = until_ns
        return self.closing

    def keep_closed(self, key: bytes, until_ns: int) -> bool:
        if key in self.leases:
            self.leases[key] = until_ns
        return key in self.leases

    def is_open(self, key: bytes) -> bool:
        return key not in self.incomplete

    def open_window(self, key: bytes, frame: bytes) -> Opening:
        self.opened.append(frame)
        self.leases.pop(key, None)
        if key in self.gone:
            return Opening.GONE
        if key in self.unsent:
            return Opening.UNSENT
        self._take()
        return Opening.TOLD

    def set_waiting(self, port: int, waiting: int) -> None:
        self.told.append(waiting)


@pytest.fixture
def sink() -> Sink:
    return Sink()


def name(number: int) -> bytes:
    return b"%04d" % number


def volley(sink: Sink, count: int, now: int = 0) -> Turns:
    """So many handshakes wait at port 1. The first had its turn just before they have waited for long."""
    made = Turns(sink)
    made.start(1)
    for number in range(count):
        made.arrived(HeldPacket(1, name(number), name(number), name(number), name(number), now), now)
    turn(made, sink, now + CLOSE_AFTER_NS - MS)
    return made


def turn(made: Turns, sink: Sink, now: int) -> None:
    """One has its turn."""
    before, sink.room_of = sink.room_of, ONE
    made.serve(now)
    sink.room_of = before


def close_all(made: Turns, sink: Sink, first_ns: int = CLOSE_AFTER_NS) -> int:
    """Serve until no handshake waits as a packet; returns the time."""
    now = first_ns
    while made.counts(1).closed < made.counts(1).waiting:
        made.serve(now)
        now += MS
        assert now < first_ns + LONGEST_NS - CLOSE_AFTER_NS
    return now


def test_handshakes_that_have_waited_for_long_are_completed_the_last_ones_first(sink: Sink) -> None:
    made = volley(sink, 101)
    assert sink.left == [name(0)] and sink.closed == []
    made.serve(CLOSE_AFTER_NS)
    # 100 wait: a thirty-second part, and one.
    assert sink.closed == [name(100), name(99), name(98), name(97)]
    assert set(sink.leases.values()) == {CLOSE_AFTER_NS + CLOSED_LEASE_NS}
    assert made.counts(1).waiting == 100 and made.counts(1).closed == made.closed == 4
    close_all(made, sink, CLOSE_AFTER_NS + MS)
    assert sorted(sink.closed) == [name(number) for number in range(1, 101)] and sink.left == [name(0)]


def test_the_next_ones_in_the_order_remain_packets_at_first(sink: Sink) -> None:
    made = volley(sink, 101)
    for step in range(150):
        made.serve(CLOSE_AFTER_NS + step * MS)
    assert made.counts(1).waiting - made.counts(1).closed == 32
    turn(made, sink, 651 * MS)
    assert sink.left == [name(0), name(1)] and sink.opened == []


def test_their_windows_open_in_the_order_in_which_they_came(sink: Sink) -> None:
    made = volley(sink, 5)
    now = close_all(made, sink)
    for number in range(1, 5):
        now += 100 * MS
        turn(made, sink, now)
        assert sink.opened == [name(each) for each in range(1, number + 1)]
    assert made.counts(1).released == 5 and made.counts(1).waiting == 0 and sink.leases == {}
    # Later packets wait as long as its first window may not have come.
    assert sink.told[-1] == 1 and made.waiting
    made.serve(now + 79 * MS)
    assert made.waiting
    made.serve(now + 80 * MS)
    assert sink.told[-1] == 0 and not made.waiting


def test_the_first_windows_of_opened_connections_are_expected(sink: Sink) -> None:
    """The program does not count them: it has not seen a handshake leave."""
    made = volley(sink, 200)
    now = close_all(made, sink) + 100 * MS
    sink.room_of = FULL._replace(flows=0, allowance=1000)
    sink._take = lambda: None  # type: ignore[method-assign]
    for _ in range(9):
        made.serve(now)
    assert len(sink.opened) == 81, "as many as the buffer holds"
    made.serve(now + 79 * MS)
    assert len(sink.opened) == 81
    made.serve(now + 80 * MS)
    assert len(sink.opened) > 81


def test_an_announced_deadline_opens_a_window_earlier(sink: Sink) -> None:
    made = volley(sink, 5)
    now = close_all(made, sink)
    made.set_deadline(name(3), now + 10**9, now)
    turn(made, sink, now)
    assert sink.opened == [name(3)]


def test_a_lease_is_renewed_as_long_as_the_agent_lives(sink: Sink) -> None:
    made = volley(sink, 5)
    now = close_all(made, sink)
    for _ in range(30):
        now += 100 * MS
        turn(made, sink, now) if made.counts(1).waiting > 1 else made.serve(now)
        assert all(until > now + CLOSED_LEASE_NS // 2 - 100 * MS for until in sink.leases.values())


def test_a_connection_that_a_controller_governs_now_is_let_go(sink: Sink) -> None:
    made = volley(sink, 3)
    now = close_all(made, sink)
    del sink.leases[name(1)]
    turn(made, sink, now + 100 * MS)
    made.serve(now + CLOSED_LEASE_NS // 2)
    assert sink.opened == [name(1)] and name(2) in sink.leases
    assert made.counts(1).waiting == 1 and made.counts(1).released == 2


def test_a_window_whose_lease_has_ended_is_not_closed_again(sink: Sink) -> None:
    """The agent was stopped, and the sender has begun."""
    made = volley(sink, 3)
    now = close_all(made, sink)
    made.serve(now + CLOSED_LEASE_NS)
    assert sorted(sink.opened) == [name(1), name(2)] and made.counts(1).waiting == 0


def test_an_update_that_cannot_be_sent_is_tried_again(sink: Sink) -> None:
    made = volley(sink, 2)
    now = close_all(made, sink)
    sink.unsent = {name(1)}
    turn(made, sink, now)
    made.serve(now + MS)
    assert sink.opened == [name(1)] * 2 and made.counts(1).waiting == 0 and made.waiting
    sink.unsent = set()
    made.serve(now + 2 * MS)
    made.serve(now + 3 * MS)
    assert sink.opened == [name(1)] * 3
    # Not for ever.
    now += 10**9
    made = volley(sink, 2, now)
    now = close_all(made, sink, now + CLOSE_AFTER_NS)
    sink.unsent = {name(1)}
    sink.opened.clear()
    turn(made, sink, now)
    for step in range(1, 300):
        made.serve(now + step * MS)
    assert len(sink.opened) == 101 and not made.waiting


def test_a_connection_whose_window_cannot_be_closed_leaves_as_it_is(sink: Sink) -> None:
    """Others need not wait for it."""
    made = volley(sink, 40)
    sink.never = {name(39), name(38)}
    for step in range(400):
        made.serve(CLOSE_AFTER_NS + step * MS)
    assert made.counts(1).waiting - made.counts(1).closed == 2 and sink.left == [name(0)]
    made.serve(LONGEST_NS)
    assert sorted(sink.left) == [name(0), name(38), name(39)]


def test_on_a_port_without_turns_no_window_is_closed(sink: Sink) -> None:
    """Connections that stay leave no room; handshakes leave when they have waited too long, as they are."""
    made = Turns(sink)
    made.start(1)
    for number in (7, 8):
        made.arrived(HeldPacket(1, *(name(number),) * 4, 0), 0)
    for step in range(300, 901):
        made.serve(step * MS)
    assert sink.closed == [] and sink.left == [name(7), name(8)]
    assert made.counts(1).late == 2


def test_when_turns_end_connections_do_not_wait_for_ever(sink: Sink) -> None:
    made = volley(sink, 4)
    close_all(made, sink)
    last_turn = CLOSE_AFTER_NS - MS
    made.serve(last_turn + LONGEST_NS - 1)
    assert sink.opened == []
    for step in range(4):
        made.serve(last_turn + LONGEST_NS + step * MS)
    assert len(sink.opened) == 3 and made.counts(1).late == 3
    assert made.counts(1).waiting == 0


def test_the_one_that_has_waited_longest_is_let_go_first(sink: Sink) -> None:
    """Not the one whose lease ends first."""
    made = volley(sink, 20)
    for number in range(20, 40):
        at = (number - 19) * MS
        made.arrived(HeldPacket(1, *(name(number),) * 4, at), at)
    now, state = close_all(made, sink), made._ports[1]
    while now < LONGEST_CLOSED_NS - 100 * MS:
        now += 100 * MS
        state.turn_ns = now  # others have their turns
        made.serve(now)
    assert sink.opened == []
    state.turn_ns = LONGEST_CLOSED_NS
    for step in range(40):
        made.serve(LONGEST_CLOSED_NS + step * MS)
    assert sink.opened[19:] == [name(number) for number in range(20, 40)]


def test_nobody_waits_longer_than_the_bound_even_if_turns_go_on(sink: Sink) -> None:
    made = volley(sink, 100)
    now = close_all(made, sink)
    while now < LONGEST_CLOSED_NS - 100 * MS:
        now += 100 * MS
        turn(made, sink, now)
    assert made.counts(1).waiting > 10 and made.counts(1).late == 0
    before = len(sink.opened)
    made.serve(LONGEST_CLOSED_NS)
    made.serve(LONGEST_CLOSED_NS + MS)
    assert len(sink.opened) == before + 2, "one at a time, because each sends a first window"


def test_all_windows_open_when_the_port_stops_and_when_its_law_has_ended(sink: Sink) -> None:
    made = volley(sink, 3)
    now = close_all(made, sink)
    made.stop(1, now)
    assert sorted(sink.opened) == [name(1), name(2)] and made.closed == 0
    sink.opened.clear()
    made = volley(sink, 3)
    now = close_all(made, sink)
    sink.room_of = None
    made.serve(now)
    assert sorted(sink.opened) == [name(1), name(2)]


def test_a_handshake_that_is_not_complete_keeps_its_room(sink: Sink) -> None:
    made = volley(sink, 4)
    now = close_all(made, sink)
    sink.incomplete = {name(1), name(2), name(3)}
    turn(made, sink, now)
    assert sink.opened == [] and made.counts(1).released == 1
    # Its room is not given to the next one.
    turn(made, sink, now + MS)
    assert sink.opened == []
    sink.incomplete = {name(2), name(3)}
    made.serve(now + 2 * MS)
    assert sink.opened == [name(1)] and made.counts(1).released == 2
    # One that is never completed has its turn all the same.
    sink.room_of = EMPTY
    made.serve(now + 100 * MS)
    made.serve(now + 299 * MS)
    assert sink.opened == [name(1)]
    made.serve(now + 300 * MS)
    assert sorted(sink.opened) == [name(1), name(2), name(3)]


def test_no_first_window_is_expected_of_a_connection_that_has_ended(sink: Sink) -> None:
    made = volley(sink, 4)
    now = close_all(made, sink)
    sink.gone = {name(1), name(2)}
    turn(made, sink, now)
    assert sink.opened == [name(1), name(2), name(3)], "the two have taken no room"


def test_half_open_handshakes_are_limited_and_so_a_flood_closes_nothing(sink: Sink) -> None:
    made = volley(sink, 40)
    sink.room_of = FULL._replace(half_open=FULL.allowance // 2)
    made.serve(CLOSE_AFTER_NS)
    assert sink.closed == []
    sink.room_of = FULL._replace(half_open=FULL.allowance // 2 - 1)
    made.serve(CLOSE_AFTER_NS + MS)
    assert len(sink.closed) == 1


def test_if_no_window_can_be_closed_it_is_tried_again_later(sink: Sink) -> None:
    made = volley(sink, 40)
    sink.closing = Closing.LATER
    for step in range(100):
        made.serve(CLOSE_AFTER_NS + step * MS)
    sink.closing = Closing.DONE
    made.serve(CLOSE_AFTER_NS + 99 * MS)
    assert sink.closed == []
    made.serve(CLOSE_AFTER_NS + 100 * MS)
    assert len(sink.closed) == 2 and sink.left == [name(0)]


def test_a_packet_that_waits_at_two_ports_is_not_completed(sink: Sink) -> None:
    """A bridge has flooded it, and one rule would be that of both copies."""
    made = volley(sink, 2)
    made.start(2)
    made.arrived(HeldPacket(2, *(name(1),) * 4, 0), CLOSE_AFTER_NS - MS)
    for step in range(300):
        made.serve(CLOSE_AFTER_NS + step * MS)
    assert sink.closed == []
    made.serve(LONGEST_NS)
    assert sink.left == [name(0), name(1), name(1)]


def test_a_repeated_packet_of_a_connection_with_a_closed_window_leaves(sink: Sink) -> None:
    made = volley(sink, 2)
    now = close_all(made, sink)
    made.arrived(HeldPacket(1, *(name(1),) * 3, b"again", now), now)
    assert sink.left == [name(0)] and sink.closed == [name(1), b"again"], "no first window is expected"
    assert made.counts(1).waiting == 1


def test_the_other_packet_of_the_connection_waits_for_a_shorter_time(sink: Sink) -> None:
    made = volley(sink, 2)
    now = close_all(made, sink)
    made.start(2)
    made.arrived(HeldPacket(2, b"back", name(1), b"back", b"back", now), now)
    assert sink.closed == [name(1)]
    made.serve(now + MS)
    assert sink.closed == [name(1), b"back"], "it has waited at the other port"


def test_a_few_flows_too_many_do_not_let_in_more(sink: Sink) -> None:
    """With two segments for each flow, 40 fit. 41 have one each, and then 81 would fit."""
    sink.floor = 2 * 1526
    made = Turns(sink)
    made.start(1)
    sink.room_of = FULL._replace(flows=41)
    assert sink.room_of.has_room
    made.arrived(HeldPacket(1, *(name(1),) * 4, 0), 0)
    made.serve(199 * MS)
    assert sink.left == []
    sink.room_of = FULL._replace(flows=39)
    made.serve(199 * MS)
    assert sink.left == [name(1)]
    # But where so many stay that nobody has a turn, one segment is enough.
    sink.room_of = FULL._replace(flows=41)
    made.arrived(HeldPacket(1, *(name(2),) * 4, 200 * MS), 200 * MS)
    made.serve(399 * MS)
    assert sink.left == [name(1)]
    made.serve(400 * MS)
    assert sink.left == [name(1), name(2)]
    made.arrived(HeldPacket(1, *(name(3),) * 4, 401 * MS), 401 * MS)
    made.serve(402 * MS)
    assert sink.left == [name(1), name(2), name(3)], "it remains so"


EVENTS = st.lists(
    st.tuples(st.sampled_from("aaasssxyo"), st.integers(0, 60), st.integers(0, 400)), max_size=200
)


@settings(max_examples=300)
@given(EVENTS)
def test_every_connection_is_let_go_once(events: list[Any]) -> None:
    """Whatever happens: each leaves as it is, or with a closed window that opens once; no lease is left."""
    sink = Sink()
    made = Turns(sink)
    made.start(1)
    now, came = 0, 0
    for what, number, spent in events:
        now += spent * MS
        if what == "a":
            for _ in range(number):
                came += 1
                made.arrived(HeldPacket(1, *(name(came),) * 4, now), now)
        elif what == "s":
            sink.room_of = FULL._replace(flows=81 - number % 8, half_open=number * 6)
            made.serve(now)
        elif what == "x":
            sink.incomplete = {name(each) for each in range(number)}
        elif what == "y":
            sink.gone = {name(each) for each in range(0, number, 3)}
        else:
            sink.closing = Closing.LATER if sink.closing is Closing.DONE else Closing.DONE
        assert made.counts(1).closed == len(made._ports[1].leases)
    made.stop(1, now)
    assert sorted(sink.left + sink.opened) == [name(each) for each in range(1, came + 1)]
    assert sorted(sink.closed) == sorted(sink.opened)
    assert sink.leases == {} and made._places == {} and not made.waiting


@settings(max_examples=100)
@given(st.lists(st.integers(1, 400), max_size=60), st.integers(1, 40))
def test_leases_are_renewed_in_time(steps: list[int], count: int) -> None:
    """As long as the agent looks every half of a lease."""
    sink = Sink()
    made = volley(sink, count)
    now = close_all(made, sink)
    for step in steps:
        now += step * MS
        made._ports[1].turn_ns = now
        made.serve(now)
        assert all(until > now for until in sink.leases.values())
        assert now >= LONGEST_CLOSED_NS or not sink.opened
