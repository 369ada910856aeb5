"""The mode of each port: act, observe or disabled. The configuration and disables decide; nothing is sent.

    [modes] patterns -> first match, or else [fairq_ryu] mode -> act or observe
    a disable that covers the port                           -> disabled

What is not known yet counts as observe: the name of a port or of its bridge, if a pattern asks for it. On an
agent that cannot observe, or has not said that it can, an observed port gets no rules at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase

from fairq_ryu.config.loader import Config
from fairq_ryu.config.ports import BRIDGE, POLICY
from fairq_ryu.control.agents.agent_link import AgentLink
from fairq_ryu.control.windows.disables import Disables
from fairq_ryu.model import PortKey, PortMode, dpid_text, short_dpid


class PortModes:
    """The modes of all ports. ``policy_of`` returns the name of the policy that governs a port."""

    def __init__(
        self, config: Config, links: Mapping[int, AgentLink], policy_of: Callable[[PortKey], str]
    ) -> None:
        self._default, self._patterns = config.mode(), config.port_modes()
        self._links, self._policy_of = links, policy_of
        self.observes = config.observes
        """whether any port may be only observed"""
        self.disables = Disables()

    @property
    def all_act(self) -> bool:
        """Whether nothing but acting is configured, and nothing is disabled."""
        return not (self.observes or self.disables)

    def of(self, key: PortKey) -> PortMode:
        """The mode that a port should have."""
        if self.disables and self.disables.until(key, self.name(key)) is not None:
            return PortMode.DISABLED
        return self.configured(key)

    def in_force(self, key: PortKey) -> PortMode:
        """The mode that the port can have: a port that cannot be observed without acting has no rules."""
        mode = self.of(key)
        if mode is PortMode.OBSERVE:
            link = self._links.get(key.dpid)
            if link is None or not link.modes.known:
                return PortMode.DISABLED
        return mode

    def configured(self, key: PortKey) -> PortMode:
        """The mode of a port without disables."""
        if not self.observes:
            return PortMode.ACT
        for pattern, mode in self._patterns:
            matches = self._matches(pattern, key)
            if matches is None:
                return PortMode.OBSERVE
            if matches:
                return mode
        return self._default

    def disabled_for(self, key: PortKey, now: float) -> float | None:
        """The time until the disable of a port ends, seconds; None: it has none that ends by itself."""
        until = self.disables.until(key, self.name(key)) if self.disables else None
        return None if until is None or until == math.inf else round(max(0.0, until - now), 3)

    def name(self, key: PortKey) -> str:
        """The name of a port's interface; "" if it is not known."""
        link = self._links.get(key.dpid)
        return link.name(key.port) if link is not None else ""

    def bridge(self, dpid: int) -> str:
        """The name of a bridge; "" if it is not known."""
        link = self._links.get(dpid)
        return link.modes.bridge if link is not None else ""

    def _matches(self, pattern: str, key: PortKey) -> bool | None:
        """Whether a pattern is about a port; None: it is not known yet."""
        if pattern.startswith(POLICY):
            return self._policy_of(key) == pattern.removeprefix(POLICY)
        if pattern.startswith(BRIDGE):
            wanted, name = pattern.removeprefix(BRIDGE), self.bridge(key.dpid)
            names = (name, dpid_text(key.dpid), short_dpid(key.dpid))
            if any(fnmatchcase(each, wanted) for each in names if each):
                return True
            return False if name else None
        name = self.name(key)
        return fnmatchcase(name, pattern) if name or pattern == "*" else None
