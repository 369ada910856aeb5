"""The flow table with late, lost or reordered segments, reused ports, and a full table."""

from __future__ import annotations

import pytest

from fairq_ryu.fabric.flows.table import SYN_TIMEOUT, FlowState
from fairq_ryu.model import FlowKey
from tests.support.flownet import (
    BACK,
    IDLE,
    ISN,
    KEY,
    LOCAL,
    OVER3,
    PEER_ISN,
    A,
    B,
    Net,
    on,
    placed,
    reconcile,
    record,
    segment,
)

CLOSED_FOR = 2.0
DOWN = {(False, A, BACK), (False, B, KEY)}


@pytest.fixture
def net() -> Net:
    return Net()


# Closed, and remembered for a while


@pytest.mark.parametrize(
    ("flags", "key", "numbers"),
    [
        ("FA", KEY, {"seq": ISN + 1}),
        ("FA", BACK, {"seq": PEER_ISN + 1}),
        ("R", KEY, {"seq": ISN + 2}),
        ("RA", BACK, {"seq": PEER_ISN + 2}),
        ("S", KEY, {"seq": ISN}),
        ("SA", BACK, {"seq": PEER_ISN, "ack": ISN + 1}),
    ],
)
@pytest.mark.parametrize("by_reset", [False, True])
def test_late_segments_of_a_closed_connection_change_nothing(net, flags, key, numbers, by_reset):
    net.open()
    if by_reset:
        net.send("R", seq=ISN + 1)
    else:
        net.close()
    assert net.send(flags, key, now=0.5, **numbers) == []
    assert net.state is FlowState.CLOSED
    net.replay(net.table.expire(0.5 + CLOSED_FOR + 0.1))
    # After it was removed, such a segment starts nothing either.
    if flags != "S":
        assert net.send(flags, key, now=3.0, **numbers) == []
    assert len(net.table) == 0


def test_a_closed_connection_is_listed_and_not_open(net):
    net.open()
    net.open(key=KEY._replace(sport=5))
    net.close()
    assert (len(net.table), net.table.open) == (2, 1)
    assert {c.state for c in net.table} == {FlowState.ESTABLISHED, FlowState.CLOSED}


@pytest.mark.parametrize("how", ["expire", "reconcile"])
def test_closed_connections_are_removed_after_their_time(how):
    net = Net(closed_timeout=5.0)
    net.open()
    net.close(now=1.0)

    def look(now: float):
        return net.replay(net.table.expire(now) if how == "expire" else reconcile(net.table, 7, [], now))

    assert look(6.0) == []
    assert len(net.table) == 1
    assert look(6.1) == []
    assert (len(net.table), net.table.open) == (0, 0)


# Ports used again


@pytest.mark.parametrize("key", [KEY, BACK])
def test_a_newer_syn_opens_within_time_wait(net, key):
    """RFC 9293 section 3.6.1 and RFC 6191; either side may be the one that connects."""
    net.open()
    net.close(now=1.0)
    assert len(net.send("S", key, seq=PEER_ISN + 1000, now=1.1)) == 2
    assert (net.state, net.entry.since, net.entry.forward) == (FlowState.SYN_SEEN, 1.1, key)
    net.send("SA", key.reversed, seq=1, ack=PEER_ISN + 1001, now=1.1)
    assert net.state is FlowState.ESTABLISHED
    assert net.counted == on(LOCAL)
    assert (len(net.table), net.table.open) == (1, 1)


def test_newer_sequence_numbers_are_compared_modulo_2_32(net):
    """RFC 9293 section 3.4."""
    net.open(isn=2**32 - 5)
    net.close(now=1.0)
    assert len(net.send("S", seq=3, now=1.1)) == 2


def test_an_older_syn_opens_within_time_wait_when_it_is_answered(net):
    """RFC 6191: newer timestamps suffice instead of newer sequence numbers; copies have no timestamps."""
    net.open(isn=5000)
    net.close(now=1.0)
    assert net.send("S", seq=4000, now=1.1) == []
    assert net.state is FlowState.CLOSED
    assert len(net.send("SA", BACK, seq=1, ack=4001, now=1.2)) == 2
    assert net.state is FlowState.ESTABLISHED
    assert net.counted == on(LOCAL)


def test_after_a_reset_any_syn_opens(net):
    """After a reset there is no TIME-WAIT (RFC 9293 section 3.10.7.4)."""
    net.open(isn=5000)
    net.send("R", BACK, seq=PEER_ISN + 1, now=1.0)
    assert len(net.send("S", seq=4000, now=1.1)) == 2


def test_a_syn_ack_of_the_sender_of_the_second_syn_is_no_answer(net):
    net.open()
    net.send("S", seq=5000)
    assert net.send("SA", seq=PEER_ISN, ack=5001) == []
    assert net.entry.directions[KEY].isn == ISN


def test_ports_used_again_while_the_old_connection_was_thought_alive(net):
    """RFC 5961 section 4: until the new SYN is answered, the old connection may be alive."""
    net.open()
    assert net.send("S", seq=5000, now=3.0, mss=1000) == []
    assert net.entry.directions[KEY].isn == ISN
    events = net.send("SA", BACK, seq=6000, ack=5001, now=3.0)
    assert set(events[:2]) == DOWN
    assert set(events[2:]) == {(True, B, KEY), (True, A, BACK)}
    there = net.entry.directions[KEY]
    assert (net.entry.since, there.isn, there.mss, net.state) == (3.0, 5000, 1000, FlowState.ESTABLISHED)


def test_a_half_closed_pair_used_again_counts_both_directions(net):
    net.open()
    net.fin()
    net.send("S", seq=5000)
    net.send("SA", BACK, seq=6000, ack=5001)
    assert net.counted == on(LOCAL)


def test_a_client_that_lost_the_connection_resets_the_old_and_opens_the_new(net):
    """RFC 9293 section 3.5.1 figure 8: the challenge ACK is answered by a reset, then the SYN is
    retransmitted.
    """
    net.open()
    net.send("S", seq=50, now=3.0)
    assert set(net.send("R", seq=4711, now=3.0)) == DOWN
    assert len(net.send("S", seq=50, now=4.0)) == 2
    net.send("SA", BACK, seq=6000, ack=51, now=4.0)
    assert net.state is FlowState.ESTABLISHED


@pytest.mark.parametrize("flags", ["FA", "R"])
def test_the_end_of_the_old_connection_is_not_the_end_of_the_new(net, flags):
    """RFC 9293 section 3.4.1: segments before the initial sequence number of this connection are of the last
    one.
    """
    net.open()
    net.close(now=1.0)
    net.open(now=1.2, isn=5000, peer_isn=6000)
    assert net.send(flags, seq=ISN + 1, now=1.3) == []
    assert net.send(flags, BACK, seq=PEER_ISN + 1, now=1.3) == []
    assert net.counted == on(LOCAL)
    assert net.send(flags, seq=5001, now=1.4) != []


def test_after_two_gibibytes_sequence_numbers_cannot_be_compared(net):
    net.open()
    net.close(now=1.0)
    net.open(now=1.2, isn=5000, peer_isn=6000)
    assert net.send("FA", seq=5000 + 3 * 2**30, now=9.0) == [(False, B, KEY)]


def test_a_reused_port_pair_without_paths_counts_at_its_own_ports(net):
    net.open()
    net.replay(net.table.segment(segment(KEY, "S", 5000), A, None, 3.0))
    net.replay(net.table.segment(segment(BACK, "SA", 6000, 5001), B, None, 3.0))
    assert net.counted == on(LOCAL)


# Reordered copies: each switch's copies arrive over its own connection


def test_an_answer_that_overtakes_its_syn(net):
    assert net.send("SA", BACK, seq=PEER_ISN, ack=ISN + 1, mss=1200, now=0.0) == []
    assert len(net.table) == 0
    net.send("S", seq=ISN, now=0.01)
    assert net.state is FlowState.ESTABLISHED
    assert net.entry.directions[BACK].mss == 1200
    assert net.counted == on(LOCAL)


def test_all_segments_of_one_side_overtake_those_of_the_other(net):
    net.send("SA", BACK, seq=PEER_ISN, ack=ISN + 1)
    net.send("SA", BACK, seq=PEER_ISN, ack=ISN + 1)  # again
    net.fin(BACK)
    net.send("S", seq=ISN)
    assert net.state is FlowState.HALF_CLOSED
    net.fin()
    assert net.state is FlowState.CLOSED
    assert net.counted == set()


def test_a_refusal_that_overtakes_its_syn(net):
    net.send("RA", BACK, seq=0, ack=ISN + 1)
    net.send("S", seq=ISN)
    assert net.state is FlowState.CLOSED
    assert net.counted == set()


def test_answers_that_overtake_crossed_syns(net):
    net.send("S", seq=ISN)
    net.send("SA", seq=ISN, ack=PEER_ISN + 1)
    net.send("S", BACK, seq=PEER_ISN)
    assert net.state is FlowState.ESTABLISHED


def test_an_answer_that_overtakes_the_syn_of_ports_used_again(net):
    net.open()
    net.send("SA", BACK, seq=6000, ack=5001, now=9.0)
    net.send("S", seq=5000, now=9.0)
    assert (net.state, net.entry.since) == (FlowState.ESTABLISHED, 9.0)


@pytest.mark.parametrize(("ack", "later"), [(ISN, 0.1), (ISN + 1, 0.6)])
def test_a_syn_ack_for_another_syn_or_a_late_one_is_no_answer(net, ack, later):
    net.send("SA", BACK, seq=PEER_ISN, ack=ack)
    net.fin(BACK)
    net.send("S", seq=ISN, now=later)
    assert net.state is FlowState.SYN_SEEN


def test_syn_acks_without_a_syn_take_no_room():
    """Backscatter: a host is flooded with SYNs from forged addresses of ours."""
    net = Net(capacity=5)
    for port in range(3000):
        net.send("SA", BACK._replace(dport=port), seq=1, ack=7, now=port / 1e6)
    assert len(net.table) == 0
    net.send("S", KEY._replace(sport=2999), seq=6, now=0.1)
    assert {c.state for c in net.table} == {FlowState.ESTABLISHED}
    net.send("S", KEY._replace(sport=0), seq=6, now=0.1)  # its SYN-ACK was evicted
    assert net.table.get(KEY._replace(sport=0)).state is FlowState.SYN_SEEN


# Lost copies, and silence


def test_a_half_open_connection_expires(net):
    net.send("S", seq=ISN, now=0.0)
    assert net.reconcile(now=SYN_TIMEOUT) == []
    assert set(net.reconcile(now=SYN_TIMEOUT + 0.1)) == DOWN
    assert len(net.table) == 0


def test_a_direction_with_a_lost_fin_expires(net):
    net.open(now=0.0)
    net.fin(now=1.0)
    assert net.replay(net.table.expire(IDLE)) == []
    assert net.replay(net.table.expire(IDLE + 1.1)) == [(False, A, BACK)]
    assert len(net.table) == 0


def test_a_connection_with_two_lost_fins_expires(net):
    net.open(now=0.0)
    assert set(net.replay(net.table.expire(IDLE + 0.1))) == DOWN
    assert len(net.table) == 0


def test_both_directions_must_be_silent_to_expire(net):
    net.open(now=0.0)
    net.reconcile(record(KEY, B), record(BACK, A, idle=40.0), now=50.0)
    assert net.replay(net.table.expire(50.0 + IDLE)) == []


# Timeouts of rules of single flows


def test_a_connection_ends_when_the_rules_of_both_directions_time_out(net):
    net.open()
    assert net.replay(net.table.removed(KEY, 30.0)) == []
    assert net.replay(net.table.removed(KEY, 30.1)) == []  # of another switch
    assert set(net.replay(net.table.removed(BACK, 30.2))) == DOWN
    assert len(net.table) == 0
    assert net.replay(net.table.removed(BACK, 30.2)) == []


def test_a_closed_direction_needs_no_rule(net):
    net.open()
    net.fin(now=1.0)
    assert net.replay(net.table.removed(BACK, 30.0)) == [(False, A, BACK)]


def test_rules_that_timed_out_before_the_last_segment_are_ignored(net):
    net.open()
    net.replay(net.table.removed(KEY, 30.0))
    net.reconcile(record(KEY, B, idle=0.5), record(BACK, A, idle=0.5), now=31.0)
    assert net.replay(net.table.removed(BACK, 50.0)) == []
    assert net.counted == on(LOCAL)


def test_timeouts_of_rules_of_a_former_path_are_ignored(net):
    net.open()
    net.replay(net.table.removed(KEY, 30.0))
    net.replay(net.table.repath(KEY, OVER3, 31.0))
    assert net.replay(net.table.removed(BACK, 32.0)) == []


def test_where_a_switch_lists_the_connection_its_records_decide(net):
    net.open()
    net.reconcile(record(KEY, B, idle=40.0), record(BACK, A, idle=40.0), now=40.0)
    net.replay(net.table.removed(KEY, 40.5))
    assert net.replay(net.table.removed(BACK, 40.5)) == []
    assert net.counted == on(LOCAL)


def test_timeouts_of_rules_of_an_unknown_or_closed_connection_are_ignored(net):
    assert net.replay(net.table.removed(KEY, 0.0)) == []
    net.open()
    net.close()
    assert net.replay(net.table.removed(KEY, 1.0)) == []
    assert net.state is FlowState.CLOSED


# No room


def client(number: int) -> FlowKey:
    return KEY._replace(src=f"10.1.{number >> 8}.{number & 255}")


def test_a_flood_of_syns_evicts_its_own_entries():
    net = Net(capacity=4)
    net.open(key=client(0))
    for number in range(1, 10):
        net.send("S", client(number), seq=ISN, now=number)
    assert {c.forward for c in net.table} == {client(0), client(7), client(8), client(9)}
    assert net.counted == placed(net.table)
    assert net.table.refused == 0
    # Answered connections stay.
    net.send("SA", client(9).reversed, seq=PEER_ISN, ack=ISN + 1, now=9.0)
    for number in range(10, 20):
        net.send("S", client(number), seq=ISN, now=number)
    assert net.table.get(client(9)).state is FlowState.ESTABLISHED


def test_a_retransmitted_syn_is_not_the_oldest():
    net = Net(capacity=2)
    net.send("S", client(1), seq=ISN, now=0.0)
    net.send("S", client(2), seq=ISN, now=1.0)
    net.send("S", client(1), seq=ISN, now=2.0)
    net.send("S", client(3), seq=ISN, now=3.0)
    assert {c.forward for c in net.table} == {client(1), client(3)}


def test_closed_connections_are_evicted_first():
    net = Net(capacity=3)
    net.send("S", client(1), seq=ISN)
    for number in (2, 3):
        net.open(key=client(number))
        net.send("R", client(number), seq=ISN + 1, now=number)
    net.send("S", client(4), seq=ISN, now=4.0)
    assert {c.forward for c in net.table} == {client(1), client(3), client(4)}


def test_established_connections_are_never_evicted():
    net = Net(capacity=2)
    net.open(key=client(1))
    net.open(key=client(2))
    assert net.send("S", client(3), seq=ISN) == []
    net.send("SA", client(3).reversed, seq=PEER_ISN, ack=ISN + 1)
    assert net.reconcile(record(client(4), B), now=0.5) == []
    assert (len(net.table), net.table.refused) == (2, 2)
    net.send("R", client(1), seq=ISN + 1)
    assert net.send("S", client(3), seq=ISN + 5) != []


def test_a_recorded_flow_evicts_a_syn():
    net = Net(capacity=1)
    net.send("S", client(1), seq=ISN)
    events = net.reconcile(record(client(2), B), now=0.5)
    assert events == [(False, B, client(1)), (False, A, client(1).reversed), (True, B, client(2))]


# Fast Open (RFC 7413)


@pytest.mark.parametrize("accepted", [0, 300, 500])
@pytest.mark.parametrize("order", ["in order", "answer first", "on a live connection"])
def test_the_answer_to_a_syn_with_data(net, accepted, order):
    if order == "on a live connection":
        net.open(isn=ISN - 50)
    syn, answer = {"seq": ISN, "payload": 500}, {"seq": PEER_ISN, "ack": ISN + 1 + accepted}
    if order == "answer first":
        net.send("SA", BACK, **answer)
        net.send("S", **syn)
    else:
        net.send("S", **syn)
        net.send("SA", BACK, **answer)
    assert net.state is FlowState.ESTABLISHED
    assert net.entry.directions[KEY].isn == ISN
    assert placed(net.table) == on(LOCAL)


def test_no_answer_to_a_syn_with_data(net):
    net.send("S", seq=ISN, payload=500)
    for wrong in (ISN, ISN + 502, ISN - 70_000):
        net.send("SA", BACK, seq=PEER_ISN, ack=wrong % 2**32)
    assert net.state is FlowState.SYN_SEEN
    net.send("RA", BACK, ack=ISN + 501)
    assert net.state is FlowState.CLOSED
