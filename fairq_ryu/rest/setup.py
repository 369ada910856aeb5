"""Assembles the REST interface of one controller from its settings."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from fairq_ryu.cluster.settings import CLUSTER
from fairq_ryu.config.loader import Config
from fairq_ryu.control.agents.agent_link import AgentLink
from fairq_ryu.control.operations.announcing import Announcing
from fairq_ryu.control.operations.far_control import FarControl
from fairq_ryu.control.operations.mode_control import ModeControl
from fairq_ryu.control.operations.policy_control import PolicyControl
from fairq_ryu.control.operations.state import ControllerState
from fairq_ryu.control.operations.tenant_control import TenantOperations
from fairq_ryu.control.ownership.owners import Owners
from fairq_ryu.control.yielding import in_steps
from fairq_ryu.rest import handler
from fairq_ryu.rest.guard import TOKEN_VARIABLE, RequestGuard, read_token
from fairq_ryu.rest.operations import MetricsView, RestService, Rows
from fairq_ryu.rest.peers import Peer, Peers
from fairq_ryu.rest.reply import Answer
from fairq_ryu.rest.schema.requests import PageQuery
from fairq_ryu.rest.streams import INTERVAL, Streams
from fairq_ryu.rest.views import AnnouncementsView, FabricView
from fairq_ryu.ryu_compat.runtime import cfg

# The maximum number of rows of the GIF tables on the live page.
MAX_GIF_ROWS = 200


def token(config: Config) -> str:
    """The token that changes require; "" without one. Raises :class:`~fairq_ryu.errors.UserError`."""
    return read_token(str(config.value("fairq_ryu", "token_file")), os.environ.get(TOKEN_VARIABLE, ""))


def register(
    wsgi: Any,
    config: Config,
    state: ControllerState,
    streams: Streams,
    policies: PolicyControl,
    modes: ModeControl,
    far: FarControl,
    tenants: TenantOperations,
    announcing: Announcing,
    metrics: MetricsView,
    token: str,
    owners: Owners | None = None,
) -> handler.Rest:
    """Serve the interface of a controller. ``owners``: it shares its fabric with others."""
    view, announcements = FabricView(state), AnnouncementsView(state.windows, announcing)
    service = RestService(
        view,
        announcements,
        policies,
        metrics=metrics,
        modes=modes,
        far=far,
        tenants=tenants,
        cluster=owners,
        peers=None if owners is None else _peers(owners),
        streams=streams,
    )
    peaks = Peaks(state.windows.links)

    def now() -> Answer:
        with service.turn:
            return peaks.put(page_state(view, announcements, streams, tenants.rows()), time.monotonic())

    streams.state = now
    names = [cfg.CONF.wsapi_host, *_own_name(config), *str(config.value("fairq_ryu", "rest_names")).split()]
    guard = RequestGuard(token, names)
    return handler.register(wsgi, service, guard)


def _own_name(config: Config) -> list[str]:
    """The name by which the other controllers of the fabric call this one."""
    return [urlsplit(str(config.value(CLUSTER, "rest"))).hostname or ""]


def _peers(owners: Owners) -> Peers:
    return Peers(lambda: [Peer(name, rest, not alive) for name, rest, alive in owners.others()])


def page_state(
    view: FabricView, announcing: AnnouncementsView, streams: Streams, tenants: Rows | None = None
) -> Answer:
    """The state for the live page. The control loop runs between its parts."""
    total, active = view.flow_counts()
    gif, gif_total = announcing.gif(PageQuery(limit=MAX_GIF_ROWS))
    return {
        "time": round(streams.now(), 3),
        "health": view.health(),
        "ports": list(in_steps(view.ports())),
        "switches": view.switches(),
        "links": view.links(),
        "hosts": view.hosts(),
        "gif": gif,
        "gif_total": gif_total,
        "tenants": tenants or [],
        "flows_total": total,
        "flows_active": active,
        "interval_s": INTERVAL,
    }


class Peaks:
    """The maximum queue lengths between one state and the next; queues are read hundreds of times between."""

    def __init__(self, links: Mapping[int, AgentLink]) -> None:
        self._links = links
        self._taken_at = float("-inf")

    def put(self, answer: Answer, now: float) -> Answer:
        """Set ``peak_bytes`` of a state to the maximum since the previous state. ``now`` in seconds."""
        # After an interval without streams, the stored maxima are from an earlier time.
        recent = now - self._taken_at < 2 * INTERVAL
        self._taken_at = now
        for row in answer["ports"]:
            link = self._links.get(int(row["dpid"], 16))
            peak = 0 if link is None else link.take_peak(row["port"])
            if recent and row["peak_bytes"] is not None:
                row["peak_bytes"] = max(row["peak_bytes"], peak)
        return answer
