"""Tenants: whose hosts are whose, their weights, and the priorities of flows within a tenant.

A flow belongs to the tenant of the host that sends its data. Hosts without a tenant are together one more
tenant, :data:`OTHERS`, with weight 1. Pure: the configuration, the REST interface, the window channel and the
agent use these classes.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fairq_ryu.errors import UserError
from fairq_ryu.model import MOST_PRIORITY, PRIORITY

OTHERS = "others"
"""The tenant of all hosts that have none."""
MOST_TENANTS = 63
"""Beside :data:`OTHERS`."""
MOST_HOSTS = 2048
MOST_WEIGHT = 1000
MOST_PRIORITIES = 256
MOST_DSCP = 63

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,31}")


@dataclass(frozen=True, slots=True)
class Tenant:
    """``hosts``: networks; a single host is one of 32 or 128 bits."""

    name: str
    hosts: tuple[Network, ...]
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Priorities:
    """Priorities of flows by the TCP port of either side, else by the DSCP of their data; others have
    :data:`~fairq_ryu.model.PRIORITY`.
    """

    ports: Mapping[int, int] = field(default_factory=dict)
    dscp: Mapping[int, int] = field(default_factory=dict)


def read_tenant(where: str, name: str, hosts: Iterable[str], weight: object) -> Tenant:
    """A tenant from text. Raises :class:`UserError` that begins with ``where``."""
    if not _NAME.fullmatch(name) or name == OTHERS:
        raise UserError(
            f"{where}: {name!r} is not a name for a tenant",
            f"take up to 32 letters, digits, '-', '_' or '.', and not {OTHERS}",
        )
    if isinstance(weight, bool) or not isinstance(weight, int) or not 1 <= weight <= MOST_WEIGHT:
        raise UserError(f"{where}: weight {weight!r}", f"give a whole number from 1 to {MOST_WEIGHT}")
    networks = tuple(_network(where, text) for text in hosts)
    if not networks:
        raise UserError(f"{where}: the tenant has no hosts", "write hosts = 10.0.1.0/24 10.0.2.7")
    return Tenant(name, networks, weight)


def _network(where: str, text: str) -> Network:
    try:
        # A zone is an interface of this machine, and in no packet.
        if "%" in text:
            raise ValueError(f"{text!r} has a zone")
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise UserError(f"{where}: hosts: {error}", "write an address, or a network as 10.0.1.0/24") from None


def check(tenants: Iterable[Tenant]) -> None:
    """Conditions between tenants: their number, that of their networks, and that no network has two owners.
    A smaller network within a larger one is allowed: it is that of its own tenant. Raises
    :class:`UserError`.
    """
    owners: dict[Network, str] = {}
    names: set[str] = set()
    for tenant in tenants:
        names.add(tenant.name)
        for network in tenant.hosts:
            other = owners.setdefault(network, tenant.name)
            if other != tenant.name:
                raise UserError(
                    f"tenants {other} and {tenant.name} both have {network}", "take it out of one of them"
                )
    if len(names) > MOST_TENANTS:
        raise UserError(f"{len(names)} tenants", f"at most {MOST_TENANTS} are possible")
    if len(owners) > MOST_HOSTS:
        raise UserError(f"{len(owners)} networks of tenants", f"at most {MOST_HOSTS} are possible")


def read_priorities(where: str, text: str, most: int) -> dict[int, int]:
    """Pairs ``NUMBER:PRIORITY``, separated by spaces; numbers up to ``most``. Raises :class:`UserError`."""
    found: dict[int, int] = {}
    for word in text.split():
        pair = re.fullmatch(r"(\d{1,5}):(\d{1,4})", word)
        number, priority = (int(pair[1]), int(pair[2])) if pair else (-1, 0)
        if not 0 <= number <= most or not 1 <= priority <= MOST_PRIORITY:
            raise UserError(
                f"{where}: {word!r} is no pair of a number up to {most} and a priority",
                f"write NUMBER:PRIORITY, priorities from 1 to {MOST_PRIORITY}, {PRIORITY} is usual",
            )
        if number in found:
            raise UserError(f"{where}: {number} is there twice", "take one of them out")
        found[number] = priority
    if len(found) > MOST_PRIORITIES // 2:
        raise UserError(f"{where}: {len(found)} priorities", f"at most {MOST_PRIORITIES // 2} are possible")
    return found
