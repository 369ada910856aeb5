"""What is known of each port: its role, its carrier, and when its role is decided.

Found by port, by switch, and by whether a decision is due, so that nobody looks through the ports of a whole
network for those of one switch. Pure; times in seconds of one clock.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from fairq_ryu.model import PortKey


class PortRole(StrEnum):
    """The role of a port: it leads to a host, or by a link to another switch."""

    UNDECIDED = "undecided"
    HOST = "host"
    LINK = "link"


@dataclass(slots=True)
class PortState:
    """A port. ``hosts_since``: when a host was last learned here, since the port came up; ``decides_at``:
    when it becomes a host port if it receives no discovery frame (None: no decision is due), before which
    nothing is flooded to it, even if it is one already because a host was seen there;
    ``decides_after``: the sweep that must have ended before.
    """

    role: PortRole = PortRole.UNDECIDED
    up: bool = True
    hosts_since: float = -math.inf
    decides_at: float | None = None
    decides_after: int = 0


class PortStates:
    """All ports, in the order in which they were added."""

    def __init__(self) -> None:
        self._ports: dict[PortKey, PortState] = {}
        self._of_switch: dict[int, set[PortKey]] = {}  # switches without ports are left out
        self._deciding: dict[PortKey, PortState] = {}  # those with ``decides_at``

    def __contains__(self, port: PortKey) -> bool:
        return port in self._ports

    def __getitem__(self, port: PortKey) -> PortState:
        return self._ports[port]

    def get(self, port: PortKey) -> PortState | None:
        """The state of a port; None: it is not known."""
        return self._ports.get(port)

    def items(self) -> Iterable[tuple[PortKey, PortState]]:
        """All ports with their states."""
        return self._ports.items()

    @property
    def switches(self) -> Iterable[int]:
        """The switches that have ports."""
        return self._of_switch.keys()

    def of_switch(self, dpid: int) -> list[PortKey]:
        """The ports of a switch, in order."""
        return sorted(self._of_switch.get(dpid, ()))

    @property
    def deciding(self) -> Iterator[tuple[PortKey, PortState]]:
        """The ports about which a decision is due. They may be decided meanwhile."""
        return iter(list(self._deciding.items()))

    def add(self, port: PortKey, up: bool) -> None:
        """A port was added, in place of an earlier one if that is known."""
        self.remove(port)
        self._ports[port] = PortState(up=up)
        self._of_switch.setdefault(port.dpid, set()).add(port)

    def remove(self, port: PortKey) -> bool:
        """Forget a port. Returns whether it was known."""
        if self._ports.pop(port, None) is None:
            return False
        self._deciding.pop(port, None)
        others = self._of_switch[port.dpid]
        others.discard(port)
        if not others:
            del self._of_switch[port.dpid]
        return True

    def decide_later(self, port: PortKey, at: float, after: int) -> None:
        """A decision about a port is due at that time, and after that sweep."""
        state = self._deciding[port] = self._ports[port]
        state.decides_at, state.decides_after = at, after

    def decide(self, port: PortKey, role: PortRole) -> None:
        """The role of a port is known: no decision is due."""
        self._deciding.pop(port, None)
        state = self._ports[port]
        state.role, state.decides_at = role, None
