"""The flow table and the switches' records: which connections there are, and which are over."""

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
    record,
)


@pytest.fixture
def net() -> Net:
    return Net(OVER3)


@pytest.fixture
def local() -> Net:
    return Net(LOCAL)


# Flows that are news


def test_flows_older_than_the_controller_are_adopted(local):
    seen = [record(KEY, B, wscale=2, mss=1000), record(BACK, A, wscale=9, mss=1460, bytes=5)]
    events = local.table.reconcile(1, seen, 50.0)
    local.replay(events)
    assert {(e.port, e.flow.key, e.flow.mss, e.flow.step) for e in events} == {
        (B, KEY, 1460, 512),  # what the receiver announced, whichever record came first
        (A, BACK, 1000, 4),
    }
    assert local.state is FlowState.ESTABLISHED
    assert local.entry.directions[BACK].bytes == 5
    assert local.reconcile(*seen, now=51.0) == []
    local.close(now=52.0)
    assert local.table.open == 0


def test_one_that_several_switches_tell_of_is_one(net):
    net.tell(OVER3, 50.0)
    assert len(net.table) == 1
    assert net.counted == on(OVER3)
    assert net.entry.path is None


def test_one_over_ipv6(local):
    v6 = FlowKey("2001:db8::1", "2001:db8::2", 33000, 80)
    assert local.reconcile(record(v6, B), now=0.0) == [(True, B, v6)]


def test_an_adopted_flow_without_announcements_gets_the_defaults(local):
    (event,) = local.table.reconcile(1, [record(KEY, B, wscale=None, mss=0)], 0.0)
    assert (event.flow.mss, event.flow.step) == (DEFAULT_MSS, 1)


def test_flows_that_are_closed_or_silent_are_not_adopted(local):
    assert local.reconcile(record(KEY, B, closed=True), record(BACK, A, idle=IDLE + 1), now=0.0) == []
    # It may be what a switch keeps of a connection whose end it has missed.
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
    """RFC 5961 section 4: the old one, of which no SYN was seen, counts until the new one is answered."""
    local.reconcile(record(KEY, B), record(BACK, A), now=0.0)
    assert local.send("S", seq=ISN, now=30.0) == []
    local.send("SA", BACK, seq=PEER_ISN, ack=ISN + 1, now=30.1)
    assert (local.entry.since, local.counted) == (30.1, on(LOCAL))


def test_a_lost_answer_is_made_up_for_by_what_its_sender_does(local):
    local.send("S", seq=ISN)
    local.reconcile(record(KEY, B, idle=0.0), now=1.0)
    assert local.state is FlowState.SYN_SEEN
    local.reconcile(record(KEY, B), record(BACK, A, idle=0.1, wscale=5), now=2.0)
    assert local.state is FlowState.ESTABLISHED
    assert local.entry.directions[BACK].wscale == 5


def test_a_record_of_before_the_syn_is_no_answer(local):
    local.send("S", seq=ISN, now=10.0)
    local.reconcile(record(BACK, A, idle=1.0, bytes=77), now=10.9)
    assert local.state is FlowState.SYN_SEEN
    assert local.entry.directions[BACK].bytes == 0


def test_a_record_does_not_change_what_the_syn_said(local):
    local.send("S", seq=ISN, mss=1400, wscale=3)
    local.reconcile(record(KEY, B, wscale=9, mss=99), now=0.5)
    assert (local.entry.directions[KEY].wscale, local.entry.directions[KEY].mss) == (3, 1400)


def test_bytes_are_those_of_the_switch_that_has_seen_most(net):
    net.open()
    net.tell(OVER3, 5.0, dpids=(1,), bytes=1000)
    net.tell(OVER3, 5.1, dpids=(3,), bytes=10)  # it came into its way lately
    assert net.entry.directions[KEY].bytes == 1000


# What is over


def test_a_flow_that_goes_on_stays(net):
    net.open(now=0.0)
    for now in range(1, 200):
        assert net.tell(OVER3, now, idle=0.5) == []
    assert net.counted == on(OVER3)


def test_a_silent_flow_expires(local):
    local.open(now=0.0)
    both = [record(KEY, B, idle=IDLE + 1), record(BACK, A, idle=IDLE + 1)]
    assert set(local.reconcile(*both, now=IDLE + 1)) == {(False, A, BACK), (False, B, KEY)}
    assert len(local.table) == 0


def test_a_switch_that_forgets_a_flow_takes_its_own_ports_out(net):
    net.open(now=0.0)
    assert net.reconcile(now=1.0, dpid=3) == []  # the copy may be ahead of the record
    net.tell(OVER3, 2.5, dpids=(1, 2))
    assert set(net.reconcile(now=2.6, dpid=3)) == {(False, PortKey(3, 2), KEY), (False, PortKey(3, 1), BACK)}
    assert net.state is FlowState.ESTABLISHED
    # It may have lost its memory only.
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


def test_a_switch_that_was_never_on_the_path_has_nothing_to_say(net):
    net.open(now=0.0)
    assert net.reconcile(now=30.0, dpid=4) == []


def test_a_handshake_that_took_long_is_not_missed_in_the_records(local):
    local.send("S", seq=ISN, now=0.0)
    local.send("SA", BACK, seq=PEER_ISN, ack=ISN + 1, now=5.0)
    assert local.reconcile(now=5.1) == []
    assert local.reconcile(now=7.1) != []


def test_a_fin_whose_copy_was_lost_is_told_by_the_records(net):
    net.open(now=0.0)
    # At first it may be of an old connection of these ports.
    assert net.tell(OVER3, 1.0, dpids=(1,), closed=True) == []
    seen = [record(KEY, OVER3.forward[0], closed=True, idle=1.0), record(BACK, CLIENT)]
    assert net.reconcile(*seen, now=3.0) == [(False, port, KEY) for port in OVER3.forward]
    assert net.state is FlowState.HALF_CLOSED
    assert net.reconcile(*seen, now=4.0) == []


def test_two_fins_whose_copies_were_lost_are_told_by_the_records(net):
    net.open(now=0.0)
    net.tell(OVER3, 3.0, dpids=(2,), closed=True)
    assert net.state is FlowState.CLOSED
    assert net.counted == set()


@pytest.mark.parametrize("closed", [False, True])
def test_old_records_do_not_bring_a_closed_connection_back(net, closed):
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
    for now in range(2, 20):  # the spine was started again, and knows of no FIN
        assert net.tell(OVER3, now, dpids=(3,)) == []
        seen = [record(KEY, OVER3.forward[0], closed=True), record(BACK, CLIENT)]
        assert net.reconcile(*seen, now=now) == []
    assert net.counted == on(OVER3, BACK)


def test_a_record_of_the_last_connection_of_these_ports_does_not_end_the_new_one(net):
    """The last one went over spine 4, which tells of its end, ever longer ago."""
    net.open(now=10.0)
    for now in (10.5, 11.5, 12.5, 13.5, 14.5):
        assert net.tell(OVER4, now, dpids=(4,), closed=True, idle=now - 9.0) == []
        assert net.tell(OVER3, now) == []


# Resets that are not to be believed


def test_a_forged_reset_does_not_remove_a_live_flow_for_long(net):
    """RFC 5961 section 3: the hosts take no notice of a reset out of window."""
    net.open(now=0.0)
    net.tell(OVER3, 9.0)
    net.send("R", seq=1, now=10.0)
    assert net.counted == set()
    # What was on its way when the reset was copied does not count, and a record is younger than it was.
    assert net.tell(OVER3, 10.4) == []
    assert len(net.tell(OVER3, 11.4)) == 6
    assert (net.state, net.counted, net.entry.since) == (FlowState.ESTABLISHED, on(OVER3), 0.0)


def test_a_switch_that_the_forged_reset_has_passed_goes_on_calling_it_closed(net):
    net.open(now=0.0)
    net.send("R", seq=1, now=10.0)
    for now in range(11, 30):
        net.tell(OVER3, now, dpids=(1, 2), closed=True)
        net.tell(OVER3, now, dpids=(3,))
        if now > 11:
            assert net.counted == on(OVER3), now
    # Its own FINs end it all the same.
    net.close(now=30.0)
    assert net.tell(OVER3, 31.0, closed=True, idle=1.0) == []
    assert net.state is FlowState.CLOSED


def test_a_switch_that_calls_it_open_again_is_believed_again(net):
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
    """The other side goes on sending, and each time is answered by another reset."""
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


def test_after_a_forged_reset_its_own_fin_ends_it_though_it_comes_before_the_records(net):
    net.open(now=0.0)
    net.send("R", seq=1, now=10.0)
    assert net.fin(now=10.2) == []
    net.tell(OVER3, 11.0, closed=True)
    assert net.state is FlowState.HALF_CLOSED
    assert net.counted == on(OVER3, BACK)


def test_a_forged_reset_that_the_records_tell_of_first(net):
    """One switch has told before the copy came: what it calls ended was reset, like the rest."""
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


def test_a_fin_soon_after_the_forged_reset_is_told_by_switches_that_had_called_it_open(net):
    net.open(now=0.0)
    net.send("R", seq=1, now=10.0)
    net.tell(OVER3, 11.0)
    net.tell(OVER3, 11.5, closed=True, idle=0.3)
    assert net.state is FlowState.CLOSED


# Ends that switches disagree about


def test_a_flag_of_the_last_connection_where_this_one_was_moved_to_is_not_its_end(net):
    """Nothing but a handshake takes the flag away, and this one's went over spine 3."""
    net.open(now=0.0)
    net.tell(OVER3, 9.0)
    net.replay(net.table.repath(KEY, OVER4, 10.0))
    for now in range(11, 20):
        assert net.tell(OVER4, now, dpids=(4,), closed=True) == []
        assert net.tell(OVER4, now, dpids=(1, 2)) == []
    assert net.counted == on(OVER4)


def test_where_it_was_moved_to_after_its_fin_nobody_knows_of_that(net):
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


def test_a_switch_that_went_has_no_say(net):
    for now in (1.0, 2.0):
        net.tell(OVER3, now)
    net.replay(net.table.forget_switch(3))
    net.replay(net.table.forget_switch(2))
    net.replay(net.table.repath(KEY, OVER3, 3.0))  # they are there again, without agents
    net.tell(OVER3, 3.0, dpids=(1,), closed=True)
    assert net.state is FlowState.CLOSED


def test_a_switch_where_it_is_not_counted_has_no_say(net):
    net.open(now=0.0)
    for dpid in (1, 2, 3):
        net.replay(net.table.forget_switch(dpid))
    assert net.tell(OVER4, 3.0, dpids=(4,), closed=True) == []
    assert net.state is FlowState.ESTABLISHED


def test_before_its_syn_is_answered_a_connection_has_no_records(local):
    """What is told is of the last connection of these ports; the new one's SYN passed the same switch."""
    local.send("S", seq=ISN)
    assert local.reconcile(record(KEY, B, closed=True), record(BACK, A, closed=True), now=3.0) == []
    assert local.counted == on(LOCAL)


def test_one_that_was_half_closed_when_it_was_adopted(net):
    for now in (1.0, 2.0):
        for dpid, there, back in ((1, OVER3.forward[0], CLIENT), (3, PortKey(3, 2), PortKey(3, 1))):
            net.reconcile(record(KEY, there, closed=True), record(BACK, back), now=now, dpid=dpid)
        assert {flow for _, flow in net.counted} == {BACK}
    assert net.state is FlowState.HALF_CLOSED
    assert net.counted == {(CLIENT, BACK), (PortKey(3, 1), BACK)}


def test_acknowledgements_where_its_fin_is_forgotten_are_not_another_connection(net):
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
    # A new one by another spine, where the old spine goes on telling of the end of the old.
    for now in (12.0, 13.0, 14.0, 15.0):
        old = [each._replace(idle=now - 11.0) for each in half[3]]
        net.reconcile(*old, now=now, dpid=3)
        net.tell(OVER4, now)
    assert net.counted == on(OVER4)


# Ports used again, of which no copy told


def test_ports_of_a_closed_connection_used_again(net):
    net.open(now=0.0)
    net.close(now=10.0)
    assert net.tell(OVER4, 10.4) == []
    net.tell(OVER4, 11.0)
    assert (net.state, net.entry.since, net.counted) == (FlowState.ESTABLISHED, 11.0, on(OVER4))


def test_ports_of_a_half_closed_connection_used_again(net):
    net.open(now=0.0)
    net.fin(now=10.0)
    assert net.tell(OVER3, 11.0, dpids=(2,)) == []  # its FIN is lost, perhaps
    assert net.tell(OVER3, 12.5, dpids=(3,)) == []  # it has forgotten, perhaps
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
    # Its flags were taken away by its handshake: they mean what they say.
    net.tell(OVER4, 20.0, closed=True)
    assert net.state is FlowState.CLOSED
