"""The controller's REST interface: its state as JSON and as streams, and the changes that it accepts.

Served by Ryu's own web server, in the controller's process. The resources are listed in
:data:`fairq_ryu.rest.resources.RESOURCES`; this module passes a request to its operation. Every error is a
problem document (RFC 9457). A user's error is never a 5xx.

Importing this module makes 127.0.0.1 the address that ryu-manager serves on, unless ``--wsapi-host``
or the configuration file names another: Ryu's own default is every address of the machine, and
reading needs no token.
"""

from __future__ import annotations

import errno
import json
import logging
import re
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from fairq_ryu.control.operations.requests import Unstored
from fairq_ryu.errors import UserError
from fairq_ryu.rest import server
from fairq_ryu.rest.cached_reply import CachedReply
from fairq_ryu.rest.guard import MAX_BODY, RequestGuard
from fairq_ryu.rest.openapi import WRITES, encoded
from fairq_ryu.rest.operations import Operation, RequestContext, Resource, RestService
from fairq_ryu.rest.peers import ELSEWHERE, OWN, SCOPE, Peers, whole, whole_page
from fairq_ryu.rest.peers import rows as rows_of
from fairq_ryu.rest.reply import JSON, SENDS, Answer, Reply, RequestRefused, encode, problem
from fairq_ryu.rest.resources import PORTS, RESOURCES
from fairq_ryu.rest.schema import validation
from fairq_ryu.rest.schema.base import quoted
from fairq_ryu.rest.schema.requests import PageQuery
from fairq_ryu.ryu_compat.runtime import cfg, ip, ofproto_common

LOG = logging.getLogger(__name__)

DEFAULT_HOST = "127.0.0.1"
# The paths of this interface; other paths are left to Ryu's other applications.
_OURS = re.compile(r"/v1(/.*)?|/page(/.*)?", re.S)
# In the environment of a request.
_SCOPE = "HTTP_FAIRQ_SCOPE"
_ALWAYS = (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"))

# Not an override: values of the command line or of a file have precedence over a default.
cfg.CONF.set_default("wsapi_host", DEFAULT_HOST)

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Rest:
    """The interface as a WSGI application in front of ``other``, which gets all other paths."""

    def __init__(self, service: RestService, guard: RequestGuard, other: Wsgi) -> None:
        self.service = service
        self.guard = guard
        self._other = other
        # Encoded now: it takes too long for a controller with switches.
        encoded(RESOURCES)
        self.max_body = MAX_BODY
        # Where several controllers share the fabric, all are asked for the ports.
        self._all_ports = CachedReply(self._joined_ports)
        self._plain = {each.path: each for each in RESOURCES if "{" not in each.path}
        self._parted = [(_pattern(each.path), each) for each in RESOURCES if "{" in each.path]

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer one request."""
        started = time.monotonic()
        # Of WSGI, the bytes of a path stand for characters (PEP 3333).
        path = environ.get("PATH_INFO", "").encode("latin-1", "replace").decode("utf-8", "replace")
        resource, parts = self._find(path)
        if resource is None and not _OURS.fullmatch(path):
            return self._other(environ, start_response)
        head = environ["REQUEST_METHOD"] == "HEAD"
        try:
            reply = self._answer(environ, resource, parts)
        except Unstored as error:
            reply = problem(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        except RequestRefused as refused:
            reply = problem(refused.status, str(refused), refused.headers)
        except Exception:
            # Caught here, because the server would close the connection without a reply.
            LOG.exception("REST: cannot answer %s", quoted(path))
            reply = problem(HTTPStatus.INTERNAL_SERVER_ERROR, "see the controller's log")
        if self.service.metrics is not None:
            template = "" if resource is None else resource.path
            taken = time.monotonic() - started
            self.service.metrics.observe_request(environ["REQUEST_METHOD"], template, reply.status, taken)
        # A HEAD of a stream is no stream: the connection goes on, and must be found when there are too many.
        streams = reply.stream is not None and not head
        environ.get(SENDS, lambda _: None)(None if streams else len(reply.body))
        return _send(reply, start_response, head)

    def _joined_ports(self) -> bytes:
        own = _answer_of(Reply(body=self.service.ports.get()))
        assert self.service.peers is not None
        return encode(whole(self.service.peers, PORTS, own, rows_of("ports")))

    def _find(self, path: str) -> tuple[Resource | None, Mapping[str, str]]:
        found = self._plain.get(path)
        if found is not None:
            return found, {}
        for pattern, resource in self._parted:
            match = pattern.fullmatch(path)
            if match is not None:
                return resource, match.groupdict()
        return None, {}

    def _answer(self, environ: dict[str, Any], resource: Resource | None, parts: Mapping[str, str]) -> Reply:
        self.guard.check_host(environ)
        if resource is None:
            there = ", ".join(each.path for each in RESOURCES)
            raise RequestRefused(HTTPStatus.NOT_FOUND, f"there is no such resource; there are {there}")
        operation = self._operation(environ["REQUEST_METHOD"], resource)
        if operation.body is not None or environ["REQUEST_METHOD"] in WRITES:
            self.guard.check_writer(environ)
        context = self._read(environ, resource, operation, parts)
        peers = None if environ.get(_SCOPE) == OWN else self.service.peers
        if peers is not None and (operation.join or operation.joins):
            # Nothing is held meanwhile: the others may be asking this controller.
            if resource.path == PORTS:
                return Reply(body=self._all_ports.get(), content_type=JSON)
            return _encoded(Reply(operation.status, self._whole(peers, environ, operation, context)))
        try:
            if operation.long:
                with self.service.turn:
                    return _encoded(self._own(operation, context))
            return _encoded(self._own(operation, context))
        except RequestRefused as refused:
            if peers is None or not operation.at_port or refused.headers.get(SCOPE) != ELSEWHERE:
                raise
            body = None if context.body is None else context.body.model_dump_json(exclude_unset=True).encode()
            return peers.pass_on(environ, body, refused)

    def _whole(
        self, peers: Peers, environ: dict[str, Any], operation: Operation, context: RequestContext
    ) -> Answer:
        """The answer of all controllers of the fabric."""
        path = quote(environ["PATH_INFO"], encoding="latin-1")
        if not isinstance(context.query, PageQuery):
            join = operation.join or rows_of(operation.joins)
            return whole(peers, path, _answer_of(self._own(operation, context)), join)

        def part(limit: int, offset: int) -> Answer:
            query = context.query.model_copy(update={"limit": limit, "offset": offset})
            return _answer_of(self._own(operation, replace(context, query=query)))

        return whole_page(peers, path, context.query.model_dump(), operation.joins, part)

    def _own(self, operation: Operation, context: RequestContext) -> Reply:
        """The answer of this controller."""
        made = operation.handle(context)
        return made if isinstance(made, Reply) else Reply(operation.status, made)

    @staticmethod
    def _operation(method: str, resource: Resource) -> Operation:
        operations = resource.operations
        found = operations.get("GET" if method == "HEAD" else method)
        if found is None:
            can = [each for name in operations for each in (name, "HEAD") if each != "HEAD" or name == "GET"]
            words = "can only be read" if list(operations) == ["GET"] else f"takes only {', '.join(can)}"
            raise RequestRefused(
                HTTPStatus.METHOD_NOT_ALLOWED, f"{resource.path} {words}", {"Allow": ", ".join(can)}
            )
        return found

    def _read(
        self, environ: dict[str, Any], resource: Resource, operation: Operation, parts: Mapping[str, str]
    ) -> RequestContext:
        try:
            query = validation.query(operation.query, resource.path, environ.get("QUERY_STRING", ""))
            body = None
            if operation.body is not None:
                body = validation.body(operation.body, self.guard.read_body(environ))
        except validation.InvalidRequest as wrong:
            raise RequestRefused(HTTPStatus.BAD_REQUEST, str(wrong)) from None
        try:
            named = validation.checked(resource.parts, parts)
        except validation.InvalidRequest as wrong:
            raise RequestRefused(HTTPStatus.NOT_FOUND, f"there is no such resource: {wrong}") from None
        return RequestContext(self.service, environ, query, named, body)


def _encoded(made: Reply) -> Reply:
    if made.answer is None:
        return made
    return Reply(made.status, headers=made.headers, body=encode(made.answer), content_type=JSON)


def _answer_of(made: Reply) -> Answer:
    """The object of a reply, which may have been encoded already."""
    answer: Answer = json.loads(made.body) if made.answer is None else made.answer
    return answer


def _pattern(path: str) -> re.Pattern[str]:
    """The pattern of a path with parts; a part contains no slash."""
    pieces = re.split(r"\{(\w+)\}", path)
    text = "".join(
        re.escape(each) if number % 2 == 0 else f"(?P<{each}>[^/]*)" for number, each in enumerate(pieces)
    )
    return re.compile(text, re.S)


def _send(reply: Reply, start_response: Callable[..., Any], head: bool) -> Iterable[bytes]:
    headers = dict(_ALWAYS) | dict(reply.headers)
    if reply.content_type is not None:
        headers["Content-Type"] = reply.content_type
    if reply.stream is None and reply.status not in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
        headers["Content-Length"] = str(len(reply.body))
    start_response(f"{int(reply.status)} {reply.status.phrase}", list(headers.items()))
    if reply.stream is not None:
        return reply.stream
    return [] if head or not reply.body else [reply.body]


def register(wsgi: Any, service: RestService, guard: RequestGuard | None = None) -> Rest:
    """Make Ryu's web server serve ``service`` in front of its application ``wsgi``, which keeps all other
    paths.
    """
    made = Rest(service, guard or RequestGuard(), wsgi)
    server.install(wsgi, made)
    return made


def check_port() -> None:
    """Raise :class:`UserError` if the REST port cannot be used.

    To be called before Ryu starts its web server: that would end in a traceback or, if another Ryu of the
    same user listens, share the port with it, so that each would get some of the requests.
    """
    host, port = cfg.CONF.wsapi_host, cfg.CONF.wsapi_port
    choose = "choose another with --wsapi-port (0: any that is free)"
    openflow = {getattr(cfg.CONF, name, None) for name in ("ofp_tcp_listen_port", "ofp_ssl_listen_port")}
    if port and port in (openflow - {None, 0} or {ofproto_common.OFP_TCP_PORT}):
        raise UserError(f"port {port} is used for OpenFlow and cannot be the REST port too", choose)
    # The same decision as Ryu's.
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
