"""SET_TENANTS: the tenants of an agent, their hosts and the priorities of flows; and the multipart about
what each tenant has at each port.

A SET_TENANTS is the whole table, with a number that the controller gives it and a lease. It is refused as a
whole if anything in it is wrong. One with the number of the table in force renews the lease. When the lease
ends, the laws share out their pools among flows, as without tenants. Everything is in network byte order.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fairq_ryu.channel import framing
from fairq_ryu.channel.dispatch import Incoming
from fairq_ryu.model import MOST_PRIORITY
from fairq_ryu.tenants import (
    MOST_DSCP,
    MOST_HOSTS,
    MOST_PRIORITIES,
    MOST_TENANTS,
    MOST_WEIGHT,
    Network,
    Priorities,
)

EXP_TYPE_SET_TENANTS = 22
EXP_TYPE_TENANT_STATES = 23
LEAST_LEASE_MS, MOST_LEASE_MS = 100, 600_000
LEFT_OUT = MOST_TENANTS + 1
"""In the place of a tenant: what is of no tenant, because there was no room for theirs at the port."""
ERROR_TENANTS = 17
"""Code (exp_type) of the OFPET_EXPERIMENTER error that answers a SET_TENANTS; its data says what is wrong."""
ERRORS = {ERROR_TENANTS: "wrong table of tenants"}

_HEAD = struct.Struct("!IIHHH2x")
_TENANT = struct.Struct("!B3xI")
_OWNER = struct.Struct("!BBB1x16s")
_PRIORITY = struct.Struct("!IHxx")
_REQUEST = struct.Struct("!I4x")
_STATE = struct.Struct("!IIIIQQQII")
HEAD_SIZE, TENANT_SIZE, OWNER_SIZE, PRIORITY_SIZE = _HEAD.size, _TENANT.size, _OWNER.size, _PRIORITY.size
STATE_SIZE = _STATE.size
_DSCP = 0x10000
_ADDRESS = {4: 4, 6: 16}


@dataclass(frozen=True, slots=True)
class SetTenants:
    """A table: ``number`` (from 1), lease in ms, weights of tenants by their numbers (1 to 63; 0, the tenant
    of other hosts, may be among them), owners of networks, and priorities.
    """

    number: int
    lease_ms: int
    weights: Mapping[int, int] = field(default_factory=dict)
    owners: Mapping[Network, int] = field(default_factory=dict)
    priorities: Priorities = field(default_factory=Priorities)

    def wrong(self) -> str | None:
        """What is wrong with it, in words; None: nothing."""
        if not self.number:
            return "a table has a number from 1"
        if not LEAST_LEASE_MS <= self.lease_ms <= MOST_LEASE_MS:
            return f"lease {self.lease_ms} ms is not between {LEAST_LEASE_MS} and {MOST_LEASE_MS}"
        if len(self.owners) > MOST_HOSTS:
            return f"{len(self.owners)} networks are more than {MOST_HOSTS}"
        for tenant, weight in self.weights.items():
            if tenant > MOST_TENANTS:
                return f"tenant {tenant} is above {MOST_TENANTS}"
            if not 1 <= weight <= MOST_WEIGHT:
                return f"weight {weight} of tenant {tenant} is not between 1 and {MOST_WEIGHT}"
        for network, tenant in self.owners.items():
            if tenant not in self.weights:
                return f"{network} belongs to tenant {tenant}, which is not in the table"
        return self._wrong_priorities()

    def _wrong_priorities(self) -> str | None:
        named = (("port", 65535, self.priorities.ports), ("DSCP", MOST_DSCP, self.priorities.dscp))
        if sum(len(found) for _, _, found in named) > MOST_PRIORITIES:
            return f"more than {MOST_PRIORITIES} priorities"
        for what, most, found in named:
            for number, priority in found.items():
                if number > most or not 1 <= priority <= MOST_PRIORITY:
                    return f"priority {priority} of {what} {number}"
        return None


class TenantState(NamedTuple):
    """What a tenant has at a port, in the order of the wire. ``table``: the number of the table in force (0:
    none); ``flows`` that use their windows or are new; ``acks`` that met a share of the tenant, ``bytes`` of
    payload that they have acknowledged, and those of them, ``floored``, at which one segment for each flow
    was more than the share; ``part_q16``: the share of its windows then, in 65536ths; ``pool`` then, bytes.
    Of :data:`LEFT_OUT`, only ``acks`` has a meaning: handshakes and ACKs that met no share for want of room.
    """

    table: int
    port: int
    tenant: int
    flows: int
    acks: int
    bytes: int
    floored: int
    part_q16: int
    pool: int


# The table


def set_tenants(datapath: Any, wanted: SetTenants) -> Any:
    """The message that sets the tenants of an agent."""
    return framing.command(datapath, EXP_TYPE_SET_TENANTS, encode(wanted))


def encode(wanted: SetTenants) -> bytes:
    """The body of a SET_TENANTS. Raises ValueError if it is wrong."""
    if wrong := wanted.wrong():
        raise ValueError(wrong)
    priorities = [*wanted.priorities.ports.items()]
    priorities += [(_DSCP | dscp, priority) for dscp, priority in wanted.priorities.dscp.items()]
    parts = [
        _HEAD.pack(wanted.number, wanted.lease_ms, len(wanted.weights), len(wanted.owners), len(priorities)),
        *(_TENANT.pack(*pair) for pair in wanted.weights.items()),
        *(
            _OWNER.pack(tenant, network.version, network.prefixlen, network.network_address.packed)
            for network, tenant in wanted.owners.items()
        ),
        *(_PRIORITY.pack(*pair) for pair in priorities),
    ]
    return b"".join(parts)


def decode(data: bytes) -> SetTenants:
    """The table, which is not checked beyond its form. Raises ValueError on a wrong length, on what is there
    twice, or on a network that is none.
    """
    if len(data) < HEAD_SIZE:
        raise ValueError(f"a SET_TENANTS has at least {HEAD_SIZE} bytes, not {len(data)}")
    number, lease, tenants, owners, priorities = _HEAD.unpack_from(data)
    size = HEAD_SIZE + tenants * TENANT_SIZE + owners * OWNER_SIZE + priorities * PRIORITY_SIZE
    if len(data) != size:
        raise ValueError(f"this SET_TENANTS has {size} bytes by its counts, not {len(data)}")
    at = HEAD_SIZE
    weights = _once("tenant", [_TENANT.unpack_from(data, at + i * TENANT_SIZE) for i in range(tenants)])
    at += tenants * TENANT_SIZE
    found = [_owner(*_OWNER.unpack_from(data, at + i * OWNER_SIZE)) for i in range(owners)]
    at += owners * OWNER_SIZE
    by_key = _once(
        "priority", [_PRIORITY.unpack_from(data, at + i * PRIORITY_SIZE) for i in range(priorities)]
    )
    ports = {key: priority for key, priority in by_key.items() if key < _DSCP}
    dscp = {key ^ _DSCP: priority for key, priority in by_key.items() if key >= _DSCP}
    return SetTenants(number, lease, weights, _once("network", found), Priorities(ports, dscp))


def _owner(tenant: int, version: int, bits: int, packed: bytes) -> tuple[Network, int]:
    if version not in _ADDRESS:
        raise ValueError(f"a network of IP version {version}")
    address = ipaddress.ip_address(packed[: _ADDRESS[version]])
    return ipaddress.ip_network((address, bits)), tenant


def _once(what: str, pairs: Iterable[tuple[Any, int]]) -> dict[Any, int]:
    found: dict[Any, int] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"{what} {key} is there twice")
        found[key] = value
    return found


# What tenants have


def request(datapath: Any, port: int) -> Any:
    """The request for what tenants have at a port, or at all (``OFPP_ANY``)."""
    return framing.request(datapath, EXP_TYPE_TENANT_STATES, encode_request(port))


def encode_request(port: int) -> bytes:
    """The request's body."""
    return _REQUEST.pack(port)


def decode_request(data: bytes) -> int:
    """The requested port. Raises ValueError on a wrong length."""
    if len(data) != _REQUEST.size:
        raise ValueError(f"a request about tenants is {_REQUEST.size} bytes, not {len(data)}")
    return int(_REQUEST.unpack(data)[0])


def encode_reply(states: Iterable[TenantState]) -> bytes:
    """The reply's body."""
    return b"".join(_STATE.pack(*each) for each in states)


def decode_reply(data: bytes) -> list[TenantState]:
    """The records of a reply. Raises ValueError on a wrong length."""
    if len(data) % STATE_SIZE:
        raise ValueError(f"a reply about tenants is a multiple of {STATE_SIZE} bytes, not {len(data)}")
    return [TenantState._make(fields) for fields in _STATE.iter_unpack(data)]


SET = Incoming(EXP_TYPE_SET_TENANTS, "SET_TENANTS", decode)
REQUEST = Incoming(EXP_TYPE_TENANT_STATES, "request about tenants", decode_request)
REPLY = Incoming(EXP_TYPE_TENANT_STATES, "reply about tenants", decode_reply)
