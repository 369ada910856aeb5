"""Copies of SYN, FIN and RST segments from agents, where the bridge sends none.

A bridge that is governed by paths copies these segments with rules of its own. For any other bridge its agent
is asked: it sees every segment where that leaves the bridge, whatever rules forward it. The requests are
leased and renewed; when the bridge joins the fabric, they are withdrawn. Returns messages and sends nothing.
Bounded: one entry an agent, removed when its connection has ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fairq_ryu.channel import segment_copies
from fairq_ryu.control.agents.agent_link import AgentLink
from fairq_ryu.control.sender import Outgoing, to_switch
from fairq_ryu.openflow.pipeline import Datapath

LEASE = 30
"""Seconds. Copies that nobody wants any more cost an agent nothing but this: it sends them to a connected
controller only."""
_RENEW_PART = 1 / 3


class AgentCopies:
    """``bridges``: those that copy segments themselves; ``links``: the agents."""

    def __init__(self, bridges: Mapping[int, Datapath], links: Mapping[int, AgentLink]) -> None:
        self._bridges = bridges
        self._links = links
        self._requested: dict[int, tuple[AgentLink, float]] = {}

    def renew(self, now: float) -> Iterator[Outgoing]:
        """The requests that are due, and the withdrawals. ``now`` in seconds."""
        for dpid in [dpid for dpid in self._requested if dpid not in self._links]:
            del self._requested[dpid]
        for dpid, link in list(self._links.items()):
            former, requested_at = self._requested.get(dpid, (None, 0.0))
            asked = former is link
            if dpid in self._bridges:
                if self._requested.pop(dpid, None) is not None and asked:
                    yield from to_switch(link.datapath, segment_copies.withdrawals(link.datapath))
            elif not (asked and now - requested_at < _RENEW_PART * LEASE):
                self._requested[dpid] = link, now
                yield from to_switch(link.datapath, segment_copies.requests(link.datapath, LEASE))
