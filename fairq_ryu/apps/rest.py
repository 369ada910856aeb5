"""The controller's REST interface: what it knows, as JSON. Read-only.

Served by Ryu's own web server, in the controller's process. :data:`RESOURCES` is the one list of what
there is: the routes, the checks of queries and the tables of ``docs/rest.md`` follow from it.

Every error is a problem document (RFC 9457). What a user gets wrong is never a 5xx.

Importing this module makes 127.0.0.1 the address that ryu-manager serves on, unless ``--wsapi-host``
or the configuration file names another: Ryu's own default is every address of the machine, and nobody
is asked who they are here.
"""

from __future__ import annotations

import errno
import ipaddress
import json
import logging
import re
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from http import HTTPStatus
from itertools import islice
from typing import Any, Protocol
from urllib.parse import parse_qsl

from ryu import cfg
from ryu.app.wsgi import ControllerBase, Response, WSGIApplication
from ryu.lib import hub, ip
from ryu.ofproto import ofproto_common

from fairq_ryu.errors import UserError
from fairq_ryu.fabric.flows import FlowState

LOG = logging.getLogger(__name__)

DEFAULT_HOST = "127.0.0.1"
ROOT = "/v1"
DEFAULT_LIMIT = 100
MOST_LIMIT = 1000
# After so many rows the control loop gets its turn: it reads queues every 2 ms and must not wait for
# somebody who lists a million flows.
_ROWS_AT_ONCE = 50
# No name or value of a query that is longer is worth repeating in an answer.
_QUOTED = 60

# Not an override: what the user gave on the command line or in a file goes before a default.
cfg.CONF.set_default("wsapi_host", DEFAULT_HOST)


class View(Protocol):
    """What the interface shows. Rows are dicts that JSON can say; ``docs/rest.md`` has their fields.

    ``dpid`` is always 16 hexadecimal digits in lower case, a port of a switch the pair ``[dpid, number]``.
    """

    def ports(self) -> list[dict[str, Any]]:
        """The ports of all switches: ``dpid``, ``port``, ``name``, ``role``, ``flows``, ``active``,
        ``queue_bytes``, ``peak_bytes``, ``limit_bytes``, ``rate_bps``, ``drops``, ``pool_bytes``,
        ``window_bytes``, ``flow_windows``, ``policy``.
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


# Queries


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a query. ``parse`` raises ValueError, saying what is wrong with a text;
    ``default`` is the value without it (None: it is as if it were not there).
    """

    name: str
    parse: Callable[[str], Any]
    help: str
    default: Any = None


def _quoted(text: str) -> str:
    return repr(text if len(text) <= _QUOTED else text[:_QUOTED] + "...")


def _whole(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        # int() alone would take blanks, signs, underscores and the digits of other scripts.
        if not re.fullmatch(r"[0-9]{1,12}", text):
            raise ValueError(f"{_quoted(text)} is not a whole number from {least} to {most}")
        value = int(text)
        if value < least:
            raise ValueError(f"{value} is less than {least}")
        if value > most:
            raise ValueError(f"{value} is more than {most}")
        return value

    return parse


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise ValueError(f"{_quoted(text)} is not an IP address") from None


def _state(text: str) -> str:
    states = [str(state) for state in FlowState]
    if text not in states:
        raise ValueError(f"{_quoted(text)} is none of {', '.join(states)}")
    return text


_TcpOrSwitchPort = int | tuple[str, int]


def _port(text: str) -> _TcpOrSwitchPort:
    """A TCP port (``5001``) or a switch's (``1:3`` or ``0000000000000001:3``)."""
    found = re.fullmatch(r"(?:([0-9a-fA-F]{1,16}):)?([0-9]{1,10})", text)
    if found is None:
        raise ValueError(f"{_quoted(text)} is neither a TCP port nor DPID:PORT")
    dpid, number = found[1], int(found[2])
    if dpid is not None:
        return f"{int(dpid, 16):016x}", number
    if number > 0xFFFF:
        raise ValueError(f"{number} is more than 65535")
    return number


def _at_port(flow: Mapping[str, Any], wanted: _TcpOrSwitchPort) -> bool:
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


# Answers

Query = Mapping[str, Any]
Answer = dict[str, Any]


def _in_turns(rows: Iterable[Any]) -> Iterator[Any]:
    """The same rows, with a turn for the rest of the controller now and then."""
    for count, row in enumerate(rows, 1):
        yield row
        if count % _ROWS_AT_ONCE == 0:
            hub.sleep(0)


def _flows(view: View, query: Query) -> Answer:
    limit, offset = query["limit"], query["offset"]
    filters = [(fits, query[name]) for name, fits in _FILTERS.items() if query[name] is not None]
    flows = view.flows()
    if not filters and isinstance(flows, Sized):
        total = len(flows)
        page = list(islice(_in_turns(flows), offset, offset + limit))
    else:
        total, page = 0, []
        for flow in _in_turns(flows):
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


RESOURCES: tuple[Resource, ...] = (
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
            Parameter("limit", _whole(1, MOST_LIMIT), "at most so many flows", DEFAULT_LIMIT),
            Parameter("offset", _whole(0, 10**9), "pass over so many flows first", 0),
            Parameter("src", _address, "IP address of the side that opened the connection"),
            Parameter("dst", _address, "IP address of the other side"),
            Parameter("port", _port, "TCP port of either side, or `DPID:PORT`, a switch's port it leaves by"),
            Parameter("state", _state, "one of " + ", ".join(f"`{state}`" for state in FlowState)),
        ),
    ),
    Resource(f"{ROOT}/switches", "the switches", lambda view, _: {"switches": view.switches()}),
    Resource(f"{ROOT}/hosts", "the hosts, and where they are", lambda view, _: {"hosts": view.hosts()}),
    Resource(f"{ROOT}/links", "the links between switches", lambda view, _: {"links": view.links()}),
)
_BY_PATH = {resource.path: resource for resource in RESOURCES}


class _Refused(Exception):
    """The request cannot be answered; ``str()`` is the detail for the problem document."""

    def __init__(self, status: HTTPStatus, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = dict(headers or {})


def _parse(resource: Resource, text: str) -> Query:
    """The query string as the resource's parameters have it. Raises :class:`_Refused` with 400."""
    known = {parameter.name: parameter for parameter in resource.parameters}
    values = {name: parameter.default for name, parameter in known.items()}
    given: set[str] = set()
    try:
        # One more than there can be: repeated ones get their own complaint, thousands get this one.
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=len(known) + 32)
    except UnicodeDecodeError:
        raise _Refused(HTTPStatus.BAD_REQUEST, "the query is not UTF-8") from None
    except ValueError:
        raise _Refused(HTTPStatus.BAD_REQUEST, "the query has too many parameters") from None
    for name, value in pairs:
        if name not in known:
            there = f"known are {', '.join(known)}" if known else f"{resource.path} takes none"
            raise _Refused(HTTPStatus.BAD_REQUEST, f"unknown parameter {_quoted(name)}: {there}")
        if name in given:
            raise _Refused(HTTPStatus.BAD_REQUEST, f"{name}: given more than once")
        given.add(name)
        try:
            values[name] = known[name].parse(value)
        except ValueError as error:
            raise _Refused(HTTPStatus.BAD_REQUEST, f"{name}: {error}") from None
    return values


def _encode(answer: Answer) -> bytes:
    """JSON, as ``json.dumps`` would have it; long lists in turns with the rest of the controller."""
    fields = []
    for name, value in answer.items():
        if isinstance(value, list):
            text = f"[{', '.join(json.dumps(row, allow_nan=False) for row in _in_turns(value))}]"
        else:
            text = json.dumps(value, allow_nan=False)
        fields.append(f"{json.dumps(name)}: {text}")
    return f"{{{', '.join(fields)}}}\n".encode()


def _response(status: HTTPStatus, content_type: str, body: bytes, headers: Mapping[str, str]) -> Any:
    response = Response(status=int(status), content_type=content_type, charset=None, body=body)
    response.headers.update({"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **headers})
    return response


def _problem(status: HTTPStatus, detail: str, headers: Mapping[str, str]) -> Any:
    document = {"type": "about:blank", "title": status.phrase, "status": int(status), "detail": detail}
    return _response(status, "application/problem+json", _encode(document), headers)


class FairqRest(ControllerBase):
    """Answers one request; Ryu makes one for each. ``resource`` is the path in :data:`RESOURCES`."""

    def answer(self, req: Any, resource: str = "", **_parts: str) -> Any:
        """Called by Ryu for every path under :data:`ROOT`; an unknown one comes without a resource."""
        try:
            return self._answer(req, _BY_PATH.get(resource))
        except _Refused as refused:
            return _problem(refused.status, str(refused), refused.headers)
        except Exception:
            # Caught here, because Ryu's server would send the traceback to whoever asked.
            LOG.exception("REST: cannot answer %s", resource)
            return _problem(HTTPStatus.INTERNAL_SERVER_ERROR, "see the controller's log", {})

    def _answer(self, req: Any, resource: Resource | None) -> Any:
        if resource is None:
            there = ", ".join(_BY_PATH)
            raise _Refused(HTTPStatus.NOT_FOUND, f"there is no such resource; there are {there}")
        if req.environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            raise _Refused(
                HTTPStatus.METHOD_NOT_ALLOWED, f"{resource.path} can only be read", {"Allow": "GET, HEAD"}
            )
        query = _parse(resource, req.environ.get("QUERY_STRING", ""))
        body = _encode(resource.answer(self.data["view"], query))
        return _response(HTTPStatus.OK, "application/json", body, {})


def register(wsgi: WSGIApplication, view: View) -> None:
    """Serve ``view`` under :data:`ROOT` of Ryu's web application; other paths are left to others."""
    # In a dict, because Ryu takes an object that is false in itself for none.
    wsgi.registory[FairqRest.__name__] = {"view": view}
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
