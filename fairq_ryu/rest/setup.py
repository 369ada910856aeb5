"""Puts the REST interface together for one controller, as its settings say."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from fairq_ryu.config.loader import Config
from fairq_ryu.control.agents import AgentLink
from fairq_ryu.control.policy_control import PolicyControl
from fairq_ryu.control.state import ControllerState
from fairq_ryu.control.turns import in_turns
from fairq_ryu.rest import handler
from fairq_ryu.rest.guard import TOKEN_VARIABLE, RequestGuard, read_token
from fairq_ryu.rest.operations import MetricsView, RestService, View
from fairq_ryu.rest.reply import Answer
from fairq_ryu.rest.schema.requests import PageQuery
from fairq_ryu.rest.streams import INTERVAL, Streams
from fairq_ryu.rest.views import AnnouncingView, FabricView
from fairq_ryu.ryu_compat.runtime import cfg

# The live page shows no more of the GIF tables than this.
MAX_GIF_ROWS = 200


def token(config: Config) -> str:
    """The token that changes need, "" if there is none. Raises :class:`~fairq_ryu.errors.UserError`."""
    return read_token(str(config.value("fairq_ryu", "token_file")), os.environ.get(TOKEN_VARIABLE, ""))


def streams(config: Config) -> Streams:
    """Where events go."""
    return Streams(limit=int(config.number("fairq_ryu", "rest_streams")))


def register(
    wsgi: Any,
    config: Config,
    state: ControllerState,
    streams: Streams,
    policies: PolicyControl,
    metrics: MetricsView,
    token: str,
) -> handler.Rest:
    """Serve the interface of a controller."""
    view, announcing = FabricView(state), AnnouncingView(state.windows)
    service = RestService(
        view,
        announcing,
        policies,
        metrics=metrics,
        streams=streams,
        max_limit=int(config.number("fairq_ryu", "rest_page")),
    )
    peaks = Peaks(state.windows.links)

    def now() -> Answer:
        with service.turn:
            return peaks.put(page_state(view, announcing, streams), time.monotonic())

    streams.state = now
    names = [cfg.CONF.wsapi_host, *str(config.value("fairq_ryu", "rest_names")).split()]
    guard = RequestGuard(token, names, int(config.number("fairq_ryu", "rest_body")))
    return handler.register(wsgi, service, guard)


def page_state(view: View, announcing: AnnouncingView, streams: Streams) -> Answer:
    """What the live page shows. The control loop gets its turns meanwhile."""
    total, active = view.flow_counts()
    gif, gif_total = announcing.gif(PageQuery(limit=MAX_GIF_ROWS))
    return {
        "time": round(streams.now(), 3),
        "health": view.health(),
        "ports": list(in_turns(view.ports())),
        "switches": view.switches(),
        "links": view.links(),
        "hosts": view.hosts(),
        "gif": gif,
        "gif_total": gif_total,
        "flows_total": total,
        "flows_active": active,
        "interval_s": INTERVAL,
    }


class Peaks:
    """The longest queues between one state and the next: in that time they were read hundreds of times."""

    def __init__(self, links: Mapping[int, AgentLink]) -> None:
        self._links = links
        self._asked = float("-inf")

    def put(self, answer: Answer, now: float) -> Answer:
        """The same state, ``peak_bytes`` since the state before it. ``now`` in seconds."""
        # When nobody has listened for a while, what was kept is of another time.
        lately = now - self._asked < 2 * INTERVAL
        self._asked = now
        for row in answer["ports"]:
            link = self._links.get(int(row["dpid"], 16))
            peak = 0 if link is None else link.take_peak(row["port"])
            if lately and row["peak_bytes"] is not None:
                row["peak_bytes"] = max(row["peak_bytes"], peak)
        return answer
