"""Bridges that have the rule that forwards or wait for it: none has it that closes a loop."""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Iterable

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.control.paths.loop_watch import LoopWatch
from fairq_ryu.control.sender import Sender
from fairq_ryu.model import PortKey
from fairq_ryu.openflow import beside
from tests.support.fakes import FakeSwitch

SETTLE = 1.0
Wire = tuple[tuple[int, int], ...]
"""The ports (bridge, number) at a cable or a hub."""


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
    """Bridges of four ports each, and wires between them. Bridge 9 is one of the fabric. All wait while they
    are part of a loop.
    """

    def __init__(self, made: Iterable[Wire]) -> None:
        self.log: list = []
        self.sender = Sender(math.inf)
        self.watch = LoopWatch(SETTLE, self.sender, logging.getLogger(__name__))
        self.wires = list(made)
        self.decided: dict[int, list[bool]] = {}  # each change
        self.linked: dict[int, bool] = {}
        self.passes: dict[int, bool] = {}
        self.rounds = 0
        self.now = 0.0

    def connect(self, *dpids: int, forwards: bool = False, ports: int = 4) -> None:
        for dpid in dpids:
            numbers = [(number, True) for number in range(1, ports + 1)]
            decided = functools.partial(self._decide, dpid, self.decided.setdefault(dpid, []))
            self.watch.add(FakeSwitch(dpid, self.log), numbers, decided, self.now, forwards)

    def _decide(self, dpid: int, answers: list[bool], linked: bool, looped: bool) -> bool:
        self.linked[dpid] = linked
        self.rounds += dpid == 1
        if answers[-1:] != [looped]:
            answers.append(looped)
        return looped

    def cut(self, wire: Wire) -> None:
        self.wires.remove(wire)

    @property
    def searches(self) -> bool:
        """Whether connected bridges pass discovery frames, by the last rule that was sent to each."""
        self._read(self.log)
        return any(self.passes[dpid] for dpid in self.watch.bridges)

    def _read(self, sent: Iterable[tuple]) -> None:
        rules = [(dpid, each) for dpid, each in sent if type(each).__name__ == "OFPFlowMod"]
        for dpid, each in rules:
            assert each.cookie == beside.COOKIE_DISCOVERY
            self.passes[dpid] = each.command == ofp.OFPFC_ADD

    def run(self, seconds: float, *, barriers: bool = True) -> None:
        """Time passes. Each bridge forwards nothing; what it hears goes to the controller."""
        end = self.now + seconds
        while self.now < end:
            self.now += 0.05
            self.watch.tick(self.now)
            sent, self.log[:] = list(self.log), []
            self._read(sent)
            for dpid, message in sent:
                kind = type(message).__name__
                if kind == "OFPPacketOut":
                    source = dpid, message.actions[0].port
                    for to in (to for wire in self.wires if source in wire for to in wire if to != source):
                        if to[0] in self.watch.bridges or to[0] == 9:
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
    [wires((1, 2), (2, 3), (3, 1)), wires((1, 3), (1, 9), (2, 9), (2, 3))],
)
def test_no_bridge_of_a_loop_forwards(made):
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


def test_a_bridge_that_hangs_on_a_loop_is_no_part_of_it():
    net = Network(wires((1, 2), (1, 2), (2, 3)))
    net.connect(3, forwards=True)
    net.connect(1, 2, 4)
    net.run(3)
    assert net.decided == {1: [True], 2: [True], 3: [False], 4: [False]}
    assert net.linked == {1: True, 2: True, 3: True, 4: False}


def test_bridges_that_forwarded_before_are_looked_at():
    """Cables may have changed while no controller was there."""
    net = Network(wires((1, 2), (2, 3), (3, 1)))
    net.connect(1, 2, forwards=True)
    net.run(3)
    assert net.decided == {1: [False], 2: [False]} and not net.searches
    net.connect(3, forwards=True)
    net.run(3)
    assert net.decided == {1: [False, True], 2: [False, True], 3: [True]}


def test_a_new_link_that_closes_a_loop_is_found():
    net = Network(wires((1, 2), (2, 3), (3, 1)))
    net.connect(1, 2, 3, ports=0)
    net.run(3)
    assert net.decided == {1: [False], 2: [False], 3: [False]} and not net.searches
    for dpid in (1, 2, 3):
        for number in (1, 2):
            net.watch.port_changed(PortKey(dpid, number), True, net.now)
    net.run(3)
    assert net.decided == {1: [False, True], 2: [False, True], 3: [False, True]}


def test_a_link_that_comes_up_is_looked_at():
    net = Network(wires((1, 2), (1, 2)))
    net.connect(1, 2)
    net.watch.port_changed(PortKey(1, 2), False, net.now)
    net.cut(((1, 2), (2, 2)))
    net.run(3)
    assert net.decided == {1: [False], 2: [False]} and not net.searches
    net.wires.append(((1, 2), (2, 2)))
    net.watch.port_changed(PortKey(1, 3), True, net.now)  # nothing has changed
    assert not net.searches
    net.watch.port_changed(PortKey(1, 2), True, net.now)
    net.run(3)
    assert net.decided == {1: [False, True], 2: [False, True]}


def test_a_bridge_that_joins_the_fabric_can_close_a_loop():
    net = Network(wires((1, 2)))
    net.connect(1, 2)
    net.run(3)
    net.wires += [((1, 2), (9, 1)), ((2, 2), (9, 2))]
    net.watch.search(net.now)
    net.run(3)
    assert net.decided == {1: [False, True], 2: [False, True]}


def test_a_cable_from_a_bridge_to_itself_is_a_loop():
    net = Network(wires((1, 1)))
    net.connect(1, forwards=True)
    net.run(3)
    assert net.decided == {1: [True]}


@pytest.mark.parametrize("closed", [False, True])
def test_bridges_at_a_hub_wait_no_longer_than_others(closed):
    net = Network([((1, 1), (2, 1), (3, 1)), *([((1, 2), (3, 2))] if closed else [])])
    net.connect(1, 2, 3)
    net.run(3)
    assert net.decided == {1: [closed], 2: [False], 3: [closed]}


@pytest.mark.parametrize("silent", [False, True])
def test_bridges_forward_when_the_loop_has_gone(silent):
    net = Network(wires((1, 2), (2, 3), (3, 1)))
    net.connect(1, 2, 3)
    net.run(3)
    assert net.watch.waiting == [1, 2, 3]
    if silent:
        net.cut(((3, 2), (1, 2)))
    else:
        net.watch.remove(3)
    net.run(6)
    assert net.decided == {1: [True, False], 2: [True, False], 3: [True, False] if silent else [True]}
    assert net.watch.waiting == [] and not net.searches


def test_a_loop_whose_frames_were_lost_in_one_round_has_not_gone():
    net = Network(wires((1, 2), (2, 3), (3, 1)))
    net.connect(1, 2, 3)
    net.run(3)
    made, net.wires = net.wires, []
    rounds = net.rounds
    while net.rounds == rounds:
        net.run(0.05)
    net.wires = made
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


def test_bridges_pass_discovery_frames_only_during_a_search():
    """Hosts could send such frames, too."""
    net = Network([])
    net.connect(1)
    assert net.searches and net.passes == {1: True}
    net.run(3)
    assert not net.searches
    net.connect(2)
    assert net.searches and net.passes == {1: True, 2: True}
    assert net.watch.remove(2)
    net.run(3)
    assert net.passes[1] is False
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
    net.cut(((3, 2), (1, 2)))
    net.run(3)
    assert net.decided == {1: [False], 2: [False], 3: [False]}
