"""Bridges that wait for the rule that forwards: none gets it that would close a loop."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.control.loop_watch import LoopWatch
from fairq_ryu.control.sender import Sender
from fairq_ryu.model import PortKey
from fairq_ryu.openflow import beside
from tests.support.fakes import FakeSwitch

SETTLE = 1.0
Wire = tuple[tuple[int, int], tuple[int, int]]


def wires(*pairs: tuple[int, int]) -> list[Wire]:
    """A wire for each pair of bridges, at their next ports."""
    used: dict[int, int] = {}
    found = []
    for pair in pairs:
        ends = []
        for dpid in pair:
            used[dpid] = used.get(dpid, 0) + 1
            ends.append((dpid, used[dpid]))
        found.append((ends[0], ends[1]))
    return found


class Network:
    """Bridges of four ports each, and wires between them. Bridge 9 is one of the fabric."""

    def __init__(self, made: Iterable[Wire]) -> None:
        self.log: list = []
        self.sender = Sender(math.inf)
        self.watch = LoopWatch(SETTLE, self.sender, logging.getLogger(__name__))
        self.peer = {a: b for one, other in made for a, b in ((one, other), (other, one))}
        self.decided: dict[int, list[bool]] = {}
        self.now = 0.0

    def connect(self, *dpids: int, forwards: bool = False) -> None:
        for dpid in dpids:
            answers = self.decided[dpid] = []
            ports = [(number, True) for number in range(1, 5)]
            self.watch.add(FakeSwitch(dpid, self.log), ports, answers.append, self.now, forwards)

    def run(self, seconds: float, *, barriers: bool = True) -> None:
        """Time passes. Each bridge forwards nothing; what it hears goes to the controller."""
        end = self.now + seconds
        while self.now < end:
            self.now += 0.05
            self.watch.tick(self.now)
            sent, self.log[:] = list(self.log), []
            for dpid, message in sent:
                kind = type(message).__name__
                if kind == "OFPPacketOut":
                    to = self.peer.get((dpid, message.actions[0].port))
                    if to is not None and (to[0] in self.watch.bridges or to[0] == 9):
                        self.watch.frame(bytes(message.data), PortKey(*to), self.now)
                elif kind == "OFPBarrierRequest" and barriers:
                    self.sender.barriers.answered((dpid, message.xid))


def test_a_tree_forwards():
    net = Network(wires((1, 2), (1, 3), (3, 4)))
    net.connect(1, 2, 3, 4)
    net.run(0.8)
    assert net.decided == {1: [], 2: [], 3: [], 4: []}  # a frame may still be on its way
    net.run(2)
    assert net.decided == {1: [False], 2: [False], 3: [False], 4: [False]}
    assert net.watch.waiting == []


@pytest.mark.parametrize(
    "made",
    [wires((1, 2), (2, 3), (3, 1)), wires((1, 2), (1, 2), (2, 3)), wires((1, 3), (1, 9), (2, 9), (2, 3))],
)
def test_no_bridge_of_a_loop_forwards_nor_one_that_hangs_on_it(made):
    net = Network(made)
    net.connect(1, 2, 3, 4)
    net.run(3)
    assert net.decided == {1: [True], 2: [True], 3: [True], 4: [False]}


def test_the_bridge_that_closes_the_loop_takes_the_others_with_it():
    """They connect one after the other, as after a failed attempt. At no time do all of them forward."""
    net = Network(wires((1, 2), (2, 3), (3, 1)))
    net.connect(1)
    net.run(2)
    net.connect(2)
    net.run(2)
    assert net.decided == {1: [False], 2: [False]}
    net.connect(3)
    net.run(3)
    assert net.decided == {1: [False, True], 2: [False, True], 3: [True]}


def test_bridges_that_forwarded_before_are_looked_at_but_do_not_wait():
    net = Network(wires((1, 2), (2, 3), (3, 1)))
    net.connect(1, 2, forwards=True)
    net.run(3)
    assert net.decided == {1: [], 2: []}
    assert not any(type(message).__name__ == "OFPPacketOut" for _, message in net.log)
    net.connect(3)
    net.run(3)
    assert net.decided == {1: [True], 2: [True], 3: [True]}


def test_a_bridge_that_has_not_confirmed_its_rule_delays_the_decision():
    net = Network(wires((1, 2), (2, 3), (3, 1)))
    net.connect(1, 2, 3)
    net.run(5 * SETTLE, barriers=False)
    assert net.decided == {1: [], 2: [], 3: []}


def test_every_bridge_passes_discovery_frames_before_anything_else():
    net = Network([])
    net.connect(1)
    dpid, first = net.log[0]
    assert (dpid, first.cookie, first.match["eth_type"]) == (1, beside.COOKIE_DISCOVERY, 0x88CC)


def test_bridges_pass_discovery_frames_only_while_one_waits():
    """Hosts could send such frames, too."""
    net = Network([])
    net.connect(1)
    net.run(3)
    net.log.clear()
    net.connect(2)
    assert {dpid: each.cookie for dpid, each in net.log if hasattr(each, "cookie")} == dict.fromkeys(
        (1, 2), beside.COOKIE_DISCOVERY
    )
    net.log.clear()
    assert net.watch.remove(2)
    (removal,) = (each for _, each in net.log if hasattr(each, "cookie"))
    assert (removal.cookie, removal.command) == (beside.COOKIE_DISCOVERY, ofp.OFPFC_DELETE)
    assert not net.watch.remove(1)


def test_a_bridge_that_goes_is_no_part_of_a_loop():
    net = Network(wires((1, 2), (2, 3), (3, 1)))
    net.connect(1, 2, 3)
    net.run(0.5)
    net.watch.remove(3)
    net.run(3)
    assert net.decided == {1: [False], 2: [False], 3: []}
    assert not net.watch.frame(b"no discovery frame", PortKey(1, 1), net.now)


def test_ports_come_and_go():
    net = Network(wires((1, 2), (2, 3), (3, 1)))
    net.connect(1, 2, 3)
    net.watch.port_changed(PortKey(1, 2), False, 0.0)
    net.watch.port_removed(PortKey(4, 1))
    net.peer = {a: b for a, b in net.peer.items() if (1, 2) not in (a, b)}
    net.run(3)
    assert net.decided == {1: [False], 2: [False], 3: [False]}
