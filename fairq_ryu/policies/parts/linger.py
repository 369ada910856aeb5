"""How long a port keeps its windows without flows: the next volley may start soon, and should meet them."""

from __future__ import annotations


class Linger:
    """Of one port; ``seconds``: the time for which it keeps its windows."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._empty_since: float | None = None

    def flow_started(self) -> None:
        """A flow has started: the time begins again when the port is found without flows."""
        self._empty_since = None

    def is_over(self, flows: int, now: float) -> bool:
        """The port has ``flows`` flows. Whether it has had none for the whole time."""
        if flows:
            self._empty_since = None
            return False
        if self._empty_since is None:
            self._empty_since = now
        return now - self._empty_since >= self.seconds
