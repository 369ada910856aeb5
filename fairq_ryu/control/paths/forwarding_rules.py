"""Rules by destination and for floods: installed in all bridges, in confirmed steps.

Which rules a bridge should have, and the steps in which they change, are decided in
:mod:`fairq_ryu.fabric.topology.forwarding`. Here each change becomes a message, and each step waits for the
barrier replies of all bridges:

- The third step and the confirmation of hosts wait without limit: two bridges that flood along different
  trees may make a loop. Only a bridge that disconnects is no longer waited for.
- The second step waits for :data:`SILENT_TIME` at most: a connected bridge that never replies must not keep
  all others from learning hosts. After this time a frame may arrive twice, until that bridge has applied the
  first step. The limit is for bridges that do not work: one with much to do, as when all bridges of a machine
  connect at once, replies after a second and more, and gains nothing by rules that wait behind its barrier.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from fairq_ryu.control.sender import Outgoing, Sender
from fairq_ryu.fabric.topology.forwarding import (
    Deliver,
    Entry,
    Flood,
    Forwarding,
    ForwardingChange,
    FromLink,
    RuleKey,
    Tagged,
    Value,
    Waiting,
)
from fairq_ryu.fabric.topology.graph import Topology
from fairq_ryu.fabric.topology.hosts import HostTable
from fairq_ryu.fabric.topology.ports import LogicalPorts, split
from fairq_ryu.fabric.topology.routing import Routes
from fairq_ryu.model import PortKey
from fairq_ryu.openflow import paths, pipeline, vlans
from fairq_ryu.openflow.pipeline import Datapath

SILENT_TIME = 10.0
"""A bridge that has not confirmed the first step of a change after this time is not waited for before the
second one, seconds.
"""


class ForwardingRules:
    """The forwarding rules of all bridges."""

    def __init__(
        self, bridges: Mapping[int, Datapath], sender: Sender, ports: LogicalPorts | None = None
    ) -> None:
        self._bridges = bridges
        self._sender = sender
        self._forwarding = Forwarding(ports)
        self._update = 0  # number of the current change; the steps of an earlier one are dropped
        self._confirming_hosts = False

    def bridge_connected(self, dpid: int, installed: Mapping[RuleKey, Value] | None) -> None:
        """A bridge has connected. ``installed``: rules of an earlier controller that it keeps for now; None:
        its tables are empty.
        """
        self._forwarding.bridge_connected(dpid, installed)

    def bridge_disconnected(self, dpid: int) -> None:
        """A bridge has disconnected."""
        self._forwarding.bridge_disconnected(dpid)

    def take_over(self) -> bool:
        """The network is known: replace the rules of an earlier controller with the next update. Returns
        whether there are any.
        """
        return self._forwarding.take_over()

    def port_waits(self, port: PortKey) -> Iterator[Outgoing]:
        """Nothing is flooded from a port that has come up, from now on and not with the next update only."""
        return self._messages(self._forwarding.port_waits(port))

    def flood_ports(self, dpid: int, bucket: int, vlan: int = 0) -> Value:
        """The ports to which a bridge floods a bucket, in a VLAN."""
        return self._forwarding.flood_ports(dpid, bucket, vlan)

    def has_entry_rules(self, dpid: int) -> bool:
        """Whether a bridge has rules for ports that do not carry every VLAN."""
        return self._forwarding.has_entry_rules(dpid)

    def install(self, topology: Topology, routes: Routes, hosts: HostTable) -> None:
        """Send the first step towards the rules of a changed network, and the others when it is confirmed."""
        self._sender.send(self._messages(self._forwarding.update(topology, routes, hosts)))
        self._send_steps()

    def host_changed(
        self, routes: Routes, mac: str, port: PortKey | None, vlan: int = 0
    ) -> Iterator[Outgoing]:
        """A host is behind a port now; None: it is forgotten."""
        return self._messages(self._forwarding.host_changed(routes, mac, port, vlan))

    def confirm_hosts(self) -> None:
        """Send barriers to all bridges if some may not have the rules of the latest hosts yet. The replies
        have no time limit: hosts count as known only when every bridge has confirmed their rules.
        """
        change = self._forwarding.unconfirmed
        if change is None or self._confirming_hosts:
            return
        self._confirming_hosts = True

        def confirmed() -> None:
            self._confirming_hosts = False
            self._forwarding.hosts_confirmed(change)

        self._sender.after_barriers(list(self._bridges.values()), confirmed, math.inf)

    def _send_steps(self) -> None:
        """The second and the third step of a change, each when every bridge has confirmed the one before; the
        second at the latest after :data:`SILENT_TIME`.
        """
        self._update += 1
        update = self._update

        def bridges() -> list[Datapath]:
            # With only one bridge there are no rules of others to wait for.
            return list(self._bridges.values()) if len(self._bridges) > 1 else []

        def deliver() -> None:
            if update == self._update:  # otherwise a later change installs these rules
                self._sender.send(self._messages(self._forwarding.deliver()))

        def grow() -> None:
            if update == self._update:
                self._sender.send(self._messages(self._forwarding.grow()))

        def deliver_and_grow() -> None:
            deliver()
            if update == self._update and self._forwarding.unfinished:
                self._sender.after_barriers(bridges(), grow, math.inf)

        if self._forwarding.unfinished:
            self._sender.after_barriers(bridges(), deliver, SILENT_TIME)
            # Without a time limit: floods of two steps may loop. The second step is repeated, for the changes
            # since it was sent.
            self._sender.after_barriers(bridges(), deliver_and_grow, math.inf)

    def _messages(self, changes: Iterable[ForwardingChange]) -> Iterator[Outgoing]:
        """The messages for changes; bridges that are not connected are left out."""
        for change in changes:
            datapath, value = self._bridges.get(change.dpid), change.value
            if datapath is None:
                continue
            match change.key:
                case Flood(bucket, vlan):
                    tagged, bare = (None, []) if value is None else split(value)
                    yield datapath, pipeline.flood(datapath, bucket, tagged, bare, vlan)
                case Deliver(mac, bucket, mask, vlan):
                    tagged, bare = split(value or ())
                    to = next(iter([*tagged, *bare]), None)
                    yield datapath, pipeline.deliver(datapath, mac, bucket, mask, to, bool(bare), vlan)
                case FromLink(port):
                    yield datapath, pipeline.from_link(datapath, port, value is not None)
                case Waiting(port):
                    for message in pipeline.waiting(datapath, port, value):
                        yield datapath, message
                case Entry(port):
                    for message in vlans.entry(datapath, port, value, change.old):
                        yield datapath, message
                case Tagged():
                    for message in vlans.tagged(datapath, value[0] if value else None):
                        yield datapath, message
                case _:
                    for message in paths.ecmp_buckets(datapath, value[0] if value else 0):
                        yield datapath, message
