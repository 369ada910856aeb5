"""One long answer is made at a time; of the requests that wait, the newest is next.

In the order of arrival, a client that sends many requests and reads no answer would make all others wait for
them. The newest request is most probably that of a client that still waits for its answer.
"""

from __future__ import annotations

from typing import Any

from fairq_ryu.ryu_compat.runtime import event


class NewestFirst:
    """A lock of greenlets, for ``with``."""

    def __init__(self) -> None:
        self._held = False
        self._waiting: list[Any] = []

    def __enter__(self) -> None:
        if not self._held:
            self._held = True
            return
        own = event.Event()
        self._waiting.append(own)
        try:
            own.wait()
        except BaseException:  # its connection is closed
            if own in self._waiting:
                self._waiting.remove(own)
            else:
                self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        if self._waiting:
            self._waiting.pop().send()
        else:
            self._held = False
