"""All bridges that are governed, in whatever way: their ports, with names and roles, and what they cannot do.

A bridge in the way *paths* is one of the fabric
(:class:`~fairq_ryu.control.paths.fabric_controller.FabricController`), which knows what its ports lead to. A
bridge beside it, which keeps its own rules, or of which only the agent is known, has ports of unknown role.
Bounded: one entry a connected bridge; the ports are those that bridges and agents list.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from fairq_ryu.control.agents.agent_link import AgentLink
from fairq_ryu.control.paths.fabric_controller import FabricController, PortState
from fairq_ryu.fabric.ways import Asked, Way, limits
from fairq_ryu.far_queue import is_far
from fairq_ryu.model import PortKey
from fairq_ryu.openflow.pipeline import Datapath

UNKNOWN = "unknown"
"""The role of a port that nobody looks for links at."""
FAR = "far"
"""That of a far queue, which an agent lists beside the ports of its bridge."""


@dataclass(eq=False)
class Beside:
    """A connected bridge that keeps its rules, of which ``others`` are not ours. ``names`` of its ports by
    number; of a bridge that is left alone, none are known. ``in_loop``: whether a rule that forwards would
    close a loop (None: that is not known yet), where others have no rules.
    """

    datapath: Datapath
    way: Way
    others: int = 0
    names: dict[int, str] = field(default_factory=dict)
    in_loop: bool | None = False


class Inventory:
    """The bridges of one controller. ``hold``: see :class:`Asked`."""

    def __init__(self, fabric: FabricController, links: Mapping[int, AgentLink], hold: bool) -> None:
        self._fabric = fabric
        self._links = links
        self._asked = Asked(hold)
        self._beside: dict[int, Beside] = {}
        self._normal: dict[int, Datapath] = {}
        self.counted: Mapping[int, Datapath] = ChainMap(fabric.bridges, self._normal)
        """the bridges whose counters are read: all that are connected and not left alone"""

    # Bridges beside the fabric

    def add(self, bridge: Beside) -> None:
        """A bridge has connected that is not one of the fabric."""
        dpid = bridge.datapath.id
        self._beside[dpid] = bridge
        if bridge.way is Way.NORMAL:
            self._normal[dpid] = bridge.datapath
        else:
            self._normal.pop(dpid, None)

    def remove(self, dpid: int) -> Beside | None:
        """Such a bridge has disconnected, or has joined the fabric. Returns it; None: it is not one."""
        self._normal.pop(dpid, None)
        return self._beside.pop(dpid, None)

    def beside(self, dpid: int) -> Beside | None:
        """A connected bridge that is not one of the fabric."""
        return self._beside.get(dpid)

    def port_changed(self, dpid: int, state: PortState) -> None:
        """A port of such a bridge was added or has changed."""
        bridge = self._beside.get(dpid)
        if bridge is not None:
            bridge.names[state.number] = state.name

    def port_removed(self, port: PortKey) -> None:
        """A port of such a bridge was removed."""
        bridge = self._beside.get(port.dpid)
        if bridge is not None:
            bridge.names.pop(port.port, None)

    # What is known

    @property
    def connected(self) -> set[int]:
        """The connected bridges, by dpid."""
        return {*self._fabric.bridges, *self._beside}

    @property
    def known(self) -> list[int]:
        """The connected bridges, those whose agent is connected, and those of the fabric that may connect
        again; in order.
        """
        return sorted(self.connected | self._fabric.topology.known_switches | set(self._links))

    def is_connected(self, dpid: int) -> bool:
        """Whether a bridge is connected."""
        return dpid in self._fabric.bridges or dpid in self._beside

    def way(self, dpid: int) -> Way:
        """How a bridge is governed. One of the fabric stays that while it is disconnected."""
        bridge = self._beside.get(dpid)
        if bridge is not None:
            return bridge.way
        return Way.PATHS if self._of_fabric(dpid) else Way.WINDOWS

    def limits(self, dpid: int, roles: bool) -> list[str]:
        """What cannot be done for a bridge, with the reason. ``roles``: policies are chosen by role."""
        bridge = self._beside.get(dpid)
        others, in_loop = (0, False) if bridge is None else (bridge.others, bridge.in_loop)
        link = self._links.get(dpid)
        asked = self._asked._replace(roles=roles, unify=link is not None and link.unifies_scales)
        return limits(self.way(dpid), self.is_connected(dpid), others, asked, in_loop)

    def listed(self) -> Iterator[tuple[int, list[PortKey]]]:
        """The bridges whose ports are known now, with their ports, both in order."""
        topology = self._fabric.topology
        away = topology.known_switches - topology.switches
        for dpid in sorted(topology.switches | set(self._beside) | (set(self._links) - away)):
            yield dpid, self.ports(dpid)

    def ports(self, dpid: int) -> list[PortKey]:
        """The ports of a bridge, in order: those that it lists itself, or else its agent; and far queues."""
        bridge, link = self._beside.get(dpid), self._links.get(dpid)
        listed = [number for number, port in link.ports.items() if port.is_listed] if link is not None else []
        if self._of_fabric(dpid):
            far = (PortKey(dpid, number) for number in sorted(filter(is_far, listed)))
            return [*self._fabric.topology.ports(dpid), *far]
        numbers = {*listed, *(() if bridge is None else bridge.names)}
        return [PortKey(dpid, number) for number in sorted(numbers)]

    def name(self, port: PortKey) -> str:
        """The name of a port's interface; "": it is not known."""
        bridge, link = self._beside.get(port.dpid), self._links.get(port.dpid)
        name = self._fabric.names.get(port)
        if name is None and bridge is not None:
            name = bridge.names.get(port.port)
        if name is None and link is not None:
            name = link.name(port.port)
        return name or ""

    def role(self, port: PortKey) -> str:
        """What a port leads to: a role of :class:`~fairq_ryu.fabric.topology.graph.PortRole`, or
        :data:`UNKNOWN`; or :data:`FAR`.
        """
        if is_far(port.port):
            return FAR
        return str(self._fabric.topology.role(port)) if self._of_fabric(port.dpid) else UNKNOWN

    def _of_fabric(self, dpid: int) -> bool:
        """Whether a bridge is one of the fabric, connected or not."""
        if dpid in self._beside:
            return False
        return dpid in self._fabric.bridges or self._fabric.topology.knows(dpid)
