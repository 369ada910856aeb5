"""What one agent knows of window laws; :mod:`.agent_laws` has what they share with queue laws."""

from __future__ import annotations

from fairq_ryu.channel import flowmod, window_law
from fairq_ryu.channel.window_law import LawCommand, LawState
from fairq_ryu.control.agents.agent_laws import AgentLaws
from fairq_ryu.control.agents.agent_port import AgentPort, PortLaw
from fairq_ryu.law_spec import LawSpec
from fairq_ryu.model import RuleChange, WindowRule
from fairq_ryu.openflow.pipeline import Message


class AgentWindowLaws(AgentLaws[LawSpec, LawState]):
    """The window laws of an agent, and the rules of ports that refer to them."""

    def ensure(self, rule: WindowRule) -> list[Message]:
        """The law that a rule refers to, if it refers to one that the agent does not have."""
        return [] if rule.law is None else self._ensure_law(rule.bytes, rule.law)

    def rule_message(self, change: RuleChange, rule: WindowRule, lease: int) -> Message:
        """The FlowMod of the rule of a port that refers to a law. It is renewed without a change as long as
        the law is in force. Packing it takes Ryu twenty times as long as sending it, so it is packed once.
        """
        law = self._of(self._ports[change.target.port.port])
        if law.rule != rule:
            law.rule, law.message = rule, flowmod.window_rule(self._datapath, change, lease)
        return law.message

    def takes_turns(self, port: int) -> bool:
        """Whether new connections of a port take turns: its law says so."""
        known = self._ports.get(port)
        return known is not None and _takes_turns(known.window_law.spec)

    @property
    def any_takes_turns(self) -> bool:
        """Whether new connections of any port take turns."""
        return any(_takes_turns(law.spec) for law in self._all())

    def _of(self, port: AgentPort) -> PortLaw[LawSpec, LawState]:
        return port.window_law

    def _set(self, command: LawCommand, port: int, spec: LawSpec | None = None) -> Message:
        return window_law.set_law(self._datapath, command, port, spec)

    def _request(self) -> Message:
        return window_law.request(self._datapath)


def _takes_turns(law: LawSpec | None) -> bool:
    return law is not None and bool(law.turns)
