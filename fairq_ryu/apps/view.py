"""What the controller knows, as rows for the REST interface (fields: ``docs/rest.md``)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairq_ryu.apps.announce_rows import announcement_row, gif_rows
from fairq_ryu.fabric.announce_request import Request
from fairq_ryu.fabric.connection import Connection
from fairq_ryu.fabric.topology import with_hosts
from fairq_ryu.model import PortKey

if TYPE_CHECKING:
    from fairq_ryu.apps.controller import Controller
    from fairq_ryu.apps.windows import Windows


def _dpid(dpid: int) -> str:
    return f"{dpid:016x}"


def _port(port: PortKey) -> list[Any]:
    return [_dpid(port.dpid), port.port]


class FabricView:
    """The tables of one controller; nothing is kept here."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def _graph(self) -> Any:
        network = self._controller.network
        return with_hosts(network.topology.graph(), network.hosts)

    def ports(self) -> list[dict[str, Any]]:
        """The ports of all bridges. What only an agent can tell is None without one, or before it has."""
        network, engine = self._controller.network, self._controller.windows.engine
        governed = engine.view()
        rows = []
        for dpid in sorted(network.topology.switches):
            for port in network.topology.ports(dpid):
                flows, plan, sample = governed.get(port, (0, None, None))
                link = self._controller.windows.links.get(dpid)
                depth = link.depths.get(port.port) if link is not None else None
                traffic = self._controller.traffic.get(port)
                rows.append(
                    {
                        "dpid": _dpid(dpid),
                        "port": port.port,
                        "name": network.names.get(port, ""),
                        "role": str(network.topology.role(port)),
                        "flows": flows,
                        "active": None if depth is None else depth.active,
                        "queue_bytes": None if depth is None else depth.backlog,
                        "peak_bytes": None if depth is None else depth.peak,
                        "limit_bytes": None if depth is None else (sample.limit if sample else depth.limit),
                        "rate_bps": None if depth is None else depth.rate * 8,
                        "drops": None if depth is None else depth.drops,
                        "pool_bytes": plan.pool if plan else None,
                        "window_bytes": plan.window if plan else None,
                        "flow_windows": len(plan.flows) if plan else 0,
                        "policy": engine.policy_of(port).name,
                        "tx_bytes": None if traffic is None else traffic.tx_bytes,
                        "rx_bytes": None if traffic is None else traffic.rx_bytes,
                        "tx_bps": None if traffic is None else traffic.tx_bps,
                        "rx_bps": None if traffic is None else traffic.rx_bps,
                    }
                )
        return rows

    def flows(self) -> _Flows:
        """All connections, rows made as they are taken."""
        return _Flows(self._controller)

    def switches(self) -> list[dict[str, Any]]:
        """The bridges that were ever connected and have not lost all their ports."""
        network = self._controller.network
        return [
            {
                "dpid": _dpid(dpid),
                "connected": dpid in network.bridges,
                "agent": dpid in self._controller.windows.links,
                "ports": len(network.topology.ports(dpid)),
            }
            for dpid in sorted(network.topology.known_switches | set(self._controller.windows.links))
        ]

    def hosts(self) -> list[dict[str, Any]]:
        """The hosts that are known."""
        graph = self._graph()
        return [
            {"mac": mac, "at": _port(at), "addresses": sorted(graph.nodes[mac]["addresses"])}
            for mac, at in sorted(graph.nodes(data="at"))
            if at is not None
        ]

    def links(self) -> list[dict[str, Any]]:
        """The links that work."""
        graph = self._graph()
        pairs = (pair for edge in graph.edges for pair in graph.edges[edge].get("ports", ()))
        return [{"a": _port(a), "b": _port(b)} for a, b in sorted(pairs)]


class AnnouncingView:
    """The announcements of one controller, for the REST interface."""

    def __init__(self, windows: Windows) -> None:
        self._windows = windows

    def announce(self, wanted: Request) -> dict[str, Any]:
        """Take an announcement. Raises :class:`~fairq_ryu.fabric.announcements.Full`."""
        now = time.monotonic()
        return announcement_row(self._windows.announce(wanted, now), now)

    def announcements(self) -> list[dict[str, Any]]:
        """What applications have announced."""
        now = time.monotonic()
        return [announcement_row(entry, now) for entry in self._windows.announcements.listed(now)]

    def withdraw(self, number: int) -> bool:
        """Take an announcement back; False if there is no such."""
        try:
            self._windows.withdraw(number, time.monotonic())
        except KeyError:
            return False
        return True

    def gif(self) -> list[dict[str, Any]]:
        """The flows of the ports whose policy knows deadlines."""
        now = time.monotonic()
        return gif_rows(self._windows.engine.gif(now), now)


class _Flows:
    """The rows of all connections; as long as the flow table was when it was asked."""

    def __init__(self, controller: Controller) -> None:
        self._paths = controller.network.paths
        self._connections = list(controller.flows)
        self._now = time.monotonic()

    def __len__(self) -> int:
        return len(self._connections)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(self._row, self._connections)

    def _row(self, connection: Connection) -> dict[str, Any]:
        key = connection.forward
        there, back = connection.directions[key], connection.directions[key.reversed]
        path = self._paths.get(key)
        return {
            "src": key.src,
            "dst": key.dst,
            "sport": key.sport,
            "dport": key.dport,
            "state": str(connection.state),
            "ports": [_port(port) for port in there.ports],
            "back_ports": [_port(port) for port in back.ports],
            "wscale": there.wscale,
            "back_wscale": back.wscale,
            "mss": there.mss,
            "bytes": there.bytes,
            "back_bytes": back.bytes,
            "age_s": round(self._now - connection.since, 3),
            "idle_s": round(max(0.0, self._now - connection.last_seen), 3),
            "pinned": path is not None and path.pinned,
        }
