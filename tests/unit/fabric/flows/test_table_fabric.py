"""The flow table on several switches: paths that change, and records of switches that disagree."""

from __future__ import annotations

import pytest

from fairq_ryu.fabric.flows.table import GRACE, LAG, FlowState
from fairq_ryu.model import FlowPath, PortKey
from tests.support.flownet import (
    BACK,
    CLIENT,
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


def test_the_path_is_that_of_the_first_syn():
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


def test_a_path_through_a_switch_twice_counts_one_port_of_it(net):
    twice = FlowPath((*OVER3.forward[:2], PortKey(1, 9), SERVER), OVER3.backward)
    net.send("S", seq=ISN, path=twice)
    assert net.entry.directions[KEY].ports == (PortKey(1, 9), PortKey(3, 2), SERVER)


def test_a_new_path_changes_only_the_different_ports(net):
    net.open()
    events = net.replay(net.table.repath(KEY, OVER4, 1.0))
    assert {(port, flow) for started, port, flow in events if started} == on(OVER4) - on(OVER3)
    assert {(port, flow) for started, port, flow in events if not started} == on(OVER3) - on(OVER4)
    assert len(events) == 8
    assert net.entry.path == OVER4
    assert net.entry.directions[BACK].ports == OVER4.backward
    assert net.replay(net.table.repath(KEY, OVER4, 1.0)) == []


def test_a_new_path_may_be_set_for_either_direction(net):
    net.open()
    net.replay(net.table.repath(BACK, OVER4.reversed, 1.0))
    assert net.entry.path == OVER4
    assert net.counted == on(OVER4)


def test_a_new_path_of_a_half_closed_connection_moves_the_open_direction(net):
    net.open()
    net.fin()
    net.replay(net.table.repath(KEY, OVER4, 1.0))
    assert net.counted == on(OVER4, BACK)


def test_a_new_path_of_an_unknown_or_closed_connection_is_ignored(net):
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


# Removed ports and disconnected switches


def test_a_removed_port_ends_the_directions_that_left_by_it(local):
    local.open()
    assert local.replay(local.table.forget_port(B)) == [(False, B, KEY)]
    assert local.replay(local.table.forget_port(B)) == []
    assert local.entry.path is None
    assert local.replay(local.table.segment(segment(KEY, "FA", ISN + 1), A, None, 0.0)) == []
    assert local.fin(BACK) == [(False, A, BACK)]
    assert local.state is FlowState.CLOSED


def test_a_removed_port_keeps_the_rest_of_the_path(net):
    net.open()
    net.open(key=KEY._replace(sport=5))
    gone = PortKey(3, 2)
    assert set(net.replay(net.table.forget_port(gone))) == {
        (False, gone, KEY),
        (False, gone, KEY._replace(sport=5)),
    }
    assert net.replay(net.table.forget_port(PortKey(9, 9))) == []
    # The connection gets another path, or the port is added again.
    net.replay(net.table.repath(KEY._replace(sport=5), OVER4, 2.0))
    net.tell(OVER3, 3.0)
    assert net.counted >= on(OVER3)
    assert net.table.get(KEY._replace(sport=5)).directions[KEY._replace(sport=5)].ports == OVER4.forward


def test_a_path_through_a_removed_port_is_set_again_by_a_segment(net):
    net.send("S", seq=ISN)
    net.replay(net.table.forget_port(PortKey(3, 2)))
    assert net.send("SA", BACK, seq=PEER_ISN, ack=ISN + 1) == [(True, PortKey(3, 2), KEY)]
    assert net.counted == on(OVER3)


def test_a_disconnected_switch_removes_only_its_own_ports(net):
    net.open()
    events = net.replay(net.table.forget_switch(3))
    assert set(events) == {(False, PortKey(3, 2), KEY), (False, PortKey(3, 1), BACK)}
    assert net.replay(net.table.forget_switch(3)) == []
    assert net.state is FlowState.ESTABLISHED


# Records that disagree about the path


def moved(net: Net, at: float) -> None:
    net.open(now=0.0)
    net.tell(OVER3, at - 0.5)
    net.replay(net.table.repath(KEY, OVER4, at))


def test_records_of_the_old_switches_do_not_restore_the_old_path(net):
    moved(net, at=10.0)
    for now in range(1, 40):
        # Leaves have one port for a flow; spine 3 keeps its last state, a moment after the change.
        assert net.tell(OVER4, 10.0 + now) == []
        assert net.tell(OVER3, 10.0 + now, dpids=(3,), idle=now - 0.2) == []
    assert net.counted == on(OVER4)


def test_records_of_a_silent_flow_do_not_restore_the_old_path(net):
    moved(net, at=10.0)
    for now in range(1, 50):
        assert net.tell(OVER3, 10.0 + now, dpids=(1, 2, 3), idle=now + 0.3) == []
        if now == 1:
            assert net.counted == on(OVER4)  # where no switch has a record of it yet
    assert net.state is FlowState.ESTABLISHED


def test_segments_take_the_old_path_until_the_rules_are_installed(net):
    moved(net, at=10.0)
    assert net.tell(OVER3, 10.1, dpids=(1, 2, 3)) == []
    assert net.tell(OVER3, 11.9, dpids=(1, 2, 3)) == []
    assert net.counted == on(OVER4)


def test_a_flow_that_stays_on_another_path_counts_where_it_is_recorded(net):
    """For example when its rules could not be installed."""
    moved(net, at=10.0)
    net.tell(OVER3, 10.0 + GRACE + 0.5, idle=0.1)
    net.reconcile(now=10.0 + GRACE + 0.5, dpid=4)
    assert net.counted == on(OVER3)
    for now in range(13, 30):
        assert net.tell(OVER3, now) == []
        assert net.reconcile(now=now, dpid=4) == []


def test_an_old_record_of_the_path_counts(net):
    net.open(now=0.0)
    net.reconcile(now=3.0, dpid=3)
    assert len(net.counted) == 4
    net.tell(OVER3, 10.0, dpids=(3,), idle=9.0)
    assert net.counted == on(OVER3)
    assert net.entry.directions[KEY].ports == OVER3.forward


def test_a_repeated_path_does_not_undo_later_records(net):
    net.open(now=0.0)
    net.tell(OVER4, 5.0, dpids=(1,))
    net.fin(BACK, now=6.0)
    assert net.entry.directions[KEY].ports == (PortKey(1, 4), PortKey(3, 2), SERVER)


def test_a_record_from_before_the_handshake_is_of_the_last_connection(net):
    net.replay(net.table.segment(segment(KEY, "S", ISN), CLIENT, None, 10.0))
    net.replay(net.table.segment(segment(BACK, "SA", PEER_ISN, ISN + 1), SERVER, None, 10.0))
    assert net.tell(OVER4, 11.0, dpids=(4,), idle=5.0) == []
    assert len(net.tell(OVER3, 11.0, idle=0.5)) == 4


def test_a_record_from_before_the_host_moved_does_not_move_it_back(local):
    local.open(now=0.0)
    local.replay(local.table.segment(segment(KEY, "FA", ISN + 1), C, None, 10.0))
    assert local.reconcile(record(KEY, B), record(BACK, A), now=10.2) == []
    assert local.counted == {(C, BACK)}


def test_a_flow_counts_where_it_progresses_despite_old_flags(net):
    """Spine 4 has a record of the end of another connection of these ports."""
    for now in (1.0, 2.0):
        net.tell(OVER3, now)
    for now in (3.0, 4.0, 5.0, 6.0):
        net.tell(OVER4, now, dpids=(1, 2))
        net.tell(OVER4, now, dpids=(4,), closed=True)
        net.tell(OVER3, now, dpids=(3,), idle=now - 2.0)
    assert net.counted == on(OVER4)


def test_without_a_path_the_latest_record_counts():
    net = Net(OVER3)
    for now in range(1, 5):
        net.tell(OVER3, now)
    assert net.counted == on(OVER3)
    for now in range(5, 12):  # another controller, or a spanning tree, has moved it
        net.tell(OVER4, now)
        net.tell(OVER3, now, dpids=(3,), idle=now - 4.2)
        if now > 4.2 + GRACE:
            assert net.counted == on(OVER4)


def test_no_port_off_the_path_counts_when_the_flow_is_back(net):
    net.open(now=0.0)
    for now in (1.0, 2.0, 3.0, 4.0):
        net.tell(OVER4, now)
    assert net.counted >= on(OVER4)
    for now in range(5, 12):
        net.tell(OVER3, now)
        net.tell(OVER4, now, dpids=(4,), idle=now - 4.0)
    assert net.counted == on(OVER3)


def test_a_switch_that_the_flow_no_longer_passes_does_not_count(net):
    """Its rules on the path were removed, and the general rules lead elsewhere."""
    net.open(now=0.0)
    net.tell(OVER3, 5.0)
    for now in range(6, 12):
        net.tell(OVER4, now)
        net.tell(OVER3, now, dpids=(3,), idle=now - 5.0)
    assert net.counted == on(OVER4)


def test_old_records_do_not_overrule_a_new_path(net):
    """It returns to a spine that has an old record of it, and is silent."""
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


def test_the_lag_is_less_than_the_other_timeouts():
    assert LAG < GRACE


# Switches of another controller


def test_connections_that_are_at_no_other_switch_are_handed_over(net):
    net.open()
    dpids = sorted({port.dpid for port in (*OVER3.forward, *OVER3.backward)})
    assert len(dpids) > 1
    for dpid in dpids[:-1]:
        net.replay(net.table.hand_over(dpid))
        assert len(net.table) == 1 and not net.table.has_flows(dpid)
    net.replay(net.table.hand_over(dpids[-1]))
    assert len(net.table) == 0 and net.table.switches() == set()
