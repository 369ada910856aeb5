"""The web server: Ryu's, with limits, without a line in the log for each request, and a short way for ports.

Ryu's own makes a greenlet for each connection and hands requests to its application, through parsers that
take longer than the answer. That is fine for people. A dashboard or a load generator that reads the ports a
thousand times a second would keep the control loop waiting; so that one request is answered before any of
that, from an answer that is encoded once for all who ask within a moment.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from email.utils import formatdate
from http import HTTPStatus
from typing import Any

from fairq_ryu.rest.cached_reply import CachedReply
from fairq_ryu.rest.reply import CLOSE, JSON, PROBLEM
from fairq_ryu.rest.schema.base import quoted
from fairq_ryu.ryu_compat.runtime import eventlet_wsgi, hub, ryu_wsgi

LOG = logging.getLogger(__name__)

# A connection that says nothing for so many seconds is closed; one that takes nothing in, too.
IDLE = 60.0
# Connections at a time. Of more, the next waits until one has ended.
CONNECTIONS = 256
# The short way reads heads of no more bytes, remembers so many of them, and knows these headers.
_MAX_HEAD = 2048
_MAX_HEADS = 64
_PLAIN = {b"host", b"user-agent", b"accept", b"accept-encoding", b"accept-language", b"connection"}
# Of what is wrong with a request, so many characters are said; a length of a body has no more digits.
_MAX_WORDS = 200
_MAX_DIGITS = 18


class Short:
    """The short way of one path: ``GET`` without a query, by a client that wants nothing special. Any other
    request goes the usual way, which also finds the words for what is wrong.
    """

    def __init__(self, path: str, answer: CachedReply, own: Callable[[str], bool]) -> None:
        """``own`` says whether a name in ``Host`` is the server's."""
        # Told of each answer how long it took, seconds.
        self.observe: Callable[[float], None] = lambda _: None
        self.line = f"GET {path} HTTP/1.1\r\n".encode()
        self._answer = answer
        self._own = own
        self._fine: set[bytes] = set()
        self._body = b""
        self._whole = b""

    def fits(self, head: bytes) -> bool:
        """Is this the head of such a request? Clients send the same one each time, so it is read once."""
        if head in self._fine:
            return True
        fine = self._fits(head)
        if fine and len(self._fine) < _MAX_HEADS:
            self._fine.add(head)
        return fine

    def _fits(self, head: bytes) -> bool:
        hosts = 0
        for line in head[len(self.line) :].split(b"\r\n"):
            name, sign, value = line.partition(b":")
            name, value = name.lower(), value.strip()
            if not sign or name not in _PLAIN or (name == b"connection" and value.lower() != b"keep-alive"):
                return False
            if name == b"host":
                hosts += 1
                if not self._own(value.decode("latin-1")):
                    return False
        return hosts == 1

    def whole(self) -> bytes:
        """The answer with its head. Raises what making it does."""
        body = self._answer.get()
        if body is not self._body:
            head = (
                f"HTTP/1.1 200 OK\r\nContent-Type: {JSON}\r\nContent-Length: {len(body)}\r\n"
                "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
                f"Date: {formatdate(usegmt=True)}\r\n\r\n"
            )
            self._body, self._whole = body, head.encode() + body
        return self._whole


class Protocol(eventlet_wsgi.HttpProtocol):
    """One connection. Errors of HTTP itself are problem documents, too."""

    def handle_one_request(self) -> None:
        """Answer the next request, the short way if it may go there."""
        short: Short | None = getattr(self.server.app, "short", None)
        if short is None or not self._answered(short):
            super().handle_one_request()

    def _answered(self, short: Short) -> bool:
        """Nothing is taken from the connection unless the answer is sent."""
        try:
            # What has come already, and waits for it if that is nothing.
            seen = self.rfile.peek()
        except OSError as error:
            if isinstance(error, TimeoutError):
                raise
            return False
        end = seen.find(b"\r\n\r\n", 0, _MAX_HEAD)
        if end < 0 or not seen.startswith(short.line) or not short.fits(seen[:end]):
            return False
        started = time.monotonic()
        try:
            answer = short.whole()
        except Exception:
            return False  # the usual way says so, and why
        self.rfile.read(end + 4)
        self.close_connection = False
        try:
            self.connection.sendall(answer)
        except OSError:
            self.close_connection = True
        short.observe(time.monotonic() - started)
        # A client that asks faster than it is answered must not have the controller for itself.
        hub.sleep(0)
        return True

    def _read_request_line(self) -> bytes:
        """The first line of the next request; empty if there is none that could be read on."""
        self.command = None
        line: bytes = super()._read_request_line() or b""
        most = self.server.url_length_limit
        if len(line) >= most:
            self.send_error(HTTPStatus.REQUEST_URI_TOO_LONG, f"the first line is longer than {most:,} bytes")
            return b""
        return line

    def parse_request(self) -> bool:
        """Read the head of a request, and refuse here what the server would refuse without a word."""
        try:
            if not super().parse_request():
                return False
        except eventlet_wsgi.HeaderLineTooLong:
            self.send_error(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "a header is too long")
            return False
        except eventlet_wsgi.HeadersTooLarge:
            self.send_error(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the headers are too long together")
            return False
        wrong = self._wrong_length()
        if wrong:
            self.send_error(HTTPStatus.BAD_REQUEST, wrong)
        return not wrong

    def _wrong_length(self) -> str:
        """What is wrong with what is said of the body's length; "" if nothing is."""
        lengths = self.headers.get_all("content-length", [])
        if not lengths:
            return ""
        if len(lengths) > 1:
            return "Content-Length is there more than once"
        if "transfer-encoding" in self.headers:
            return "Content-Length and Transfer-Encoding do not go together"
        length = lengths[0].strip()
        # int() would take signs, underscores and digits of other scripts.
        if not (length.isascii() and length.isdigit() and len(length) <= _MAX_DIGITS):
            return f"Content-Length: {quoted(length)} is no number of bytes"
        return ""

    def get_environ(self) -> dict[str, Any]:
        """What the application is told; ``fairq.close`` ends the connection after its answer."""
        found: dict[str, Any] = super().get_environ()
        found[CLOSE] = self._close
        length = str(found.get("CONTENT_LENGTH") or "0")
        most = getattr(self.server.app, "max_body", None)
        unknown = bool(found.get("HTTP_TRANSFER_ENCODING")) or not length.isdigit()
        if most is not None and (unknown or int(length) > most):
            # Or the server would read to its end what nobody wants, to go on with what follows it.
            self._close()
        return found

    def _close(self) -> None:
        self.close_connection = True

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """The request is none that could be handed on. That is the client's mistake: never a 5xx."""
        if code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            code = HTTPStatus.BAD_REQUEST
        phrase = HTTPStatus(code).phrase
        detail = (message or phrase)[:_MAX_WORDS]
        document = {"type": "about:blank", "title": phrase, "status": int(code), "detail": detail}
        body = f"{json.dumps(document)}\n".encode()
        head = (
            f"HTTP/1.1 {int(code)} {phrase}\r\nContent-Type: {PROBLEM}\r\nContent-Length: {len(body)}\r\n"
            "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
        )
        self.close_connection = True
        self.wfile.write(head.encode() + (b"" if self.command == "HEAD" else body))
        self.wfile.flush()


class Server(hub.WSGIServer):
    """Ryu's server for an application; made where Ryu makes its own."""

    def __init__(self, application: Any) -> None:
        conf = ryu_wsgi.CONF
        super().__init__((conf.wsapi_host, conf.wsapi_port), application)

    def __call__(self) -> None:
        """Serve until the controller ends."""
        host, port = self.server.getsockname()[:2]
        LOG.info("REST: http://%s:%d", f"[{host}]" if ":" in host else host, port)
        serve(self.server, self.handle)


def serve(listening: Any, application: Any) -> None:
    """Serve an application on a socket that listens."""
    eventlet_wsgi.server(
        listening,
        application,
        max_size=CONNECTIONS,
        protocol=Protocol,
        keepalive=True,
        log_output=False,
        debug=False,
        socket_timeout=IDLE,
    )


def install(wsgi: Any, application: Any) -> None:
    """Make Ryu serve ``application`` where it would serve ``wsgi``. Ryu asks nobody which server to make, so
    its name for it is replaced; applications of others are served as they would be.
    """
    usual = ryu_wsgi.WSGIServer
    ryu_wsgi.WSGIServer = lambda instance: Server(application) if instance is wsgi else usual(instance)
