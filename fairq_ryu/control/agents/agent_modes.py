"""What one agent knows of the modes of its ports, and what it has counted there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel import port_mode
from fairq_ryu.control.agents.agent_port import AgentPorts
from fairq_ryu.errors import plain
from fairq_ryu.model import PortMode
from fairq_ryu.openflow.pipeline import Message

# On an observed port nothing is written, not even a scale (unify_scale): a disabled one needs that, too.
_NUMBERS = {
    PortMode.ACT: port_mode.ACT,
    PortMode.OBSERVE: port_mode.OBSERVE,
    PortMode.DISABLED: port_mode.OBSERVE,
}


class AgentModes:
    """``known``: whether the agent can be relied on to observe ports without acting on them; None: it has not
    answered yet. ``bridge``: the name of its bridge. Returns messages and sends nothing.
    """

    def __init__(self, datapath: Any, ports: AgentPorts, bridge: str) -> None:
        self._datapath, self.ports, self.bridge = datapath, ports, bridge
        self.known: bool | None = None
        self._requested_at = float("-inf")

    def begin(self, now: float) -> list[Message]:
        """The agent has connected: a request for its modes."""
        for number, port in self._datapath.ports.items():
            if number <= ofp.OFPP_MAX:
                self.port_named(number, port.name)
        return self.request(0.0, now)

    def request(self, interval: float, now: float) -> list[Message]:
        """Request modes and counts, unless the agent has none or that was done within the ``interval``."""
        if self.known is False or now - self._requested_at < interval:
            return []
        self._requested_at = now
        return [port_mode.request(self._datapath)]

    def reported(self, found: Iterable[port_mode.PortWindows]) -> bool:
        """The agent has reported ports. Returns whether it is the first report: then the modes are those that
        an earlier controller has set.
        """
        first = self.known is None
        for record in found:
            port = self.ports[record.port]
            port.counts = record
            if first:
                port.mode = record.mode
        if first:
            self.known = True
        return first

    def refused(self) -> bool:
        """The agent has refused a mode. Returns whether that is new."""
        new = self.known is not False
        self.known = False
        for port in self.ports.values():
            port.mode = None
        return new

    def ensure(self, port: int, mode: PortMode) -> list[Message]:
        """Let the agent know the mode of a port, unless it does. To be called before a rule is sent."""
        number = _NUMBERS[mode]
        if not self.known or self.ports[port].mode == number:
            return []
        self.ports[port].mode = number
        return [port_mode.set_port_mode(self._datapath, port, number)]

    def port_named(self, port: int, name: bytes) -> None:
        """A port was added, or its interface has another name."""
        self.ports[port].name = plain(name.decode("utf-8", "replace").rstrip("\0"))
