"""The operations of the REST interface, the context of a request, and the views that answer it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Protocol

from fairq_ryu.control.reports.events import History
from fairq_ryu.control.yielding import in_steps
from fairq_ryu.fabric.deadlines.request import Request
from fairq_ryu.far_queue import FarQueue
from fairq_ryu.rest.cached_reply import CachedReply
from fairq_ryu.rest.newest_first import NewestFirst
from fairq_ryu.rest.peers import Peers
from fairq_ryu.rest.reply import Answer, Reply, encode
from fairq_ryu.rest.schema.base import RequestModel, Row
from fairq_ryu.rest.schema.requests import FlowsQuery, Nothing, PageQuery
from fairq_ryu.rest.static_pages import Pages
from fairq_ryu.rest.streams import Streams
from fairq_ryu.setting import Value

Rows = list[dict[str, Any]]


class View(Protocol):
    """The state that the interface shows. Rows are dicts for JSON; :mod:`fairq_ryu.rest.schema.rows` has
    their fields. ``dpid`` is always 16 hexadecimal digits in lower case, a port of a switch the pair
    ``[dpid, number]``.
    """

    def health(self) -> dict[str, Any]:
        """The health of the controller: :class:`fairq_ryu.rest.schema.state.Health`."""

    def ports(self) -> Iterable[dict[str, Any]]:
        """The ports of all switches; rows are made as they are taken."""

    def flows(self, wanted: FlowsQuery) -> tuple[Rows, int]:
        """The connections of a page, and the total number of those that match. The control loop runs
        between rows.
        """

    def flow_counts(self) -> tuple[int, int]:
        """The number of connections, and of those that have not ended."""

    def paths(self, wanted: PageQuery) -> tuple[Rows, int]:
        """The paths of a page, and their total number."""

    def switches(self) -> Rows:
        """The switches."""

    def hosts(self) -> Rows:
        """The hosts that are known."""

    def links(self) -> Rows:
        """The links between switches, each once."""


class AnnouncingView(Protocol):
    """Accepts announcements."""

    def announce(self, wanted: Request) -> dict[str, Any]:
        """Accept an announcement, and return its row. Raises :class:`fairq_ryu.rest.announcements.Declined`,
        or :class:`~fairq_ryu.fabric.deadlines.announcements.Full`.
        """

    def announcements(self, wanted: PageQuery) -> tuple[Rows, int]:
        """A page of the announcements, the oldest first, and their total number."""

    def announcement(self, number: int) -> dict[str, Any] | None:
        """The row of one announcement; None if it does not exist."""

    def withdraw(self, number: int) -> bool:
        """Withdraw an announcement; False if it does not exist."""

    def gif(self, wanted: PageQuery) -> tuple[Rows, int]:
        """A page of the flows of the ports whose policy uses deadlines, and their total number."""


class PolicyView(Protocol):
    """Shows and changes the policy."""

    def policy(self) -> dict[str, Any]:
        """The current policy: :class:`fairq_ryu.rest.schema.state.Policy`."""

    def change(self, policy: str | None, parameters: Mapping[str, Value]) -> dict[str, Any]:
        """Change it, as a whole or not at all. Raises :class:`~fairq_ryu.errors.UserError`."""


class ModesView(Protocol):
    """Disables and enables ports; ``now`` in seconds. The answers are
    :class:`fairq_ryu.rest.schema.responses.ModeChanges`.
    """

    def disable(self, bridge: str | None, port: str | None, seconds: float | None, now: float) -> Answer:
        """Let ports have no windows. Raises :class:`~fairq_ryu.errors.UserError` for an unknown one, or
        :class:`fairq_ryu.control.windows.disables.TooMany`.
        """

    def enable(self, bridge: str | None, port: str | None, now: float) -> Answer:
        """Let them have windows again. Raises likewise."""


class FarView(Protocol):
    """Lists, adds, changes and removes far queues, as
    :class:`fairq_ryu.control.operations.far_control.FarControl`; rows are
    :class:`fairq_ryu.rest.schema.rows.FarQueueRow`.
    """

    def listed(self) -> Iterable[dict[str, Any]]:
        """All far queues."""

    def add(self, bridge: str, port: str, read: Callable[[str], FarQueue]) -> dict[str, Any]:
        """Let a port have one. Returns its row. Raises :class:`~fairq_ryu.errors.UserError`."""

    def remove(self, bridge: str, port: str) -> dict[str, Any]:
        """Let it have none. Returns the row of that which it had. Raises likewise."""


class TenantsView(Protocol):
    """Shows and changes tenants. Rows are :class:`fairq_ryu.rest.schema.rows.TenantRow`."""

    def rows(self) -> Rows:
        """All tenants."""

    def row(self, name: str) -> dict[str, Any] | None:
        """One tenant; None if it does not exist."""

    def put(self, name: str, hosts: Iterable[str], weight: int) -> bool:
        """Add a tenant, or change it; whether it is new. Raises :class:`~fairq_ryu.errors.UserError`."""

    def remove(self, name: str) -> bool:
        """Remove a tenant; False if it does not exist."""


class ClusterView(Protocol):
    """Shows who owns what, where several controllers share a fabric."""

    @property
    def is_known(self) -> bool:
        """Whether the database has been reached once: before that, nothing is governed."""

    def cluster(self) -> dict[str, Any]:
        """:class:`fairq_ryu.rest.schema.state.Cluster`."""


class MetricsView(Protocol):
    """Provides the metrics."""

    def render(self, accept: str) -> tuple[bytes, str]:
        """The metrics in the format that the client accepts, and its Content-Type."""

    def observe_request(self, method: str, path: str, code: int, seconds: float) -> None:
        """A request was answered; ``path`` as the resource has it, "" if there is none."""


@dataclass(slots=True)
class RestService:
    """All that requests are answered from."""

    view: View
    announcing: AnnouncingView | None = None
    policy: PolicyView | None = None
    metrics: MetricsView | None = None
    modes: ModesView | None = None
    far: FarView | None = None
    tenants: TenantsView | None = None
    cluster: ClusterView | None = None
    peers: Peers | None = None
    """the other controllers of the fabric; None: this one is alone"""
    streams: Streams = field(default_factory=Streams)
    pages: Pages = field(default_factory=Pages)
    ports: CachedReply = field(init=False)
    """the reply to /v1/ports"""
    turn: NewestFirst = field(init=False)
    """held while a long reply is made. Otherwise each of these requests would make
    :data:`~fairq_ryu.rest.reply.ROWS_AT_ONCE` rows between two turns of the control loop.
    """

    def __post_init__(self) -> None:
        """Create the shared reply."""
        self.turn = NewestFirst()
        self.ports = CachedReply(lambda: encode({"ports": list(in_steps(self.view.ports()))}))

    @property
    def history(self) -> History:
        """The past events."""
        return self.streams.history


@dataclass(frozen=True, slots=True)
class RequestContext:
    """A request: ``environ`` of WSGI; ``query``, ``parts`` (of the path) and ``body`` as parsed."""

    service: RestService
    environ: Mapping[str, Any]
    query: Any
    parts: Any
    body: Any


def page(name: str, context: RequestContext, found: tuple[Rows, int]) -> Answer:
    """A page: its rows, and their total number."""
    rows, total = found
    return {name: rows, "total": total, "limit": context.query.limit, "offset": context.query.offset}


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """A method of a path: its parameters, its responses, and its own errors.

    ``answers`` is a model for JSON; ``media`` what else may be answered, by Content-Type, with its meaning.
    ``bare``: other answers, without a body. ``joins`` (a list of the answer, by name) or ``join`` makes one
    answer for the whole fabric from those of its controllers; ``at_port``: it is about a bridge or a port,
    and for the controller that knows it. ``long``: it takes many turns of the control loop, and such answers
    are made one after the other.
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
    joins: str = ""
    join: Callable[[Sequence[Answer]], Answer] | None = None
    at_port: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """A resource. ``path`` may have parts in braces, as in OpenAPI."""

    path: str
    operations: Mapping[str, Operation]
    parts: type[RequestModel] = Nothing
