"""The announced priorities of running flows, for the agents, whose ports share by them within a tenant.

All agents get all of them: a flow may move to another path. Without a policy of tenants nobody is told, and
everything is sent when one comes into force. Returns messages and sends nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fairq_ryu.channel.flow_priorities import FlowPriority
from fairq_ryu.control.agents.agent_link import AgentLink
from fairq_ryu.model import Announcement, FlowKey
from fairq_ryu.openflow.pipeline import Message
from fairq_ryu.policies.engine import PolicyEngine


class FlowPriorities:
    """The priorities that flows have by announcements."""

    def __init__(self, engine: PolicyEngine, links: Mapping[int, AgentLink]) -> None:
        self._engine, self._links = engine, links
        self._of: dict[FlowKey, int] = {}
        self._changed: dict[FlowKey, None] = {}
        self._told: dict[int, AgentLink] = {}

    def changed(self, flow: FlowKey, announced: Announcement | None) -> None:
        """A flow has this announcement now; None: it has none, or has ended."""
        priority = None if announced is None else announced.priority
        if priority == self._of.get(flow):
            return
        self._changed[flow] = None
        if priority is None:
            del self._of[flow]
        else:
            self._of[flow] = priority

    def due(self) -> Iterator[tuple[AgentLink, list[Message]]]:
        """What has changed, for each agent. For one that is new, everything, and that nothing else holds: it
        may have been told more before.
        """
        changed, self._changed = self._changed, {}
        if self._engine.priorities_ignored() is not None:
            self._told.clear()
            return
        known, self._told = self._told, dict(self._links)
        for dpid, link in self._told.items():
            is_new = known.get(dpid) is not link
            flows = self._of if is_new else changed
            told = link.set_priorities([FlowPriority(each, self._of.get(each)) for each in flows])
            if is_new or told:
                yield link, [*(link.forget_priorities() if is_new else ()), *told]
