"""What one agent knows of queue laws; :mod:`.agent_laws` has what they share with window laws."""

from __future__ import annotations

from fairq_ryu.channel import flowmod, queue_law
from fairq_ryu.channel.queue_law import QueueLawState
from fairq_ryu.channel.window_law import LawCommand
from fairq_ryu.control.agents.agent_laws import AgentLaws
from fairq_ryu.control.agents.agent_port import AgentPort, PortLaw
from fairq_ryu.openflow.pipeline import Message
from fairq_ryu.queue_law_spec import QueueLawSpec


class AgentQueueLaws(AgentLaws[QueueLawSpec, QueueLawState]):
    """The queue laws of an agent, and the rules of ports that refer to them."""

    def ensure(
        self, port: int, wanted: QueueLawSpec, lease: int, renew_after: float, now: float
    ) -> list[Message]:
        """Let a law judge the packets of a port: what the agent does not know, and the rule that renews the
        lease when ``renew_after`` seconds of it have passed.
        """
        messages = self._ensure_law(port, wanted)
        law = self._ports[port].queue_law
        if now - law.renewed_at >= renew_after:
            law.renewed_at = now
            if law.message is None:
                law.message = flowmod.queue_rule(self._datapath, port, port, lease)
            messages.append(law.message)
        return messages

    def _of(self, port: AgentPort) -> PortLaw[QueueLawSpec, QueueLawState]:
        return port.queue_law

    def _forget(self, law: PortLaw[QueueLawSpec, QueueLawState]) -> None:
        super()._forget(law)
        law.renewed_at = float("-inf")

    def _is_in_force(self, state: QueueLawState) -> bool:
        port = self._ports.get(state.port)
        return port is not None and port.queue_law.spec is not None

    def _set(self, command: LawCommand, port: int, spec: QueueLawSpec | None = None) -> Message:
        return queue_law.set_queue_law(self._datapath, command, port, spec)

    def _request(self) -> Message:
        return queue_law.request(self._datapath)
