"""Connections as rows for the REST interface: filters, pages, and the fields of a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairq_ryu.control.agents.agent_link import AgentLink
from fairq_ryu.control.agents.agent_port import AgentPort
from fairq_ryu.control.yielding import LOOKS_PER_STEP, in_steps
from fairq_ryu.fabric.flows.connection import Connection
from fairq_ryu.fabric.topology.paths import Assigned, PathTable
from fairq_ryu.model import FlowKey, PortKey, PortMode, WindowKind, dpid_text
from fairq_ryu.policies.governed_port import PortView
from fairq_ryu.rest.schema.base import port_of
from fairq_ryu.rest.schema.requests import FlowsQuery
from fairq_ryu.ryu_compat.runtime import hub

Filter = Callable[[Connection], bool]


def port_pair(port: PortKey) -> list[Any]:
    """A port of a switch in the format of the interface: ``[dpid, number]``."""
    return [dpid_text(port.dpid), port.port]


# Filters and pages


def filters(wanted: FlowsQuery) -> list[Filter]:
    """The conditions of a query, all of which a connection must meet."""
    found: list[Filter] = []
    if wanted.src is not None:
        found.append(lambda each: each.forward.src == wanted.src)
    if wanted.dst is not None:
        found.append(lambda each: each.forward.dst == wanted.dst)
    if wanted.state is not None:
        found.append(lambda each: str(each.state) == wanted.state)
    if wanted.port is not None:
        port = port_of(wanted.port)
        if isinstance(port, int):
            found.append(lambda each: port in (each.forward.sport, each.forward.dport))
        else:
            key = PortKey(int(port[0], 16), port[1])
            found.append(lambda each: any(key in way.ports for way in each.directions.values()))
    return found


def page(
    connections: Sequence[Connection], wanted: FlowsQuery, row: Callable[[Connection], dict[str, Any]]
) -> tuple[list[dict[str, Any]], int]:
    """The rows of a page, and the total number of connections that match. Rows are made only for the page."""
    first, end, fits = wanted.offset, wanted.offset + wanted.limit, filters(wanted)
    if not fits:
        return [row(each) for each in in_steps(connections[first:end])], len(connections)
    chosen, total = [], 0
    for start in range(0, len(connections), LOOKS_PER_STEP):
        for each in connections[start : start + LOOKS_PER_STEP]:
            if all(fit(each) for fit in fits):
                if first <= total < end:
                    chosen.append(each)
                total += 1
        hub.sleep(0)
    return [row(each) for each in in_steps(chosen)], total


# Rows


@dataclass(eq=False)
class FlowRows:
    """Makes rows, with the windows that are installed on the ports ``now``."""

    paths: PathTable
    ports: Mapping[PortKey, PortView]
    links: Mapping[int, AgentLink]
    now: float
    _shares: dict[PortKey, int] = field(default_factory=dict, init=False)

    def row(self, connection: Connection) -> dict[str, Any]:
        """The row of a connection."""
        key = connection.forward
        there, back = connection.directions[key], connection.directions[key.reversed]
        path = self.paths.get(key)
        window, kind = self._window(key, there.ports)
        back_window, back_kind = self._window(key.reversed, back.ports)
        return {
            "src": key.src,
            "dst": key.dst,
            "sport": key.sport,
            "dport": key.dport,
            "vlan": key.vlan,
            "state": str(connection.state),
            "ports": [port_pair(port) for port in there.ports],
            "back_ports": [port_pair(port) for port in back.ports],
            "wscale": there.wscale,
            "back_wscale": back.wscale,
            "mss": there.mss,
            "bytes": there.bytes,
            "back_bytes": back.bytes,
            "age_s": round(max(0.0, self.now - connection.since), 3),
            "idle_s": round(max(0.0, self.now - connection.last_seen), 3),
            "pinned": path is not None and path.pinned,
            "rtt_s": connection.rtt,
            "window_bytes": window,
            "back_window_bytes": back_window,
            "window_kind": kind or back_kind,
            "rewritten": _sum(there.rewritten, back.rewritten),
        }

    def _window(self, flow: FlowKey, ports: Sequence[PortKey]) -> tuple[int | None, str | None]:
        """The smallest window installed for a direction on its path, and the kind of its rule."""
        found: tuple[int | None, str | None] = (None, None)
        for port in ports:
            seen = self.ports.get(port)
            if seen is None or not seen.plan or seen.mode is not PortMode.ACT:
                continue
            plan = seen.plan
            own, rule = plan.flows.get(flow) if plan.flows else None, plan.port_rule
            if own is not None:
                size, kind = own, "flow"
            elif rule is None:
                continue
            else:
                size, kind = rule.bytes, rule.kind.scope
                if rule.kind is WindowKind.POOL:
                    size = self._share(port, rule.bytes)
                elif rule.kind is WindowKind.LAW:
                    law = self._law_window(port)
                    if law is None:
                        continue
                    size = law
            if found[0] is None or size < found[0]:
                found = size, kind
        return found

    def _law_window(self, port: PortKey) -> int | None:
        """The window of a flow under the law of a port, as the switch reported it last; None: none."""
        known = self._known(port)
        law = None if known is None else known.window_law.state
        if law is None:
            return None
        return law.window or (law.pool // max(1, law.flows) if law.pool else None)

    def _share(self, port: PortKey, pool: int) -> int:
        """The share of a flow in a pool, which the switch divides by the number of active flows."""
        share = self._shares.get(port)
        if share is None:
            known = self._known(port)
            depth = None if known is None else known.depth
            share = self._shares[port] = pool // max(1, 1 if depth is None else depth.active)
        return share

    def _known(self, port: PortKey) -> AgentPort | None:
        """What the agent of a port has reported of it."""
        link = self.links.get(port.dpid)
        return None if link is None else link.ports.get(port.port)


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None and other is None else (one or 0) + (other or 0)


def path_row(assigned: Assigned) -> dict[str, Any]:
    """The path of a connection."""
    key, path = assigned.key, assigned.path
    return {
        "src": key.src,
        "dst": key.dst,
        "sport": key.sport,
        "dport": key.dport,
        "vlan": key.vlan,
        "ports": [port_pair(port) for port in path.forward],
        "back_ports": [port_pair(port) for port in path.backward],
        "pinned": assigned.pinned,
    }
