"""Turns of eventlet's loop that stay short: those who read sockets get a part of each, and go on in the next.

In a turn the loop calls all timers that are due, and then serves all sockets that can be read. When a hundred
switches send at once, these are many milliseconds, in which no window is worked out and no lease renewed. So
sockets are served a few at a time, until they have had :data:`LEAST` seconds, or half of the time that the
timers have taken in this turn, and :data:`MOST` seconds at most. So neither keeps the other waiting for long.
The kernel lists sockets that were served behind the others, so each has its turn. A reader that has more to
do than its part calls :func:`pause`, and goes on in the time of the sockets, not among the timers.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections import deque
from typing import Any

from eventlet import hubs
from eventlet.hubs import epolls
from eventlet.support import greenlets
from ryu.lib import hub as ryu_hub

SOCKETS = 8
"""Sockets that are served before the time is looked at."""
LEAST = 0.001
"""Seconds that sockets have in each turn, at least."""
MOST = 0.02
"""The same, at most: also after a timer that has taken very long."""
LEAST_EACH = 0.0001
"""What a reader has in any case, seconds: a few messages."""
_PART = 0.5
_NAME = "fairq_turns"


def limit(hub: Any) -> None:
    """Limit the turns of a loop. Only the loop with ``epoll``, eventlet's choice on Linux, can be limited."""
    if isinstance(hub, epolls.Hub) and _NAME not in vars(hub):
        turns = _Turns(hub)
        vars(hub).update({_NAME: turns, "do_poll": turns.do_poll, "wait": turns.wait})


def register() -> None:
    """Limit the turns of the loop of this thread."""
    limit(hubs.get_hub())


def pause() -> None:
    """Let others run, and go on when readers have time again."""
    turns = vars(hubs.get_hub()).get(_NAME)
    if turns is None:
        ryu_hub.sleep(0)
    else:
        turns.pause()


def ends(now: float, longest: float) -> float:
    """When a reader that goes on ``now`` should pause: after ``longest`` seconds, or with the time of all."""
    turns = vars(hubs.get_hub()).get(_NAME)
    until = now + longest
    return until if turns is None else max(now + LEAST_EACH, min(until, turns.until))


class _Turns:
    """The methods of a loop that are replaced. ``until``: the end of the readers' time in this turn."""

    def __init__(self, hub: Any) -> None:
        self._hub, self._wait = hub, hub.wait
        self._ended = self.until = time.monotonic()
        self._time = LEAST
        self._listed = 0
        self._paused: deque[Any] = deque()  # greenlets

    def do_poll(self, seconds: float) -> Any:
        """The next few sockets that can be read or written."""
        found = self._hub.poll.poll(seconds, SOCKETS)
        self._listed = len(found)
        if self._time:
            self.until, self._time = time.monotonic() + self._time, 0.0
        return found

    def wait(self, seconds: float | None = None) -> None:
        """Serve sockets and those who have paused; ``seconds``: how long to wait for a socket."""
        began = time.monotonic()
        self._time = max(LEAST, min(MOST, _PART * (began - self._ended)))
        self.until = began + self._time
        self._listed = 0  # without any socket to watch, the loop does not poll
        self._wait(0 if self._paused else seconds)
        while self._paused or self._listed == SOCKETS:
            if self._paused:
                self._resume(self._paused.popleft())
            if time.monotonic() >= self.until:
                break
            if self._listed == SOCKETS:
                self._wait(0)
        self._ended = time.monotonic()

    def _resume(self, greenlet: Any) -> None:
        try:
            greenlet.switch()
        except self._hub.SYSTEM_EXCEPTIONS:
            raise
        except BaseException:  # as the loop does with timers: one that fails must not end it
            self._hub.squelch_generic_exception(sys.exc_info())

    def pause(self) -> None:
        """The greenlet that runs goes on in the time of the readers."""
        greenlet = greenlets.getcurrent()
        self._paused.append(greenlet)
        try:
            self._hub.switch()
        except BaseException:  # it was killed
            with contextlib.suppress(ValueError):
                self._paused.remove(greenlet)
            raise
