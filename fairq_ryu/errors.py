"""Errors that are the user's to mend: one clear line and a remedy, never a traceback."""

from __future__ import annotations


class UserError(Exception):
    """Something the user can put right.

    ``message`` says what is wrong and where; ``remedy`` says what to do about it.
    The command line prints both on one line and exits with 2.
    """

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}. Remedy: {self.remedy}"
