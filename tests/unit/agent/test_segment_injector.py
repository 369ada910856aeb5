"""Segments that the agent sends in the names of receivers."""

from __future__ import annotations

from typing import Any

import pytest

from fairq_ryu.agent.segment_injector import SegmentInjector
from fairq_ryu.channel.segment_counts import NOT_SENT, OBSERVED, OVER, UNKNOWN_ADDRESSES
from fairq_ryu.model import FlowKey, SegmentState
from fairq_ryu.packet import tcp_build
from fairq_ryu.packet.parse import parse
from fairq_ryu.packet.tcp_build import Addressing, Refusal
from tests.support.fakes import FakeDatapath
from tests.switch import packets
from tests.switch.packets import Segment

DATA = FlowKey("10.0.0.1", "10.0.0.2", 40000, 80)
ACKS = DATA.reversed
# As it is read from a frame with the tag of KNOWN.
TAGGED = ACKS._replace(vlan=7)
KNOWN = Addressing(ACKS, "02:00:00:00:00:02", "02:00:00:00:00:01", (7,))


def state(key: FlowKey = ACKS, **values: Any) -> SegmentState:
    usual = {"port": 1, "seq_next": 901, "ack": 1001, "window": 500, "tsval": 70, "tsecr": 60}
    return SegmentState(key, True, **(usual | {"has_timestamps": True} | values))


def made(*states: SegmentState) -> tuple[FakeDatapath, SegmentInjector]:
    data = FakeDatapath(1, 2)
    data.segments = {each.key: each for each in states}
    return data, SegmentInjector(data)


def test_a_sender_is_woken_at_the_port_of_the_acks_with_the_receiver_s_own_numbers():
    data, injector = made(state())
    injector.wake([KNOWN])
    ((port, frame),) = data.frames
    assert port == 1
    read = parse(frame)
    assert read is not None and read.tcp is not None
    assert (read.src, read.dst, read.tags) == (KNOWN.src, KNOWN.dst, KNOWN.tags)
    assert (read.tcp.key, read.tcp.seq, read.tcp.ack_number, read.payload) == (TAGGED, 901, 1001, 0)
    assert packets.window(frame) == 500 and packets.residue(frame) == 0
    assert injector.counts == {"wake": 1}


def test_a_sender_behind_an_access_port_is_woken_without_a_tag():
    data, injector = made(state(TAGGED))
    data.untagged[1] = 7
    injector.wake([KNOWN._replace(key=TAGGED)])
    read = parse(data.frames[0][1], 7)
    assert read is not None and read.tcp is not None and (read.tags, read.tcp.key) == ((), TAGGED)


def test_senders_are_woken_in_the_order_of_the_message():
    other = ACKS._replace(dport=40001)
    data, injector = made(state(), state(other))
    injector.wake([KNOWN._replace(key=other), KNOWN])
    assert [parse(frame).tcp.key for _, frame in data.frames] == [TAGGED._replace(dport=40001), TAGGED]


@pytest.mark.parametrize(
    ("states", "reason"),
    [
        ([], Refusal.NOT_FOUND),
        ([state(window=0)], Refusal.CLOSED_WINDOW),
        ([state(fin=True)], Refusal.ENDED),
        ([state(rst=True)], Refusal.ENDED),
        ([state(has_timestamps=None)], Refusal.TIMESTAMPS),
    ],
)
def test_no_update_is_made_up(states, reason):
    data, injector = made(*states)
    injector.wake([KNOWN])
    assert data.frames == [] and injector.counts == {f"wake: {reason}": 1}


def test_no_sender_is_woken_whose_data_leaves_by_a_port_that_is_only_observed():
    other = FlowKey("10.0.0.1", "10.0.0.3", 40000, 80)
    data, injector = made(state(), state(DATA, port=2), state(other.reversed), state(other, port=3))
    data.observed = frozenset({2})
    injector.wake([KNOWN, Addressing(other.reversed, "02:00:00:00:00:03", "02:00:00:00:00:01")])
    assert injector.counts == {"wake": 1, f"wake: {OBSERVED}": 1}
    assert [parse(frame).tcp.key for _, frame in data.frames] == [other.reversed]


def test_a_port_that_takes_nothing_is_counted():
    data, injector = made(state())
    data.full = {1}
    injector.wake([KNOWN])
    assert injector.counts == {f"wake: {NOT_SENT}": 1}


def test_three_duplicates_of_the_last_ack_with_the_window_that_was_passed_on():
    data, injector = made()
    injector.send_duplicates(KNOWN.reversed, state(passed=22))
    wanted = tcp_build.window_update(KNOWN, state(window=22))
    assert data.frames == [(1, wanted)] * 3
    injector.send_duplicates(None, state())
    assert injector.counts == {"dupack": 1, f"dupack: {UNKNOWN_ADDRESSES}": 1}
    assert len(data.frames) == 3


LOST = Segment(
    seq=5000, ack=901, payload=b"x" * 100, options=packets.NOP * 2 + packets.timestamps(50, 70)
).frame()


@pytest.mark.parametrize("seq_next", [5100, 5000, 9000])
def test_a_segment_is_reinjected_by_the_port_that_dropped_it(seq_next):
    data, injector = made(state(DATA, port=2, seq_next=seq_next, tsval=50))
    injector.reinject(2, LOST, None)
    assert data.frames == [(2, LOST)] and injector.counts == {"reinject": 1}


@pytest.mark.parametrize(
    ("echoed", "sent", "newest"),
    [
        (65, None, 65),
        (65, 60, 65),
        (60, 65, 65),
        (None, 65, 65),
        (40, 45, 50),
        (None, 0xFFFFFFF0, 50),
        (0xFFFFFFF0, 60, 60),
    ],
)
def test_an_old_timestamp_is_renewed_and_nothing_else(echoed, sent, newest):
    """``sent``: by the sender's last segment, which may still be in the queue (None: it is not known)."""
    data, injector = made(*([] if sent is None else [state(DATA, port=2, seq_next=9000, tsval=sent)]))
    injector.reinject(2, LOST, echoed)
    ((_, frame),) = data.frames
    wanted = Segment(
        seq=5000, ack=901, payload=b"x" * 100, options=packets.NOP * 2 + packets.timestamps(newest, 70)
    )
    assert frame == wanted.frame()


@pytest.mark.parametrize("known", [False, None])
def test_a_connection_without_timestamps_gets_none(known):
    data, injector = made(state(DATA, port=2, seq_next=9000, tsval=90, has_timestamps=known))
    injector.reinject(2, LOST, None)
    assert data.frames == [(2, LOST)]


@pytest.mark.parametrize("values", [{"rst": True}, {"seq_next": 4999}, {"seq_next": 5000 - (1 << 31) + 1}])
def test_segments_of_a_connection_that_is_over_are_not_reinjected(values):
    """The last two: the ports are used for another connection, with other sequence numbers."""
    data, injector = made(state(DATA, port=2, **({"seq_next": 5100} | values)))
    injector.reinject(2, LOST, None)
    assert data.frames == [] and injector.counts == {f"reinject: {OVER}": 1}
