"""Whose the connections of a network namespace are: what the coupled controls are told, and what they say."""

from __future__ import annotations

import hashlib
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any

from fairq_ryu.agent.libbpf import BpfObject, Map
from fairq_ryu.experiments.hostcc import layout
from fairq_ryu.experiments.traffic.namespaces import entered

PRIORITY, MOST_PRIORITY = 100, 1000
"""A connection's part of its group is its priority over the sum of all."""
_SO_NETNS_COOKIE = 71
_NAMED = 1 << 63  # tenants with a name; the kernel's cookies are small
_FORGOTTEN_NS = 60 * 10**9


@dataclass(frozen=True, slots=True)
class Membership:
    """The connections of a network namespace: their tenant and their priority. ``shared``: all destinations
    are behind one bottleneck. ``ports``: other priorities, by the port of either end.
    """

    tenant: str
    priority: int = PRIORITY
    shared: bool = False
    ports: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Group:
    """Coupled connections: open ones, their window together in segments, and their loss events.
    ``destination`` is None where all destinations are one group.
    """

    destination: IPv4Address | IPv6Address | None
    flows: int
    window: float
    cuts: int


def tenant_number(name: str) -> int:
    """The number of a tenant in the kernel."""
    return _NAMED | int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")


def cookie(where: int | Path | None) -> int:
    """The number of a network namespace, which no other gets before the machine is booted again; ``where``
    as for `entered`. ``OSError`` if it cannot be entered.
    """
    with entered(where), socket.socket() as sock:
        return int.from_bytes(sock.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8), "little")


class Coupling:
    """The maps of a coupled control."""

    def __init__(self, members: Map, groups: Map) -> None:
        """``members`` and ``groups`` as :mod:`layout` has their structures."""
        self._members, self._groups = members, groups

    @classmethod
    def of(cls, loaded: BpfObject) -> Coupling:
        """Those of a loaded object. Raises :class:`~fairq_ryu.agent.libbpf.BpfError`."""
        return cls(
            loaded.map("members", layout.fq_cc_member_key, layout.fq_cc_member),
            loaded.map("groups", layout.fq_cc_group_key, layout.LockedGroup),
        )

    def enter(self, netns: int, member: Membership) -> None:
        """From now on, new connections of a network namespace (its `cookie`) are such, whatever a process
        that was killed has left. Raises :class:`~fairq_ryu.agent.libbpf.BpfError`.
        """
        self.withdraw(netns)
        tenant = tenant_number(member.tenant)
        for port, priority in {**member.ports, 0: member.priority}.items():
            value = layout.fq_cc_member(tenant, priority, int(member.shared))
            self._members.set(layout.fq_cc_member_key(netns, port, 0), value)

    def withdraw(self, netns: int) -> None:
        """New connections of this network namespace are of no named tenant again."""
        keys = list(self._members.keys())
        for key in keys:
            if key.netns == netns:
                self._members.delete(key)

    def groups(self, tenant: str) -> list[Group]:
        """The groups of a tenant, in no order."""
        number = tenant_number(tenant)
        return [_group(key, value.group) for key, value in self._all() if key.tenant == number]

    def sweep(self, now_ns: int | None = None) -> int:
        """Remove groups that were not used for a minute; a flow that is still open makes a new one when it
        sends. Returns how many. ``now_ns`` of the monotonic clock (None: now).
        """
        now_ns = time.monotonic_ns() if now_ns is None else now_ns
        old = [key for key, value in self._all() if value.group.used_ns + _FORGOTTEN_NS < now_ns]
        return sum(self._groups.delete(key) for key in old)

    def _all(self) -> Iterator[tuple[Any, Any]]:
        return self._groups.items()


def _group(key: Any, group: Any) -> Group:
    address = ip_address(bytes(key.destination))
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return Group((mapped or address) if int(address) else None, group.flows, group.window / 65536, group.cuts)
