"""The network as the controller runs it: bridges, ports and links; events in, rules out.

What should be installed is decided in :mod:`fairq_ryu.fabric`. The parts here, one subject a module, turn
that into messages, and :class:`FabricController` sends these in the order that the event needs.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.config.loader import Config
from fairq_ryu.control.paths import warm_restart
from fairq_ryu.control.paths.address_claims import AddressClaims
from fairq_ryu.control.paths.copy_meters import CopyMeters
from fairq_ryu.control.paths.forwarding_rules import ForwardingRules
from fairq_ryu.control.paths.hold_rules import HoldRules
from fairq_ryu.control.paths.hosts import HostLearning
from fairq_ryu.control.paths.link_discovery import LinkDiscovery
from fairq_ryu.control.paths.link_probes import LinkProbes
from fairq_ryu.control.paths.loop_watch import LoopWatch
from fairq_ryu.control.paths.pinning import PathPinning
from fairq_ryu.control.paths.segment_probes import SegmentProbes
from fairq_ryu.control.paths.take_over import RECONNECT_TIME, TakeOver
from fairq_ryu.control.sender import Outgoing, Sender, to_switch
from fairq_ryu.control.yielding import in_steps
from fairq_ryu.fabric.flows.table import IDLE_TIMEOUT
from fairq_ryu.fabric.topology.forwarding import FromLink
from fairq_ryu.fabric.topology.graph import PortRole, Sight, Topology
from fairq_ryu.fabric.topology.hosts import Host, HostTable
from fairq_ryu.fabric.topology.paths import Assigned, Moved, PathChoice, PathTable
from fairq_ryu.fabric.topology.ports import UNTAGGED, LogicalPorts, split
from fairq_ryu.fabric.topology.routing import Routes
from fairq_ryu.model import FlowKey, PortKey
from fairq_ryu.openflow import pipeline
from fairq_ryu.openflow.pipeline import Datapath
from fairq_ryu.packet import parse
from fairq_ryu.port_settings import PortSettings

# A pinned rule outlives its flow in the flow table by some seconds.
_PIN_IDLE = int(IDLE_TIMEOUT) + 5
# A host that sends nothing for this long, seconds, is removed, as Open vSwitch's own table of addresses
# (mac-aging-time) does it; it is learnt again from its next packet.
_HOST_IDLE = 300
DISCOVERY_TIME = 1.5
"""A port that receives no LLDP frame for this long, seconds, may count as a host port. The other end of a
link sends one each 0.4 s until both are known.
"""
_NEVER = -1
# A port becomes a host port only after this many sweeps of discovery frames (one through every port) were
# sent and confirmed, and none arrived through it.
_SWEEPS = 1
# An action that waits for barrier replies of switches runs after this many seconds without them, unless its
# caller gives another timeout.
_BARRIER_TIMEOUT = 0.5
# Discovery frames that are sent before others run: half a millisecond.
_FRAMES_PER_STEP = 5
# The same for requests for the counters of meters, whose replies would come together, too.
_METERS_PER_STEP = 5


class PortState(NamedTuple):
    """A port as its bridge describes it."""

    number: int
    up: bool
    name: str


class FabricController:
    """All bridges. Every method sends the messages that its event calls for; ``now`` in seconds."""

    def __init__(self, config: Config, log: logging.Logger) -> None:
        self._log = log
        self.bridges: dict[int, Datapath] = {}
        self.names: dict[PortKey, str] = {}  # of interfaces, for display
        self.repins = 0
        self.hosts = HostTable()
        self.topology = Topology(DISCOVERY_TIME, _SWEEPS, self.hosts.any_behind)
        self.logical_ports = LogicalPorts(self.topology.is_up, self.topology.is_flooded)
        choice = PathChoice(str(config.value("fairq_ryu", "path_choice")))
        self.paths = PathTable(Routes(self.topology.graph(), ()), choice)
        self._sender = Sender(_BARRIER_TIMEOUT)
        self.barriers = self._sender.barriers
        self.loops = LoopWatch(self.topology.settle, self._sender, log)
        holds = config.value("fairq_ryu", "syn") == "hold"
        if holds and config.observes:
            log.warning("syn = hold: SYNs are copied, not held, because some ports may be only observed")
            holds = False
        rate = int(config.number("fairq_ryu", "packet_in_rate"))
        groups = int(config.number("fairq_ryu", "group_rate"))
        self.copy_meters = CopyMeters(self.bridges, rate, groups, holds)
        self._hold_rules = HoldRules(self.bridges, holds, self.copy_meters.actions)
        self._forwarding = ForwardingRules(self.bridges, self._sender, self.logical_ports)
        self._pinning = PathPinning(self.bridges, self.hosts, self.paths, _PIN_IDLE, self.logical_ports)
        self.claims = AddressClaims(self.bridges, self.topology, self.hosts, self.logical_ports, log)
        self._learning = HostLearning(
            self.bridges,
            self.topology,
            self.hosts,
            self.paths,
            self._forwarding,
            self.claims,
            _HOST_IDLE,
            self.logical_ports,
            self._release_host,
            log,
        )
        self.host_limit = self._learning.limit
        self._probes = LinkProbes(self.bridges, self.topology, self._sender)
        self.discovery = LinkDiscovery(self.bridges, self.topology, self._probes, log)
        self._segments = SegmentProbes(self.bridges, self.topology, self.logical_ports, log)
        self._routed_version = self.topology.version
        self._take_over = TakeOver(self.bridges, self.topology, self.logical_ports, self._forwarding, log)
        # Since the last refresh.
        self._new_host_ports: list[PortKey] = []
        self._changed_ports: set[PortKey] = set()

    # Bridges, ports and links

    def bridge_connected(
        self, datapath: Datapath, ports: Iterable[PortState], stats: Iterable[Any], now: float
    ) -> None:
        """A bridge has connected, with these ports and rules (flow statistics). Its tables are ours; rules of
        an earlier fairq_ryu controller stay in force until the network is known again.
        """
        ports = list(ports)
        dpid, send = datapath.id, self._sender.send
        self.barriers.disconnected(dpid)  # an earlier connection
        self.bridges[dpid] = datapath
        earlier = warm_restart.read(stats)
        if earlier is None:
            send([(datapath, pipeline.clear(datapath))])
        send(to_switch(datapath, pipeline.pipeline(datapath)))
        self._install_meters(datapath, [port.number for port in ports])
        self._probes.bridge_connected(datapath, earlier is None)
        self._forwarding.bridge_connected(dpid, None if earlier is None else earlier.forwarding)
        self.topology.add_switch(dpid, [(port.number, port.up) for port in ports], now)
        if earlier is not None:
            self._keep_rules(dpid, earlier, now)
        self.names.update({PortKey(dpid, port.number): port.name for port in ports})
        self._take_over.bridge_connected(dpid, earlier is not None, now)
        send(self._learning.source_rules(datapath))
        for assigned in self.paths.through(dpid):
            send(self._pinning.pin(assigned, only=dpid))
        send(self._hold_rules.renew(now))

    def _install_meters(self, datapath: Datapath, ports: Iterable[int]) -> None:
        self._sender.send(self.copy_meters.install(datapath, ports))

        def confirmed() -> None:
            if self.bridges.get(datapath.id) is datapath:
                self._sender.send(self.copy_meters.confirmed(datapath))

        self._sender.after_barriers([datapath], confirmed, math.inf)

    def _keep_rules(self, dpid: int, earlier: warm_restart.EarlierRules, now: float) -> None:
        for key in earlier.forwarding:
            if isinstance(key, FromLink):
                self.topology.assume_link(PortKey(dpid, key.port), now + RECONNECT_TIME)
        self._pinning.keep_earlier(dpid, earlier.pins)
        for mac, number, vlan in earlier.hosts:
            port = PortKey(dpid, number)
            # What this controller has seen itself is newer.
            if self.hosts.by_mac(mac, vlan) is None and self.topology.frame_seen(port, now):
                self.hosts.seen(mac, self.logical_ports.exit(port), vlan=vlan)

    def bridge_disconnected(self, datapath: Datapath) -> bool:
        """A connection has ended. Returns whether it was the present one of a bridge."""
        dpid = datapath.id
        if self.bridges.get(dpid) is not datapath:
            return False
        del self.bridges[dpid]
        self._probes.bridge_disconnected(dpid)
        self._hold_rules.bridge_disconnected(dpid)
        self.copy_meters.bridge_disconnected(dpid)
        self._forwarding.bridge_disconnected(dpid)
        forgotten = self.topology.remove_switch(dpid)
        for each in forgotten:
            self.logical_ports.forget(each)
        if forgotten:
            self.names = {port: name for port, name in self.names.items() if port.dpid not in forgotten}
        self.barriers.disconnected(dpid)
        return True

    def bridge_forgotten(self, dpid: int) -> None:
        """A bridge that has disconnected is not one of the fabric any more: forget its ports and hosts."""
        for port in self.topology.ports(dpid):
            self.port_removed(port)
        self.topology.forget_switch(dpid, time.monotonic())

    def port_changed(self, dpid: int, state: PortState, now: float) -> None:
        """A port of a bridge was added or has changed."""
        port = PortKey(dpid, state.number)
        bridge = self.bridges.get(dpid)
        if port not in self.names and bridge is not None:
            self._sender.send(self.copy_meters.port_added(bridge, port.port))
        self.names[port] = state.name
        self.topology.port_changed(port, state.up, now)
        if self.topology.waits_at(port):
            self._sender.send(self._forwarding.port_waits(port))

    def port_removed(self, port: PortKey) -> None:
        """A port of a bridge was removed."""
        self.names.pop(port, None)
        self.topology.remove_port(port)
        bridge = self.bridges.get(port.dpid)
        if bridge is not None:
            self._sender.send(self.copy_meters.port_removed(bridge, port.port))
        self._sender.send(self._learning.forget_port(port))

    def port_settings(self, dpid: int, settings: Mapping[int, PortSettings]) -> None:
        """An agent has told the settings of all ports of its bridge."""
        changed = self.logical_ports.replace(dpid, settings)
        for port in changed:
            # Its hosts may be in another VLAN now.
            self._sender.send(self._learning.forget_port(port))
        if changed:
            self._changed_ports.update(changed)
            self._release_paths(lambda end: end in changed)
            self.topology.touch()

    def settings_forgotten(self, dpid: int) -> None:
        """A switch that is no bridge of the fabric has gone: its VLANs are not those of the network."""
        if self.logical_ports.known(dpid):
            self.logical_ports.forget(dpid)
            self.topology.touch()

    def discover(self, now: float) -> None:
        """Send the discovery frames that are due."""
        for port, message in in_steps(self.discovery.due(now), _FRAMES_PER_STEP):
            self._sender.send([message])
            self.discovery_frame_sent(port)

    def discovery_frame_sent(self, port: PortKey) -> None:
        """A discovery frame leaves by a port."""
        self._probes.frame_sent(port)
        self._sender.send(self._segments.probe(port, time.monotonic()))

    def segment_probe_arrived(self, frame: bytes, in_port: PortKey, now: float) -> None:
        """A frame like a probe of foreign segments has come in by a port."""
        self._segments.arrived(frame, in_port, now)
        self._check_segments(now)

    def _check_segments(self, now: float) -> None:
        changed = self._segments.update(now)
        for port in changed:
            self._sender.send(self._learning.forget_port(port))
        if changed:
            self._release_paths(lambda end: end in changed)
            self.topology.touch()

    def discovery_frame(self, data: bytes, in_port: PortKey, now: float) -> None:
        """An LLDP frame has arrived at a port."""
        link = self.discovery.received(data, in_port, now)
        if link is not None:
            self._link_found(*link)

    def link_seen(self, source: PortKey, target: PortKey, now: float) -> None:
        """A genuine discovery frame has come through a link."""
        if self.topology.lldp_seen(source, target, now) is Sight.NEW:
            self._link_found(source, target)

    def _link_found(self, *ports: PortKey) -> None:
        for port in ports:
            # Hosts that were learned there are behind another switch.
            self._sender.send(self._learning.forget_port(port))

    def request_meter_counters(self) -> None:
        """Ask the bridges how many copies their meters have dropped."""
        self._sender.send(in_steps(self.copy_meters.requests(), _METERS_PER_STEP))

    def _forget_changed_ports(self) -> None:
        """Forget once more who is behind ports whose settings have changed, when their bridges have the new
        rules: until then frames came in with the tags of the former VLAN, and their hosts were learned there.
        """
        ports, self._changed_ports = self._changed_ports, set()
        bridges = [self.bridges[dpid] for dpid in {port.dpid for port in ports} if dpid in self.bridges]

        def forget() -> None:
            messages = [each for port in sorted(ports) for each in self._learning.forget_port(port)]
            if messages:
                self._sender.send(messages)
                self.topology.touch()  # their VLANs may need no rules any more

        if ports:
            self._sender.after_barriers(bridges, forget)

    # Paths

    @property
    def stale(self) -> bool:
        """Whether the network has changed since :meth:`refresh`."""
        return self.topology.version != self._routed_version

    def refresh(self) -> list[Moved]:
        """Compute the routes of a changed network and install them. Returns the connections that got another
        path.
        """
        # Bridges that no link joined, and that one joins now, may have a port each into one segment.
        self._check_segments(time.monotonic())
        self._routed_version = self.topology.version
        if self.logical_ports.has_bonds:
            self._release_paths(lambda end: self.logical_ports.exit(end) != end)
        routes = Routes(self.topology.graph(), self.topology.edge_switches(), self.paths.routes)
        moved, pinned = self.paths.reroute(routes)
        for assigned in pinned:
            self._sender.send(self._pinning.repin(assigned))
        self._forwarding.install(self.topology, routes, self.hosts)
        self._forget_changed_ports()
        for old, new in moved:
            self._log.info("flow %s: now by %s, was by %s", new.key, new.text, old.text)
            self.repins += 1
            self._sender.send(self._pinning.move(old, new))
        # After the rules: floods reach the new ports by now, so that what follows the answer arrives as well.
        self._sender.send(self._learning.repeat_arp_requests(self._new_host_ports))
        self._new_host_ports.clear()
        if self.topology.settled:
            self._learning.all_ports_decided()
        return moved

    def _release_paths(self, has_changed: Callable[[PortKey], bool]) -> None:
        """Connections with such a port at one end follow the rules by destination."""
        for path in self.paths:
            if has_changed(path.source) or has_changed(path.target):
                self._sender.send(self._pinning.release(path.key, closed=False))

    def _release_host(self, host: Host, before: PortKey) -> list[Outgoing]:
        """A host has moved away from a port: release its connections that end there."""

        def ends_there(path: Assigned) -> bool:
            both = ((path.source, path.key.src), (path.target, path.key.dst))
            return any(port == before and address in host.addresses for port, address in both)

        found = [path.key for path in self.paths if path.key.vlan == host.vlan and ends_there(path)]
        return [message for key in found for message in self._pinning.release(key, closed=False)]

    def assign_path(self, key: FlowKey, in_port: PortKey, target_mac: str) -> Assigned | None:
        """Assign a path to a connection whose segment came in by a port, and pin it if it is new. None if the
        other end is not known or not reachable.
        """
        target = self.hosts.by_mac(target_mac, key.vlan)
        if target is None or self.topology.role(in_port) is PortRole.LINK:
            return None
        exit_port = self.logical_ports.exit(target.port)
        found, messages = self._pinning.assign(key, in_port, exit_port)
        self._sender.send(messages)
        return found

    def release_path(self, key: FlowKey, closed: bool) -> Assigned | None:
        """A connection is over; ``closed``: by FINs or RST, see :meth:`PathPinning.release`. Returns the path
        that it had.
        """
        known = self.paths.get(key)
        self._sender.send(self._pinning.release(key, closed))
        return known

    def restore_path(self, known: Assigned) -> Assigned | None:
        """A connection whose path was released is not over: see :meth:`PathTable.restore`. Its rules are
        installed again, because the FIN or RST has shortened their timeout.
        """
        found = self.paths.restore(known)
        if found is not None:
            self._sender.send(self._pinning.pin(found))
        return found

    def bridges_on(self, path: Assigned) -> list[Datapath]:
        """The connected bridges that a path passes."""
        found = (self.bridges.get(port.dpid) for port in path.path.forward)
        return [bridge for bridge in found if bridge is not None]

    # Hosts and frames

    def arrival(self, port: PortKey) -> tuple[PortKey, int] | None:
        """Where a frame counts as arrived that came in by a port, and its VLAN if it has no tag. None: the
        port is not used.
        """
        if self.topology.role(port) is PortRole.LINK:
            return port, 0
        return self.logical_ports.arrival(port)

    def carries(self, port: PortKey, vlan: int) -> bool:
        """Whether frames of a VLAN may come in by a port. Its rules drop others, but not before they are
        installed.
        """
        return self.logical_ports.carries(port, vlan) or self.topology.role(port) is PortRole.LINK

    def host_seen(self, datapath: Datapath, frame: parse.Frame, in_port: PortKey, now: float) -> None:
        """A frame came in by a port at which its source address is not known."""
        self._sender.send(self._learning.frame_from_unknown(datapath, frame, in_port, now))

    def host_silent(self, port: PortKey, mac: str, vlan: int = 0) -> None:
        """The rule of a host has timed out."""
        self._sender.send(self._learning.silent(port, mac, vlan))

    def decide_claims(self, now: float) -> None:
        """Ask the hosts whose addresses others claim, and believe claims that nobody refutes."""
        self._sender.send(self._learning.decide_claims(now))
        for datapath, read in self.claims.unread(now):
            # A bridge replies to a barrier when it has taken what was sent before, and sends the reply behind
            # the answers that it has passed on before.
            self._sender.after_barriers([datapath], read, math.inf)

    def answer_arp(
        self, datapath: Datapath, frame: parse.Frame, in_port: PortKey, data: bytes, now: float
    ) -> None:
        """A broadcast ARP frame came in, or an ARP frame for the controller."""
        self._sender.send(self._learning.arp_request(datapath, frame, in_port, data, now))

    def forward_held(
        self, datapath: Datapath, data: bytes, in_port: PortKey, key: FlowKey | None, path: Assigned | None
    ) -> None:
        """Send a held SYN along its path; without one, flood it as its bridge does with unknown addresses, if
        its port is decided.
        """
        vlan = key.vlan if key else 0
        if path is not None:
            first = path.path.forward[0]
            leaves = self.logical_ports.exit_to(first, vlan) if first == path.target else first.port
            ports: Iterable[int] = [leaves]
        elif self.topology.waits_at(in_port):
            return
        else:
            bucket = self.paths.routes.bucket(key) if key else 0
            flooded = self._forwarding.flood_ports(datapath.id, bucket, vlan)
            ports = [port for port in flooded if port % UNTAGGED != in_port.port]
        out = pipeline.packet_out(datapath, data, in_port.port, *split(ports))
        self._sender.send([(datapath, out)])

    def pause_holds(self, paused: bool) -> None:
        """Hold no SYNs for now, or hold them again."""
        self._sender.send(self._hold_rules.pause(paused))

    def inject(self, port: PortKey, frames: Iterable[bytes]) -> bool:
        """Let frames enter a bridge by a port, through all tables. Returns whether it is connected."""
        bridge = self.bridges.get(port.dpid)
        if bridge is None:
            return False
        out = [ofp.OFPP_TABLE]
        self._sender.send((bridge, pipeline.packet_out(bridge, each, port.port, out)) for each in frames)
        return True

    # Time

    def tick(self, now: float) -> None:
        """Do what is due at this time: confirm discovery frames, find silent links, decide the roles of
        ports, replace rules of an earlier controller, renew hold rules, and end the waits for barrier
        replies.
        """
        self._probes.confirm()
        for source, target in self.topology.lose_silent_links(now):
            self._log.warning("link %s -> %s: lost, no discovery frame comes through it", source, target)
        self._new_host_ports += self.topology.decide(now)
        if self._take_over.due(now) and self._forwarding.take_over():
            self._routed_version = _NEVER
            self._sender.send(self._pinning.unpin_earlier())
        self._check_segments(now)
        self._take_over.log_missing_settings(now)
        self._forwarding.confirm_hosts()
        self.barriers.expire(now)
        self._sender.send(self._hold_rules.renew(now))

    def after_barriers(
        self, datapaths: Iterable[Datapath], action: Callable[[], None], timeout: float | None = None
    ) -> None:
        """Run ``action`` when these switches have processed what was sent to them, see :class:`Sender`."""
        self._sender.after_barriers(datapaths, action, timeout)
