"""Ports get other modes: first their rules end, then the agent learns the new mode, then come the new rules.

So no rule is ever in force in a mode that it was not sent for. A pause that ends in this way is ended by a
window update, as always; in observe mode nobody was paused, and nobody is woken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fairq_ryu.channel.port_mode import ACT, PortWindows
from fairq_ryu.control.agents.agent_link import AgentLink
from fairq_ryu.control.windows.loss_recovery import LossRecovery
from fairq_ryu.control.windows.port_modes import PortModes
from fairq_ryu.model import PortKey, RuleChange
from fairq_ryu.policies.engine import PolicyEngine


class ModeChanges:
    """``send`` sends rule changes to the agents they are for. ``now`` in seconds."""

    def __init__(
        self,
        modes: PortModes,
        engine: PolicyEngine,
        links: Mapping[int, AgentLink],
        recovery: LossRecovery,
        send: Callable[[list[RuleChange], float], Any],
    ) -> None:
        self._modes, self._engine, self._links, self._recovery = modes, engine, links, recovery
        self._send = send
        self._all_acted = True

    def apply(self, now: float) -> None:
        """The modes that ports should have may have changed."""
        all_acted, self._all_acted = self._all_acted, self._modes.all_act
        if all_acted and self._all_acted:
            return  # on most networks always, however many ports there are
        ended, changed = self._engine.modes_changed(now)
        self._send(ended, now)
        for key in changed:
            link = self._links.get(key.dpid)
            if link is not None:
                link.send(link.modes.ensure(key.port, self._engine.mode(key)))
                link.send(self._recovery.order(link, key, now))
        self._recovery.policies_changed(changed)
        self._send(self._engine.resumed(changed, now), now)
        # Ports without rules need no mode, but the status of the agent shows it.
        for dpid, link in list(self._links.items()):
            for number in link.named:
                link.send(link.modes.ensure(number, self._engine.mode(PortKey(dpid, number))))

    def reported(self, link: AgentLink, found: Sequence[PortWindows], now: float) -> None:
        """An agent has reported the modes of its ports, and the ACKs that it has counted."""
        if link.modes.reported(found):
            # Disables are not stored, but the agent still has those of a controller that ended.
            self._all_acted &= all(record.mode == ACT for record in found)
            self.apply(now)

    def refused(self, link: AgentLink, now: float) -> bool:
        """An agent cannot be relied on to observe. Returns whether that is new."""
        if not link.modes.refused():
            return False
        self.apply(now)
        return True

    def port_named(self, link: AgentLink, port: int, name: bytes, now: float) -> None:
        """An agent watches a port, or its interface has another name."""
        link.modes.port_named(port, name)
        self.apply(now)
