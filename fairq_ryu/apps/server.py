"""The web server: Ryu's, with limits, without a line in the log for each request, and a short way for ports.

Ryu's own makes a greenlet for each connection and hands requests to its application, through parsers that
take longer than the answer. That is fine for people. A dashboard or a load generator that reads the ports a
thousand times a second would keep the control loop waiting; so that one request is answered before any of
that, from an answer that is encoded once for all who ask within a moment.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import eventlet
import eventlet.wsgi
from eventlet import event
from ryu.app import wsgi as ryu_wsgi
from ryu.lib import hub

from fairq_ryu.apps.rest_answer import PROBLEM

# An answer is shared by all who ask within so many seconds of its making.
KEEP = 0.05
# A connection that says nothing for so many seconds is closed; one that takes nothing in, too.
IDLE = 60.0
# Connections at a time. Of more, the next waits until one has ended.
CONNECTIONS = 256
_MOST_HEADERS = 64


class Shared:
    """An answer that is made at most once in :data:`KEEP` seconds, however many ask for it.

    ``make`` may let other greenlets in; whoever asks meanwhile waits for the same answer.
    """

    def __init__(self, make: Callable[[], bytes], clock: Callable[[], float] = time.monotonic) -> None:
        self._make = make
        self._clock = clock
        self._body = b""
        self._until = float("-inf")
        self._making: Any = None

    def get(self) -> bytes:
        """The answer. Raises what ``make`` does."""
        if self._clock() < self._until:
            return self._body
        if self._making is not None:
            return bytes(self._making.wait())
        self._making = making = event.Event()
        started = self._clock()
        try:
            body = self._make()
        except BaseException as error:
            self._making = None
            making.send_exception(error)
            raise
        now = self._clock()
        # What takes long to make is made less often: no more than a tenth of the time goes into it.
        self._body, self._until = body, max(started + KEEP, now + 10 * (now - started))
        self._making = None
        making.send(body)
        return body


class Protocol(eventlet.wsgi.HttpProtocol):
    """One connection. Errors of HTTP itself are problem documents, too."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """The request is none that could be handed on."""
        phrase = HTTPStatus(code).phrase
        document = {"type": "about:blank", "title": phrase, "status": int(code), "detail": message or phrase}
        body = f"{json.dumps(document)}\n".encode()
        head = (
            f"HTTP/1.1 {int(code)} {phrase}\r\nContent-Type: {PROBLEM}\r\nContent-Length: {len(body)}\r\n"
            "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
        )
        self.close_connection = True
        self.wfile.write(head.encode() + body)
        self.wfile.flush()


class Server(hub.WSGIServer):
    """Ryu's server for an application; made where Ryu makes its own."""

    def __init__(self, application: Any) -> None:
        conf = ryu_wsgi.CONF
        super().__init__((conf.wsapi_host, conf.wsapi_port), application)

    def __call__(self) -> None:
        """Serve until the controller ends."""
        serve(self.server, self.handle)


def serve(listening: Any, application: Any) -> None:
    """Serve an application on a socket that listens."""
    eventlet.wsgi.server(
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
