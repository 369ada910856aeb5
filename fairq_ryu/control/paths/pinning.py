"""Pinned paths: exact rules for single connections, so that data and ACKs pass the same switches.

Which path a connection has is decided in :mod:`fairq_ryu.fabric.topology.paths`; here it becomes messages.
Nothing is sent here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fairq_ryu.control.sender import Outgoing
from fairq_ryu.fabric.topology.hosts import HostTable
from fairq_ryu.fabric.topology.paths import Assigned, PathTable
from fairq_ryu.fabric.topology.ports import LogicalPorts
from fairq_ryu.model import FlowKey, PortKey
from fairq_ryu.openflow import paths
from fairq_ryu.openflow.pipeline import Datapath


class PathPinning:
    """The rules of pinned connections. ``idle_timeout``: of these rules, seconds."""

    def __init__(
        self,
        bridges: Mapping[int, Datapath],
        hosts: HostTable,
        paths: PathTable,
        idle_timeout: int,
        logical_ports: LogicalPorts,
    ) -> None:
        self._bridges = bridges
        self._hosts = hosts
        self._paths = paths
        self._idle_timeout = idle_timeout
        self._logical_ports = logical_ports
        self._earlier: dict[int, list[FlowKey]] = {}  # pinned by an earlier controller, by bridge

    def assign(
        self, key: FlowKey, in_port: PortKey, target: PortKey
    ) -> tuple[Assigned | None, list[Outgoing]]:
        """Assign a path from ``in_port`` to ``target``, or find the assigned one. Returns it (None: there is
        no path) and the messages that pin it.
        """
        before = self._paths.get(key)
        if before is not None and (before.source, before.target) == (in_port, target):
            return before, []
        found = self._paths.assign(key, in_port, target)
        messages: list[Outgoing] = []
        if found is not None and found != before:
            if before is not None:
                messages += self.unpin(before, found)
            messages += self.pin(found)
        return found, messages

    def move(self, old: Assigned, new: Assigned) -> list[Outgoing]:
        """A connection gets another path."""
        return [*self.pin(new), *self.unpin(old, new)]

    def repin(self, assigned: Assigned) -> list[Outgoing]:
        """Pin a connection whose path stays, before the rules by destination may lead it elsewhere. If one of
        its ends has moved, it is released instead and follows the rules by destination.
        """
        ends = ((assigned.key.src, assigned.source), (assigned.key.dst, assigned.target))
        vlan = assigned.key.vlan
        hosts = ((self._hosts.by_ip(address, vlan), port) for address, port in ends)
        if all(host is None or host.port == port for host, port in hosts):
            return list(self.pin(assigned))
        self._paths.release(assigned.key)
        return []

    def release(self, key: FlowKey, closed: bool) -> list[Outgoing]:
        """A connection is over. If it was ``closed``, its FINs or RST have shortened the timeout of its
        rules; the rules of one that was never answered, or fell silent, are removed.
        """
        known = self._paths.release(key)
        return self.unpin(known) if known is not None and not closed else []

    def pin(self, assigned: Assigned, only: int | None = None) -> Iterator[Outgoing]:
        """Rules for both directions of a pinned connection; ``only``: in this bridge."""
        if not assigned.pinned:
            return
        path = assigned.path
        for key, ports in ((assigned.key, path.forward), (assigned.key.reversed, path.backward)):
            # From the last switch to the first: a segment that matches a rule on one switch finds the rules
            # on all later switches.
            for port in reversed(ports):
                datapath = self._bridges.get(port.dpid)
                if datapath is not None and only in (None, port.dpid):
                    reports = port.dpid == ports[0].dpid  # the timeout of the rule
                    untagged = self._logical_ports.settings(port).untagged
                    untag = bool(key.vlan) and port == ports[-1] and untagged == key.vlan
                    yield (
                        datapath,
                        paths.pin(datapath, key, port.port, self._idle_timeout, reports, untag),
                    )

    def unpin(self, old: Assigned, new: Assigned | None = None) -> list[Outgoing]:
        """Remove the rules of an old path that those of the new one have not replaced."""
        if not old.pinned:
            return []
        replaced = {port.dpid for port in new.path.forward} if new is not None and new.pinned else set()
        return [
            (datapath, paths.unpin(datapath, key))
            for dpid in {port.dpid for port in old.path.forward} - replaced
            if (datapath := self._bridges.get(dpid)) is not None
            for key in (old.key, old.key.reversed)
        ]

    # Of an earlier controller

    def keep_earlier(self, dpid: int, keys: list[FlowKey]) -> None:
        """A bridge has rules that an earlier controller has pinned connections with."""
        self._earlier[dpid] = keys

    def unpin_earlier(self) -> list[Outgoing]:
        """Connections that an earlier controller had pinned are forwarded by hash from now on; most keep
        their path. This controller does not track their pins, which would stay on a link that fails.
        """
        messages = [
            (datapath, paths.unpin(datapath, key))
            for dpid, keys in self._earlier.items()
            if (datapath := self._bridges.get(dpid)) is not None
            for key in keys
            if not ((path := self._paths.get(key)) and path.pinned)
        ]
        self._earlier.clear()
        return messages
