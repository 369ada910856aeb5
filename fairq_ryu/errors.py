"""Errors that the user can correct: one clear line and a remedy, never a traceback."""

from __future__ import annotations

import shlex
from collections.abc import Sequence


def plain(text: object) -> str:
    """Text of others, as a name, without characters that a terminal would interpret as commands."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in str(text))


def quoted(word: str) -> str:
    """A word of a command for a shell, also if it is a name that somebody else chose."""
    if word.isprintable():
        return shlex.quote(word)
    # Only bash and its like read this form; a terminal interprets nothing in it.
    coded = (chr(each) if chr(each).isalnum() and each < 128 else f"\\x{each:02x}" for each in word.encode())
    return f"$'{''.join(coded)}'"


class UserError(Exception):
    """An error that the user can correct.

    ``message``: the error and its place; ``remedy``: the action that corrects it.
    The command line prints both on one line and exits with 2; several faults are as many lines.
    """

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    @property
    def faults(self) -> Sequence[UserError]:
        """Each fault by itself: this one, unless it stands for several."""
        return (self,)

    def __str__(self) -> str:
        return f"{self.message}. Remedy: {self.remedy}"


class _Several(UserError):
    """Several faults, a line each."""

    def __init__(self, faults: Sequence[UserError]) -> None:
        super().__init__("; ".join(each.message for each in faults), faults[0].remedy)
        self._faults = tuple(faults)

    @property
    def faults(self) -> Sequence[UserError]:
        return self._faults

    def __str__(self) -> str:
        return "\n".join(map(str, self._faults))


def all_of(faults: Sequence[UserError]) -> UserError:
    """One error for all of ``faults``, of which there is at least one; the text has a line for each."""
    return faults[0] if len(faults) == 1 else _Several(faults)
