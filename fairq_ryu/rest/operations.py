"""The operations of the REST interface, the context of a request, and the views that answer it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Protocol

from fairq_ryu.control.operations.far_control import FarControl
from fairq_ryu.control.operations.mode_control import ModeControl
from fairq_ryu.control.operations.policy_control import PolicyControl
from fairq_ryu.control.operations.tenant_control import TenantOperations
from fairq_ryu.control.ownership.owners import Owners
from fairq_ryu.control.yielding import in_steps
from fairq_ryu.rest.cached_reply import CachedReply
from fairq_ryu.rest.newest_first import NewestFirst
from fairq_ryu.rest.peers import Peers
from fairq_ryu.rest.reply import Answer, Reply, encode
from fairq_ryu.rest.schema.base import RequestModel, Row
from fairq_ryu.rest.schema.requests import Nothing
from fairq_ryu.rest.static_pages import Pages
from fairq_ryu.rest.streams import Streams
from fairq_ryu.rest.views import AnnouncementsView, FabricView

Rows = list[dict[str, Any]]


class MetricsView(Protocol):
    """Provides the metrics."""

    def render(self, accept: str) -> tuple[bytes, str]:
        """The metrics in the format that the client accepts, and its Content-Type."""

    def observe_request(self, method: str, path: str, code: int, seconds: float) -> None:
        """A request was answered; ``path`` as the resource has it, "" if there is none."""


@dataclass(slots=True)
class RestService:
    """All that requests are answered from."""

    view: FabricView
    announcing: AnnouncementsView | None = None
    policy: PolicyControl | None = None
    metrics: MetricsView | None = None
    modes: ModeControl | None = None
    far: FarControl | None = None
    tenants: TenantOperations | None = None
    cluster: Owners | None = None
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
