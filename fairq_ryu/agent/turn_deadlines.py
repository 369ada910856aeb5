"""The announced deadlines of connections whose handshakes wait for their turn, or will.

The controller sends a deadline when it has seen the SYN of a connection. That SYN may wait already, or have
left, and the SYN-ACK may wait later, at another port. So a deadline is stored for a while.

Pure: time is an argument, in ns. Bounded: at most ``capacity`` deadlines, each for ``keep_ns``; the one that
was set longest ago gives way.
"""

from __future__ import annotations

from typing import NamedTuple

CAPACITY = 16_384
# Linux has retransmitted a SYN after 1, 3 and 7 s by then.
KEEP_NS = 10_000_000_000


class _Deadline(NamedTuple):
    at_ns: int
    set_ns: int


class TurnDeadlines:
    """Deadlines by connection: its key, which is the same for both directions."""

    def __init__(self, capacity: int = CAPACITY, keep_ns: int = KEEP_NS) -> None:
        self._capacity, self._keep_ns = capacity, keep_ns
        self._of: dict[bytes, _Deadline] = {}  # the first was set longest ago

    def __len__(self) -> int:
        return len(self._of)

    def set(self, connection: bytes, deadline_ns: int | None, now_ns: int) -> None:
        """Set the deadline of a connection, or remove it (None). One that is not known changes nothing."""
        self._of.pop(connection, None)
        if deadline_ns is not None:
            self._of[connection] = _Deadline(deadline_ns, now_ns)
        while self._of:
            oldest = next(iter(self._of))
            if len(self._of) <= self._capacity and now_ns - self._of[oldest].set_ns < self._keep_ns:
                break
            del self._of[oldest]

    def get(self, connection: bytes, now_ns: int) -> int | None:
        """The deadline of a connection; None: it has none, or it was set too long ago."""
        found = self._of.get(connection)
        return None if found is None or now_ns - found.set_ns >= self._keep_ns else found.at_ns
