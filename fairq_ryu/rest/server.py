"""The web server: Ryu's, with limits, and without a log line for each request."""

from __future__ import annotations

import json
import logging
from functools import partial
from http import HTTPStatus
from typing import Any

from fairq_ryu.rest.connections import Connections
from fairq_ryu.rest.reply import CLOSE, PROBLEM, SENDS
from fairq_ryu.rest.schema.base import quoted
from fairq_ryu.ryu_compat import web_server
from fairq_ryu.ryu_compat.runtime import eventlet, eventlet_wsgi, hub, ryu_wsgi

LOG = logging.getLogger(__name__)

# A connection on which no data is received or accepted for this many seconds is closed.
IDLE = 60.0
# Maximum number of characters of an error, and of digits of a body's length.
_MAX_ERROR = 200
_MAX_DIGITS = 18
# One request in each turn of the loop, so that those of many clients, or of one that sends faster than it is
# answered, do not keep the controller from its work.
_TURN = eventlet.semaphore.Semaphore(1)


class Protocol(eventlet_wsgi.HttpProtocol):
    """One of these connections. Errors of HTTP itself are problem documents, too."""

    def __init__(self, connections: Connections, connection: Any, server: Any) -> None:
        """Serves it to its end."""
        self._sends = partial(connections.sends, connection[1])
        super().__init__(connection, server)

    def handle_one_request(self) -> None:
        """Answer the next request."""
        self._sends(0)
        super().handle_one_request()

    def _read_request_line(self) -> bytes:
        """The first line of the next request; empty if it cannot be parsed."""
        self.command = None
        line: bytes = super()._read_request_line() or b""
        limit = self.server.url_length_limit
        if len(line) >= limit:
            self.send_error(HTTPStatus.REQUEST_URI_TOO_LONG, f"the first line is longer than {limit:,} bytes")
            return b""
        if line:
            _TURN.acquire()
            eventlet.hubs.get_hub().schedule_call_global(0, _TURN.release)
        return line

    def parse_request(self) -> bool:
        """Parse the head of a request, and refuse with a reason what the server would refuse without one."""
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
        """The fault of the headers that give the body's length; "" without one."""
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
            return f"Content-Length: {quoted(length)} is not a number of bytes"
        return ""

    def get_environ(self) -> dict[str, Any]:
        """The environment for the application; ``fairq.close`` ends the connection after its reply."""
        found: dict[str, Any] = super().get_environ()
        found[CLOSE], found[SENDS] = self._close, self._sends
        length = str(found.get("CONTENT_LENGTH") or "0")
        limit = getattr(self.server.app, "max_body", None)
        unknown = bool(found.get("HTTP_TRANSFER_ENCODING")) or not length.isdigit()
        if limit is not None and (unknown or int(length) > limit):
            # Otherwise the server would read the whole body to find the next request.
            self._close()
        return found

    def _close(self) -> None:
        self.close_connection = True

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a request that cannot be passed on. This is the client's error: never a 5xx."""
        if code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            code = HTTPStatus.BAD_REQUEST
        phrase = HTTPStatus(code).phrase
        detail = (message or phrase)[:_MAX_ERROR]
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
    """Ryu's server for an application; created where Ryu creates its own."""

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
    connections = Connections()
    eventlet_wsgi.server(
        web_server.accepting(listening, LOG),
        application,
        custom_pool=connections,
        protocol=partial(Protocol, connections),
        keepalive=True,
        log_output=False,
        debug=False,
        socket_timeout=IDLE,
    )


def install(wsgi: Any, application: Any) -> None:
    """Let Ryu serve ``application`` where it would serve ``wsgi``."""
    web_server.replace(wsgi, lambda: Server(application))
