"""A request of the REST interface, what it is asked of, and the operations that there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Protocol

from fairq_ryu.control.events import History
from fairq_ryu.control.turns import in_turns
from fairq_ryu.fabric.deadlines.request import Request
from fairq_ryu.rest.cached_reply import CachedReply
from fairq_ryu.rest.reply import Answer, Reply, encode
from fairq_ryu.rest.schema.base import RequestModel, Row
from fairq_ryu.rest.schema.requests import FlowsQuery, Nothing, PageQuery
from fairq_ryu.rest.static_pages import Pages
from fairq_ryu.rest.streams import Streams
from fairq_ryu.ryu_compat.runtime import hub
from fairq_ryu.setting import Value

Rows = list[dict[str, Any]]


class View(Protocol):
    """What the interface shows. Rows are dicts that JSON can say; :mod:`fairq_ryu.rest.schema.rows` has their
    fields. ``dpid`` is always 16 hexadecimal digits in lower case, a port of a switch the pair
    ``[dpid, number]``.
    """

    def health(self) -> dict[str, Any]:
        """How the controller is: :class:`fairq_ryu.rest.schema.state.Health`."""

    def ports(self) -> Iterable[dict[str, Any]]:
        """The ports of all switches; rows are made as they are taken."""

    def flows(self, wanted: FlowsQuery) -> tuple[Rows, int]:
        """The connections of a page, and how many there are in all that are wanted. The controller gets its
        turn between rows.
        """

    def flow_counts(self) -> tuple[int, int]:
        """The number of connections, and of those that have not ended."""

    def paths(self, wanted: PageQuery) -> tuple[Rows, int]:
        """The paths of a page, and how many there are in all."""

    def switches(self) -> Rows:
        """The switches."""

    def hosts(self) -> Rows:
        """The hosts that are known."""

    def links(self) -> Rows:
        """The links between switches, each once."""


class AnnouncingView(Protocol):
    """Who takes announcements."""

    def announce(self, wanted: Request) -> dict[str, Any]:
        """Take an announcement, and return its row. Raises :class:`fairq_ryu.rest.announcements.Declined`, or
        :class:`~fairq_ryu.fabric.deadlines.announcements.Full`.
        """

    def announcements(self, wanted: PageQuery) -> tuple[Rows, int]:
        """A page of what applications have announced, the oldest first, and how many there are in all."""

    def announcement(self, number: int) -> dict[str, Any] | None:
        """The row of one announcement; None if there is no such."""

    def withdraw(self, number: int) -> bool:
        """Take an announcement back; False if there is no such."""

    def gif(self, wanted: PageQuery) -> tuple[Rows, int]:
        """A page of the flows of the ports whose policy knows deadlines, and how many there are in all."""


class PolicyView(Protocol):
    """Who knows the policy, and changes it."""

    def policy(self) -> dict[str, Any]:
        """The policy now: :class:`fairq_ryu.rest.schema.state.Policy`."""

    def change(self, policy: str | None, parameters: Mapping[str, Value]) -> dict[str, Any]:
        """Change it, as a whole or not at all. Raises :class:`~fairq_ryu.errors.UserError`."""


class MetricsView(Protocol):
    """Who counts."""

    def render(self, accept: str) -> tuple[bytes, str]:
        """The figures for Prometheus in the form asked for, and its Content-Type."""

    def observe_request(self, method: str, path: str, code: int, seconds: float) -> None:
        """A request was answered; ``path`` as the resource has it, "" if there is none."""


@dataclass(slots=True)
class RestService:
    """All that is asked of the interface; of ``max_limit`` rows a page has no more."""

    view: View
    announcing: AnnouncingView | None = None
    policy: PolicyView | None = None
    metrics: MetricsView | None = None
    streams: Streams = field(default_factory=Streams)
    pages: Pages = field(default_factory=Pages)
    max_limit: int = 1000
    ports: CachedReply = field(init=False)
    """the answer to /v1/ports"""
    turn: Any = field(init=False)
    """held by who makes a long answer. Otherwise everybody who asks for one would make
    :data:`~fairq_ryu.rest.reply.ROWS_AT_ONCE` rows between two turns of the control loop.
    """

    def __post_init__(self) -> None:
        """The answer for all who ask at about the same time."""
        self.turn = hub.Semaphore(1)
        self.ports = CachedReply(lambda: encode({"ports": list(in_turns(self.view.ports()))}))

    @property
    def history(self) -> History:
        """What has happened."""
        return self.streams.history


@dataclass(frozen=True, slots=True)
class RequestContext:
    """A request: ``environ`` as WSGI has it; ``query``, ``parts`` (of the path) and ``body`` as their models
    have them.
    """

    service: RestService
    environ: Mapping[str, Any]
    query: Any
    parts: Any
    body: Any


def page(name: str, context: RequestContext, found: tuple[Rows, int]) -> Answer:
    """The answer that is a page: its rows, and how many there are in all."""
    rows, total = found
    return {name: rows, "total": total, "limit": context.query.limit, "offset": context.query.offset}


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """What a method of a path does: what it takes and answers, and the errors that are its own.

    ``answers`` is a model for JSON; ``media`` what else may be answered, by Content-Type, with its meaning.
    ``bare``: other answers, without a body. ``long``: it takes many turns of the control loop, and such
    answers are made one after the other.
    """

    id: str
    summary: str
    handle: Callable[[RequestContext], Answer | Reply]
    answers: type[Row] | None = None
    media: Mapping[str, str] = field(default_factory=dict)
    status: HTTPStatus = HTTPStatus.OK
    query: type[RequestModel] = Nothing
    body: type[RequestModel] | None = None
    errors: Mapping[HTTPStatus, str] = field(default_factory=dict)
    bare: Mapping[HTTPStatus, str] = field(default_factory=dict)
    long: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """Something that can be asked for. ``path`` may have parts in braces, as OpenAPI has them."""

    path: str
    operations: Mapping[str, Operation]
    parts: type[RequestModel] = Nothing
