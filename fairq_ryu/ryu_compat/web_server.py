"""The web server that Ryu starts for its REST application, replaced for one application.

Ryu has no setting for the class of the server, so the function that creates it is replaced. Ryu's own logs a
line for each request, has no limit on connections, and never closes a silent one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ryu.app import wsgi as ryu_wsgi


def replace(application: Any, make_server: Callable[[], Any]) -> None:
    """Let Ryu start ``make_server()`` instead of its own server for ``application`` (its WSGIApplication).
    Servers for other applications stay Ryu's.
    """
    original = ryu_wsgi.WSGIServer
    ryu_wsgi.WSGIServer = lambda instance: make_server() if instance is application else original(instance)
