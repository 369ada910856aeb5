"""Every patch of Ryu's connections to switches, with its reason. Ryu is no longer maintained.

Ryu has no hook for the class of these, so its module attributes are replaced. Other applications that run
beside ours get the same classes with more methods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ryu.base import app_manager as _first  # noqa: F401 (the controller module cannot be imported before it)
from ryu.controller import controller


def serve_switches(server: type, serve: Callable[[Any, Any], None]) -> None:
    """Make Ryu accept connections of switches with ``server`` and serve each with ``serve``.

    - Ryu's server ends for good when ``accept`` fails once, as it does when the process has no file
      descriptor left, and accepts any number of connections.
    - Ryu decodes any message, before any handshake. Some decoders never end on an element of length 0, and
      block the one thread of the controller; others raise, with a traceback for each message.
    - Ryu waits without limit for a handshake and for the rest of a message.
    - Ryu's ``send`` waits while its queue of 16 messages is full: an application that sends to many switches
      waits for the one that does not read.
    - Ryu writes every message by itself, and reads each in two pieces; this takes a fifth of its time.
    """
    controller.StreamServer = server
    controller.datapath_connection_factory = serve
