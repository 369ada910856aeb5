"""The lines of the agent's log, in which names of bridges and ports stand that others have chosen."""

from __future__ import annotations

import logging

from fairq_ryu.errors import plain


class PlainFormatter(logging.Formatter):
    """A line begins with ``prefix``, and has no characters that a terminal would interpret as commands."""

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix = prefix

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line, without the traceback that may follow it."""
        return plain(f"{self._prefix}: {record.message}")
