"""The flow table on one switch: the life of a connection by its SYN, FIN and RST."""

from __future__ import annotations

import pytest

from fairq_ryu.fabric.flows.table import DEFAULT_MSS, LAG, SYN_TIMEOUT, FlowState, FlowTable
from fairq_ryu.model import FlowKey, FlowPath
from tests.support.flownet import BACK, ISN, KEY, LOCAL, PEER_ISN, A, B, C, Net, on, record, segment

UP = [(True, B, KEY), (True, A, BACK)]
DOWN = {(False, A, BACK), (False, B, KEY)}


@pytest.fixture
def net() -> Net:
    return Net()


# A connection's life


def test_a_syn_starts_both_directions(net):
    assert net.send("S", seq=ISN) == UP
    assert net.state is FlowState.SYN_SEEN


def test_the_syn_ack_establishes_it_and_counts_nothing_twice(net):
    net.send("S", seq=ISN)
    assert net.send("SA", BACK, seq=PEER_ISN, ack=ISN + 1) == []
    assert net.state is FlowState.ESTABLISHED
    assert net.counted == on(LOCAL)


def test_repeated_segments_count_once(net):
    net.open()
    assert net.send("S", seq=ISN) == []
    assert net.send("SA", BACK, seq=PEER_ISN, ack=ISN + 1) == []
    assert net.fin() == [(False, B, KEY)]
    assert net.fin() == []
    assert net.send("SA", BACK, seq=PEER_ISN, ack=ISN + 1) == []
    assert net.counted == on(LOCAL, BACK)


def test_each_fin_ends_its_senders_direction(net):
    net.open()
    assert net.fin() == [(False, B, KEY)]
    assert net.state is FlowState.HALF_CLOSED
    assert net.fin(BACK) == [(False, A, BACK)]
    assert net.state is FlowState.CLOSED
    assert net.counted == set()


def test_the_server_may_close_first(net):
    net.open()
    assert net.fin(BACK) == [(False, A, BACK)]
    assert net.fin() == [(False, B, KEY)]
    assert net.state is FlowState.CLOSED


def test_a_fin_of_one_whose_answer_was_not_seen(net):
    net.send("S", seq=ISN)
    assert net.fin() == [(False, B, KEY)]
    assert net.state is FlowState.HALF_CLOSED  # an endpoint that sends FIN has received the SYN-ACK
    assert net.send("R", seq=ISN + 2) == [(False, A, BACK)]


def test_sequence_numbers_wrap(net):
    """RFC 9293 section 3.4."""
    net.send("S", seq=2**32 - 1)
    net.send("SA", BACK, seq=PEER_ISN, ack=0)
    assert net.state is FlowState.ESTABLISHED


@pytest.mark.parametrize("flags", ["SA", "FA", "R", "RA", "A", ""])
def test_segments_without_a_connection_are_ignored(net, flags):
    assert net.send(flags) == []
    assert net.send(flags, BACK) == []
    assert len(net.table) == 0


def test_ipv6():
    v6 = FlowKey("2001:db8::1", "2001:db8::2", 33000, 80)
    table = FlowTable(60.0)
    events = table.segment(segment(v6, "S", ISN), A, LOCAL, 0.0)
    assert [(e.port, e.flow.key) for e in events] == [(B, v6), (A, v6.reversed)]
    table.segment(segment(v6.reversed, "SA", PEER_ISN, ISN + 1), B, LOCAL.reversed, 0.0)
    assert table.get(v6.reversed).state is FlowState.ESTABLISHED
    table.segment(segment(v6.reversed, "R", PEER_ISN + 1), B, None, 0.0)
    assert table.open == 0


def test_a_policy_gets_the_window_scale_of_the_receiver(net):
    """RFC 7323 section 2.2: the scale is that of the sender of the window."""
    events = net.table.segment(segment(KEY, "S", ISN, mss=1400, wscale=3), A, None, 0.0)
    assert [(e.flow.key, e.flow.mss, e.flow.step, e.flow.owner) for e in events] == [
        (BACK, 1400, 8, BACK.src)
    ]
    answer = segment(BACK, "SA", PEER_ISN, ISN + 1, mss=8960, wscale=None)
    events = net.table.segment(answer, B, None, 0.0)
    assert [(e.flow.key, e.flow.mss, e.flow.step, e.flow.owner) for e in events] == [(KEY, 8960, 1, KEY.src)]


def test_a_connection_has_the_fields_that_are_shown(net):
    net.send("S", seq=ISN, now=1.0, mss=1400, wscale=3)
    net.send("SA", BACK, seq=PEER_ISN, ack=ISN + 1, now=1.5, mss=1460)
    net.reconcile(record(KEY, B, bytes=7), record(BACK, A, idle=0.5, bytes=9), now=4.0)
    net.fin(now=5.0)
    entry = net.entry
    assert (entry.forward, entry.state, entry.since, entry.last_seen) == (
        KEY,
        FlowState.HALF_CLOSED,
        1.0,
        5.0,
    )
    assert entry.path == LOCAL
    there, back = entry.directions[KEY], entry.directions[BACK]
    assert (there.wscale, there.mss, there.bytes, there.closed, there.ports) == (3, 1400, 7, True, ())
    assert (back.wscale, back.mss, back.bytes, back.closed, back.ports) == (None, 1460, 9, False, (A,))


def test_the_table_can_be_iterated_while_it_changes(net):
    for port in range(3):
        net.open(key=KEY._replace(sport=port))
    for connection in net.table:
        net.send("R", connection.forward, seq=ISN + 1)
    net.replay(net.table.expire(9.0))
    assert len(net.table) == 0


# SYNs


def test_a_retransmitted_syn_counts_once_and_restarts_the_timeout(net):
    """RFC 9293 section 3.8.1, retransmission."""
    net.send("S", seq=ISN, now=0.0)
    assert net.send("S", seq=ISN, now=7.0) == []
    assert net.replay(net.table.expire(SYN_TIMEOUT + 1)) == []
    assert set(net.replay(net.table.expire(7.1 + SYN_TIMEOUT))) == DOWN
    assert len(net.table) == 0


def test_crossed_syns_are_one_connection(net):
    """Simultaneous open, RFC 9293 section 3.5 figure 7."""
    net.send("S", seq=ISN)
    assert net.send("S", BACK, seq=PEER_ISN) == []
    assert net.state is FlowState.SYN_SEEN
    assert len(net.table) == 1
    assert net.send("SA", seq=ISN, ack=PEER_ISN + 1) == []
    assert net.send("SA", BACK, seq=PEER_ISN, ack=ISN + 1) == []
    assert net.state is FlowState.ESTABLISHED
    assert net.counted == on(LOCAL)
    assert (net.entry.directions[KEY].isn, net.entry.directions[BACK].isn) == (ISN, PEER_ISN)


def test_crossed_syns_of_which_one_is_refused(net):
    """Simultaneous open, and one side has aborted meanwhile."""
    net.send("S", seq=ISN)
    net.send("S", BACK, seq=PEER_ISN)
    assert set(net.send("RA", KEY, seq=0, ack=PEER_ISN + 1)) == DOWN


def test_after_a_second_syn_the_syn_ack_decides(net):
    """The client has restarted, or SYNs are forged: the server decides which one it answers."""
    net.send("S", seq=ISN)
    assert net.send("S", seq=ISN + 5) == []
    net.send("SA", BACK, seq=PEER_ISN, ack=ISN + 1)
    assert net.state is FlowState.ESTABLISHED
    assert net.entry.directions[KEY].isn == ISN


def test_a_second_syn_that_is_answered(net):
    net.send("S", seq=ISN)
    net.send("S", seq=ISN + 5, now=2.0)
    net.send("SA", BACK, seq=PEER_ISN, ack=ISN + 6, now=2.0)
    assert net.state is FlowState.ESTABLISHED
    assert (net.entry.directions[KEY].isn, net.entry.since) == (ISN + 5, 2.0)
    assert net.counted == on(LOCAL)


def test_a_stray_syn_does_not_change_a_live_connection(net):
    """RFC 5961 section 4: it is answered by a challenge ACK, which changes nothing."""
    net.open()
    assert net.send("S", seq=5) == []
    assert net.send("S", BACK, seq=5) == []
    assert net.send("SA", BACK, seq=77, ack=77) == []  # answers neither
    assert net.state is FlowState.ESTABLISHED
    assert net.entry.directions[KEY].isn == ISN
    assert net.counted == on(LOCAL)


def test_a_segment_from_an_address_and_port_to_itself_is_ignored(net):
    """A LAND attack."""
    own = FlowKey("10.0.0.1", "10.0.0.1", 80, 80)
    for flags in ("S", "SA", "FA", "R"):
        assert net.replay(net.table.segment(segment(own, flags, ISN, ISN + 1), A, LOCAL, 0.0)) == []
    assert net.reconcile(record(own, A), now=1.0) == []
    assert len(net.table) == 0


def test_a_syn_with_other_flags(net):
    """RFC 9293 section 3.10.7: RST is checked first, then SYN."""
    assert net.send("SR", seq=ISN) == []
    assert len(net.table) == 0
    assert net.send("SF", seq=ISN) == UP
    assert net.state is FlowState.SYN_SEEN


# Without a path


def test_an_unknown_destination_is_learnt_from_the_syn_ack(net):
    net.replay(net.table.segment(segment(KEY, "S", ISN), A, None, 0.0))
    assert net.counted == {(A, BACK)}
    assert net.entry.path is None
    net.replay(net.table.segment(segment(BACK, "SA", PEER_ISN, ISN + 1), B, None, 0.0))
    assert net.counted == on(LOCAL)


def test_the_path_may_be_known_with_the_syn_ack_only(net):
    net.replay(net.table.segment(segment(KEY, "S", ISN), A, None, 0.0))
    assert net.send("SA", BACK, seq=PEER_ISN, ack=ISN + 1) == [(True, B, KEY)]
    assert net.entry.path == LOCAL


def test_a_path_once_known_is_kept_when_a_later_segment_does_not_know_it(net):
    net.open()
    net.fin()
    assert net.replay(net.table.segment(segment(BACK, "FA", PEER_ISN + 1), B, None, 0.0)) == [
        (False, A, BACK)
    ]
    assert net.entry.path == LOCAL


# Hosts that move


def test_the_flows_of_a_host_move_with_it(net):
    net.open()
    moved = FlowPath((C,), (A,))
    events = net.send("SA", BACK, seq=PEER_ISN, ack=ISN + 1, now=1.0, path=moved)
    assert events == [(False, B, KEY), (True, C, KEY)]
    assert net.entry.path == moved


def test_a_client_that_moves_sends_its_syn_again_from_there(net):
    net.send("S", seq=ISN)
    assert net.send("S", seq=ISN, path=FlowPath((B,), (C,))) == [(False, A, BACK), (True, C, BACK)]


def test_a_host_that_moves_where_no_path_is_known(net):
    net.open()
    events = net.replay(net.table.segment(segment(KEY, "FA", ISN + 1), C, None, 1.0))
    assert events == [(False, B, KEY), (False, A, BACK), (True, C, BACK)]
    assert net.entry.path is None


def test_a_path_from_before_the_host_moved_is_ignored(net):
    net.open()
    events = net.replay(net.table.segment(segment(BACK, "SA", PEER_ISN, ISN + 1), C, LOCAL.reversed, 1.0))
    assert events == [(False, B, KEY), (True, C, KEY)]
    assert net.entry.path is None


# Resets


def test_a_syn_to_a_closed_port_is_ended_by_the_reset(net):
    """RFC 9293 section 3.5.2 group 1: sequence number 0, and the SYN is acknowledged."""
    net.send("S", seq=ISN)
    assert set(net.send("RA", BACK, seq=0, ack=ISN + 1)) == DOWN
    assert net.state is FlowState.CLOSED


@pytest.mark.parametrize("ack", [0, ISN, ISN + 2])
def test_a_refusal_of_another_syn_is_ignored(net, ack):
    """RFC 9293 section 3.10.7.3: in SYN-SENT a reset must acknowledge the SYN."""
    net.send("S", seq=ISN)
    assert net.send("RA", BACK, seq=0, ack=ack) == []
    assert net.state is FlowState.SYN_SEEN


def test_a_refusal_is_accepted_from_the_server_only(net):
    net.send("S", seq=ISN)
    assert net.send("RA", KEY, seq=0, ack=ISN + 1) == []
    assert net.state is FlowState.SYN_SEEN


def test_a_refusal_does_not_end_an_established_connection(net):
    net.open()
    assert net.send("RA", BACK, seq=0, ack=ISN + 1) == []
    assert net.state is FlowState.ESTABLISHED


def test_a_refusal_of_a_second_syn_ends_the_old_connection(net):
    net.open()
    net.send("S", seq=5000)
    assert set(net.send("RA", BACK, seq=0, ack=5001)) == DOWN


def test_a_reset_of_a_half_open_connection_must_acknowledge_something(net):
    net.send("S", seq=ISN)
    assert net.send("RA", BACK, seq=7, ack=ISN) == []
    assert set(net.send("RA", BACK, seq=7, ack=ISN + 50)) == DOWN


@pytest.mark.parametrize("key", [KEY, BACK])
@pytest.mark.parametrize("flags", ["R", "RA"])
def test_a_reset_ends_both_directions_at_once(net, key, flags):
    net.open()
    assert set(net.send(flags, key, seq=4711, ack=4712)) == DOWN
    assert net.state is FlowState.CLOSED


def test_a_client_gives_up_a_half_open_connection(net):
    net.send("S", seq=ISN)
    assert set(net.send("R", seq=ISN + 1)) == DOWN


def test_a_reset_of_a_half_closed_connection(net):
    net.open()
    net.fin()
    assert net.send("R", BACK, seq=PEER_ISN + 1) == [(False, A, BACK)]
    assert net.state is FlowState.CLOSED


def test_a_syn_ack_is_accepted_after_a_forged_refusal(net):
    net.send("S", seq=ISN)
    net.send("RA", BACK, seq=0, ack=ISN + 1)
    assert net.send("SA", BACK, seq=PEER_ISN, ack=ISN + 1) == UP
    assert net.state is FlowState.ESTABLISHED


def test_invalid_limits_are_refused():
    with pytest.raises(ValueError, match="capacity"):
        FlowTable(60.0, capacity=0)
    with pytest.raises(ValueError, match="closed_timeout"):
        FlowTable(60.0, closed_timeout=LAG)
    assert DEFAULT_MSS == 1460
