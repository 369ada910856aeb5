"""A worker: a greenlet that sleeps until there is work, and then does all of it."""

from __future__ import annotations

from collections.abc import Callable

from ryu.lib import hub


class Worker:
    """Calls ``work`` after a wake, once for all wakes before the call: ``work`` does all there is to do.

    ``delay``: seconds from a wake to the call, where work comes in groups.
    """

    def __init__(self, work: Callable[[], object], delay: float = 0.0) -> None:
        self._work = work
        self._delay = delay
        self._woken = hub.Event()

    def wake(self) -> None:
        """There is work."""
        if not self._woken.is_set():  # thousands of calls a second; to set it again costs as much as to wake
            self._woken.set()

    def run(self) -> None:
        """The greenlet; it does not return."""
        while True:
            self._woken.wait()
            if self._delay:
                hub.sleep(self._delay)
            self._woken.clear()
            self._work()
