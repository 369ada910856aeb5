"""A worker: a greenlet that sleeps until there is work, and then does all of it."""

from __future__ import annotations

import time
from collections.abc import Callable

from ryu.lib import hub


class Worker:
    """Calls ``work`` after a wake, once for all wakes before the call: ``work`` does all there is to do.

    ``delay``: seconds from a wake to the call, where work comes in groups. ``rest``: the pause after a call,
    as a multiple of the time that the call took, ``longest`` seconds at most. Expensive work then leaves time
    for everything else, also while there are wakes all the time.
    """

    def __init__(
        self, work: Callable[[], object], delay: float = 0.0, rest: float = 0.0, longest: float = 0.0
    ) -> None:
        self._work = work
        self._delay, self._rest, self._longest = delay, rest, longest
        self._woken = hub.Event()

    def wake(self) -> None:
        """There is work."""
        if not self._woken.is_set():  # thousands of calls a second; to set it again costs as much as to wake
            self._woken.set()

    def run(self) -> None:
        """The greenlet; it does not return. Raises what the work raises; then the rest of the work is done
        after another call of this.
        """
        rested = 0.0  # the earliest time of the next call
        while True:
            self._woken.wait()
            pause = max(self._delay, rested - time.monotonic()) if self._rest else self._delay
            if pause > 0:
                hub.sleep(pause)
            self._woken.clear()
            began = time.monotonic()
            try:
                self._work()
            except Exception:
                self._woken.set()
                raise
            ended = time.monotonic()
            rested = ended + min(self._longest, self._rest * (ended - began))
