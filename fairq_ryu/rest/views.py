"""The state of the controller as rows for the REST interface (fields: :mod:`fairq_ryu.rest.schema.rows`)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any

from fairq_ryu import __version__
from fairq_ryu.control.operations.announcing import Announcing
from fairq_ryu.control.operations.state import ControllerState
from fairq_ryu.control.windows.window_controller import WindowController
from fairq_ryu.control.yielding import in_steps
from fairq_ryu.fabric.deadlines.request import Request
from fairq_ryu.fabric.topology.whole_graph import with_hosts
from fairq_ryu.fabric.ways import Way
from fairq_ryu.model import dpid_text
from fairq_ryu.rest import flow_rows
from fairq_ryu.rest.announcement_rows import announcement_row, gif_rows
from fairq_ryu.rest.flow_rows import port_pair
from fairq_ryu.rest.schema.requests import FlowsQuery, PageQuery
from fairq_ryu.ryu_compat.runtime import hub

_Rows = list[dict[str, Any]]


def _in_order(addresses: Iterable[str]) -> list[str]:
    """The addresses of a host, IPv4 first: clients that show one address show the first."""
    return sorted(addresses, key=lambda address: (":" in address, address))


class FabricView:
    """Reads the tables of one controller. Stores only its start time, and the rows of hosts and links."""

    def __init__(self, state: ControllerState) -> None:
        self._state = state
        self._started = time.monotonic()
        self._mapped: tuple[Any, _Rows, _Rows] = None, [], []

    def _map(self) -> tuple[Any, _Rows, _Rows]:
        """The rows of hosts and links, made again when either has changed."""
        fabric = self._state.fabric
        version = fabric.topology.version, fabric.hosts.version
        if self._mapped[0] != version:
            graph = with_hosts(fabric.topology.graph(), fabric.hosts)
            # Switches are nodes, too; only hosts have the attribute ``at``.
            known: list[Any] = sorted(node for node, at in graph.nodes(data="at") if at is not None)
            hosts = [
                {
                    "mac": host["mac"],
                    "vlan": host["vlan"],
                    "at": port_pair(host["at"]),
                    "addresses": _in_order(host["addresses"]),
                }
                for host in (graph.nodes[node] for node in in_steps(known))
            ]
            pairs = (pair for edge in graph.edges for pair in graph.edges[edge].get("ports", ()))
            links = [{"a": port_pair(a), "b": port_pair(b)} for a, b in in_steps(sorted(pairs))]
            self._mapped = version, hosts, links
        return self._mapped

    def health(self) -> dict[str, Any]:
        """The health of the controller."""
        inventory, links = self._state.windows.inventory, self._state.windows.links
        bridges, ways = inventory.connected, {str(way): list[str]() for way in Way}
        for dpid in sorted(bridges | set(links)):
            ways[str(inventory.way(dpid))].append(dpid_text(dpid))
        delay = self._state.counts.loop_delay.recent(0.99)
        failing = self._state.counts.faults.recent()
        return {
            "status": "failing" if failing else "ok",
            "failing": failing,
            "version": __version__,
            "policy": self._state.windows.engine.policy.name,
            "uptime_s": round(time.monotonic() - self._started, 3),
            "bridges": len(bridges),
            "agents": len(links),
            "agents_missing": [dpid_text(dpid) for dpid in sorted(bridges - set(links))],
            "ways": ways,
            "loop_delay_s": None if delay is None else round(delay, 6),
        }

    def ports(self) -> Iterator[dict[str, Any]]:
        """The ports of all bridges."""
        return self._state.ports()

    def flows(self, wanted: FlowsQuery) -> tuple[list[dict[str, Any]], int]:
        """The connections of a page."""
        windows = self._state.windows
        rows = flow_rows.FlowRows(
            self._state.fabric.paths, windows.engine.view(), windows.links, time.monotonic()
        )
        return flow_rows.page(list(self._state.flows), wanted, rows.row)

    def flow_counts(self) -> tuple[int, int]:
        """Connections, and those that have not ended."""
        return len(self._state.flows), self._state.flows.open

    def paths(self, wanted: PageQuery) -> tuple[list[dict[str, Any]], int]:
        """The paths of a page."""
        found = list(self._state.fabric.paths)
        chosen = found[wanted.offset : wanted.offset + wanted.limit]
        return [flow_rows.path_row(each) for each in in_steps(chosen)], len(found)

    def switches(self) -> list[dict[str, Any]]:
        """The bridges that are governed, and those that were and may connect again."""
        windows = self._state.windows
        inventory, roles = windows.inventory, windows.roles_matter
        return [
            {
                "dpid": dpid_text(dpid),
                "connected": inventory.is_connected(dpid),
                "agent": dpid in windows.links,
                "ports": len(inventory.ports(dpid)),
                "way": str(inventory.way(dpid)),
                "limits": inventory.limits(dpid, roles),
            }
            for dpid in in_steps(inventory.known)
        ]

    def hosts(self) -> list[dict[str, Any]]:
        """The known hosts."""
        return self._map()[1]

    def links(self) -> list[dict[str, Any]]:
        """The links that work in both directions."""
        return self._map()[2]


class Declined(Exception):
    """The controller does not accept announcements (now); ``str()`` is the reason."""


class AnnouncementsView:
    """The announcements of one controller, for the REST interface."""

    def __init__(self, windows: WindowController, announcing: Announcing) -> None:
        self._windows, self._announcing = windows, announcing

    def announce(self, wanted: Request) -> dict[str, Any]:
        """Accept an announcement. Raises :class:`~fairq_ryu.fabric.deadlines.announcements.Full`, or
        :class:`Declined` if no policy uses it.
        """
        engine = self._windows.engine
        reasons = []
        if wanted.size is not None or wanted.deadline is not None:
            reasons.append(engine.announcements_ignored())
        if wanted.priority is not None:
            reasons.append(engine.priorities_ignored())
        if None not in reasons:
            raise Declined(reasons[0])
        now = time.monotonic()
        return announcement_row(self._announcing.announce(wanted, now), now)

    def announcements(self, wanted: PageQuery) -> tuple[_Rows, int]:
        """A page of the announcements of applications."""
        now = time.monotonic()
        found = self._windows.announcements.listed(now)
        chosen = found[wanted.offset : wanted.offset + wanted.limit]
        return [announcement_row(entry, now) for entry in in_steps(chosen)], len(found)

    def announcement(self, number: int) -> dict[str, Any] | None:
        """One announcement; None if it does not exist."""
        now = time.monotonic()
        try:
            return announcement_row(self._windows.announcements.get(number, now), now)
        except KeyError:
            return None

    def withdraw(self, number: int) -> bool:
        """Withdraw an announcement; False if it does not exist."""
        try:
            self._announcing.withdraw(number, time.monotonic())
        except KeyError:
            return False
        return True

    def gif(self, wanted: PageQuery) -> tuple[_Rows, int]:
        """A page of the flows of the ports whose policy uses deadlines, port by port."""
        now = time.monotonic()
        rows: _Rows = []
        before, end = 0, wanted.offset + wanted.limit
        for port, table in sorted(self._windows.engine.gif().items(), key=itemgetter(0)):
            size = len(table)
            if before < end and wanted.offset < before + size:
                part = table.rows(now, max(0, wanted.offset - before), min(size, end - before))
                rows += in_steps(gif_rows(port, part, now))
                hub.sleep(0)  # sorting a table takes a while
            before += size
        return rows, before
