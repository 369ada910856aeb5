"""The controller's REST interface: what it knows, as JSON, and announcements of flows, which can be written.

Served by Ryu's own web server, in the controller's process. :data:`RESOURCES` is the one list of what
there is: the routes, the checks of queries and the tables of ``docs/rest.md`` follow from it. What is
written is in :mod:`~fairq_ryu.apps.announce_api`.

Every error is a problem document (RFC 9457). What a user gets wrong is never a 5xx.

Importing this module makes 127.0.0.1 the address that ryu-manager serves on, unless ``--wsapi-host``
or the configuration file names another: Ryu's own default is every address of the machine, and nobody
is asked who they are here.
"""

from __future__ import annotations

import errno
import logging
import socket
from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import islice
from typing import Any, Protocol

from ryu import cfg
from ryu.app.wsgi import ControllerBase, WSGIApplication
from ryu.lib import ip
from ryu.ofproto import ofproto_common

from fairq_ryu.apps import announce_api, rest_query
from fairq_ryu.apps.announce_api import AnnouncingView, Call, Reply
from fairq_ryu.apps.rest_answer import Answer, Refused, encode, in_turns, problem, response
from fairq_ryu.apps.rest_query import Parameter, Query, TcpOrSwitchPort
from fairq_ryu.errors import UserError
from fairq_ryu.fabric.flows import FlowState

LOG = logging.getLogger(__name__)

DEFAULT_HOST = "127.0.0.1"
ROOT = "/v1"
DEFAULT_LIMIT = 100
MOST_LIMIT = 1000

# Not an override: what the user gave on the command line or in a file goes before a default.
cfg.CONF.set_default("wsapi_host", DEFAULT_HOST)


class View(Protocol):
    """What the interface shows. Rows are dicts that JSON can say; ``docs/rest.md`` has their fields.

    ``dpid`` is always 16 hexadecimal digits in lower case, a port of a switch the pair ``[dpid, number]``.
    """

    def ports(self) -> list[dict[str, Any]]:
        """The ports of all switches: ``dpid``, ``port``, ``name``, ``role``, ``flows``, ``active``,
        ``queue_bytes``, ``peak_bytes``, ``limit_bytes``, ``rate_bps``, ``drops``, ``pool_bytes``,
        ``window_bytes``, ``flow_windows``, ``policy``, ``tx_bytes``, ``rx_bytes``, ``tx_bps``, ``rx_bps``.
        """

    def flows(self) -> Iterable[dict[str, Any]]:
        """All connections: ``src``, ``dst``, ``sport``, ``dport``, ``state``, ``ports``, ``back_ports``,
        ``wscale``, ``back_wscale``, ``mss``, ``bytes``, ``back_bytes``, ``age_s``, ``idle_s``, ``pinned``.

        Rows are taken a few at a time, and the controller goes on in between: the iteration must bear
        that flows come and go. If what is returned has a length, a listing without filters takes the
        rows of its page only, so a lazy collection is cheaper than a generator.
        """

    def switches(self) -> list[dict[str, Any]]:
        """The switches: ``dpid``, ``connected``, ``agent``, ``ports``."""

    def hosts(self) -> list[dict[str, Any]]:
        """The hosts that are known: ``mac``, ``at``, ``addresses``."""

    def links(self) -> list[dict[str, Any]]:
        """The links between switches, each once: ``a`` and ``b``, its two ports."""


def _at_port(flow: Mapping[str, Any], wanted: TcpOrSwitchPort) -> bool:
    if isinstance(wanted, int):
        return wanted in (flow["sport"], flow["dport"])
    return any(tuple(port) == wanted for path in ("ports", "back_ports") for port in flow[path])


# Parameter of /v1/flows -> whether a row is what it asks for.
_FILTERS: Mapping[str, Callable[[Mapping[str, Any], Any], bool]] = {
    "src": lambda flow, wanted: bool(flow["src"] == wanted),
    "dst": lambda flow, wanted: bool(flow["dst"] == wanted),
    "port": _at_port,
    "state": lambda flow, wanted: bool(flow["state"] == wanted),
}


def _flows(view: View, query: Query) -> Answer:
    limit, offset = query["limit"], query["offset"]
    filters = [(fits, query[name]) for name, fits in _FILTERS.items() if query[name] is not None]
    flows = view.flows()
    if not filters and isinstance(flows, Sized):
        total = len(flows)
        page = list(islice(in_turns(flows), offset, offset + limit))
    else:
        total, page = 0, []
        for flow in in_turns(flows):
            if all(fits(flow, wanted) for fits, wanted in filters):
                if offset <= total < offset + limit:
                    page.append(flow)
                total += 1
    return {"flows": page, "total": total, "limit": limit, "offset": offset}


@dataclass(frozen=True, slots=True)
class Resource:
    """Something that can be asked for. ``path`` may have parts in braces, as Routes and OpenAPI have."""

    path: str
    summary: str
    answer: Callable[[View, Query], Answer]
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True, slots=True)
class Announced:
    """A resource of announcements. ``answer`` is to GET and HEAD, ``writes`` are by method."""

    path: str
    summary: str
    answer: Callable[[Call], Answer]
    writes: Mapping[str, Callable[[Call], Reply]] = field(default_factory=dict)
    parameters: tuple[Parameter, ...] = ()


RESOURCES: tuple[Resource | Announced, ...] = (
    Resource(
        f"{ROOT}/ports",
        "the ports of all switches, with queue and windows",
        lambda view, _: {"ports": view.ports()},
    ),
    Resource(
        f"{ROOT}/flows",
        "the TCP connections, with the ports that they leave by",
        _flows,
        (
            Parameter("limit", rest_query.whole(1, MOST_LIMIT), "at most so many flows", DEFAULT_LIMIT),
            Parameter("offset", rest_query.whole(0, 10**9), "pass over so many flows first", 0),
            Parameter("src", rest_query.address, "IP address of the side that opened the connection"),
            Parameter("dst", rest_query.address, "IP address of the other side"),
            Parameter(
                "port",
                rest_query.port,
                "TCP port of either side, or `DPID:PORT`, a switch's port it leaves by",
            ),
            Parameter("state", rest_query.state, "one of " + ", ".join(f"`{state}`" for state in FlowState)),
        ),
    ),
    Resource(f"{ROOT}/switches", "the switches", lambda view, _: {"switches": view.switches()}),
    Resource(f"{ROOT}/hosts", "the hosts, and where they are", lambda view, _: {"hosts": view.hosts()}),
    Resource(f"{ROOT}/links", "the links between switches", lambda view, _: {"links": view.links()}),
    Announced(
        f"{ROOT}/gif", "flows by priority, with what they have left to send and until when", announce_api.gif
    ),
    Announced(
        f"{ROOT}/announcements",
        "what applications have announced; `POST` announces a flow",
        announce_api.listing,
        {"POST": announce_api.announce},
    ),
    Announced(
        f"{ROOT}/announcements/{{id}}",
        "one announcement; `DELETE` withdraws it",
        announce_api.one,
        {"DELETE": announce_api.withdraw},
    ),
)
_BY_PATH = {resource.path: resource for resource in RESOURCES}


class FairqRest(ControllerBase):
    """Answers one request; Ryu makes one for each. ``resource`` is the path in :data:`RESOURCES`."""

    def answer(self, req: Any, resource: str = "", **parts: str) -> Any:
        """Called by Ryu for every path under :data:`ROOT`; an unknown one comes without a resource."""
        try:
            return self._answer(req, _BY_PATH.get(resource), parts)
        except Refused as refused:
            return problem(refused.status, str(refused), refused.headers)
        except Exception:
            # Caught here, because Ryu's server would send the traceback to whoever asked.
            LOG.exception("REST: cannot answer %s", resource)
            return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "see the controller's log", {})

    def _answer(self, req: Any, resource: Resource | Announced | None, parts: Mapping[str, str]) -> Any:
        if resource is None:
            there = ", ".join(_BY_PATH)
            raise Refused(HTTPStatus.NOT_FOUND, f"there is no such resource; there are {there}")
        method = req.environ["REQUEST_METHOD"]
        writes = resource.writes if isinstance(resource, Announced) else {}
        if method not in ("GET", "HEAD", *writes):
            can = f"takes only {', '.join(('GET', 'HEAD', *writes))}" if writes else "can only be read"
            raise Refused(
                HTTPStatus.METHOD_NOT_ALLOWED,
                f"{resource.path} {can}",
                {"Allow": ", ".join(("GET", "HEAD", *writes))},
            )
        query = rest_query.parse(resource.path, resource.parameters, req.environ.get("QUERY_STRING", ""))
        if isinstance(resource, Resource):
            return _json(Reply(HTTPStatus.OK, resource.answer(self.data["view"], query)))
        call = Call(self.data["announcing"], req.environ, parts)
        if method not in writes:
            return _json(Reply(HTTPStatus.OK, resource.answer(call)))
        announce_api.check_writer(req.environ, self.data["remote_writes"], cfg.CONF.wsapi_host)
        return _json(writes[method](call))


def _json(reply: Reply) -> Any:
    if reply.answer is None:
        return response(reply.status, None, b"", reply.headers)
    return response(reply.status, "application/json", encode(reply.answer), reply.headers)


def register(
    wsgi: WSGIApplication, view: View, announcing: AnnouncingView | None = None, remote_writes: bool = False
) -> None:
    """Serve ``view`` under :data:`ROOT` of Ryu's web application; other paths are left to others.

    ``announcing``: who takes announcements (None: nobody does). They are taken from this machine only, unless
    ``remote_writes``.
    """
    # In a dict, because Ryu takes an object that is false in itself for none.
    wsgi.registory[FairqRest.__name__] = {
        "view": view,
        "announcing": announcing,
        "remote_writes": remote_writes,
    }
    for path in _BY_PATH:
        wsgi.mapper.connect(path, path, controller=FairqRest, action="answer", resource=path)
    # Routes tries them in this order. Without these, unknown paths would get Ryu's page in HTML.
    wsgi.mapper.connect(ROOT, ROOT, controller=FairqRest, action="answer")
    wsgi.mapper.connect(
        f"{ROOT}/*",
        f"{ROOT}/{{path}}",
        controller=FairqRest,
        action="answer",
        requirements={"path": r"[\s\S]*"},
    )


def check_port() -> None:
    """Raise :class:`UserError` if the REST port cannot be had.

    To be called before Ryu starts its web server, which would end in a traceback or, if another Ryu
    of the same user is there, share the port with it, so that each gets some of the requests.
    """
    host, port = cfg.CONF.wsapi_host, cfg.CONF.wsapi_port
    choose = "choose another with --wsapi-port (0: any that is free)"
    openflow = {getattr(cfg.CONF, name, None) for name in ("ofp_tcp_listen_port", "ofp_ssl_listen_port")}
    if port and port in (openflow - {None, 0} or {ofproto_common.OFP_TCP_PORT}):
        raise UserError(f"port {port} is OpenFlow's and cannot be the REST interface's too", choose)
    # As Ryu decides it.
    family = socket.AF_INET6 if ip.valid_ipv6(host) else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OverflowError:
            raise UserError(f"there is no port {port} for the REST interface", choose) from None
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise UserError(
                    f"port {port} of {host}, for the REST interface, is taken by another program", choose
                ) from None
            raise UserError(
                f"cannot serve REST on {host} port {port}: {error.strerror}",
                "see --wsapi-host and --wsapi-port",
            ) from None
