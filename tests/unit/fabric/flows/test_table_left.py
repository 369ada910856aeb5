"""Connections of which each switch copies the segments that leave it: no path is known."""

from __future__ import annotations

import pytest

from fairq_ryu.fabric.flows.table import FlowState
from fairq_ryu.model import PortKey
from tests.support.flownet import BACK, ISN, KEY, OVER3, PEER_ISN, A, B, C, Net, record, segment

# On the way from the client to the server, and back.
THERE = (PortKey(1, 9), PortKey(2, 8))
BACKWARDS = (PortKey(2, 7), PortKey(1, 6))
OTHER = PortKey(5, 1)


class Copied(Net):
    """The agents of switches copy what leaves them."""

    def leave(self, flags, port, key=KEY, now=0.0, **numbers):
        return self.replay(self.table.left(segment(key, flags, **numbers), port, now))

    def syn(self, *ports, now=0.0, seq=ISN):
        return [event for port in ports for event in self.leave("S", port, now=now, seq=seq)]

    def syn_ack(self, *ports, now=0.0):
        return [
            event for port in ports for event in self.leave("SA", port, BACK, now, seq=PEER_ISN, ack=ISN + 1)
        ]


@pytest.fixture
def net() -> Copied:
    return Copied()


def test_a_flow_is_counted_where_its_syn_leaves(net):
    assert net.syn(B) == [(True, B, KEY)]
    assert net.state is FlowState.SYN_SEEN
    assert net.syn_ack(A) == [(True, A, BACK)]
    assert net.state is FlowState.ESTABLISHED
    assert net.entry.opener is None  # the port where it came in is not known


def test_every_switch_on_the_way_adds_its_port(net):
    net.syn(*THERE)
    net.syn_ack(*BACKWARDS)
    assert net.counted == {(port, KEY) for port in THERE} | {(port, BACK) for port in BACKWARDS}


def test_copies_of_different_switches_come_in_any_order(net):
    net.syn_ack(BACKWARDS[1])  # before any SYN
    net.syn(THERE[1])
    net.syn_ack(BACKWARDS[0])
    net.syn(THERE[0])  # after the answer
    assert net.counted == {(port, KEY) for port in THERE} | {(port, BACK) for port in BACKWARDS}
    assert net.state is FlowState.ESTABLISHED


def test_a_repeated_syn_changes_nothing(net):
    net.syn(B)
    assert net.syn(B, now=1.0) == []


def test_a_syn_that_was_flooded_is_placed_by_the_records(net):
    """Each port copies it; on one switch a flow leaves by one port, which the next records name."""
    net.syn(B, C)
    net.syn_ack(A)
    assert (C, KEY) in net.counted
    net.reconcile(record(KEY, B), record(BACK, A), now=1.0)
    assert net.counted == {(B, KEY), (A, BACK)}


def test_the_first_fin_ends_a_direction_everywhere(net):
    net.syn(*THERE)
    net.syn_ack(*BACKWARDS)
    net.leave("FA", THERE[0], seq=ISN + 1, now=1.0)
    assert net.counted == {(port, BACK) for port in BACKWARDS} and net.state is FlowState.HALF_CLOSED
    assert net.leave("FA", THERE[1], seq=ISN + 1, now=1.0) == []
    net.leave("FA", BACKWARDS[0], BACK, seq=PEER_ISN + 1, now=1.1)
    assert not net.counted and net.state is FlowState.CLOSED
    assert net.leave("FA", BACKWARDS[1], BACK, seq=PEER_ISN + 1, now=1.1) == []


def test_a_reset_ends_a_connection_once(net):
    net.syn(*THERE)
    net.syn_ack(*BACKWARDS)
    for port in BACKWARDS:
        net.leave("R", port, BACK, seq=PEER_ISN + 1, now=1.0)
    assert not net.counted and net.state is FlowState.CLOSED


def test_the_ports_of_a_connection_are_used_again(net):
    net.syn(*THERE)
    net.leave("RA", BACKWARDS[1], BACK, ack=ISN + 1, now=0.1)  # refused
    assert net.state is FlowState.CLOSED
    net.syn(*THERE, now=1.0, seq=ISN + 5000)
    assert net.counted == {(port, KEY) for port in THERE}


def test_a_path_does_not_remove_the_port_of_a_switch_that_is_on_no_path(net):
    """A bridge of its own rules stands in the way between bridges that are governed by paths."""
    net.syn(OTHER)
    net.send("S", path=OVER3, seq=ISN, now=0.1)
    assert net.counted == {(port, KEY) for port in (*OVER3.forward, OTHER)} | {
        (port, BACK) for port in OVER3.backward
    }


def test_a_switch_that_is_on_a_path_now_follows_it(net):
    net.syn(PortKey(1, 9))
    net.send("S", path=OVER3, seq=ISN, now=0.1)
    assert (PortKey(1, 9), KEY) not in net.counted
