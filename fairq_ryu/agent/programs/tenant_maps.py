"""The tenants of the window program: whose hosts are whose, weights and priorities, and what it has counted.

The programs may run while a table is written; every mixture of two tables grants windows that lie between
one segment and the pool. Flows look their tenant up again when the number of the table changes.
"""

from __future__ import annotations

import ctypes
import logging
import time
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence, Set
from ctypes import c_uint32
from typing import Any, NamedTuple

import numpy as np

from fairq_ryu.agent import layout
from fairq_ryu.agent.libbpf import BpfObject, Map
from fairq_ryu.agent.programs.flow_key import flow_key
from fairq_ryu.channel.flow_priorities import FlowPriority
from fairq_ryu.channel.tenants import SetTenants
from fairq_ryu.tenants import Network

log = logging.getLogger(__name__)

_TENANTS = layout.CONSTANTS["FQ_TENANTS"]
_OF_DSCP = layout.CONSTANTS["FQ_PRIORITY_OF_DSCP"]
# Of the number of a table, beside the tenant in fq_dir.owner.
_NUMBERS = 0xFFFFFF
_MOST_ANNOUNCED = layout.CONSTANTS["FQ_MOST_ANNOUNCED"]
# Of about a millisecond: tables and priorities change more seldom.
_CLOCK_SHIFT = 20
# A tenant without flows at a port for so long makes room for others, if that is needed; and how often it is.
_IDLE_NS = 60 * 10**9


class TenantCounts(NamedTuple):
    """An ``fq_tenant_port``, and the flows that it counts now."""

    tenant: int
    flows: int
    state: Any


def owner_key(network: Network) -> Any:
    """The key of a network in the map of owners."""
    key = layout.fq_owner_key(bits=8 + network.prefixlen, family=network.version)
    packed = network.network_address.packed
    key.addr[: len(packed)] = packed
    return key


class TenantMaps:
    """The maps of the tenants of an agent. Slots are those of ports and far queues."""

    def __init__(self, loaded: BpfObject, bucket_ns: int) -> None:
        self._owners = loaded.map("tenant_owners", layout.fq_owner_key, c_uint32)
        self._tenants = loaded.map("tenants", c_uint32, layout.fq_tenant)
        self._priorities = loaded.map("priorities", c_uint32, c_uint32)
        self._announced = loaded.map("announced_priorities", layout.fq_flow_key, c_uint32)
        self._ports = loaded.map("tenant_ports", layout.fq_tenant_key, layout.fq_tenant_port)
        self.port_tenants = loaded.map("port_tenants", c_uint32, layout.fq_port_tenants)
        self._bucket_ns = bucket_ns
        self._told: dict[Hashable, dict[bytes, None]] = {}  # the flows with priorities, by who has set them
        self._table: SetTenants | None = None
        self._counted_by: SetTenants | None = None  # the table that the programs have counted by
        self._gone: set[int] = set()  # the numbers whose counts are to be removed
        # By IP version, the lengths of prefixes, the longest first; and by these and its bits, each tenant.
        self._lengths: dict[int, list[int]] = {}
        self._by_network: dict[tuple[int, int, int], int] = {}
        self.number = 0
        """Of the table, as the programs know it; 0: there was none yet."""
        self.expires_ns = 0
        self.left_out = 0
        """Handshakes and ACKs of tenants for which there was no room at their ports."""
        self._counted = 0  # of these, by the slots that there are now
        self._sweep_ns = 0

    @property
    def in_force(self) -> int:
        """The controller's number of the table whose lease lives; 0: there is none."""
        live = self._table is not None and time.monotonic_ns() < self.expires_ns
        return self._table.number if live and self._table is not None else 0

    def set(self, wanted: SetTenants, now_ns: int) -> None:
        """Write a table, or renew its lease: the caller writes ``number`` and ``expires_ns`` then. Raises
        :class:`BpfError`; the table before ends then.
        """
        before = self._table
        self.expires_ns = 0
        if before is None or _content(before) != _content(wanted):
            self._table = None
            self._write(wanted)
            self._look_again()
            self._gone |= gone_tenants(self._counted_by, wanted)
            self._counted_by = wanted
        if self._table is None:
            self._by_network = {_prefix(network): tenant for network, tenant in wanted.owners.items()}
            lengths = {(version, bits) for version, bits, _ in self._by_network}
            self._lengths = {
                family: sorted((bits for version, bits in lengths if version == family), reverse=True)
                for family in (4, 6)
            }
        self._table = wanted
        self.expires_ns = now_ns + wanted.lease_ms * 1_000_000

    def remove_gone(self) -> None:
        """Remove what was counted for tenants whose numbers are free now, or another's. To be called when the
        programs know the table, because they would count by the one before again. A flow that leaves its
        tenant then may take a flow of the next one out of the counts of one time bucket. Raises
        :class:`BpfError`.
        """
        if not self._gone:
            return
        keys = self._ports.keys()
        self._ports.delete_all(b"".join(bytes(key) for key in keys if key.tenant in self._gone))
        self._gone.clear()

    def set_priorities(self, source: Hashable, wanted: Sequence[FlowPriority]) -> None:
        """Set or remove the priorities of flows, or all that this source has set if none is named; the caller
        writes ``number`` then. Raises :class:`BpfError`.
        """
        own = self._told.setdefault(source, {})
        try:
            for raw in () if wanted else list(own):
                self._announced.delete(layout.fq_flow_key.from_buffer_copy(raw))
                del own[raw]
            for flow, priority in wanted:
                key = flow_key(flow, directed=True)
                own.pop(bytes(key), None)
                if priority is None:
                    self._announced.delete(key)
                    continue
                self._announced.set(key, c_uint32(priority))
                own[bytes(key)] = None
                if len(own) > _MOST_ANNOUNCED:  # the map has forgotten it
                    del own[next(iter(own))]
        finally:
            self._look_again()

    def _look_again(self) -> None:
        """Flows look up tenant and priority with their next ACK. The first number is from the clock: flows
        that are taken over have looked up theirs in a table of the agent before.
        """
        self.number = (self.number or time.monotonic_ns() >> _CLOCK_SHIFT) % _NUMBERS + 1

    def _write(self, wanted: SetTenants) -> None:
        for number in range(_TENANTS):
            weight = wanted.weights.get(number, 1 if number == 0 else 0)
            self._tenants.set(c_uint32(number), layout.fq_tenant(weight=weight))
        owners = {bytes(owner_key(network)): tenant for network, tenant in wanted.owners.items()}
        _replace(self._owners, layout.fq_owner_key, owners)
        by_key = dict(wanted.priorities.ports)
        by_key |= {_OF_DSCP | dscp: priority for dscp, priority in wanted.priorities.dscp.items()}
        _replace(self._priorities, c_uint32, {bytes(c_uint32(key)): each for key, each in by_key.items()})

    def owner(self, family: int, address: bytes) -> tuple[int, int]:
        """The tenant of a host, and its weight; ``address`` as in the key of a flow."""
        if not self.in_force or self._table is None:
            return 0, 1
        width = 32 if family == 4 else 128
        number = int.from_bytes(address, "big")
        for bits in self._lengths[family]:
            tenant = self._by_network.get((family, bits, number >> (width - bits)))
            if tenant is not None:
                return tenant, self._table.weights[tenant]
        return 0, self._table.weights.get(0, 1)

    def clear(self, slot: int) -> None:
        """A slot is free: nothing is left of the tenants there."""
        found = self.port_tenants.get(c_uint32(slot))
        if found is None or not (found.present or found.left_out):
            return
        for tenant in _bits(found.present):
            self._ports.delete(layout.fq_tenant_key(slot=slot, tenant=tenant))
        self.port_tenants.set(c_uint32(slot), layout.fq_port_tenants())

    def sweep(self, now_ns: int) -> None:
        """If there was no room for a tenant at a port, remove those that have had no flows at theirs for a
        minute. To be called every second. Raises :class:`BpfError`.
        """
        if not self.number:
            return
        slots, at = layout.fq_port_tenants, layout.fq_port_tenants.left_out.offset
        counts = np.frombuffer(self.port_tenants.batches()[1], np.uint32)
        counted = int(counts[at // 4 :: ctypes.sizeof(slots) // 4].sum())
        new, self._counted = max(0, counted - self._counted), counted
        self.left_out += new
        if not new or now_ns < self._sweep_ns:
            return
        self._sweep_ns = now_ns + _IDLE_NS
        removed = self._remove_idle(now_ns)
        log.warning(
            "no room for more tenants at ports: %d handshakes and ACKs met no share of a tenant; %d tenants "
            "without flows were removed from ports. If this comes again, raise [agent] ports",
            new,
            removed,
        )

    def _remove_idle(self, now_ns: int) -> int:
        keys, values = self._ports.batches()
        width = ctypes.sizeof(layout.fq_tenant_key)
        states = (layout.fq_tenant_port * (len(keys) // width)).from_buffer_copy(values)
        idle = (
            keys[row * width : (row + 1) * width]
            for row, state in enumerate(states)
            if now_ns - state.last_ns >= _IDLE_NS
            and not layout.counted_flows(state.flows, now_ns, self._bucket_ns)
        )
        return self._ports.delete_all(b"".join(idle))

    def counts(self, slots: Iterable[int]) -> list[TenantCounts]:
        """What the tenants have in some slots, which are of one port."""
        found: dict[int, TenantCounts] = {}
        for slot in slots:
            here = self.port_tenants.get(c_uint32(slot))
            for tenant in _bits(here.present) if here is not None else ():
                state = self._ports.get(layout.fq_tenant_key(slot=slot, tenant=tenant))
                if state is None:
                    continue
                flows = layout.counted_flows(state.flows, time.monotonic_ns(), self._bucket_ns)
                before = found.get(tenant)
                if before is not None:
                    flows += before.flows
                    for name in ("acks", "bytes", "floored"):
                        setattr(state, name, getattr(state, name) + getattr(before.state, name))
                found[tenant] = TenantCounts(tenant, flows, state)
        return [found[tenant] for tenant in sorted(found)]

    def left_out_of(self, slots: Iterable[int]) -> int | None:
        """The handshakes and ACKs for whose tenants there was no room in some slots, which are of one port;
        None: no tenant has sent there.
        """
        there = [here for slot in slots if (here := self.port_tenants.get(c_uint32(slot))) is not None]
        left_out = sum(here.left_out for here in there)
        return left_out if left_out or any(here.present for here in there) else None


def gone_tenants(before: SetTenants | None, after: SetTenants) -> set[int]:
    """The numbers of tenants that the next table gives to nobody, or to another tenant: to one that has no
    host in common with the one before. A controller takes the number of a tenant that it has removed again.
    """
    if before is None:
        return set()
    had, has = _networks(before), _networks(after)
    return {
        number
        for number in before.weights
        if number and (number not in after.weights or not _overlap(had[number], has[number]))
    }


def _networks(table: SetTenants) -> defaultdict[int, set[tuple[int, int, int]]]:
    found: defaultdict[int, set[tuple[int, int, int]]] = defaultdict(set)
    for network, tenant in table.owners.items():
        found[tenant].add(_prefix(network))
    return found


def _overlap(some: Set[tuple[int, int, int]], others: Set[tuple[int, int, int]]) -> bool:
    """Whether a network of one side is, or contains, one of the other side."""
    return any(
        (version, bits, prefix >> (own - bits)) in wider
        for narrower, wider in ((some, others), (others, some))
        for bits in {bits for _, bits, _ in wider}
        for version, own, prefix in narrower
        if own >= bits
    )


def _prefix(network: Network) -> tuple[int, int, int]:
    bits = network.prefixlen
    return network.version, bits, int(network.network_address) >> (network.max_prefixlen - bits)


def _content(table: SetTenants) -> tuple[Any, ...]:
    return dict(table.weights), dict(table.owners), table.priorities


def _bits(present: int) -> Iterator[int]:
    return (each for each in range(_TENANTS) if present >> each & 1)


def _replace(table: Map, key: Any, wanted: dict[bytes, int]) -> None:
    """Let a map have these entries only. What stays is never missing meanwhile."""
    before = list(map(bytes, table.keys()))
    for each in before:
        if each not in wanted:
            table.delete(key.from_buffer_copy(each))
    for each, value in wanted.items():
        table.set(key.from_buffer_copy(each), c_uint32(value))
