"""Turns of eventlet's loop that stay short: a few sockets in each.

The loop serves all sockets that can be read, and then the timers that are due. When a hundred switches send
at once, these are many milliseconds, in which no window is worked out and no lease renewed. With fewer
sockets in a turn, timers wait for these only. The kernel lists the others first the next time, so none is
forgotten.
"""

from __future__ import annotations

from typing import Any

from eventlet import hubs
from eventlet.hubs import epolls

SOCKETS = 8
"""Sockets that are served in a turn, at most."""


def limit(hub: Any) -> None:
    """Limit the turns of a loop. Only the loop with ``epoll``, eventlet's choice on Linux, can be limited."""
    if isinstance(hub, epolls.Hub):
        poll = hub.poll.poll

        def do_poll(seconds: float) -> Any:
            return poll(seconds, SOCKETS)

        vars(hub)["do_poll"] = do_poll


def register() -> None:
    """Limit the turns of the loop of this thread."""
    limit(hubs.get_hub())
