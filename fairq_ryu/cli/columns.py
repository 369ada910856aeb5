"""Tables for terminals of any width. All commands that print tables use this module."""

from __future__ import annotations

import sys
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group
from rich.table import Column, Table
from rich.text import Text

from fairq_ryu.errors import plain

# Width of the tables in characters where the output has no width of its own, as in a pipe.
WIDTH = 100
# Long words are wrapped to no less than this.
_LEAST = 8


class _Console(Console):
    """Its lines are as long as the tables need at least, also where the terminal then wraps them: a number
    that is cut would be a wrong one.
    """

    def print(self, *objects: Any, **how: Any) -> None:
        self.width = max(self.width, *map(_least_width, objects), 1)
        super().print(*objects, **how)


def _least_width(what: Any) -> int:
    if isinstance(what, Group):
        return max(map(_least_width, what.renderables), default=0)
    return what.least if isinstance(what, _Table) else 0


def console() -> Console:
    """The console to print to: as wide as the terminal, or :data:`WIDTH` characters for a pipe, or more if a
    table needs it.
    """
    return _Console(highlight=False) if sys.stdout.isatty() else _Console(highlight=False, width=WIDTH)


# Titles and cells are Text, because Rich would interpret brackets in a plain string as markup.


def number(title: str) -> Column:
    """A column of numbers: never wrapped, so its title sets the minimum width."""
    return Column(Text(title), justify="right", no_wrap=True)


def word(title: str) -> Column:
    """A column of short words, never wrapped."""
    return Column(Text(title), no_wrap=True)


def long(title: str) -> Column:
    """A column of text that is wrapped if the terminal is too narrow."""
    return Column(Text(title), overflow="fold")


class _Table(Table):
    """``least``: the characters that a line needs, so that no word or number is cut."""

    least = 0


def plain_table(columns: list[Column], rows: list[list[str]]) -> Table:
    """A table of plain cells, without characters that a terminal would interpret as commands."""
    made = _Table(*columns, box=box.SIMPLE_HEAD, show_edge=False, padding=0)
    cells = [[plain(cell) for cell in row] for row in rows]
    for row in cells:
        made.add_row(*map(Text, row))
    titles = [str(column.header) for column in columns]
    widths = [max(map(cell_len, texts)) for texts in zip(titles, *cells, strict=True)]
    least = (
        width if column.no_wrap else min(width, _LEAST) for column, width in zip(columns, widths, strict=True)
    )
    made.least = sum(least) + len(columns) - 1
    return made
