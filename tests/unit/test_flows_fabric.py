"""The flow table on several switches: paths that change, and records of switches that disagree."""

from __future__ import annotations

import pytest

from fairq_ryu.fabric.flows import DEFAULT_MSS, GRACE, LAG, FlowState
from fairq_ryu.model import FlowKey, FlowPath, PortKey
from tests.unit.flownet import (
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
    C,
    Net,
    on,
    record,
    segment,
)

FABRIC = (1, 2, 3, 4)


@pytest.fixture
def net() -> Net:
    return Net(OVER3)


@pytest.fixture
def local() -> Net:
    return Net(LOCAL)


# Paths


def test_a_path_seen_from_the_other_side():
    assert OVER3.reversed == FlowPath(forward=OVER3.backward, backward=OVER3.forward)
    assert OVER3.reversed.reversed == OVER3


def test_a_connection_is_counted_all_along_its_path(net):
    net.send("S", seq=ISN)
    assert net.counted == on(OVER3)
    assert net.send("SA", BACK, seq=PEER_ISN, ack=ISN + 1) == []
    assert net.entry.path == OVER3
    assert net.entry.directions[KEY].ports == OVER3.forward
    assert net.entry.directions[BACK].ports == OVER3.backward


def test_the_path_is_that_of_whose_syn_was_first():
    net = Net(OVER3)
    net.send("S", BACK, seq=PEER_ISN)
    assert net.entry.forward == BACK
    assert net.entry.path == OVER3.reversed
    assert net.entry.path_for(KEY) == OVER3


def test_each_fin_ends_a_direction_all_along_the_path(net):
    net.open()
    assert net.fin() == [(False, port, KEY) for port in OVER3.forward]
    assert net.counted == on(OVER3, BACK)
    net.fin(BACK)
    assert net.counted == set()


def test_a_path_that_comes_by_a_switch_twice_has_one_port_of_it(net):
    twice = FlowPath((*OVER3.forward[:2], PortKey(1, 9), SERVER), OVER3.backward)
    net.send("S", seq=ISN, path=twice)
    assert net.entry.directions[KEY].ports == (PortKey(1, 9), PortKey(3, 2), SERVER)


def test_another_path_changes_what_is_different(net):
    net.open()
    events = net.replay(net.table.repath(KEY, OVER4, 1.0))
    assert {(port, flow) for started, port, flow in events if started} == on(OVER4) - on(OVER3)
    assert {(port, flow) for started, port, flow in events if not started} == on(OVER3) - on(OVER4)
    assert len(events) == 8
    assert net.entry.path == OVER4
    assert net.entry.directions[BACK].ports == OVER4.backward
    assert net.replay(net.table.repath(KEY, OVER4, 1.0)) == []


def test_another_path_may_be_told_for_either_direction(net):
    net.open()
    net.replay(net.table.repath(BACK, OVER4.reversed, 1.0))
    assert net.entry.path == OVER4
    assert net.counted == on(OVER4)


def test_another_path_for_a_half_closed_connection_is_one_for_what_is_left(net):
    net.open()
    net.fin()
    net.replay(net.table.repath(KEY, OVER4, 1.0))
    assert net.counted == on(OVER4, BACK)


def test_another_path_for_what_is_unknown_or_closed_is_none(net):
    assert net.table.repath(KEY, OVER4, 0.0) == []
    net.open()
    net.close()
    assert net.table.repath(KEY, OVER4, 1.0) == []
    assert net.entry.path == OVER3


def test_a_host_that_moves_to_another_switch_leaves_the_old_path(net):
    net.open()
    behind4 = FlowPath((PortKey(1, 4), PortKey(4, 7)), (PortKey(4, 1), CLIENT))
    net.send("SA", BACK, seq=PEER_ISN, ack=ISN + 1, now=1.0, path=behind4)
    assert net.counted == on(behind4)


def test_a_host_that_moves_where_no_path_is_known_is_found_by_records(net):
    net.open()
    new = FlowPath((PortKey(1, 4), PortKey(4, 7)), (PortKey(4, 1), CLIENT))
    net.replay(net.table.segment(segment(BACK, "SA", PEER_ISN, ISN + 1), PortKey(4, 7), None, 3.0))
    assert net.counted == on(OVER3) - {(SERVER, KEY)} | {(PortKey(4, 7), KEY)}
    for now in range(4, 9):
        net.tell(new, now)
        net.tell(OVER3, now, dpids=(2, 3), idle=now - 3.0)
    assert net.counted == on(new)


# Ports and switches that go


def test_a_port_that_goes_ends_what_left_by_it(local):
    local.open()
    assert local.replay(local.table.forget_port(B)) == [(False, B, KEY)]
    assert local.replay(local.table.forget_port(B)) == []
    assert local.entry.path is None
    assert local.replay(local.table.segment(segment(KEY, "FA", ISN + 1), A, None, 0.0)) == []
    assert local.fin(BACK) == [(False, A, BACK)]
    assert local.state is FlowState.CLOSED


def test_a_port_that_goes_leaves_the_rest_of_the_path(net):
    net.open()
    net.open(key=KEY._replace(sport=5))
    gone = PortKey(3, 2)
    assert set(net.replay(net.table.forget_port(gone))) == {
        (False, gone, KEY),
        (False, gone, KEY._replace(sport=5)),
    }
    assert net.replay(net.table.forget_port(PortKey(9, 9))) == []
    # The connection is given another way, or the port is there again.
    net.replay(net.table.repath(KEY._replace(sport=5), OVER4, 2.0))
    net.tell(OVER3, 3.0)
    assert net.counted >= on(OVER3)
    assert net.table.get(KEY._replace(sport=5)).directions[KEY._replace(sport=5)].ports == OVER4.forward


def test_a_path_by_a_port_that_went_is_set_again_by_a_segment(net):
    net.send("S", seq=ISN)
    net.replay(net.table.forget_port(PortKey(3, 2)))
    assert net.send("SA", BACK, seq=PEER_ISN, ack=ISN + 1) == [(True, PortKey(3, 2), KEY)]
    assert net.counted == on(OVER3)


def test_a_switch_that_goes_takes_its_own_ports_out(net):
    net.open()
    events = net.replay(net.table.forget_switch(3))
    assert set(events) == {(False, PortKey(3, 2), KEY), (False, PortKey(3, 1), BACK)}
    assert net.replay(net.table.forget_switch(3)) == []
    assert net.state is FlowState.ESTABLISHED


# What the switches' records say: flows that are news


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
    for now in range(2, 20):  # one of the switches was started again, and knows of no FIN
        assert net.tell(OVER3, now) == []
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
    net.tell(OVER3, 11.0)
    assert net.state is FlowState.HALF_CLOSED
    assert net.counted == on(OVER3, BACK)


# Records that disagree about the way


def moved(net: Net, at: float) -> None:
    net.open(now=0.0)
    net.tell(OVER3, at - 0.5)
    net.replay(net.table.repath(KEY, OVER4, at))


def test_what_the_old_switches_keep_does_not_bring_the_old_path_back(net):
    moved(net, at=10.0)
    for now in range(1, 40):
        # Leaves know one port a flow; spine 3 keeps what it has seen last, a moment after the change.
        assert net.tell(OVER4, 10.0 + now) == []
        assert net.tell(OVER3, 10.0 + now, dpids=(3,), idle=now - 0.2) == []
    assert net.counted == on(OVER4)


def test_nor_does_it_when_the_flow_is_silent(net):
    moved(net, at=10.0)
    for now in range(1, 50):
        assert net.tell(OVER3, 10.0 + now, dpids=(1, 2, 3), idle=now + 0.3) == []
        if now == 1:
            assert net.counted == on(OVER4)  # where no switch has seen it yet
    assert net.state is FlowState.ESTABLISHED


def test_until_the_rules_stand_segments_take_the_old_path(net):
    moved(net, at=10.0)
    assert net.tell(OVER3, 10.1, dpids=(1, 2, 3)) == []
    assert net.tell(OVER3, 11.9, dpids=(1, 2, 3)) == []
    assert net.counted == on(OVER4)


def test_a_flow_that_goes_on_taking_another_way_is_where_it_is_seen(net):
    """Its rules could not be set, say."""
    moved(net, at=10.0)
    net.tell(OVER3, 10.0 + GRACE + 0.5, idle=0.1)
    net.reconcile(now=10.0 + GRACE + 0.5, dpid=4)
    assert net.counted == on(OVER3)
    for now in range(13, 30):
        assert net.tell(OVER3, now) == []
        assert net.reconcile(now=now, dpid=4) == []


def test_a_record_of_the_path_is_believed_however_old(net):
    net.open(now=0.0)
    net.replay(net.table.forget_port(PortKey(3, 2)))
    net.replay(net.table.repath(KEY, OVER3, 1.0))
    net.replay(net.table.forget_switch(2))
    net.replay(net.table.repath(KEY, OVER3, 2.0))
    assert net.tell(OVER3, 3.0, idle=3.0) == []
    assert net.counted == on(OVER3)


def test_without_a_path_the_switch_that_sees_it_last_is_right():
    net = Net(OVER3)
    for now in range(1, 5):
        net.tell(OVER3, now)
    assert net.counted == on(OVER3)
    for now in range(5, 12):  # another controller, or a spanning tree, has moved it
        net.tell(OVER4, now)
        net.tell(OVER3, now, dpids=(3,), idle=now - 4.2)
        if now > 4.2 + GRACE:
            assert net.counted == on(OVER4)


def test_of_a_switch_off_the_path_nothing_is_left_when_the_flow_is_back(net):
    net.open(now=0.0)
    for now in (1.0, 2.0, 3.0, 4.0):
        net.tell(OVER4, now)
    assert net.counted >= on(OVER4)
    for now in range(5, 12):
        net.tell(OVER3, now)
        net.tell(OVER4, now, dpids=(4,), idle=now - 4.0)
    assert net.counted == on(OVER3)


def test_a_switch_that_the_flow_passes_by_is_not_on_the_path(net):
    """Its rules on the path have gone, and those for everything lead elsewhere."""
    net.open(now=0.0)
    net.tell(OVER3, 5.0)
    for now in range(6, 12):
        net.tell(OVER4, now)
        net.tell(OVER3, now, dpids=(3,), idle=now - 5.0)
    assert net.counted == on(OVER4)


def test_a_path_just_set_is_not_passed_by_because_of_what_was_before(net):
    """It goes back over a spine that has an old record of it, and is silent."""
    net.open(now=0.0)
    net.replay(net.table.repath(KEY, OVER4, 5.0))
    for now in (8.0, 20.0):
        net.tell(OVER4, now)
        net.tell(OVER3, now, dpids=(3,), idle=now - 4.0)
    net.replay(net.table.repath(KEY, OVER3, 20.5))
    for now in range(21, 30):
        net.tell(OVER3, now, dpids=(3,), idle=now - 4.0)
        net.tell(OVER4, now, dpids=(1, 2, 4), idle=now - 20.0)
    assert net.counted == on(OVER3)


def test_on_one_switch_a_flow_leaves_by_one_port(local):
    local.reconcile(record(KEY, B), now=1.0)
    assert local.reconcile(record(KEY, C), now=2.0) == [(False, B, KEY), (True, C, KEY)]


def test_the_lag_is_less_than_what_it_must_not_hide():
    assert LAG < GRACE
