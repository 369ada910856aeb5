"""What requests have changed in the far queues of agents, besides what their configuration has.

An agent is told all of it whenever it connects: after a restart it knows its configuration only.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairq_ryu.channel.far_queues import Told
from fairq_ryu.control.agents.agent_far_queues import AgentFarQueues
from fairq_ryu.control.agents.agent_link import AgentLink
from fairq_ryu.control.windows.part import WindowPart
from fairq_ryu.far_queue import FarQueue, is_far


class FarOrders(WindowPart):
    """The changes of all bridges."""

    def __init__(self, links: Mapping[int, AgentLink]) -> None:
        self._links = links
        self._told: dict[int, Told] = {}
        self._agents: dict[int, AgentFarQueues] = {}  # of the last connection of each

    def of(self, dpid: int) -> Told:
        """The changes of a bridge, by interface."""
        return self._told.get(dpid, {})

    def change(self, link: AgentLink, port: str, queue: FarQueue | None) -> int:
        """Let a port have this far queue, or none (None). Returns the number of the request that acknowledges
        it (:mod:`~fairq_ryu.control.agents.agent_far_queues`). Raises ValueError if there are too many.
        """
        return self._tell(link, {**self.of(link.dpid), port: queue})

    def forget(self, link: AgentLink, port: str) -> int:
        """Let a port have the far queue of the agent's configuration, or none. As :meth:`change`."""
        return self._tell(link, {name: queue for name, queue in self.of(link.dpid).items() if name != port})

    def _tell(self, link: AgentLink, told: Told) -> int:
        messages = link.far_queues.tell(told)
        self._told[link.dpid] = told
        link.send(messages)
        return link.far_queues.asked

    def undo(self, dpid: int, before: Told) -> None:
        """The agent has refused the last change: it has what it had before."""
        self._told[dpid] = before

    def replace(self, dpid: int, told: Told) -> None:
        """A bridge has these changes from now on, which its agent may have been told by another controller,
        or by :meth:`change`.
        """
        if told == self.of(dpid):
            return
        self._told[dpid] = told
        link = self._links.get(dpid)
        if link is not None:
            link.send(link.far_queues.tell(told))

    def agent_connected(self, dpid: int) -> None:
        """An agent of an earlier controller, or of an earlier connection, may have been told otherwise."""
        link, former = self._links[dpid], self._agents.get(dpid)
        self._agents[dpid] = link.far_queues
        if former is not None:
            link.far_queues.accepted = former.accepted
        link.send(link.far_queues.tell(self.of(dpid)))

    def switches(self) -> set[int]:
        """The bridges of whose agents anything is kept; not those of requests, which stay."""
        return set(self._agents)

    def forget_switch(self, dpid: int) -> None:
        """The agent of a bridge has gone, and is not expected back."""
        self._agents.pop(dpid, None)

    def port_changed(self, link: AgentLink, number: int) -> None:
        """A port of an agent was added or removed; if it is a far queue, ask which there are."""
        if is_far(number):
            link.send(link.far_queues.request())
