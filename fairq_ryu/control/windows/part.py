"""Hooks that parts of the windows have in common: the window controller calls each of all parts, in order."""

from __future__ import annotations

from collections.abc import Iterable

from fairq_ryu.control.agents.agent_link import AgentLink
from fairq_ryu.model import PortKey, QueueSample
from fairq_ryu.openflow.pipeline import Message


class WindowPart:
    """A part; it has the hooks that it needs. Messages that a hook returns are for the agent that the event
    is of; the window controller sends them. ``now`` in seconds.
    """

    def agent_connected(self, dpid: int) -> None:
        """The agent of a bridge has connected: it has no rules and no laws."""

    def agent_disconnected(self, dpid: int) -> None:
        """The connection to the agent of a bridge has ended."""

    def queue_read(self, link: AgentLink, key: PortKey, sample: QueueSample, now: float) -> Iterable[Message]:
        """The governed queue of a port was read, and its policy has seen the sample."""
        return ()

    def policies_changed(self, ports: Iterable[PortKey]) -> None:
        """The policies of these ports may have changed."""

    def port_removed(self, key: PortKey) -> None:
        """An agent does not watch a port any more."""
