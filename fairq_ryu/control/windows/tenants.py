"""The tenants at work: agents get the table and renewals of its lease, and report what each tenant has.

A change of the table makes a new one, with another number, which goes to all agents as a whole. What they
report is of the tenants by number; a tenant keeps its number as long as it exists, and the number of one that
has gone is taken again last. Returns messages and sends nothing. Times in seconds.

Fails open: when nobody renews the lease, laws share out their pools among flows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

from fairq_ryu.channel import tenants as channel
from fairq_ryu.channel.protocol import ofp
from fairq_ryu.channel.tenants import SetTenants, TenantState
from fairq_ryu.control.agents.agent_link import AgentLink
from fairq_ryu.model import PortKey
from fairq_ryu.openflow.pipeline import Message
from fairq_ryu.policies.engine import PolicyEngine
from fairq_ryu.tenants import MOST_TENANTS, OTHERS, Priorities, Tenant, check

# Seconds between two requests for what tenants have, which is for displays.
_LOOK_INTERVAL = 1.0
# What no agent has reported for so long, s, is not shown any more.
_FORGOTTEN_S = 5.0
# Goodput is measured over at least so long.
_LEAST_SPAN = 0.5
# A share that no ACK has found broken for so long holds again, s.
_HOLDS_AFTER_S = 5.0


class TenantShare(NamedTuple):
    """What a tenant has at a port: ``goodput`` in bytes/s over the last second or so, ``share`` of the port
    (0 to 1; 0: it sends nothing), ``pool`` in bytes, and the flows that use their windows. Counted since the
    agent began: ``bytes`` of payload, ``acks``, and those of them at which the least window broke the share.
    """

    goodput: float
    share: float
    pool: int
    flows: int
    bytes: int
    acks: int
    floored: int


@dataclass(slots=True)
class _Told:
    """What an agent was told last, and when; and when it was asked."""

    link: AgentLink
    number: int = 0
    at: float = float("-inf")
    asked_at: float = float("-inf")


@dataclass(slots=True)
class _Seen:
    state: TenantState
    bytes: int
    at: float
    goodput: float = 0.0
    broken_at: float | None = None
    """when an ACK was reported last that found the share broken, while it is broken"""


class TenantControl:
    """The tenants of one controller. ``lease`` in seconds. ``report_share`` is told when least windows begin
    to break the share of a tenant at a port (True), and when it holds again.
    """

    def __init__(
        self,
        configured: Sequence[Tenant],
        engine: PolicyEngine,
        links: Mapping[int, AgentLink],
        lease: int,
        report_share: Callable[[PortKey, str, bool], None] = lambda *_: None,
    ) -> None:
        self._engine, self._links, self._lease = engine, links, lease
        self._report_share = report_share
        self._tenants = {each.name: each for each in configured}
        self._numbers: dict[str, int] = {}
        self._freed: list[int] = []  # numbers, in the order in which they became free
        for name in self._tenants:
            self._number(name)
        self._table = SetTenants(0, 0)
        self._told: dict[int, _Told] = {}
        self._seen: dict[tuple[PortKey, int], _Seen] = {}

    def tenants(self) -> list[Tenant]:
        """All tenants, in the order of their names."""
        return [self._tenants[name] for name in sorted(self._tenants)]

    def put(self, tenant: Tenant) -> bool:
        """Add a tenant, or change it. Returns whether it is new. Raises :class:`UserError`, and changes
        nothing then.
        """
        wanted = {**self._tenants, tenant.name: tenant}
        check(wanted.values())
        new = tenant.name not in self._tenants
        self._tenants = wanted
        self._number(tenant.name)
        return new

    def remove(self, name: str) -> bool:
        """Remove a tenant: its hosts belong to the others. False if there is none of this name."""
        if self._tenants.pop(name, None) is None:
            return False
        number = self._numbers.pop(name)
        self._freed.append(number)
        self._seen = {key: seen for key, seen in self._seen.items() if key[1] != number}
        return True

    def _number(self, name: str) -> int:
        if name not in self._numbers:
            used = {*self._numbers.values(), *self._freed}
            unused = next((each for each in range(1, MOST_TENANTS + 1) if each not in used), None)
            self._numbers[name] = self._freed.pop(0) if unused is None else unused
        return self._numbers[name]

    # Agents

    def due(self, now: float) -> Iterator[tuple[AgentLink, list[Message]]]:
        """The tables, renewals and requests that are due, for each agent."""
        for dpid in [dpid for dpid in self._told if dpid not in self._links]:
            self._forget(dpid)
        # A port that has gone, and a policy without tenants, are reported no more.
        self._seen = {key: seen for key, seen in self._seen.items() if now - seen.at <= _FORGOTTEN_S}
        layers = [each for each in self._engine.choice.policies if getattr(each, "by_tenant", False)]
        if not layers:
            return
        self._make(getattr(layers[0], "priorities", Priorities()))
        for dpid, link in list(self._links.items()):
            told = self._told.get(dpid)
            if told is None or told.link is not link:
                self._forget(dpid)
                told = self._told[dpid] = _Told(link)
            messages: list[Message] = []
            if told.number != self._table.number or now - told.at >= self._lease / 4:
                told.number, told.at = self._table.number, now
                messages.append(channel.set_tenants(link.datapath, self._table))
            if now - told.asked_at >= _LOOK_INTERVAL:
                told.asked_at = now
                messages.append(channel.request(link.datapath, ofp.OFPP_ANY))
            if messages:
                yield link, messages

    def _make(self, priorities: Priorities) -> None:
        weights = {self._number(name): each.weight for name, each in self._tenants.items()}
        owners = {
            network: self._number(name) for name, each in self._tenants.items() for network in each.hosts
        }
        before = self._table
        if not before.number or (before.weights, before.owners, before.priorities) != (
            weights,
            owners,
            priorities,
        ):
            self._table = SetTenants(before.number + 1, self._lease * 1000, weights, owners, priorities)

    def _forget(self, dpid: int) -> None:
        self._told.pop(dpid, None)
        for each in [each for each in self._seen if each[0].dpid == dpid]:
            del self._seen[each]

    def reported(self, link: AgentLink, states: Sequence[TenantState], now: float) -> None:
        """An agent has reported what tenants have at its ports. Of an earlier table it is not used."""
        for state in states:
            if state.table != self._table.number:
                continue
            key = PortKey(link.dpid, state.port), state.tenant
            seen = self._seen.get(key)
            if seen is None or state.bytes < seen.bytes:
                # What an agent has counted before is no news.
                self._seen[key] = _Seen(state, state.bytes, now)
                continue
            self._watch_share(key, seen, state.floored > seen.state.floored, now)
            seen.state = state
            if now - seen.at >= _LEAST_SPAN:
                seen.goodput = (state.bytes - seen.bytes) / (now - seen.at)
                seen.bytes, seen.at = state.bytes, now

    def _watch_share(self, key: tuple[PortKey, int], seen: _Seen, grown: bool, now: float) -> None:
        began = grown and seen.broken_at is None
        if grown:
            seen.broken_at = now
        ended = seen.broken_at is not None and now - seen.broken_at >= _HOLDS_AFTER_S
        if ended:
            seen.broken_at = None
        if not began and not ended:
            return
        port, number = key
        names = {0: OTHERS, **{each: name for name, each in self._numbers.items()}}
        if number in names:
            self._report_share(port, names[number], began)

    # Displays

    def left_out(self) -> dict[PortKey, int]:
        """The handshakes and ACKs for whose tenants there was no room, by ports where tenants have sent."""
        return {
            port: seen.state.acks
            for (port, tenant), seen in sorted(self._seen.items(), key=itemgetter(0))
            if tenant == channel.LEFT_OUT
        }

    def shares(self, name: str) -> dict[PortKey, TenantShare]:
        """What a tenant, or :data:`OTHERS`, has at each port where it has sent."""
        number = 0 if name == OTHERS else self._numbers.get(name)
        return {
            port: TenantShare(
                seen.goodput,
                seen.state.part_q16 / 65536 if seen.state.flows else 0.0,
                seen.state.pool if seen.state.flows else 0,
                seen.state.flows,
                seen.state.bytes,
                seen.state.acks,
                seen.state.floored,
            )
            for (port, tenant), seen in sorted(self._seen.items())
            if tenant == number
        }
