"""The flow table and the switches' records: which connections exist, and which have ended."""

from __future__ import annotations

import pytest

from fairq_ryu.fabric.flows.table import DEFAULT_MSS, FlowState
from fairq_ryu.model import FlowKey, PortKey
from tests.support.flownet import (
    BACK,
    CLIENT,
    IDLE,
    ISN,
    KEY,
    LOCAL,
    OVER3,
    OVER4,
    PEER_ISN,
    SERVER,
    A,
    B,
    Net,
    on,
    reconcile,
    record,
)


@pytest.fixture
def net() -> Net:
    return Net(OVER3)


@pytest.fixture
def local() -> Net:
    return Net(LOCAL)


# New flows


def test_flows_older_than_the_controller_are_adopted(local):
    seen = [record(KEY, B, wscale=2, mss=1000), record(BACK, A, wscale=9, mss=1460, bytes=5)]
    events = reconcile(local.table, 1, seen, 50.0)
    local.replay(events)
    assert {(e.port, e.flow.key, e.flow.mss, e.flow.step) for e in events} == {
        (B, KEY, 1460, 512),  # the options of the receiver, whichever record arrived first
        (A, BACK, 1000, 4),
    }
    assert local.state is FlowState.ESTABLISHED
    assert local.entry.directions[BACK].bytes == 5
    assert local.reconcile(*seen, now=51.0) == []
    local.close(now=52.0)
    assert local.table.open == 0


def test_a_connection_recorded_by_several_switches_counts_once(net):
    net.tell(OVER3, 50.0)
    assert len(net.table) == 1
    assert net.counted == on(OVER3)
    assert net.entry.path is None


def test_a_connection_over_ipv6(local):
    v6 = FlowKey("2001:db8::1", "2001:db8::2", 33000, 80)
    assert local.reconcile(record(v6, B), now=0.0) == [(True, B, v6)]


def test_an_adopted_flow_without_announcements_gets_the_defaults(local):
    (event,) = reconcile(local.table, 1, [record(KEY, B, wscale=None, mss=0)], 0.0)
    assert (event.flow.mss, event.flow.step) == (DEFAULT_MSS, 1)


def test_flows_that_are_closed_or_silent_are_not_adopted(local):
    assert local.reconcile(record(KEY, B, closed=True), record(BACK, A, idle=IDLE + 1), now=0.0) == []
    # It may be the record of a connection whose end the switch has missed.
    assert local.reconcile(record(KEY, B, idle=30.0), record(BACK, A, idle=30.0), now=0.0) == []
    assert len(local.table) == 0
    assert local.reconcile(record(KEY, B, idle=0.1), record(BACK, A, idle=31.0), now=1.0) != []
    assert local.counted == on(LOCAL)


def test_a_record_that_overtakes_the_copies_is_of_the_same_connection(net):
    net.tell(OVER3, 1.0, dpids=(1,))
    net.send("S", seq=ISN, now=1.01, mss=1000, wscale=2)
    net.send("SA", BACK, seq=PEER_ISN, ack=ISN + 1, now=1.01)
    assert (net.state, net.entry.since, net.entry.pending) == (FlowState.ESTABLISHED, 1.0, None)
    assert (net.entry.directions[KEY].isn, net.entry.directions[KEY].mss) == (ISN, 1000)
    assert net.counted == on(OVER3)


def test_ports_of_an_adopted_connection_used_again(local):
    """RFC 5961 section 4: the old connection, whose SYN was not observed, counts until the new one is
    answered.
    """
    local.reconcile(record(KEY, B), record(BACK, A), now=0.0)
    assert local.send("S", seq=ISN, now=30.0) == []
    local.send("SA", BACK, seq=PEER_ISN, ack=ISN + 1, now=30.1)
    assert (local.entry.since, local.counted) == (30.1, on(LOCAL))


def test_a_record_of_the_server_replaces_a_lost_syn_ack(local):
    local.send("S", seq=ISN)
    local.reconcile(record(KEY, B, idle=0.0), now=1.0)
    assert local.state is FlowState.SYN_SEEN
    local.reconcile(record(KEY, B), record(BACK, A, idle=0.1, wscale=5), now=2.0)
    assert local.state is FlowState.ESTABLISHED
    assert local.entry.directions[BACK].wscale == 5


def test_a_record_from_before_the_syn_is_no_answer(local):
    local.send("S", seq=ISN, now=10.0)
    local.reconcile(record(BACK, A, idle=1.0, bytes=77), now=10.9)
    assert local.state is FlowState.SYN_SEEN
    assert local.entry.directions[BACK].bytes == 0


def test_a_record_does_not_change_the_options_of_the_syn(local):
    local.send("S", seq=ISN, mss=1400, wscale=3)
    local.reconcile(record(KEY, B, wscale=9, mss=99), now=0.5)
    assert (local.entry.directions[KEY].wscale, local.entry.directions[KEY].mss) == (3, 1400)


def test_bytes_are_the_largest_count_of_the_switches(net):
    net.open()
    net.tell(OVER3, 5.0, dpids=(1,), bytes=1000)
    net.tell(OVER3, 5.1, dpids=(3,), bytes=10)  # it joined the path recently
    assert net.entry.directions[KEY].bytes == 1000


# Ended connections


def test_a_flow_that_progresses_stays(net):
    net.open(now=0.0)
    for now in range(1, 200):
        assert net.tell(OVER3, now, idle=0.5) == []
    assert net.counted == on(OVER3)


def test_a_silent_flow_expires(local):
    local.open(now=0.0)
    both = [record(KEY, B, idle=IDLE + 1), record(BACK, A, idle=IDLE + 1)]
    assert set(local.reconcile(*both, now=IDLE + 1)) == {(False, A, BACK), (False, B, KEY)}
    assert len(local.table) == 0


def test_a_switch_without_a_record_removes_only_its_own_ports(net):
    net.open(now=0.0)
    assert net.reconcile(now=1.0, dpid=3) == []  # the copy may be newer than the record
    net.tell(OVER3, 2.5, dpids=(1, 2))
    assert set(net.reconcile(now=2.6, dpid=3)) == {(False, PortKey(3, 2), KEY), (False, PortKey(3, 1), BACK)}
    assert net.state is FlowState.ESTABLISHED
    # It may only have lost its records.
    net.tell(OVER3, 3.6, dpids=(3,))
    assert net.counted == on(OVER3)


def test_a_flow_that_all_switches_have_forgotten_is_over(net):
    net.open(now=0.0)
    for dpid in (1, 3):
        net.reconcile(now=3.0, dpid=dpid)
    assert len(net.table) == 1
    net.reconcile(now=3.0, dpid=2)
    assert len(net.table) == 0
    assert net.counted == set()


def test_a_missing_record_of_a_switch_off_the_path_is_ignored(net):
    net.open(now=0.0)
    assert net.reconcile(now=30.0, dpid=4) == []


def test_a_slow_handshake_is_not_taken_for_a_missing_record(local):
    local.send("S", seq=ISN, now=0.0)
    local.send("SA", BACK, seq=PEER_ISN, ack=ISN + 1, now=5.0)
    assert local.reconcile(now=5.1) == []
    assert local.reconcile(now=7.1) != []


def test_a_fin_whose_copy_was_lost_is_taken_from_the_records(net):
    net.open(now=0.0)
    # At first it may belong to an old connection of these ports.
    assert net.tell(OVER3, 1.0, dpids=(1,), closed=True) == []
    seen = [record(KEY, OVER3.forward[0], closed=True, idle=1.0), record(BACK, CLIENT)]
    assert net.reconcile(*seen, now=3.0) == [(False, port, KEY) for port in OVER3.forward]
    assert net.state is FlowState.HALF_CLOSED
    assert net.reconcile(*seen, now=4.0) == []


def test_two_fins_whose_copies_were_lost_are_taken_from_the_records(net):
    net.open(now=0.0)
    net.tell(OVER3, 3.0, dpids=(2,), closed=True)
    assert net.state is FlowState.CLOSED
    assert net.counted == set()


@pytest.mark.parametrize("closed", [False, True])
def test_old_records_do_not_reopen_a_closed_connection(net, closed):
    """A switch that has missed both FINs, or has not forgotten them yet."""
    net.open(now=0.0)
    net.close(now=10.0)
    for now in range(11, 80):
        assert net.tell(OVER3, now, dpids=(3,), idle=now - 10.0, closed=closed) == []
        net.replay(net.table.expire(now))
    assert len(net.table) == 0


def test_a_direction_that_only_acknowledges_after_its_fin_is_closed(net):
    net.open(now=0.0)
    net.fin(now=1.0)
    for now in range(2, 20):  # the spine was restarted and has no record of a FIN
        assert net.tell(OVER3, now, dpids=(3,)) == []
        seen = [record(KEY, OVER3.forward[0], closed=True), record(BACK, CLIENT)]
        assert net.reconcile(*seen, now=now) == []
    assert net.counted == on(OVER3, BACK)


def test_a_record_of_the_last_connection_of_these_ports_does_not_end_the_new_one(net):
    """The last connection used spine 4, whose record of its end gets older and older."""
    net.open(now=10.0)
    for now in (10.5, 11.5, 12.5, 13.5, 14.5):
        assert net.tell(OVER4, now, dpids=(4,), closed=True, idle=now - 9.0) == []
        assert net.tell(OVER3, now) == []


# Forged resets


def test_a_forged_reset_does_not_remove_a_live_flow_for_long(net):
    """RFC 5961 section 3: the hosts ignore a reset outside of the window."""
    net.open(now=0.0)
    net.tell(OVER3, 9.0)
    net.send("R", seq=1, now=10.0)
    assert net.counted == set()
    # Segments in flight when the reset was copied do not count, and a record is more recent than its age
    # says.
    assert net.tell(OVER3, 10.4) == []
    assert len(net.tell(OVER3, 11.4)) == 6
    assert (net.state, net.counted, net.entry.since) == (FlowState.ESTABLISHED, on(OVER3), 0.0)


def test_a_switch_that_saw_the_forged_reset_still_records_the_end(net):
    net.open(now=0.0)
    net.send("R", seq=1, now=10.0)
    for now in range(11, 30):
        net.tell(OVER3, now, dpids=(1, 2), closed=True)
        net.tell(OVER3, now, dpids=(3,))
        if now > 11:
            assert net.counted == on(OVER3), now
    # Its own FINs still end it.
    net.close(now=30.0)
    assert net.tell(OVER3, 31.0, closed=True, idle=1.0) == []
    assert net.state is FlowState.CLOSED


def test_a_switch_that_records_it_as_open_again_counts_again(net):
    net.open(now=0.0)
    net.send("R", seq=1, now=10.0)
    for now in (11.0, 12.0):
        net.tell(OVER3, now, closed=True)
    net.tell(OVER3, 20.0)
    assert net.counted == on(OVER3)
    net.tell(OVER3, 21.0, closed=True)
    assert net.state is FlowState.CLOSED


def test_a_true_reset_is_final(net):
    net.open(now=0.0)
    net.send("R", seq=ISN + 1, now=10.0)
    for now in range(11, 80):
        assert net.tell(OVER3, now, idle=now - 10.1, closed=True) == []
        assert net.tell(OVER3, now, dpids=(3,), idle=now - 10.1) == []
    assert len(net.table) == 0


def test_a_reset_that_was_lost_on_its_way_is_sent_again(net):
    """The other side continues to send, and each segment is answered by another reset."""
    net.open(now=0.0)
    net.send("R", seq=ISN + 1, now=10.0)
    net.send("R", seq=ISN + 1, now=10.9)
    assert net.tell(OVER3, 11.0) == []
    assert net.state is FlowState.CLOSED


def test_after_a_forged_reset_a_direction_that_had_ended_stays_so(net):
    net.open(now=0.0)
    net.fin(now=5.0)
    net.send("R", BACK, seq=1, now=10.0)
    net.tell(OVER3, 11.0, closed=True)
    assert net.state is FlowState.HALF_CLOSED
    assert net.counted == on(OVER3, BACK)


def test_after_a_forged_reset_a_fin_ends_it_even_before_the_records(net):
    net.open(now=0.0)
    net.send("R", seq=1, now=10.0)
    assert net.fin(now=10.2) == []
    net.tell(OVER3, 11.0, closed=True)
    assert net.state is FlowState.HALF_CLOSED
    assert net.counted == on(OVER3, BACK)


def test_a_forged_reset_that_is_recorded_before_its_copy(net):
    """One switch reported before the copy arrived: the end in its record is the reset, as in the others."""
    net.open(now=0.0)
    net.tell(OVER3, 9.0)
    net.tell(OVER3, 9.9, dpids=(2,), closed=True)
    assert net.counted == on(OVER3, BACK)
    net.send("R", seq=1, now=10.0)
    for now in (11.0, 12.0):
        net.tell(OVER3, now, closed=True)
    assert (net.state, net.counted) == (FlowState.ESTABLISHED, on(OVER3))


def test_a_forged_reset_whose_copy_was_lost(net):
    net.open(now=0.0)
    for now in (9.9, 11.0, 12.0):
        net.tell(OVER3, now, closed=True)
    assert (net.state, net.counted) == (FlowState.ESTABLISHED, on(OVER3))


def test_a_fin_soon_after_a_forged_reset_is_taken_from_switches_that_had_it_open(net):
    net.open(now=0.0)
    net.send("R", seq=1, now=10.0)
    net.tell(OVER3, 11.0)
    net.tell(OVER3, 11.5, closed=True, idle=0.3)
    assert net.state is FlowState.CLOSED


# Records that disagree about the end


def test_a_flag_of_the_last_connection_on_the_new_path_is_no_end(net):
    """Only a handshake clears the flag, and this connection's handshake used spine 3."""
    net.open(now=0.0)
    net.tell(OVER3, 9.0)
    net.replay(net.table.repath(KEY, OVER4, 10.0))
    for now in range(11, 20):
        assert net.tell(OVER4, now, dpids=(4,), closed=True) == []
        assert net.tell(OVER4, now, dpids=(1, 2)) == []
    assert net.counted == on(OVER4)


def test_a_path_chosen_after_the_fin_has_no_record_of_it(net):
    net.open(now=0.0)
    net.replay(net.table.repath(KEY, OVER4, 10.0))
    assert net.tell(OVER4, 13.0, dpids=(4,)) == []
    seen = [record(KEY, SERVER, closed=True), record(BACK, OVER4.backward[0])]
    assert len(net.reconcile(*seen, now=13.1, dpid=2)) == 3
    assert net.state is FlowState.HALF_CLOSED
    assert net.tell(OVER4, 14.0, dpids=(4,)) == []
    assert net.counted == on(OVER4, BACK)


def test_where_the_receivers_switch_is_not_known_all_must_agree(net):
    for now in (1.0, 2.0):
        net.tell(OVER3, now)
    for dpid in (1, 3):
        assert net.tell(OVER3, 3.0, dpids=(dpid,), closed=True) == []
    assert len(net.tell(OVER3, 3.0, dpids=(2,), closed=True)) == 6


def test_where_the_receivers_switch_has_no_agent_the_others_must_agree(net):
    net.open(now=0.0)
    for now in (1.0, 2.0, 3.0):
        net.tell(OVER3, now, dpids=(1, 3))
    back = {1: record(BACK, CLIENT), 3: record(BACK, PortKey(3, 1))}
    assert net.reconcile(record(KEY, PortKey(1, 3), closed=True), back[1], now=4.0, dpid=1) == []
    assert len(net.reconcile(record(KEY, PortKey(3, 2), closed=True), back[3], now=4.0, dpid=3)) == 3
    assert net.state is FlowState.HALF_CLOSED


def test_records_of_a_disconnected_switch_do_not_count(net):
    for now in (1.0, 2.0):
        net.tell(OVER3, now)
    net.replay(net.table.forget_switch(3))
    net.replay(net.table.forget_switch(2))
    net.replay(net.table.repath(KEY, OVER3, 3.0))  # they are connected again, without agents
    net.tell(OVER3, 3.0, dpids=(1,), closed=True)
    assert net.state is FlowState.CLOSED


def test_records_of_a_switch_where_it_is_not_counted_do_not_count(net):
    net.open(now=0.0)
    for dpid in (1, 2, 3):
        net.replay(net.table.forget_switch(dpid))
    assert net.tell(OVER4, 3.0, dpids=(4,), closed=True) == []
    assert net.state is FlowState.ESTABLISHED


def test_records_before_the_syn_ack_are_of_the_last_connection(local):
    """The records are of the last connection of these ports; the SYN of the new one passed the same
    switch.
    """
    local.send("S", seq=ISN)
    assert local.reconcile(record(KEY, B, closed=True), record(BACK, A, closed=True), now=3.0) == []
    assert local.counted == on(LOCAL)


def test_a_connection_that_was_adopted_half_closed(net):
    for now in (1.0, 2.0):
        for dpid, there, back in ((1, OVER3.forward[0], CLIENT), (3, PortKey(3, 2), PortKey(3, 1))):
            net.reconcile(record(KEY, there, closed=True), record(BACK, back), now=now, dpid=dpid)
        assert {flow for _, flow in net.counted} == {BACK}
    assert net.state is FlowState.HALF_CLOSED
    assert net.counted == {(CLIENT, BACK), (PortKey(3, 1), BACK)}


def test_acks_at_a_switch_that_forgot_the_fin_are_no_new_connection(net):
    for now in (1.0, 2.0):
        net.tell(OVER3, now)
    half = {
        1: (record(KEY, PortKey(1, 3), closed=True), record(BACK, CLIENT)),
        2: (record(KEY, SERVER, closed=True), record(BACK, PortKey(2, 3))),
        3: (record(KEY, PortKey(3, 2), closed=True), record(BACK, PortKey(3, 1))),
    }
    for dpid, seen in half.items():
        net.reconcile(*seen, now=3.0, dpid=dpid)
    assert net.counted == on(OVER3, BACK)
    for now in range(4, 12):
        for dpid in (1, 2):
            net.reconcile(*half[dpid], now=now, dpid=dpid)
        assert net.tell(OVER3, now, dpids=(3,)) == []
    # A new connection over another spine, while the old spine still reports the end of the old one.
    for now in (12.0, 13.0, 14.0, 15.0):
        old = [each._replace(idle=now - 11.0) for each in half[3]]
        net.reconcile(*old, now=now, dpid=3)
        net.tell(OVER4, now)
    assert net.counted == on(OVER4)


# Reused ports without copies


def test_ports_of_a_closed_connection_used_again(net):
    net.open(now=0.0)
    net.close(now=10.0)
    assert net.tell(OVER4, 10.4) == []
    net.tell(OVER4, 11.0)
    assert (net.state, net.entry.since, net.counted) == (FlowState.ESTABLISHED, 11.0, on(OVER4))


def test_ports_of_a_half_closed_connection_used_again(net):
    net.open(now=0.0)
    net.fin(now=10.0)
    assert net.tell(OVER3, 11.0, dpids=(2,)) == []  # its FIN may be lost
    assert net.tell(OVER3, 12.5, dpids=(3,)) == []  # its record may be lost
    net.tell(OVER3, 12.5)
    net.tell(OVER3, 13.5)
    assert (net.state, net.entry.since, net.counted) == (FlowState.ESTABLISHED, 12.5, on(OVER3))


def test_ports_of_a_reset_connection_used_again(net):
    net.open(now=0.0)
    net.send("R", seq=ISN + 1, now=10.0)
    net.tell(OVER4, 11.0)
    net.tell(OVER4, 13.5)
    net.reconcile(now=13.5, dpid=3)
    assert (net.state, net.counted) == (FlowState.ESTABLISHED, on(OVER4))
    # Its flags were cleared by its handshake: they are valid.
    net.tell(OVER4, 20.0, closed=True)
    assert net.state is FlowState.CLOSED
