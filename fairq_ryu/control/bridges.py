"""The network as the controller runs it: bridges, links, hosts and paths; events in, rules out.

What should stand is decided in :mod:`fairq_ryu.fabric`; this says it to the bridges.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.config.loader import Config
from fairq_ryu.control import warm_restart
from fairq_ryu.fabric.topology.forwarding import Change, Deliver, Flood, Forwarding, FromLink
from fairq_ryu.fabric.topology.graph import PortRole, Topology
from fairq_ryu.fabric.topology.hosts import HostTable
from fairq_ryu.fabric.topology.paths import Assigned, Moved, PathChoice, PathTable
from fairq_ryu.fabric.topology.routing import Routes
from fairq_ryu.model import FlowKey, PortKey
from fairq_ryu.openflow import pipeline
from fairq_ryu.openflow.barriers import Barriers
from fairq_ryu.openflow.pipeline import Datapath, Message
from fairq_ryu.packet import build, parse
from fairq_ryu.packet.headers import ARP_REQUEST

# A host's rules are not repeated within this many seconds.
_TELL_AGAIN = 1.0
# A pinned rule outlives its flow in the flow table by this many seconds.
_PIN_SLACK = 5
# ARP questions remembered while it is not known which ports are hosts'.
_MAX_ASKED = 1024
_NEVER = -1
# Within so many seconds all bridges have found a controller that starts anew: they try every eight at least.
_RETURN = 15.0
# Discovery frames must have left every port so often before a port that none came in by is a host's.
_SWEEPS = 1
# Waiting for a switch to confirm ends after this many seconds, where going on is better than waiting.
_PATIENCE = 0.5


class PortState(NamedTuple):
    """A port as its bridge describes it."""

    number: int
    up: bool
    name: str


class FabricController:
    """All bridges. Every method sends what its event asks for; ``now`` in seconds."""

    def __init__(self, config: Config, log: logging.Logger) -> None:
        self._log = log
        self._packet_in_rate = int(config.number("fairq_ryu", "packet_in_rate"))
        self._host_idle = int(config.number("fairq_ryu", "host_idle_timeout"))
        self._pin_idle = min(0xFFFF, int(config.number("fairq_ryu", "flow_idle_timeout")) + _PIN_SLACK)
        self._holds = config.value("fairq_ryu", "syn") == "hold"
        self._hold_lease = int(config.number("fairq_ryu", "hold_lease"))
        self._held_at: dict[int, float] = {}
        self.bridges: dict[int, Datapath] = {}
        self.names: dict[PortKey, str] = {}  # of interfaces, for display
        self.copies_dropped: dict[int, int] = {}  # by the meters of bridges, by their own count
        self._unmetered: set[int] = set()
        self.repins = 0
        self.topology = Topology(config.number("fairq_ryu", "discovery_time"), _SWEEPS)
        self._standing: set[int] = set()  # bridges whose own rules stand
        self._probed: set[PortKey] = set()  # discovery frames have left by these ports lately
        self._probed_in = 0  # the topology's epoch then
        self._confirming = False
        self.hosts = HostTable()
        choice = PathChoice(str(config.value("fairq_ryu", "path_choice")))
        always = config.value("fairq_ryu", "pins") == "always"
        self.paths = PathTable(Routes(self.topology.graph(), ()), choice, always)
        self.barriers = Barriers(_PATIENCE)
        self._forwarding = Forwarding()
        self._routed_version = self.topology.version
        self._turn = 0  # of changes in steps
        self._confirming_hosts = False
        self._take_over_at = 0.0  # at the latest
        self._old_pins: dict[int, list[FlowKey]] = {}  # an earlier controller's, by bridge
        self._decided: list[PortKey] = []  # hosts' ports since the last refresh
        self._asked: dict[str, bytes] = {}  # ARP questions by wanted address, while ports are undecided

    # Bridges, ports and links

    def bridge_came(
        self, datapath: Datapath, ports: Iterable[PortState], stats: Iterable[Any], now: float
    ) -> None:
        """A bridge has connected, with these ports and rules (flow statistics). Its tables are ours: what an
        earlier controller of this kind has left there stays in force until the network is known again.
        """
        ports = list(ports)
        self.barriers.gone(datapath.id)  # an earlier connection
        self.bridges[datapath.id] = datapath
        self._unmetered.discard(datapath.id)
        earlier = warm_restart.read(stats)
        if earlier is None:
            self._say(datapath, [pipeline.clear(datapath)])
        messages = [pipeline.no_copy_limit(datapath)]
        if self._packet_in_rate:
            messages.append(pipeline.copy_limit(datapath, self._packet_in_rate))
        self._say(datapath, [*messages, *pipeline.pipeline(datapath)])
        self._standing.discard(datapath.id)
        self.after([datapath], lambda: self._stands(datapath.id, datapath), math.inf)
        self._forwarding.bridge_came(datapath.id, None if earlier is None else earlier.forwarding)
        self.topology.add_switch(datapath.id, [(port.number, port.up) for port in ports], now)
        if earlier is not None:
            self._reuse_rules(datapath.id, earlier, now)
        self.names.update({PortKey(datapath.id, port.number): port.name for port in ports})
        for host in self.hosts.behind(datapath.id):
            self._say(datapath, pipeline.source(datapath, host.mac, host.port.port, self._host_idle))
        for assigned in self.paths.through(datapath.id):
            self._pin(assigned, only=datapath.id)
        self._hold(now)

    def _reuse_rules(self, dpid: int, earlier: warm_restart.EarlierRules, now: float) -> None:
        self._take_over_at = now + _RETURN
        for key in earlier.forwarding:
            if isinstance(key, FromLink):
                self.topology.assume_link(PortKey(dpid, key.port), now + _RETURN)
        self._old_pins[dpid] = earlier.pins
        for mac, number in earlier.hosts:
            port = PortKey(dpid, number)
            # What this controller has seen itself is newer.
            if self.hosts.by_mac(mac) is None and self.topology.frame_seen(port):
                self.hosts.seen(mac, port)

    def _stands(self, dpid: int, datapath: Datapath) -> None:
        if self.bridges.get(dpid) is datapath:
            self._standing.add(dpid)

    def bridge_gone(self, datapath: Datapath) -> bool:
        """A connection has ended. Returns whether it was a bridge's present one."""
        dpid = datapath.id
        if self.bridges.get(dpid) is not datapath:
            return False
        del self.bridges[dpid]
        self._standing.discard(dpid)
        self._held_at.pop(dpid, None)
        self.copies_dropped.pop(dpid, None)
        self._forwarding.bridge_gone(dpid)
        self._unmetered.discard(dpid)
        forgotten = self.topology.remove_switch(dpid)
        if forgotten:
            self.names = {port: name for port, name in self.names.items() if port.dpid not in forgotten}
        self.barriers.gone(dpid)  # nobody waits for it
        return True

    def no_meters(self, dpid: int) -> None:
        """A bridge has no meter for copies."""
        if dpid in self.bridges:
            self._unmetered.add(dpid)

    def ask_meters(self) -> None:
        """Ask the bridges how many copies their meters have dropped."""
        if self._packet_in_rate:
            for datapath in [each for dpid, each in self.bridges.items() if dpid not in self._unmetered]:
                self._say(datapath, [pipeline.ask_copy_limit(datapath)])

    def meters_told(self, dpid: int, stats: Iterable[Any]) -> None:
        """A bridge that is connected has answered that."""
        self.copies_dropped[dpid] = sum(band.packet_band_count for s in stats for band in s.band_stats)

    def port_changed(self, dpid: int, state: PortState, now: float) -> None:
        """A bridge's port came or changed."""
        port = PortKey(dpid, state.number)
        self.names[port] = state.name
        self.topology.port_changed(port, state.up, now)

    def port_gone(self, port: PortKey) -> None:
        """A bridge's port has gone."""
        self.names.pop(port, None)
        self.topology.remove_port(port)
        self._forget_hosts(port)

    def frame_sent(self, port: PortKey) -> None:
        """A discovery frame leaves by a port. If it is too early for another bridge to hand it over, it does
        not count.
        """
        if self._probed_in != self.topology.epoch:
            self._probed.clear()
            self._probed_in = self.topology.epoch
        if len(self._standing) == len(self.bridges):
            self._probed.add(port)

    def _confirm_sent(self) -> None:
        """Discovery frames of late are where they lead when all bridges have answered twice: first that they
        were sent, and then that what came in before the question was handed over.
        """
        ports, self._probed, epoch = self._probed, set(), self._probed_in
        bridges = dict(self.bridges)
        self._confirming = True

        def here() -> list[Datapath]:
            return [each for dpid, each in bridges.items() if self.bridges.get(dpid) is each]

        def done() -> None:
            self._confirming = False
            stayed = {each.id for each in here()}
            self.topology.probed([port for port in ports if port.dpid in stayed], epoch)

        self.after(here(), lambda: self.after(here(), done, math.inf), math.inf)

    def link_seen(self, source: PortKey, target: PortKey) -> None:
        """A discovery frame has come through a link."""
        if self.topology.lldp_seen(source, target):
            for port in (source, target):
                self._forget_hosts(port)  # what was learnt there came through a switch

    @property
    def stale(self) -> bool:
        """Whether the network has changed since :meth:`refresh`."""
        return self.topology.version != self._routed_version

    def refresh(self) -> list[Moved]:
        """Work out the ways anew, and say what has changed. Returns the connections that go another way."""
        self._routed_version = self.topology.version
        routes = Routes(self.topology.graph(), self.topology.edge_switches())
        moved, pinned = self.paths.reroute(routes)
        for assigned in pinned:  # before their destinations' rules may lead them elsewhere
            if self._still_there(assigned):
                self._pin(assigned)
            else:
                self.paths.release(assigned.key)
        self._say_changes(self._forwarding.update(self.topology, routes, self.hosts))
        self._go_on()
        for old, new in moved:
            self._repin(old, new)
        # Questions asked before: whoever is wanted may be behind one of the new ports. These are flooded to
        # by now, so that what follows the answer arrives as well.
        for data in self._asked.values():
            self._ask_hosts(data, self._decided)
        self._decided.clear()
        if self.topology.settled:
            self._asked.clear()
        return moved

    def _go_on(self) -> None:
        """The second step of a change and the third, each when every bridge has confirmed the one before."""
        self._turn += 1
        turn = self._turn

        def bridges() -> list[Datapath]:
            # Where there is only one, there are nobody else's rules to wait for.
            return list(self.bridges.values()) if len(self.bridges) > 1 else []

        def deliver() -> None:
            if turn == self._turn:  # otherwise the network has changed again, and that sees to it
                self._say_changes(self._forwarding.deliver())

        def grow() -> None:
            if turn == self._turn:
                self._say_changes(self._forwarding.grow())

        def deliver_and_grow() -> None:
            deliver()
            if turn == self._turn and self._forwarding.waiting:
                self.after(bridges(), grow, math.inf)

        if self._forwarding.waiting:
            self.after(bridges(), deliver)
            # However long it takes: two bridges that flood along different trees may make a loop.
            self.after(bridges(), deliver_and_grow, math.inf)

    def _say_changes(self, changes: Iterable[Change]) -> None:
        for change in changes:
            self._say_change(change)

    def _say_change(self, change: Change) -> None:
        datapath, value = self.bridges.get(change.dpid), change.value
        if datapath is None:
            return
        match change.key:
            case Flood(share):
                self._say(datapath, [pipeline.flood(datapath, share, value)])
            case Deliver(mac, share, mask):
                port = None if value is None else value[0]
                self._say(datapath, [pipeline.deliver(datapath, mac, share, mask, port)])
            case FromLink(port):
                self._say(datapath, [pipeline.from_link(datapath, port, value is not None)])
            case _:
                self._say(datapath, pipeline.shares(datapath, value[0] if value else 0))

    # Hosts

    def host_seen(self, datapath: Datapath, frame: parse.Frame, in_port: PortKey, now: float) -> None:
        """A frame came in by a port, and its source was not known there."""
        known = self.hosts.by_mac(frame.src)
        elsewhere = known is not None and known.port != in_port
        if elsewhere and self.topology.role(in_port) is PortRole.UNDECIDED:
            return  # the host has moved, or the port is a link that nobody has found yet: time tells
        if not self.topology.frame_seen(in_port):
            return
        news = self.hosts.seen(frame.src, in_port, frame.ip)
        host = self.hosts.by_mac(frame.src)
        if host is None:
            return
        if news:
            self._say_changes(self._forwarding.host(self.paths.routes, host.mac, host.port))
        # Said again even if it is no news: the switch asked, so its rule has gone; but not for every
        # copy that was under way before the rule stood.
        if news or now - host.told > _TELL_AGAIN:
            host.told = now
            self._say(datapath, pipeline.source(datapath, frame.src, in_port.port, self._host_idle))

    def host_silent(self, port: PortKey, mac: str) -> None:
        """A host has sent nothing for long."""
        host = self.hosts.by_mac(mac)
        if host is not None and host.port == port:
            self.hosts.forget(mac)
            self._undeliver(mac)

    def answer_arp(self, datapath: Datapath, frame: parse.Frame, in_port: PortKey, data: bytes) -> None:
        """An ARP question to everybody: answered if the answer is known, otherwise passed on to all hosts."""
        arp = frame.arp
        if arp is None:
            return
        wanted = self.hosts.by_ip(arp.target_ip)
        if arp.operation == ARP_REQUEST and wanted is not None and arp.target_ip != arp.sender_ip:
            if wanted.mac != frame.src:
                reply = build.arp_reply(arp, wanted.mac, frame.tags)
                self._say(
                    datapath, [pipeline.packet_out(datapath, reply, ofp.OFPP_CONTROLLER, [in_port.port])]
                )
            return
        hosts = (port for dpid in self.bridges for port in self.topology.host_ports(dpid) if port != in_port)
        self._ask_hosts(data, hosts)
        if not self.topology.settled and len(self._asked) < _MAX_ASKED:
            self._asked[arp.target_ip] = data

    def _ask_hosts(self, data: bytes, ports: Iterable[PortKey]) -> None:
        """Send a frame out of ports of any bridges."""
        numbers: dict[int, list[int]] = {}
        for port in ports:
            numbers.setdefault(port.dpid, []).append(port.port)
        for dpid, out in numbers.items():
            bridge = self.bridges.get(dpid)
            if bridge is not None:
                self._say(bridge, [pipeline.packet_out(bridge, data, ofp.OFPP_CONTROLLER, out)])

    def _forget_hosts(self, port: PortKey) -> None:
        datapath = self.bridges.get(port.dpid)
        for host in self.hosts.forget_port(port):
            if datapath is not None:
                self._say(datapath, [pipeline.forget_source(datapath, host.mac)])
            self._undeliver(host.mac)

    def _undeliver(self, mac: str) -> None:
        self._say_changes(self._forwarding.host(self.paths.routes, mac, None))

    def _confirm_hosts(self) -> None:
        """Ask whether all bridges know the hosts that they were told of."""
        change = self._forwarding.unconfirmed
        if change is None or self._confirming_hosts:
            return
        self._confirming_hosts = True

        def done() -> None:
            self._confirming_hosts = False
            self._forwarding.confirmed(change)

        self.after(list(self.bridges.values()), done)

    # Paths

    def path(self, key: FlowKey, in_port: PortKey, target_mac: str) -> Assigned | None:
        """The path of a connection whose segment came in by a port; pinned now if it is new. None if the
        other end is not known, or out of reach.
        """
        target = self.hosts.by_mac(target_mac)
        if target is None or self.topology.role(in_port) is PortRole.LINK:
            return None
        before = self.paths.get(key)
        found = self.paths.assign(key, in_port, target.port)
        if found is not None and found != before:
            if before is not None:
                self._unpin(before, found)
            self._pin(found)
        return found

    def along(self, path: Assigned) -> list[Datapath]:
        """The bridges that a path passes."""
        found = (self.bridges.get(port.dpid) for port in path.path.forward)
        return [bridge for bridge in found if bridge is not None]

    def release(self, key: FlowKey, closed: bool) -> None:
        """A connection is over. If it was ``closed``, its FINs or RST have made its rules short-lived;
        one that was never answered, or fell silent, leaves rules to take away.
        """
        known = self.paths.release(key)
        if known is not None and not closed:
            self._unpin(known)

    def _repin(self, old: Assigned, new: Assigned) -> None:
        self._log.info("flow %s: now by %s, was by %s", new.key, _names(new), _names(old))
        self.repins += 1
        self._pin(new)
        self._unpin(old, new)

    def _pin(self, assigned: Assigned, only: int | None = None) -> None:
        if not assigned.pinned:
            return
        path = assigned.path
        for key, ports in ((assigned.key, path.forward), (assigned.key.reversed, path.backward)):
            # From the receiver's switch to the sender's: a segment meets no gap behind a rule that stands.
            for port in reversed(ports):
                datapath = self.bridges.get(port.dpid)
                if datapath is not None and only in (None, port.dpid):
                    tell = port.dpid == ports[0].dpid
                    self._say(datapath, [pipeline.pin(datapath, key, port.port, self._pin_idle, tell)])

    def _still_there(self, assigned: Assigned) -> bool:
        """Are both ends where they were when the path was found? One that has moved is followed by the rules
        by destination.
        """
        ends = ((assigned.key.src, assigned.source), (assigned.key.dst, assigned.target))
        hosts = ((self.hosts.by_ip(address), port) for address, port in ends)
        return all(host is None or host.port == port for host, port in hosts)

    def _unpin(self, old: Assigned, new: Assigned | None = None) -> None:
        """Take away the rules of an old path that those of the new one have not replaced."""
        if not old.pinned:
            return
        replaced = {port.dpid for port in new.path.forward} if new is not None and new.pinned else set()
        for dpid in {port.dpid for port in old.path.forward} - replaced:
            datapath = self.bridges.get(dpid)
            if datapath is not None:
                self._say(datapath, [pipeline.unpin(datapath, key) for key in (old.key, old.key.reversed)])

    # Held SYNs

    def tick(self, now: float) -> None:
        """What time alone brings about."""
        if not self.topology.waits:
            self._probed.clear()
        elif self._probed and not self._confirming:
            self._confirm_sent()
        self._decided += self.topology.decide(now)
        known = self.topology.settled or now >= self._take_over_at
        if known and self._forwarding.take_over():
            self._routed_version = _NEVER
            self._drop_old_pins()
        self._confirm_hosts()
        self.barriers.overdue(now)
        self._hold(now)

    def _hold(self, now: float) -> None:
        """Renew the rules that hold SYNs, if that is wanted: without this they end."""
        if not self._holds:
            return
        for dpid, datapath in self.bridges.items():
            if now - self._held_at.get(dpid, float("-inf")) >= self._hold_lease / 3:
                self._held_at[dpid] = now
                self._say(datapath, pipeline.hold(datapath, self._hold_lease))

    def _drop_old_pins(self) -> None:
        """Flows that an earlier controller had pinned go where their hash leads them, which mostly is where
        they went: pinned by nobody who watches, they would stay on a link that has died.
        """
        for dpid, keys in self._old_pins.items():
            datapath = self.bridges.get(dpid)
            if datapath is not None:
                gone = [key for key in keys if not ((path := self.paths.get(key)) and path.pinned)]
                self._say(datapath, [pipeline.unpin(datapath, key) for key in gone])
        self._old_pins.clear()

    def let_go(
        self, datapath: Datapath, data: bytes, in_port: PortKey, key: FlowKey | None, path: Assigned | None
    ) -> None:
        """Send a held SYN on its way: along its path, or where what is for nobody known goes."""
        if path is not None:
            ports: Iterable[int] = [path.path.forward[0].port]
        else:
            flooded = self._forwarding.flood(datapath.id, self.paths.routes.share(key) if key else 0)
            ports = [port for port in flooded if port != in_port.port]
        self._say(datapath, [pipeline.packet_out(datapath, data, in_port.port, ports)])

    def after(
        self, datapaths: Iterable[Datapath], action: Callable[[], None], patience: float | None = None
    ) -> None:
        """Do something once these switches have done what they were told, or have gone; or after
        ``patience`` seconds, half a second if nothing is said of it.
        """
        asked = [(datapath, pipeline.barrier(datapath)) for datapath in datapaths]
        for datapath, message in asked:
            datapath.set_xid(message)
        # Known before they are sent: sending may let another greenlet in, and with it the first answers.
        tickets = [(datapath.id, message.xid) for datapath, message in asked]
        if asked:
            self.barriers.wait(tickets, action, time.monotonic(), patience)
        for datapath, message in asked:
            datapath.send_msg(message)
        if not asked:
            action()

    @staticmethod
    def _say(datapath: Datapath, messages: Iterable[Message]) -> None:
        for message in messages:
            datapath.send_msg(message)


def _names(assigned: Assigned) -> str:
    """A path as people read it: the ports by which data leaves."""
    return " ".join(str(port) for port in assigned.path.forward)
