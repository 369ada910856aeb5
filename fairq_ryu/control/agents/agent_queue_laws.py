"""What one agent knows of queue laws; :mod:`.agent_laws` has what they share with window laws."""

from __future__ import annotations

from typing import Any

from fairq_ryu.channel import flowmod, queue_law
from fairq_ryu.channel.queue_law import QueueLawState
from fairq_ryu.channel.window_law import LawCommand
from fairq_ryu.control.agents.agent_laws import AgentLaws
from fairq_ryu.queue_law_spec import QueueLawSpec


class AgentQueueLaws(AgentLaws[QueueLawSpec, QueueLawState]):
    """The queue laws of an agent, and the rules of ports that refer to them. ``known``: whether the agent has
    queue laws; False: it is of an earlier version.
    """

    def __init__(self, datapath: Any) -> None:
        super().__init__(datapath)
        self.known = True
        self._renewed: dict[int, float] = {}
        self._rules: dict[int, Any] = {}  # packed messages

    def ensure(self, port: int, wanted: QueueLawSpec, lease: int, renew_after: float, now: float) -> None:
        """Let a law judge the packets of a port; sends what the agent does not know, and renews the lease
        when ``renew_after`` seconds of it have passed.
        """
        if not self.known:
            return
        self._ensure_law(port, wanted)
        if now - self._renewed.get(port, float("-inf")) >= renew_after:
            self._renewed[port] = now
            if port not in self._rules:
                self._rules[port] = flowmod.queue_rule(self._datapath, port, port, lease)
            self._send(self._rules[port])

    def port_removed(self, port: int) -> None:
        """The agent does not watch a port any more."""
        self.end(port)
        self._rules.pop(port, None)

    def unsupported(self) -> bool:
        """The agent has no queue laws. Returns whether that is new."""
        new, self.known = self.known, False
        self._forget_all()
        self._renewed.clear()
        return new

    def _forget(self, port: int) -> bool:
        self._renewed.pop(port, None)
        return super()._forget(port)

    def _is_in_force(self, state: QueueLawState) -> bool:
        return state.port in self._laws

    def _set(self, command: LawCommand, port: int, spec: QueueLawSpec | None = None) -> Any:
        return queue_law.set_queue_law(self._datapath, command, port, spec)

    def _request(self) -> Any:
        return queue_law.request(self._datapath)
