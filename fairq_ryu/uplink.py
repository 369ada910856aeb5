"""An uplink: a port of a switch above by which the data of several bridges arrives, such as that of a rack.

Each agent sees only what arrives at its own machine, so each has a part of the uplink as a far queue: an
equal one, unless the controller leases it another. :func:`divide` says which. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from fairq_ryu.far_queue import BUFFER_S, LEAST_BUFFER, LEAST_RATE, MOST_BUFFER, SHARE, FarQueue

FLOOR = 0.25
"""Of an equal part of the rate, what every port has at least: new flows begin there at once."""
STEP = 0.25
"""Of the way from the last part to what the active flows say, what is gone in one division."""


class Member(NamedTuple):
    """A port behind an uplink: name or dpid of the bridge, as it is written, and name of the interface."""

    bridge: str
    port: str

    def is_at(self, bridge: str, dpid: int) -> bool:
        """Whether its bridge is the one with this name and dpid."""
        return self.bridge == bridge or self.bridge.lower() in (f"{dpid:016x}", f"{dpid:x}")


@dataclass(frozen=True, slots=True)
class Uplink:
    """An uplink. ``rate`` in bytes per second; ``buffer`` in bytes (0: what drains
    within :data:`~fairq_ryu.far_queue.BUFFER_S`); ``share`` of the rate for virtual queues.
    """

    name: str
    members: tuple[Member, ...]
    rate: int
    buffer: int = 0
    share: float = SHARE

    @property
    def equal_rate(self) -> int:
        """An equal part of the rate, bytes per second."""
        return self.rate // len(self.members)

    def far_queue(self, port: str) -> FarQueue:
        """The far queue of a port, with an equal part of rate and buffer."""
        whole = self.buffer or int(self.rate * BUFFER_S)
        buffer = min(max(whole // len(self.members), LEAST_BUFFER), MOST_BUFFER)
        return FarQueue(port, self.equal_rate, buffer, self.share)

    def parts_at(self, bridge: str, dpid: int) -> list[FarQueue]:
        """The far queues of its ports at a bridge."""
        return [self.far_queue(each.port) for each in self.members if each.is_at(bridge, dpid)]


def divide(rate: int, active: Mapping[Member, int], before: Mapping[Member, int]) -> dict[Member, int]:
    """The parts of a rate, bytes per second, by the active flows of each port. ``before``: the last parts; a
    port without one had an equal part.

    They sum to the rate exactly, and none is below :data:`FLOOR` of an equal part (rounded down). From
    division to division each part goes :data:`STEP` of the way to its goal: with the same flows it comes
    closer each time and never passes it.
    """
    if not active:
        return {}
    equal, flows = rate / len(active), sum(active.values())
    floor = FLOOR * equal
    shared = rate - floor * len(active)
    # Above the floor; and before, whatever rate was divided then, and among which ports.
    above = {port: max(before.get(port, equal) - floor, 0.0) for port in active}
    total = sum(above.values())
    wanted = {}
    for port, count in active.items():
        goal = count / flows if flows else 1 / len(active)
        last = above[port] / total if total else 1 / len(active)
        wanted[port] = floor + shared * (last + STEP * (goal - last))
    parts = {port: int(part) for port, part in wanted.items()}
    for port in sorted(parts, key=lambda each: parts[each] - wanted[each])[: rate - sum(parts.values())]:
        parts[port] += 1
    return parts


def least_rate(members: int) -> int:
    """The lowest rate of an uplink with so many ports, bytes per second: each may have a far queue."""
    return int(members * LEAST_RATE / FLOOR) + 1
