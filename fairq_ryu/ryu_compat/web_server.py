"""The web server that Ryu starts for its REST application, replaced for one application.

Ryu has no setting for the class of the server, so the function that creates it is replaced. Ryu's own logs a
line for each request, has no limit on connections, and never closes a silent one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from ryu.app import wsgi as ryu_wsgi

from fairq_ryu.ryu_compat.accepting import Listening
from fairq_ryu.ryu_compat.limited_log import RateLimitedLog


def replace(application: Any, make_server: Callable[[], Any]) -> None:
    """Let Ryu start ``make_server()`` instead of its own server for ``application`` (its WSGIApplication).
    Servers for other applications stay Ryu's.
    """
    original = ryu_wsgi.WSGIServer
    ryu_wsgi.WSGIServer = lambda instance: make_server() if instance is application else original(instance)


def accepting(listening: Any, log: logging.Logger) -> Listening:
    """A socket that listens, for eventlet's server: it goes on after a failure of ``accept``."""
    warnings = RateLimitedLog(log)
    return Listening(listening, lambda text: warnings.warning("accept", f"REST: {text}"))
