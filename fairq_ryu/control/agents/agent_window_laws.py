"""What one agent knows of window laws; :mod:`.agent_laws` has what they share with queue laws."""

from __future__ import annotations

from typing import Any

from fairq_ryu.channel import flowmod, window_law
from fairq_ryu.channel.window_law import LawCommand, LawState
from fairq_ryu.control.agents.agent_laws import AgentLaws
from fairq_ryu.law_spec import LawFlags, LawSpec
from fairq_ryu.model import RuleChange, WindowRule


class AgentWindowLaws(AgentLaws[LawSpec, LawState]):
    """The window laws of an agent, and the rules of ports that refer to them."""

    def __init__(self, datapath: Any) -> None:
        super().__init__(datapath)
        self._rules: dict[int, tuple[WindowRule, Any]] = {}  # packed messages, by port

    def ensure(self, rule: WindowRule) -> None:
        """Send the law that a rule refers to, if it refers to one that the agent does not have."""
        if rule.law is not None:
            self._ensure_law(rule.bytes, rule.law)

    def rule_message(self, change: RuleChange, rule: WindowRule, lease: int) -> Any:
        """The FlowMod of the rule of a port that refers to a law. It is renewed without a change as long as
        the law is in force. Packing it takes Ryu twenty times as long as sending it, so it is packed once.
        """
        port = change.target.port.port
        known = self._rules.get(port)
        if known is None or known[0] != rule:
            message = flowmod.window_rule(self._datapath, change, lease)
            known = self._rules[port] = rule, message
        return known[1]

    def port_removed(self, port: int) -> None:
        """The agent does not watch a port any more."""
        self._rules.pop(port, None)
        self.end(port)

    def unsupported(self) -> None:
        """The agent has no window laws."""
        self._forget_all()

    def takes_turns(self, port: int) -> bool:
        """Whether new connections of a port take turns: its law says so."""
        law = self._laws.get(port)
        return law is not None and LawFlags.TURNS in law.flags

    @property
    def any_takes_turns(self) -> bool:
        """Whether new connections of any port take turns."""
        return any(map(self.takes_turns, self._laws))

    def _set(self, command: LawCommand, port: int, spec: LawSpec | None = None) -> Any:
        return window_law.set_law(self._datapath, command, port, spec)

    def _request(self) -> Any:
        return window_law.request(self._datapath)
