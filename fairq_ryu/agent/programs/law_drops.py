"""The packets that queue laws have dropped at each port: counts that only grow."""

from __future__ import annotations


class LawDrops:
    """A law counts from 0 when it is put in force; this goes on with the sum of those before."""

    def __init__(self) -> None:
        self._ports: dict[int, tuple[int, int]] = {}  # counted by earlier laws, and last read, by port

    def read(self, port: int, count: int) -> int:
        """The law of a port (0 without one) has dropped ``count`` packets; returns those of all laws so
        far.
        """
        before, last = self._ports.get(port, (0, 0))
        if count < last:
            before += last
        self._ports[port] = before, count
        return before + count

    def forget(self, port: int) -> None:
        """The port has gone."""
        self._ports.pop(port, None)
