"""Turns of new connections: order and bounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairq_ryu.agent.turn_deadlines import KEEP_NS
from fairq_ryu.agent.turn_queue import HeldPacket, TurnCounts
from fairq_ryu.agent.turn_room import Room
from fairq_ryu.agent.turns import Closing, Opening, Turns
from fairq_ryu.packet import build as frames
from fairq_ryu.packet.headers import SYN

MS = 1_000_000
LINK = (b"\2" * 6, b"\4" * 6)
ENDS = (bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]))
EMPTY = Room(
    limit=125_000,
    backlog=0,
    flows=0,
    frame=1526,
    floor=1526,
    first=1526,
    expected=0,
    half_open=0,
    allowance=337,
)
FULL = EMPTY._replace(flows=82)


@dataclass
class Sink:
    """A port: each packet that leaves is one more flow."""

    rooms: dict[int, Room | None] = field(default_factory=dict)
    left: list[tuple[int, bytes, int]] = field(default_factory=list)
    told: list[tuple[int, int]] = field(default_factory=list)

    def room(self, port: int, now_ns: int) -> Room | None:
        return self.rooms.get(port, FULL)

    def send(self, port: int, frame: bytes, waited_ns: int, closed: bool = False) -> None:
        assert not closed
        self.left.append((port, frame, waited_ns))
        room = self.rooms.get(port)
        if room is not None:
            self.rooms[port] = room._replace(flows=room.flows + 1)

    def hold_ns(self, port: int) -> int:
        return 40 * MS

    def whole_floor(self, port: int) -> int:
        return 0

    def close_window(self, key: bytes, frame: bytes, until_ns: int) -> Closing:
        return Closing.LATER

    def keep_closed(self, key: bytes, until_ns: int) -> bool:
        raise AssertionError("no window was closed")

    def is_open(self, key: bytes) -> bool:
        raise AssertionError("no window was closed")

    def open_window(self, key: bytes, frame: bytes) -> Opening:
        raise AssertionError("no window was closed")

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


def packet(
    name: bytes, now: int = 0, port: int = 1, back: bool = False, sender: bytes | None = None
) -> HeldPacket:
    """Of the connection that the first letter names; ``back``: of its other direction."""
    key = name[:1] + b"<>"[back : back + 1]
    return HeldPacket(port, key, name[:1], key if sender is None else sender, name, now)


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


def of_tenants(made: Turns, arrivals: str, weights: dict[str, int]) -> None:
    """A letter for each packet: whose it is, in the order of their arrival."""
    numbers = {letter: number for number, letter in enumerate(weights, 1)}
    for number, letter in enumerate(arrivals, 1):
        name = b"%d" % number
        held = HeldPacket(1, name, name, name, letter.encode(), 0, numbers[letter], weights[letter])
        made.arrived(held, 0)


def leave(made: Turns, sink: Sink) -> str:
    sink.rooms[1] = EMPTY
    made.serve(MS)
    return b"".join(sink.frames).decode()


def test_the_volley_of_a_tenant_does_not_make_others_wait(sink: Sink) -> None:
    made = turns(sink)
    of_tenants(made, "bbbbbbbba", {"a": 1, "b": 1})
    assert leave(made, sink) == "babbbbbbb"


def test_tenants_have_turns_by_weight_and_each_in_its_own_order(sink: Sink) -> None:
    made = turns(sink)
    of_tenants(made, "a" * 4 + "b" * 6, {"a": 1, "b": 3})
    assert leave(made, sink) == "abbbabbbaa"


def test_a_tenant_that_begins_to_wait_has_no_claim_from_before(sink: Sink) -> None:
    made = turns(sink)
    of_tenants(made, "bbbb", {"a": 1, "b": 1})
    leave(made, sink)
    sink.rooms[1] = FULL
    of_tenants(made, "bbbaaa", {"a": 1, "b": 1})
    sink.left.clear()
    assert leave(made, sink) in ("bababa", "ababab")


def test_deadlines_are_an_order_within_a_tenant(sink: Sink) -> None:
    made = turns(sink)
    for name, tenant, deadline in ((b"a", 1, None), (b"b", 1, 50), (b"c", 2, 90), (b"d", 1, None)):
        if deadline is not None:
            made.set_deadline(name, deadline, 0)
        made.arrived(packet(name)._replace(tenant=tenant), 0)
    sink.rooms[1] = EMPTY
    made.serve(MS)
    assert sink.frames == [b"b", b"c", b"a", b"d"]


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
    left = {port: [frame for at, frame, _ in sink.left if at == port] for port in (1, 2)}
    assert left == {1: [b"a", b"a back", b"x"], 2: [b"a", b"x"]}
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
        assert len(made._ports[1].order[0]) <= 6
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


def test_a_syn_with_another_number_does_not_replace_the_one_that_waits(sink: Sink) -> None:
    """Anybody can send one with the addresses and ports of another host."""
    made = turns(sink)
    genuine, forged = (
        frames.tcp_frame(LINK, ENDS, frames.tcp(b"".join(ENDS), (40_000, 80), seq, 0, SYN, 1000, b""), ())
        for seq in (7, 8)
    )
    for frame in (genuine, forged, genuine):
        made.arrived(HeldPacket(1, b"k", b"k", b"s", frame, 0), 0)
    assert sink.frames == [forged]
    sink.rooms[1] = EMPTY
    made.serve(MS)
    assert sink.frames == [forged, genuine]


def test_one_call_serves_a_bounded_number_of_packets_of_all_ports(sink: Sink) -> None:
    made = turns(sink)
    made.start(2)
    sink.rooms = {1: None, 2: None}
    for port in (1, 2):
        for number in range(70):
            made.arrived(HeldPacket(port, b"%d" % number, b"%d" % number, b"%d" % number, b"f", 0), 0)
    left = []
    for _ in range(3):
        made.serve(MS)
        left.append([made.counts(port).waiting for port in (1, 2)])
    # The second port is first in the first call, the other one in the next.
    assert left == [[70, 6], [6, 6], [0, 0]]


def test_nothing_waits_longer_than_the_bound(sink: Sink) -> None:
    made = turns(sink)
    arrive(made, b"a", 0, deadline=9)
    arrive(made, b"b", 100 * MS)
    made.serve(900 * MS - 1)
    assert sink.left == []
    made.serve(900 * MS)
    assert sink.left == [(1, b"a", 900 * MS)]
    made.serve(1000 * MS)
    assert made.counts(1) == TurnCounts(waiting=0, late=2)


def test_a_packet_for_which_there_is_no_place_leaves_at_once(sink: Sink) -> None:
    made = turns(sink, capacity=2)
    for name in (b"a", b"b", b"c", b"b2"):
        arrive(made, name)
    assert sink.frames == [b"c"]
    assert made.counts(1) == TurnCounts(waiting=2, full=1)


def test_one_address_has_a_quarter_of_the_places(sink: Sink) -> None:
    """A flood of SYNs with one source leaves the others their places."""
    made = turns(sink, capacity=8)
    for name in (b"a", b"b", b"c", b"d"):
        made.arrived(packet(name, sender=b"flood"), 0)
    assert sink.frames == [b"c", b"d"]
    made.arrived(packet(b"a again", sender=b"flood"), 0)
    made.arrived(packet(b"x"), 0)
    assert made.counts(1) == TurnCounts(waiting=3, full=2)
    sink.rooms[1] = FULL._replace(flows=80)
    made.serve(MS)
    assert sink.frames[2:] == [b"a again"]
    made.arrived(packet(b"e", sender=b"flood"), MS)
    assert made.counts(1).waiting == 3, "one of its places is free again"
    sink.rooms[1] = EMPTY
    made.serve(2 * MS)
    assert made._ports[1].senders == {}


def test_nobody_waits_while_too_many_handshakes_are_incomplete(sink: Sink) -> None:
    made = turns(sink)
    for name in (b"a", b"b"):
        arrive(made, name)
    sink.rooms[1] = FULL._replace(half_open=336)
    made.serve(MS)
    assert sink.frames == []
    sink.rooms[1] = FULL._replace(half_open=337)
    made.serve(2 * MS)
    assert sink.frames == [b"a", b"b"] and sink.told == [(1, 1), (1, 0)]
    assert made.counts(1) == TurnCounts(full=2), "there was no room"


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
    made.serve(900 * MS)
    for name in (b"b", b"a"):
        arrive(made, name, 901 * MS)
    sink.rooms[1] = EMPTY
    made.serve(902 * MS)
    assert sink.frames == [b"a", b"b", b"a"]


def test_what_has_left_late_takes_no_memory(sink: Sink) -> None:
    made = turns(sink)
    for number in range(100):
        arrive(made, b"%d" % number, number * 1000 * MS)
        made.serve((number + 1) * 1000 * MS)
    assert made.counts(1).late == 100 and sum(map(len, made._ports[1].order.values())) <= 2


def test_one_call_does_not_hold_up_the_agent(sink: Sink) -> None:
    made = turns(sink)
    for number in range(200):
        made.arrived(HeldPacket(1, *(bytes([number]),) * 3, b"", 0), 0)
    for wanted in (64, 128, 192, 200):
        made.serve(1000 * MS)
        assert len(sink.left) == wanted


def test_syn_and_syn_ack_of_a_connection_wait_no_longer_than_one_of_them_may(sink: Sink) -> None:
    made = turns(sink)
    made.start(2)
    made.arrived(packet(b"a"), 0)
    made.serve(600 * MS)
    assert sink.left == []
    sink.rooms[1] = EMPTY
    made.serve(600 * MS)
    assert sink.left == [(1, b"a", 600 * MS)]
    made.arrived(packet(b"a2", 600 * MS, port=2, back=True), 600 * MS)
    made.arrived(packet(b"b", 600 * MS, port=2), 600 * MS)
    made.serve(899 * MS)
    assert len(sink.left) == 1
    made.serve(900 * MS)
    assert sink.left[1:] == [(2, b"a2", 300 * MS)], "b has waited for 300 ms, and a for 900"
    made.serve(1500 * MS)
    assert sink.left[2:] == [(2, b"b", 900 * MS)]


def test_a_later_attempt_of_a_connection_waits_for_the_whole_time(sink: Sink) -> None:
    made = turns(sink)
    made.arrived(packet(b"a"), 0)
    made.serve(900 * MS)
    made.arrived(packet(b"a", 1000 * MS), 1000 * MS)
    made.arrived(packet(b"a2", 1950 * MS, back=True), 1950 * MS)
    made.serve(1899 * MS)
    assert len(sink.left) == 1
    made.serve(1950 * MS)
    assert sink.frames == [b"a", b"a"]


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
            made.arrived(HeldPacket(1, key, key, key, frame, now), now)
            if key in waiting:
                waiting[key][3] = frame
            elif len(waiting) >= 8:
                wanted.append(frame)
            else:
                waiting[key] = [urgency(known.get(key)), now, number, frame]
        assert sink.frames == wanted
        assert made.counts(1).waiting == len(waiting)
