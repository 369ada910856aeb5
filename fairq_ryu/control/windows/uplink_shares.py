"""The parts of uplinks that the agents behind them have, by their active flows. Only the controller sees all
of them.

Each part is leased: when the controller is gone, every port has an equal part again, by the agents' own
configuration. So a port that is not there, or whose agent is not connected, is taken to have that, or what it
was leased last until the lease has ended.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from fairq_ryu.channel import far_queues
from fairq_ryu.control.agents.agent_link import AgentLink
from fairq_ryu.far_queue import FAR, is_far
from fairq_ryu.uplink import FLOOR, Member, Uplink, divide

log = logging.getLogger(__name__)

# A lease is renewed after this part of it.
_RENEW = 0.45
# Parts are leased anew when one has moved by this part of an equal one, so that the queues behind them rest.
_STEADY = 0.05
_Found = Mapping[Member, tuple[AgentLink, int]]


class UplinkShares:
    """The uplinks of the configuration. Times in seconds; ``lease``: how long a part lasts."""

    def __init__(self, uplinks: Iterable[Uplink], links: Mapping[int, AgentLink], lease: int) -> None:
        self._uplinks, self._links, self._lease = tuple(uplinks), links, lease
        self._parts: dict[Member, int] = {}  # by the last division
        self._leased: dict[Member, int] = {}
        self._ends: dict[Member, float] = {}
        self._sent: dict[int, tuple[AgentLink, Mapping[str, int], float]] = {}
        self._doubtful: frozenset[Member] = frozenset()

    def uplink_of(self, link: AgentLink, port: str) -> str | None:
        """The name of the uplink that an interface is behind; None: it is behind none."""
        bridge, dpid = link.modes.bridge, link.dpid
        for uplink in self._uplinks:
            if any(each.port == port and each.is_at(bridge, dpid) for each in uplink.members):
                return uplink.name
        return None

    def leased(self, dpid: int, port: str) -> int | None:
        """The rate that was leased last to the far queue of an interface, bytes per second; None: none is."""
        link, rates, _ = self._sent.get(dpid, (None, {}, 0.0))
        return rates.get(port) if link is not None and self._links.get(dpid) is link else None

    def tick(self, now: float) -> None:
        """Divide the uplinks anew, and send what has changed or is to be renewed. To be called a few times a
        second.
        """
        if not self._uplinks:
            return
        found = self._present()
        wanted: dict[int, dict[str, int]] = {}
        for uplink in self._uplinks:
            for member, part in self._to_lease(uplink, self._divided(uplink, found, now)).items():
                wanted.setdefault(found[member][0].dpid, {})[member.port] = part
        for dpid, rates in wanted.items():
            link = self._links[dpid]
            if self._is_due(link, rates, now):
                link.send(
                    [far_queues.lease_far_rates(link.datapath, far_queues.RateLease(self._lease, rates))]
                )
                self._sent[dpid] = link, rates, now
        for member, (link, _) in found.items():
            self._ends[member] = self._sent[link.dpid][2] + self._lease

    def _to_lease(self, uplink: Uplink, parts: dict[Member, int]) -> dict[Member, int]:
        """These parts, or all as they are leased now."""
        self._parts.update(parts)
        leased = {member: self._leased[member] for member in parts if member in self._leased}
        steady = leased.keys() == parts.keys() and sum(leased.values()) == sum(parts.values())
        most = _STEADY * uplink.equal_rate
        if steady and all(abs(parts[member] - leased[member]) <= most for member in parts):
            return leased
        self._leased.update(parts)
        return parts

    def _is_due(self, link: AgentLink, rates: Mapping[str, int], now: float) -> bool:
        known, sent, at = self._sent.get(link.dpid, (None, {}, 0.0))
        return known is not link or sent != rates or now - at >= _RENEW * self._lease

    def _divided(self, uplink: Uplink, found: _Found, now: float) -> dict[Member, int]:
        """The parts of those that are there, by what the others leave."""
        there = {member: found[member][1] for member in uplink.members if member in found}
        away = [member for member in uplink.members if member not in found]
        left = uplink.rate - sum(self._reserved(uplink, member, now) for member in away)
        least = int(FLOOR * uplink.equal_rate) * len(there)
        return divide(
            max(left, least), there, {each: self._parts.get(each, uplink.equal_rate) for each in there}
        )

    def _reserved(self, uplink: Uplink, member: Member, now: float) -> int:
        if now >= self._ends.get(member, now):
            self._parts.pop(member, None)
            self._leased.pop(member, None)
        return max(self._leased.get(member, 0), uplink.equal_rate)

    def _present(self) -> dict[Member, tuple[AgentLink, int]]:
        """The ports whose far queues have been read, with their agents and their active flows."""
        found: dict[Member, tuple[AgentLink, int]] = {}
        doubtful = set()
        for link in self._links.values():
            active = {
                link.name(number - FAR): port.depth.active
                for number, port in link.ports.items()
                if is_far(number) and port.depth is not None
            }
            for member in (each for uplink in self._uplinks for each in uplink.members):
                if member.port in active and member.is_at(link.modes.bridge, link.dpid):
                    if member in found:
                        doubtful.add(member)
                    found[member] = link, active[member.port]
        for member in doubtful:
            del found[member]
            if member not in self._doubtful:
                log.warning(
                    "uplink port %s/%s: several bridges have this name: write the dpid of the one meant",
                    *member,
                )
        self._doubtful = frozenset(doubtful)
        return found
