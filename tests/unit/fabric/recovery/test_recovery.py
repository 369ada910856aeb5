"""Recovery of dropped segments: which losses are signalled to senders, and which segments are put back."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.fabric.recovery.actions import Ask, Mode, Reinject, SendDuplicates
from fairq_ryu.fabric.recovery.losses import ENTRY_BYTES, FLOW_PART
from fairq_ryu.fabric.recovery.recovery import (
    ANSWER_S,
    MAX_KEYS_PER_REQUEST,
    MAX_REINJECTIONS,
    RecoveryEngine,
)
from fairq_ryu.model import FlowKey, PortKey, TcpSegment

P1, P2 = PortKey(1, 3), PortKey(2, 3)
FLOW = FlowKey("10.0.0.1", "10.0.0.9", 33000, 5001)
AGE, K = 1.0, 30_000


def flow(number: int) -> FlowKey:
    return FLOW._replace(sport=33000 + number)


class State(NamedTuple):
    key: FlowKey
    ack: int
    found: bool = True
    tsecr: int = 5
    has_timestamps: bool | None = True
    fin: bool = False
    rst: bool = False
    is_signed: bool = False


def state(ack: int, of: FlowKey = FLOW, **more: Any) -> State:
    return State(of.reversed, ack, **more)


def segment(seq: int, of: FlowKey = FLOW, **flags: bool) -> TcpSegment:
    return TcpSegment(of, seq, 1, **{"syn": False, "ack": True, "fin": False, "rst": False, **flags})


def made(mode: str = "both", room: int = 1 << 20, **more: Any) -> RecoveryEngine:
    return RecoveryEngine(mode, room, AGE, **more)


def lose(recovery: RecoveryEngine, seq: int, now: float = 0.0, of: FlowKey = FLOW, **more: Any) -> list[Any]:
    port, size = more.pop("port", P1), more.pop("size", 1500)
    cut, payload = more.pop("cut", 0), more.pop("payload", 1)
    stamped = more.pop("stamped", False)
    frame = f"{of.sport}/{seq}".encode().ljust(size, b".")[: size - cut]
    return recovery.lost(port, frame, size, segment(seq, of, **more), payload, now, stamped)


def name(action: Any) -> str:
    assert isinstance(action, Reinject)
    return action.frame.rstrip(b".").decode()


def put_back(recovery: RecoveryEngine, now: float, **more: Any) -> list[str]:
    """What is put back if the queue is empty."""
    return [name(each) for each in recovery.queue(P1, 0, K, now, **more) if isinstance(each, Reinject)]


# Signals to senders


def test_duplicates_when_the_receiver_waits_for_just_this():
    recovery = made("dupack")
    assert lose(recovery, 1000) == [Ask(1, (FLOW.reversed,))]
    signals = state(1000)
    assert recovery.states([signals], 0.001) == [SendDuplicates(FLOW, signals)]
    assert recovery.counters.duplicates == 1


def test_duplicates_only_when_the_acknowledgement_gets_there():
    recovery = made("dupack")
    lose(recovery, 1000)
    assert recovery.states([state(500)], 0.001) == []
    assert recovery.states([state(999)], 0.002) == []
    assert recovery.states([state(1000)], 0.003) == [SendDuplicates(FLOW, state(1000))]


def test_segments_that_the_receiver_has_are_forgotten():
    recovery = made()
    lose(recovery, 1000)
    assert recovery.states([state(1001)], 0.001) == []
    assert len(recovery) == 0
    assert recovery.counters.acked == 1
    assert recovery.states([state(1000)], 0.002) == []
    assert recovery.queue(P1, 0, K, 0.003) == []


def test_a_segment_of_which_the_receiver_has_a_part_is_still_missing():
    """A sender may put data of two segments, or data and FIN, into one when it sends them again."""
    recovery = made("reinject")
    lose(recovery, 1000, payload=100, fin=True)
    assert recovery.states([state(1100)], 0.001) == []
    assert (len(recovery), recovery.counters.acked) == (1, 0)
    recovery.states([state(1101)], 0.002)
    assert (len(recovery), recovery.counters.acked) == (0, 1)


def test_numbers_wrap():
    recovery = made("dupack")
    lose(recovery, 0xFFFFFFF0)
    lose(recovery, 100)
    assert recovery.states([state(0xFFFFFFF0)], 0.0) == [SendDuplicates(FLOW, state(0xFFFFFFF0))]
    assert recovery.states([state(50)], 0.0) == []
    assert (len(recovery), recovery.counters.acked) == (1, 1)


def test_a_hole_is_signalled_once():
    recovery = made("dupack")
    lose(recovery, 1000)
    assert len(recovery.states([state(1000), state(1000)], 0.001)) == 1
    assert recovery.states([state(1000)], 0.002) == []
    # Its retransmission is dropped as well: the sender is in recovery, and knows.
    lose(recovery, 1000, 0.5)
    assert recovery.states([state(1000)], 0.501) == []
    assert (recovery.counters.tracked, recovery.counters.repeated) == (1, 1)
    lose(recovery, 1000, 1.002)
    assert len(recovery.states([state(1000)], 1.003)) == 1


def test_a_hole_is_signalled_once_even_if_its_loss_was_evicted():
    recovery = made("dupack", room=ENTRY_BYTES)
    lose(recovery, 1000)
    assert len(recovery.states([state(1000)], 0.0)) == 1
    lose(recovery, 5000, of=flow(1))
    lose(recovery, 1000)
    assert recovery.states([state(1000)], 0.0) == []


@pytest.mark.parametrize("change", [{"found": False}, {"fin": True}, {"rst": True}, {"has_timestamps": None}])
def test_nothing_is_signalled_without_enough_state_of_the_receiver(change):
    recovery = made("dupack")
    lose(recovery, 1000)
    assert recovery.states([state(1000, **change)], 0.0) == []
    assert recovery.counters.duplicates == 0


def test_a_state_of_another_flow_is_ignored():
    recovery = made()
    lose(recovery, 1000)
    assert recovery.states([state(5000, flow(1)), State(FLOW, 1000)], 0.0) == []
    assert len(recovery) == 1


@pytest.mark.parametrize("flag", ["syn", "fin"])
def test_the_first_and_the_last_segment_are_only_put_back(flag):
    for mode, found in [(Mode.DUPACK, []), (Mode.BOTH, ["33000/1000"]), (Mode.REINJECT, ["33000/1000"])]:
        recovery = made(mode)
        lose(recovery, 1000, **{flag: True}, payload=0)
        assert recovery.states([state(1000)], 0.0) == []
        assert [name(action) for action in recovery.queue(P1, 0, K, 0.0)] == found


# Putting back


def test_segments_are_put_back_oldest_first_when_there_is_room():
    recovery = made("reinject")
    for seq in (1000, 2448, 3896):
        lose(recovery, seq)
    assert recovery.queue(P1, K, K, 0.1) == []
    assert recovery.queue(P1, K - 1499, K, 0.1) == []
    assert [name(each) for each in recovery.queue(P1, K - 3000, K, 0.1)] == ["33000/1000", "33000/2448"]
    assert recovery.queue(P2, 0, K, 0.1) == []
    assert [name(each) for each in recovery.queue(P1, 0, K, 0.1)] == ["33000/3896"]
    assert recovery.queue(P1, 0, K, 0.1) == []
    assert recovery.counters.reinjected == 3


def test_a_queue_below_its_threshold_is_filled_beyond_it():
    recovery = made("reinject")
    for seq in range(30):
        lose(recovery, seq * 1448)
    assert recovery.queue(P1, K, K, 0.1, 4 * K) == []
    assert len(recovery.queue(P1, K - 1, K, 0.1, 4 * K)) == 20


def test_no_more_segments_are_put_back_than_asked_for():
    recovery = made("reinject")
    for seq in range(5):
        lose(recovery, seq)
    assert put_back(recovery, 0.1, most=2) == ["33000/0", "33000/1"]
    assert put_back(recovery, 0.1, most=0) == []


def test_a_segment_that_was_sent_again_does_not_wait_behind_those_that_follow_it():
    recovery = made("reinject")
    for seq in (1000, 2448, 1000):
        lose(recovery, seq)
    assert put_back(recovery, 0.1) == ["33000/1000", "33000/2448"]
    recovery = made("reinject")
    for seq in (100, 0xFFFFFF00):
        lose(recovery, seq)
    assert put_back(recovery, 0.1) == [f"33000/{0xFFFFFF00}", "33000/100"]


def test_flows_take_turns():
    recovery = made("reinject")
    for number, seqs in enumerate([(1, 2, 3, 4), (1,), (1, 2)]):
        for seq in seqs:
            lose(recovery, seq, of=flow(number))
    order = []
    while actions := recovery.queue(P1, 0, 3000, 0.1):
        order += [name(each) for each in actions]
    assert order == ["33000/1", "33001/1", "33002/1", "33000/2", "33002/2", "33000/3", "33000/4"]


def test_a_truncated_segment_is_never_put_back():
    for mode in ("reinject", "both"):
        recovery = made(mode)
        lose(recovery, 1000, cut=1)
        assert recovery.queue(P1, 0, K, 0.0) == []
        assert recovery.counters.truncated == 1
    assert recovery.states([state(1000)], 0.0) != []  # mode both: the sender can still be signalled


def test_padding_beyond_the_length_is_not_needed():
    recovery = made("reinject")
    recovery.lost(P1, b"x" * 60, 0, segment(1), 6, 0.0)
    assert recovery.queue(P1, 0, K, 0.0) == []


def test_the_mode_selects_the_actions():
    done = {}
    for mode in Mode:
        recovery = made(mode)
        lose(recovery, 1000)
        done[mode] = (len(recovery.states([state(1000)], 0.0)), len(recovery.queue(P1, 0, K, 0.0)))
    assert done == {Mode.DUPACK: (1, 0), Mode.REINJECT: (0, 1), Mode.BOTH: (1, 1)}


def test_a_retransmitted_segment_replaces_the_earlier_one():
    recovery = made("reinject")
    recovery.lost(P1, b"old", 3, segment(1000), 1448, 0.0)
    recovery.lost(P1, b"new", 3, segment(1000), 1448, 0.1)
    assert recovery.queue(P1, 0, K, 0.1) == [Reinject(P1, b"new")]
    assert (recovery.counters.tracked, recovery.counters.repeated) == (1, 1)


def test_a_truncated_retransmission_does_not_replace_the_earlier_one():
    recovery = made("reinject")
    recovery.lost(P1, b"old", 3, segment(1000), 1448, 0.0)
    recovery.lost(P1, b"n", 3, segment(1000), 1448, 0.1)
    assert recovery.queue(P1, 0, K, 0.1) == [Reinject(P1, b"old")]


def test_a_frame_is_sent_only_by_the_port_that_dropped_it():
    recovery = made("reinject")
    recovery.lost(P1, b"old", 3, segment(1000), 1448, 0.0)
    recovery.lost(P2, b"n", 3, segment(1000), 1448, 0.1)
    assert recovery.queue(P1, 0, K, 0.1) + recovery.queue(P2, 0, K, 0.1) == []
    recovery.lost(P2, b"new", 3, segment(1000), 1448, 0.1)
    assert recovery.queue(P2, 0, K, 0.1) == [Reinject(P2, b"new")]


def test_a_segment_that_is_dropped_again_is_put_back_a_limited_number_of_times():
    recovery = made("reinject")
    for round_ in range(MAX_REINJECTIONS + 2):
        lose(recovery, 1000, round_ / 10)
        assert len(recovery.queue(P1, 0, K, round_ / 10)) == (round_ < MAX_REINJECTIONS)
    assert recovery.counters.tracked == 1


def test_a_segment_that_was_put_back_is_remembered_for_a_while():
    recovery = made("reinject")
    lose(recovery, 1000, 0.0)
    lose(recovery, 2000, 0.5)
    recovery.queue(P1, 0, 1500, 0.9)
    lose(recovery, 1000, 1.6)
    assert recovery.counters.repeated == 1
    assert recovery.counters.expired == 1


# Segments that were put back and do not arrive

CONFIRM = 0.02


def test_what_the_receiver_does_not_acknowledge_is_put_back_again():
    """Its acknowledgement may only be late: the next time it has twice as long."""
    recovery = made("reinject", confirm_s=CONFIRM)
    lose(recovery, 1000)
    assert put_back(recovery, 0.1) == ["33000/1000"]
    recovery.due(0.101)
    assert recovery.due(0.119) == []
    assert recovery.due(0.121) == [Ask(1, (FLOW.reversed,))]
    assert recovery.states([state(1000)], 0.121) == []
    assert recovery.queue(P1, K, K, 0.122) == []
    assert put_back(recovery, 0.13) == ["33000/1000"]
    for now, expected in ((0.169, []), (0.171, ["33000/1000"]), (0.249, []), (0.252, ["33000/1000"])):
        recovery.states([state(1000)], now)
        assert put_back(recovery, now) == expected
    assert (recovery.counters.reinjected, recovery.counters.unanswered) == (4, 3)


def test_what_the_receiver_acknowledges_is_not_put_back_again():
    recovery = made("reinject", confirm_s=CONFIRM)
    lose(recovery, 1000)
    put_back(recovery, 0.1)
    assert recovery.states([state(1001)], 0.13) == []
    assert (len(recovery), recovery.counters.acked, recovery.counters.unanswered) == (0, 1, 0)
    assert recovery.due(0.2) == [] and put_back(recovery, 0.2) == []


def test_without_a_time_for_it_no_receiver_is_asked():
    recovery = made("reinject")
    lose(recovery, 1000)
    put_back(recovery, 0.1)
    assert recovery.due(0.5) == [] and recovery.states([state(1000)], 0.5) == []
    assert put_back(recovery, 0.6) == []


def test_a_segment_is_put_back_a_limited_number_of_times_for_a_silent_receiver():
    recovery = made("reinject", confirm_s=CONFIRM)
    lose(recovery, 1000)
    found = []
    for round_ in range(2 * MAX_REINJECTIONS):
        now = 0.7 * round_
        recovery.states([state(1000)], now)
        found.append(len(put_back(recovery, now)))
    assert found == [1] * MAX_REINJECTIONS + [0] * MAX_REINJECTIONS


def test_only_the_segment_that_the_receiver_waits_for_is_taken_for_lost():
    """It acknowledges nothing of what follows a gap."""
    recovery = made("reinject", confirm_s=CONFIRM)
    for seq in (1000, 2448):
        lose(recovery, seq)
    assert put_back(recovery, 0.0) == ["33000/1000", "33000/2448"]
    for now, ack, expected in (
        (0.03, 1000, ["33000/1000"]),
        (0.04, 2448, []),
        (0.06, 2448, ["33000/2448"]),
    ):
        recovery.states([state(ack)], now)
        assert put_back(recovery, now) == expected
    assert (recovery.counters.acked, recovery.counters.unanswered) == (1, 2)


def test_a_receiver_that_the_switch_does_not_see_gets_one_copy():
    recovery = made("reinject", confirm_s=CONFIRM)
    lose(recovery, 1000)
    put_back(recovery, 0.1)
    assert recovery.states([state(0, found=False)], 0.13) == []
    assert put_back(recovery, 0.13) == []
    assert (recovery.used(P1), recovery.counters.unanswered) == (ENTRY_BYTES, 0)
    assert recovery.due(0.5) == []


def test_a_copy_that_is_dropped_again_is_not_asked_about():
    recovery = made("reinject", confirm_s=CONFIRM)
    lose(recovery, 1000)
    put_back(recovery, 0.1)
    lose(recovery, 1000, 0.101)
    assert put_back(recovery, 0.102) == ["33000/1000"]
    recovery.states([state(1000)], 0.121)
    assert recovery.counters.unanswered == 0


def test_a_frame_of_which_a_copy_was_sent_goes_before_one_of_which_none_was():
    recovery = made("reinject", room=2 * (1500 + ENTRY_BYTES) + ENTRY_BYTES, confirm_s=CONFIRM)
    for number in range(2):
        lose(recovery, 1, of=flow(number))
    assert put_back(recovery, 0.1, most=1) == ["33000/1"]
    lose(recovery, 1, 0.101, of=flow(2))
    assert put_back(recovery, 0.102) == ["33001/1", "33002/1"]
    assert (len(recovery), recovery.counters.overflow) == (3, 0)
    one = made("reinject", room=4 * (2 * (1500 + ENTRY_BYTES) + ENTRY_BYTES), confirm_s=CONFIRM)
    for seq in (1, 2):
        lose(one, seq)
    put_back(one, 0.1, most=1)
    lose(one, 3, 0.101)
    assert put_back(one, 0.102) == ["33000/2", "33000/3"] and one.counters.overflow == 0


def test_many_receivers_are_asked_in_many_messages_about_what_was_put_back():
    recovery = made("reinject", confirm_s=CONFIRM)
    for number in range(MAX_KEYS_PER_REQUEST + 1):
        lose(recovery, 1, of=flow(number))
    while recovery.due(0.0):
        pass
    put_back(recovery, 0.0, buffer=1 << 20)
    for count in (MAX_KEYS_PER_REQUEST, 1):
        (asked,) = recovery.due(0.021)
        assert isinstance(asked, Ask) and len(asked.keys) == count
        recovery.states([State(key, 2) for key in asked.keys], 0.022)
    assert len(recovery) == 0


# Putting back what carries a timestamp


def test_a_segment_with_a_timestamp_waits_for_the_state_of_its_receiver():
    recovery = made("reinject")
    for number, seq in ((0, 1000), (0, 2448), (1, 7000)):
        lose(recovery, seq, of=flow(number), stamped=True)
    (asked,) = recovery.queue(P1, 0, K, 0.1)
    assert asked == Ask(1, (FLOW.reversed, flow(1).reversed))
    actions = recovery.states([state(1000, tsecr=99)], 0.101)
    assert [name(each) for each in actions] == ["33000/1000", "33000/2448"]
    assert {each.tsecr for each in actions} == {99}
    assert recovery.states([state(1000, tsecr=99)], 0.102) == []
    assert recovery.counters.reinjected == 2
    # Without timestamps in the connection there is none to renew, whatever the frame contains.
    (action,) = recovery.states([state(7000, flow(1), has_timestamps=False)], 0.102)
    assert action == Reinject(P1, action.frame, None) and name(action) == "33001/7000"


def test_a_segment_that_the_receiver_has_meanwhile_is_not_put_back():
    recovery = made("reinject")
    lose(recovery, 1000, stamped=True)
    lose(recovery, 2448, stamped=True)
    recovery.queue(P1, 0, K, 0.1)
    assert [name(each) for each in recovery.states([state(2448)], 0.101)] == ["33000/2448"]
    assert (recovery.counters.acked, recovery.counters.reinjected) == (1, 1)


def test_a_segment_that_waits_for_a_state_takes_room():
    recovery = made("reinject")
    for seq in range(5):
        lose(recovery, seq * 1448, stamped=True)
    assert len(recovery.queue(P1, K - 3000, K, 0.1)) == 1
    assert recovery.queue(P1, K - 3000, K, 0.101) == []
    assert len(recovery.states([state(0)], 0.102)) == 2
    assert len(recovery.queue(P1, K - 1500, K, 0.103)) == 1
    assert len(recovery.states([state(0)], 0.104)) == 1


@pytest.mark.parametrize("answer", [None, "not found"])
def test_without_a_state_a_segment_is_put_back_unchanged(answer):
    recovery = made("reinject")
    lose(recovery, 1000, stamped=True)
    recovery.queue(P1, 0, K, 0.1)
    if answer is None:
        assert recovery.queue(P1, 0, K, 0.1 + ANSWER_S / 2) == []
        (action,) = recovery.queue(P1, 0, K, 0.1 + ANSWER_S)
    else:
        (action,) = recovery.states([state(0, found=False)], 0.101)
    assert name(action) == "33000/1000" and action.tsecr is None
    assert recovery.queue(P1, 0, K, 0.2) == []


def test_a_segment_that_is_dropped_again_while_it_waits_must_wait_for_room_again():
    recovery = made("reinject")
    lose(recovery, 1000, stamped=True)
    recovery.queue(P1, 0, K, 0.1)
    lose(recovery, 1000, 0.101, stamped=True)
    assert recovery.states([state(1000)], 0.102) == []
    assert len(recovery.queue(P1, 0, K, 0.103)) == 1
    assert len(recovery.states([state(1000)], 0.104)) == 1


def test_mode_both_signals_and_puts_back():
    recovery = made("both")
    lose(recovery, 1000, stamped=True)
    recovery.queue(P1, 0, K, 0.1)
    signals, back = recovery.states([state(1000)], 0.101)
    assert isinstance(signals, SendDuplicates) and isinstance(back, Reinject)


# Segments that are not tracked


@pytest.mark.parametrize(
    ("seen", "payload"),
    [
        (None, None),
        (segment(1), None),
        (segment(1), 0),  # a pure ACK, for example one that was injected
        (segment(1, rst=True), 0),
        (segment(1, rst=True, fin=True), 10),
    ],
)
def test_segments_that_need_no_recovery_are_ignored(seen, payload):
    recovery = made()
    assert recovery.lost(P1, b"x" * 60, 60, seen, payload, 0.0) == []
    assert (len(recovery), recovery.counters.ignored, recovery.counters.lost) == (0, 1, 1)


# Forgetting


def test_losses_that_are_too_old_are_ignored():
    recovery = made()
    lose(recovery, 1000)
    assert recovery.states([state(1000)], AGE + 0.01) == []
    lose(recovery, 2000, 2.0)
    assert recovery.queue(P1, 0, K, 3.01) == []
    lose(recovery, 3000, 4.0)
    assert recovery.due(5.01) == []
    assert (len(recovery), recovery.counters.expired) == (0, 3)


def test_flows_and_ports_that_end_are_forgotten():
    recovery = made()
    lose(recovery, 1000)
    lose(recovery, 1000, of=flow(1), port=P2)
    recovery.forget(FLOW)
    assert recovery.states([state(1000)], 0.0) == []
    recovery.forget_port(P2)
    assert recovery.queue(P2, 0, K, 0.0) == []
    lose(recovery, 1000)
    recovery.states([state(0, rst=True)], 0.0)
    assert (len(recovery), recovery.counters.forgotten) == (0, 3)
    recovery.forget(FLOW)
    recovery.forget_port(P1)


def test_the_oldest_losses_are_evicted():
    recovery = made("reinject", room=4 * (1500 + ENTRY_BYTES))
    for number in range(6):
        lose(recovery, 1, number / 100, of=flow(number))
    assert recovery.counters.overflow == 2
    assert [name(each) for each in recovery.queue(P1, 0, K, 0.1)] == [f"{33000 + n}/1" for n in range(2, 6)]


def test_one_flow_does_not_take_all_of_a_port_s_memory():
    recovery = made("reinject", room=2 * FLOW_PART * (1500 + ENTRY_BYTES))
    lose(recovery, 1, of=flow(1))
    for seq in range(100):
        lose(recovery, seq)
    names = [name(each) for each in recovery.queue(P1, 0, K, 0.1)]
    assert names == ["33001/1", "33000/98", "33000/99"]


def test_a_frame_larger_than_all_memory_is_not_kept():
    recovery = made("reinject", room=1000)
    lose(recovery, 1)
    assert (len(recovery), recovery.used(P1), recovery.counters.overflow) == (0, 0, 1)


# Requests for states


def test_states_are_requested_again_while_a_loss_needs_them():
    recovery = made("dupack", ask_s=0.01)
    assert lose(recovery, 1000, 0.0) == [Ask(1, (FLOW.reversed,))]
    assert lose(recovery, 2000, 0.001) == []
    assert lose(recovery, 1000, 0.002, of=flow(1), port=P2) == [Ask(2, (flow(1).reversed,))]
    assert recovery.due(0.005) == []
    assert recovery.due(0.013) == [Ask(1, (FLOW.reversed,)), Ask(2, (flow(1).reversed,))]
    recovery.states([state(1000)], 0.014)
    assert recovery.due(0.03) != []  # the second hole
    recovery.states([state(2000)], 0.031)
    recovery.states([state(1000, flow(1))], 0.031)
    assert recovery.due(0.06) == []  # all are signalled


def test_states_for_putting_back_are_requested_together():
    recovery = made("both")
    for number in range(20):
        assert lose(recovery, 1000, of=flow(number)) == []
    (ask,) = recovery.due(0.001)
    assert ask == Ask(1, tuple(flow(number).reversed for number in range(20)))


def test_flows_without_open_losses_are_not_requested():
    """The first 40 of 200 are signalled, and their segments put back: they stay known, and are not
    requested.
    """
    recovery = made("both")
    for number in range(200):
        lose(recovery, 1000, of=flow(number))
    recovery.states([state(1000, flow(number)) for number in range(40)], 0.001)
    while recovery.queue(P1, 0, 1 << 20, 0.001):
        pass
    asked = [key for tick in range(20) for ask in recovery.due(0.01 + tick / 1000) for key in ask.keys]
    assert set(asked) == {flow(number).reversed for number in range(40, 200)}


def test_the_flow_that_waits_longest_is_requested_first():
    recovery = made("both", ask_s=0.005)
    for number in range(200):
        lose(recovery, 1000, of=flow(number))
    # A request each millisecond: more than can be requested within ``ask_s``, and every flow has its turn.
    times = {}
    for tick in range(14):
        for ask in recovery.due(tick / 1000):
            for key in ask.keys:
                times.setdefault(key, []).append(tick)
    assert len(times) == 200
    assert {len(found) for found in times.values()} == {2, 3}


def test_many_states_are_requested_in_many_messages():
    recovery = made("dupack")
    for number in range(MAX_KEYS_PER_REQUEST + 1):
        lose(recovery, 1, of=flow(number))
    # In turns, each in one message.
    for count in (MAX_KEYS_PER_REQUEST, 1, 0):
        asked = recovery.due(0.5)
        assert [len(each.keys) for each in asked if isinstance(each, Ask)] == [count] * bool(count)


# Rate


def test_the_rate_is_bounded():
    recovery = made("both", rate=100.0)  # 5 at once
    for number in range(20):
        lose(recovery, 1, of=flow(number))
    signals = recovery.states([state(1, flow(number)) for number in range(20)], 0.0)
    assert len(signals) == 5
    assert recovery.queue(P1, 0, K, 0.0) == []
    assert recovery.counters.limited > 0
    assert len(recovery.queue(P1, 0, K, 0.021)) == 2
    assert len(recovery.states([state(1, flow(number)) for number in range(20)], 0.5)) == 5


@pytest.mark.parametrize("wrong", [{"bytes_per_port": -1}, {"age_s": 0.0}, {"mode": "magic"}])
def test_invalid_settings(wrong):
    with pytest.raises(ValueError):
        RecoveryEngine(**{"mode": "both", "bytes_per_port": 1000, "age_s": 1.0, **wrong})


# Any sequence of events

FLOWS, SEQS = [flow(n) for n in range(3)], st.sampled_from([1, 2, 3, 4, 0xFFFFFFFF])
SIZES = st.integers(1, 1600)
steps = st.one_of(
    st.tuples(
        st.just("lost"),
        st.sampled_from([P1, P2]),
        st.sampled_from(FLOWS),
        SEQS,
        SIZES,
        st.booleans(),
        st.booleans(),
    ),
    st.tuples(st.just("state"), st.sampled_from(FLOWS), SEQS, st.booleans()),
    st.tuples(st.just("queue"), st.sampled_from([P1, P2]), st.integers(0, 4000)),
    st.tuples(st.just("forget"), st.sampled_from(FLOWS)),
    st.tuples(st.just("due")),
)


class Truth:
    """A simple record of the losses that may still be acted on."""

    def __init__(self) -> None:
        self.live: dict[tuple[FlowKey, int], PortKey] = {}
        self.signals: dict[tuple[FlowKey, int], float] = {}

    def passed(self, of: FlowKey, ack: int) -> None:
        for key in [key for key in self.live if key[0] == of and 0 < (ack - key[1]) % (1 << 32) < 1 << 31]:
            del self.live[key]


@given(
    steps=st.lists(st.tuples(steps, st.floats(0, 0.4)), max_size=60),
    mode=st.sampled_from(list(Mode)),
    room=st.integers(300, 12_000),
    confirm=st.sampled_from([None, 0.05]),
)
def test_recovery_is_bounded_and_correct_for_any_input(steps, mode, room, confirm):
    recovery, truth, now = RecoveryEngine(mode, room, AGE, confirm_s=confirm), Truth(), 0.0
    for step, later in steps:
        now += later
        match step:
            case ("lost", port, of, seq, size, whole, stamped):
                frame = repr((of.sport, seq)).encode().ljust(size, b".")
                frame = frame[:size] if whole else b""
                actions = recovery.lost(port, frame, size, segment(seq, of), 1, now, stamped)
                truth.live[of, seq] = port
            case ("state", of, ack, found):
                given_ = state(ack, of, found=found)
                before = recovery.counters.reinjected
                if found:
                    truth.passed(of, ack)
                actions = recovery.states([given_], now)
                back = [action for action in actions if isinstance(action, Reinject)]
                assert len(back) == recovery.counters.reinjected - before
                for action in back:
                    # Not segments that the receiver has, and only with a timestamp that it has echoed.
                    assert action.tsecr == (given_.tsecr if found else None)
                    known = {repr((who.sport, seq)) for who, seq in truth.live if who == of}
                    assert len(action.frame) < 20 or action.frame.rstrip(b".").decode() in known
                for action in actions:
                    if action in back:
                        continue
                    assert isinstance(action, SendDuplicates)
                    # The receiver's own sequence number, of a known hole, and not signalled recently.
                    assert action.state is given_ and found
                    assert (of, ack) in truth.live
                    assert now - truth.signals.get((of, ack), -AGE) >= AGE
                    truth.signals[of, ack] = now
            case ("queue", port, backlog):
                waited = sum(len(each.frame) for each in recovery._losses.cleared(port))
                actions = recovery.queue(port, backlog, 4000, now)
                back = [action for action in actions if isinstance(action, Reinject)]
                waits = sum(len(each.frame) for each in recovery._losses.cleared(port))
                assert sum(len(each.frame) for each in back) + waits <= max(waited, 4000 - backlog)
                for action in back:
                    assert action.port == port
                    known = {repr((of.sport, seq)) for (of, seq), at in truth.live.items() if at == port}
                    assert len(action.frame) < 20 or action.frame.rstrip(b".").decode() in known
            case ("forget", of):
                recovery.forget(of)
                truth.live = {key: at for key, at in truth.live.items() if key[0] != of}
                actions = []
            case _:
                actions = recovery.due(now)
        if mode is Mode.DUPACK:
            assert not any(isinstance(action, Reinject) for action in actions)
        if mode is Mode.REINJECT:
            assert not any(isinstance(action, SendDuplicates) for action in actions)
        counters = recovery.counters
        assert recovery.used(P1) <= room and recovery.used(P2) <= room
        over = counters.acked + counters.expired + counters.overflow + counters.forgotten
        assert counters.tracked == over + len(recovery)
        assert counters.lost == counters.tracked + counters.repeated + counters.ignored
    recovery.due(now + AGE + 1)
    assert len(recovery) == recovery.used(P1) == recovery.used(P2) == 0
