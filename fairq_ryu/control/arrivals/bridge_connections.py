"""Connections of bridges: in which way each is governed, and what is sent to it for that.

Theory of operation
-------------------

The way of a bridge (:mod:`fairq_ryu.fabric.ways`) is decided when it connects, in this order:

1. The setting ``way`` names one, for all bridges.
2. The bridge's description names one (``other_config:dp-desc`` of Open vSwitch).
3. All its rules are from an earlier fairq_ryu controller that governed it by paths: it stays so. To forward
   by itself could make a loop, and without a controller that answers ARP, hosts lose each other.
4. It has no rules, and is part of a loop of such bridges (:mod:`~fairq_ryu.control.paths.loop_watch`):
   *paths*. Nothing else forwards there without circling for ever. The controller warns.
5. Otherwise *normal*.

A bridge that joins passes these states, each ended by its reply:

- *Described*: its description is requested. Not with the setting ``way``.
- *Counted*: the numbers of its rules are requested, of ours and of all. No rule is read. Not for *paths* by
  the setting or in words.
- *Listed*: its rules are requested, for *paths*, and if nobody asks for a way and some are from an earlier
  controller. For *paths*, those of an earlier controller are used again
  (:mod:`~fairq_ryu.control.paths.warm_restart`), and all are removed if there are others.

It is then a bridge of the fabric (*paths*), or one beside it. To one that is left alone (*windows* by the
setting or in words) nothing is sent. In *normal*, one rule of ours is installed if there is no other: it
forwards as a learning switch, because Open vSwitch removes all rules of a bridge when it gets its first
controller. It waits until it is known to close no loop, and is sent if there is still no other rule. If it
would close one, and the bridge asks for *normal*, it waits until the loop has gone. Copies of segments come
from the agent, not from rules here: such a rule would end the owner's own pipeline, and on a second bridge
nothing tells that the port is a link.

Descriptions are requested again every :data:`ASK_AGAIN` seconds. If the way changes while a bridge is
connected, it leaves the former way and joins anew. When it leaves *paths*, our rules are removed, and the
rule that forwards takes their place, unless it could close a loop: the bridge may have no other that does.

Bounded: one entry for each connection, removed when it ends or is replaced.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel.dispatch import TooMuch
from fairq_ryu.control.arrivals.bridge_joining import BridgeJoining
from fairq_ryu.control.arrivals.rerouting import Rerouting
from fairq_ryu.control.arrivals.rule_counts import RuleCounts
from fairq_ryu.control.paths.fabric_controller import FabricController, PortState
from fairq_ryu.control.reports.event_reporter import EventReporter
from fairq_ryu.control.sender import Sender
from fairq_ryu.control.windows.inventory import Beside
from fairq_ryu.control.windows.window_controller import WindowController
from fairq_ryu.errors import plain
from fairq_ryu.fabric.ways import RuleCount, Way, in_words
from fairq_ryu.model import dpid_text
from fairq_ryu.openflow import beside
from fairq_ryu.openflow.pipeline import ETH_TYPE_LLDP, Datapath

ASK_AGAIN = 2.0
"""Descriptions of connected bridges are requested this often, seconds."""
_HOW_TO_ASK = (
    'ovs-vsctl set bridge BRIDGE other_config:dp-desc="fairq_ryu: paths", or [fairq_ryu] way = paths'
)


@dataclass(eq=False)
class BridgeConnections:
    """The bridges of one controller. ``setting``: the way of all bridges; None: see above."""

    setting: Way | None
    fabric: FabricController
    windows: WindowController
    rerouting: Rerouting
    reporter: EventReporter
    log: logging.Logger
    _describing: dict[int, Datapath] = field(default_factory=dict, init=False)
    _words: dict[int, tuple[Datapath, Way | None]] = field(default_factory=dict, init=False)
    _listing: BridgeJoining = field(default_factory=BridgeJoining, init=False)
    _counting: RuleCounts = field(default_factory=RuleCounts, init=False)
    _looped: dict[int, Datapath] = field(default_factory=dict, init=False)  # they have paths unasked

    @property
    def joining(self) -> int:
        """The number of bridges that have connected and not joined yet."""
        return len(self._describing) + len(self._listing) + len(self._counting)

    def unpinned(self, dpid: int) -> bool:
        """Whether a bridge has no pinned paths. False also of one that may yet connect and have them."""
        if self.windows.inventory.is_connected(dpid):
            return self.windows.inventory.way(dpid) is not Way.PATHS
        return self.setting is Way.WINDOWS

    # Joining

    def connected(self, datapath: Datapath) -> None:
        """The handshake of a bridge is complete."""
        self._describing.pop(datapath.id, None)
        self._words.pop(datapath.id, None)
        self._looped.pop(datapath.id, None)
        self.fabric.loops.remove(datapath.id)  # an earlier connection
        if self.setting is not None:
            self._join(datapath, self.setting)
            return
        self._describing[datapath.id] = datapath
        Sender.send([(datapath, beside.ask_description(datapath))])

    def described(self, message: Any) -> None:
        """A bridge has sent its description (Ryu's ``OFPDescStatsReply``): when it joins, or later."""
        datapath, dpid = message.datapath, message.datapath.id
        asked = in_words(message.body.dp_desc.decode("utf-8", "replace"))
        if self._describing.get(dpid) is datapath:
            del self._describing[dpid]
            self._words[dpid] = datapath, asked
            self._join(datapath, asked)
        elif self._current(dpid) is datapath and dpid in self._words:
            before = self._words[dpid][1]
            self._words[dpid] = datapath, asked
            if asked is None and self._may_loop(dpid):
                self._looped[dpid] = datapath  # it stays what it is
            elif asked is not before:
                self._change(datapath, asked or Way.NORMAL)

    def rules_counted(self, message: Any) -> None:
        """A bridge has counted rules (Ryu's ``OFPAggregateStatsReply``)."""
        self._counting.reply(message)

    def rules_listed(self, message: Any) -> None:
        """A bridge that joins has listed rules (Ryu's ``OFPFlowStatsReply``)."""
        try:
            rules = self._listing.add_rules(message)
        except TooMuch as error:
            self.log.error("bridge %s: %s: its connection is ended", dpid_text(message.datapath.id), error)
            message.datapath.close()
            return
        if rules is None:
            return
        datapath, found = message.datapath, _count(rules)
        if found.others and self._looped.pop(datapath.id, None) is not None:
            self._joined_normal(datapath, found)
            return
        if self._asked(datapath.id) is None:
            if found.others or not found.paths:
                self._joined_normal(datapath, found)
                return
            self.log.warning(
                "bridge %s: all its rules are those of paths, so it stays governed by paths, but nobody asks "
                "for it: %s",
                dpid_text(datapath.id),
                _HOW_TO_ASK,
            )
        self.windows.inventory.remove(datapath.id)
        now = time.monotonic()
        self.fabric.bridge_connected(datapath, ports_of(datapath), rules, now)
        self.fabric.loops.search(now)
        self.rerouting.notify()
        self._joined(datapath, Way.PATHS)

    def ask_descriptions(self) -> None:
        """Request the descriptions of all connected bridges, unless the setting decides."""
        if self.setting is None:
            connected = [self._current(dpid) for dpid in self.windows.inventory.connected]
            Sender.send((each, beside.ask_description(each)) for each in connected if each is not None)

    def _join(self, datapath: Datapath, way: Way | None, loopless: bool = False) -> None:
        """Ask what must be known before the bridge has joined. ``way`` None: nobody asks for one;
        ``loopless``: it is known to be part of no loop.
        """
        if way is Way.WINDOWS:
            self._joined_beside(datapath, Beside(datapath, way))
            self.log.warning(
                "bridge %s: it is connected, and left alone (way = windows): its agent governs it without "
                "it. Take this controller out of its controllers",
                dpid_text(datapath.id),
            )
        elif way is Way.PATHS:
            Sender.send(self._listing.start(datapath))
        else:
            asked = way is not None

            def counted(found: RuleCount) -> None:
                if found.paths and not asked:
                    Sender.send(self._listing.start(datapath))
                else:
                    self._joined_normal(datapath, found, loopless)

            Sender.send(self._counting.ask(datapath, counted))

    def _joined_normal(self, datapath: Datapath, found: RuleCount, loopless: bool = False) -> None:
        dpid, ports = datapath.id, ports_of(datapath)
        bridge = Beside(datapath, Way.NORMAL, found.others, {port.number: port.name for port in ports})
        self._leave_fabric(dpid)
        # The first bridge has no link to another. It is looked at as well: a cable may lead back to it.
        loopless = loopless or self.windows.inventory.connected <= {dpid}
        self.windows.inventory.add(bridge)
        if not found.others:
            forwards = bool(found.normal)
            if loopless and not forwards:
                Sender.send([(datapath, beside.forward(datapath))])
                forwards = True
            bridge.in_loop = False if forwards else None
            up = [(port.number, port.up) for port in ports]
            decided = functools.partial(self._decided, datapath)
            self.fabric.loops.add(datapath, up, decided, time.monotonic(), forwards)
        self._tidy(datapath, found, loopless)
        self._joined_beside(datapath, bridge)

    def _decided(self, datapath: Datapath, linked: bool, looped: bool) -> bool:
        """It is known whether a loop is linked to a bridge without rules of others, and whether the bridge is
        part of one. Returns whether the bridge must not forward.
        """
        dpid = datapath.id
        bridge = self.windows.inventory.beside(dpid)
        asked = self._asked(dpid) is not None
        loop = looped if asked else linked
        if bridge is None or bridge.datapath is not datapath or bridge.in_loop is loop:
            return loop
        forwarded, bridge.in_loop = bridge.in_loop is False, loop
        if not loop:
            Sender.send(self._counting.ask(datapath, functools.partial(self._loopless, bridge)))
            return False
        if forwarded:
            Sender.send([(datapath, beside.remove(datapath, beside.OF_NORMAL))])
        if asked:
            self.log.warning(
                "bridge %s: it forwards nothing: it has no rules, is part of a loop, and asks for normal. "
                "Ask for paths: %s",
                dpid_text(dpid),
                _HOW_TO_ASK,
            )
            return True
        self.log.warning(
            "bridge %s: it has no rules and is part of a loop, so it is governed by paths, but nobody "
            "asks for it: %s",
            dpid_text(dpid),
            _HOW_TO_ASK,
        )
        self.reporter.bridge(dpid, connected=False)
        self._unwatch(datapath)
        self._looped[dpid] = datapath
        Sender.send(self._listing.start(datapath))
        return True

    def _loopless(self, bridge: Beside, found: RuleCount) -> None:
        """A bridge that waited for its links closes no loop. Others may have installed rules meanwhile."""
        datapath = bridge.datapath
        if self.windows.inventory.beside(datapath.id) is not bridge or bridge.in_loop:
            return
        bridge.others = found.others
        if found.others:
            self._unwatch(datapath)
        else:
            Sender.send([(datapath, beside.forward(datapath, beside_others=True))])

    def _unwatch(self, datapath: Datapath) -> None:
        """A bridge is not looked at for loops any more."""
        if self.fabric.loops.remove(datapath.id):
            Sender.send([(datapath, beside.remove(datapath, beside.DISCOVERS))])

    def _may_loop(self, dpid: int) -> bool:
        """Whether a bridge of the fabric would be part of a loop if it forwarded as a learning switch."""
        return dpid in self.fabric.bridges and len(self.fabric.topology.link_ports(dpid)) > 1

    def _tidy(self, datapath: Datapath, found: RuleCount, loopless: bool) -> None:
        """A bridge beside the fabric has no pipeline. If it had one beside rules of others, the rule that
        forwards takes its place, unless that could close a loop or replace a rule of others, which must be
        asked of the bridge when the pipeline has gone.
        """
        messages: list[Any] = []
        if found.paths:
            messages.append(beside.remove_pipeline(datapath))
            if found.others and loopless:
                messages.append(beside.forward(datapath, beside_others=True))
            messages += self.fabric.copy_meters.removed(datapath, (p.number for p in ports_of(datapath)))
        Sender.send((datapath, each) for each in messages)

    def _joined_beside(self, datapath: Datapath, bridge: Beside) -> None:
        self._leave_fabric(datapath.id)
        self.windows.inventory.add(bridge)
        self.windows.name_ports_of(datapath.id, time.monotonic())
        self._joined(datapath, bridge.way)
        for limit in self.windows.inventory.limits(datapath.id, self.windows.roles_matter):
            self.log.info("bridge %s: %s", dpid_text(datapath.id), limit)

    def _joined(self, datapath: Datapath, way: Way) -> None:
        self.reporter.bridge(datapath.id, connected=True)
        self.log.info("bridge %s: connected, way %s", dpid_text(datapath.id), way)

    # Changes

    def _change(self, datapath: Datapath, way: Way) -> None:
        """The description of a connected bridge asks for another way than before."""
        dpid, inventory = datapath.id, self.windows.inventory
        before = inventory.way(dpid)
        if way is before:
            return
        self.log.warning(
            "bridge %s: its description asks for way %s now, was %s", dpid_text(dpid), way, before
        )
        self.reporter.bridge(dpid, connected=False)
        self._looped.pop(dpid, None)
        self._unwatch(datapath)
        loopless = before is Way.PATHS and not self._may_loop(dpid)
        if before is Way.PATHS:
            self.fabric.bridge_disconnected(datapath)
            self.rerouting.notify()
        else:
            inventory.remove(dpid)
        if way is Way.WINDOWS:
            Sender.send(
                self._counting.ask(datapath, lambda found: self._left_alone(datapath, found, loopless))
            )
        else:
            self._join(datapath, way, loopless)

    def _left_alone(self, datapath: Datapath, found: RuleCount, loopless: bool) -> None:
        """A connected bridge is left alone from now on. The rule that forwards goes, too, if others forwarded
        beside it.
        """
        if loopless and not found.others and not found.normal:
            Sender.send([(datapath, beside.forward(datapath))])
        self._tidy(datapath, found, loopless)
        if found.paths and not loopless:
            self.log.warning(
                "bridge %s: no rule takes the place of the pipeline: one that forwards could close a loop",
                dpid_text(datapath.id),
            )
        elif found.others and not found.paths:
            Sender.send([(datapath, beside.remove(datapath, beside.OF_NORMAL))])
        else:
            self.log.warning(
                "bridge %s: the rule that forwards stays, because it may have no other (cookie %#x)",
                dpid_text(datapath.id),
                beside.COOKIE_NORMAL,
            )
        self._join(datapath, Way.WINDOWS)

    def disconnected(self, datapath: Datapath, why: str = "connection lost") -> None:
        """A connection has ended, or is of no use any more; ``why`` is for the log."""
        dpid = datapath.id
        if self._describing.get(dpid) is datapath:
            del self._describing[dpid]
        self._listing.disconnected(datapath)
        self._counting.disconnected(datapath)
        if self._looped.get(dpid) is datapath:
            del self._looped[dpid]
        if self.fabric.loops.bridges.get(dpid) is datapath:
            self.fabric.loops.remove(dpid)
        there = self._current(dpid) is datapath
        if self.fabric.bridge_disconnected(datapath):
            self.rerouting.notify()
        elif there:
            self.windows.inventory.remove(dpid)
        if dpid in self._words and self._words[dpid][0] is datapath:
            del self._words[dpid]
        if there:
            self.reporter.bridge(dpid, connected=False)
            self.log.warning("bridge %s: %s", dpid_text(dpid), why)

    def _asked(self, dpid: int) -> Way | None:
        """The way that the setting or the description of a bridge asks for, or that a loop needs; None: none
        does.
        """
        words = self._words.get(dpid)
        named = self.setting or (None if words is None else words[1])
        return named or (Way.PATHS if dpid in self._looped else None)

    def _current(self, dpid: int) -> Datapath | None:
        """The connection of a bridge that has joined."""
        bridge = self.windows.inventory.beside(dpid)
        return self.fabric.bridges.get(dpid) if bridge is None else bridge.datapath

    def _leave_fabric(self, dpid: int) -> None:
        """A bridge is beside the fabric from now on: one of an earlier connection leaves it."""
        former = self.fabric.bridges.get(dpid)
        if former is not None:
            self.fabric.bridge_disconnected(former)
        if self.fabric.topology.knows(dpid):
            self.fabric.bridge_forgotten(dpid)
            self.rerouting.notify()


def _count(rules: Iterable[Any]) -> RuleCount:
    """Count listed rules (Ryu's ``OFPFlowStats``). A rule for discovery frames without a cookie is Ryu's
    own, as earlier controllers had it, and belongs to the pipeline.
    """
    found = list(rules)
    lldp = sum(not rule.cookie and rule.match.get("eth_type") == ETH_TYPE_LLDP for rule in found)
    found = [rule for rule in found if not beside.is_of(rule.cookie, beside.DISCOVERS)]
    paths = sum(beside.is_of(rule.cookie, beside.OF_PIPELINE) for rule in found)
    normal = sum(beside.is_of(rule.cookie, beside.OF_NORMAL) for rule in found)
    return RuleCount(len(found), paths + lldp, normal)


def ports_of(datapath: Datapath) -> list[PortState]:
    """The ports that a switch has listed in its handshake, without reserved ones."""
    listed = list(datapath.ports.values())
    return [port_state(port) for port in listed if port.port_no <= ofp.OFPP_MAX]


def port_state(port: Any) -> PortState:
    """A port as Ryu decodes it."""
    up = not (port.config & ofp.OFPPC_PORT_DOWN or port.state & ofp.OFPPS_LINK_DOWN)
    return PortState(port.port_no, up, plain(port.name.decode("utf-8", "replace").rstrip("\0")))
