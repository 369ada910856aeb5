"""Tables for terminals of any width. All commands that print tables use this module."""

from __future__ import annotations

import sys
from copy import copy

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from fairq_ryu.errors import plain

# Width of the tables in characters where the output has no width of its own, as in a pipe.
WIDTH = 100
# Of a column that is wrapped, the least characters.
_WORD = 4


def console() -> Console:
    """The console to print to: as wide as the terminal, or :data:`WIDTH` characters for a pipe."""
    return Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=WIDTH)


def print_whole(out: Console, shown: RenderableType) -> None:
    """Print a table, or several, without cutting numbers: in a terminal that is too narrow for them, its
    lines are longer than the terminal, which wraps them.
    """
    parts = shown.renderables if isinstance(shown, Group) else [shown]
    out.width = max(out.width, *(_least_width(part) for part in parts if isinstance(part, Table)), 1)
    out.print(shown)


def fitted(shown: RenderableType, width: int) -> Group:
    """A table, or several, for a terminal of this width whose lines must not be longer: without the last
    columns for which there is no room, and with a line that names them.
    """
    parts: list[RenderableType] = []
    for part in shown.renderables if isinstance(shown, Group) else [shown]:
        if isinstance(part, Table):
            part, columns = copy(part), part.columns
            part.columns = list(columns)
            while len(part.columns) > 1 and _least_width(part) > width:
                part.columns.pop()
            parts.append(part)
            if left := columns[len(part.columns) :]:
                parts.append(Text(f"no room for: {', '.join(str(each.header) for each in left)}"))
        else:
            parts.append(part)
    return Group(*parts)


def _least_width(table: Table) -> int:
    """The characters that a table needs if what may be wrapped is, in columns of a short word."""
    width = len(table.columns) - 1
    for column in table.columns:
        cells = [str(each) for each in (column.header, *column.cells)]
        whole = max(map(cell_len, cells))
        width += whole if column.no_wrap else min(whole, _WORD)
    return width


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


def plain_table(columns: list[Column], rows: list[list[str]]) -> Table:
    """A table of plain cells, without characters that a terminal would interpret as commands."""
    made = Table(*columns, box=box.SIMPLE_HEAD, show_edge=False, padding=0)
    for row in rows:
        made.add_row(*(Text(plain(cell)) for cell in row))
    return made
