"""Tables for a terminal, also a narrow one: what all commands that print tables share."""

from __future__ import annotations

import sys

from rich import box
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from fairq_ryu.client import plain

# Tables are made to fit this many columns; a pipe has no width of its own.
WIDTH = 100


def console() -> Console:
    """Where to print: as wide as the terminal, or :data:`WIDTH` columns for a pipe."""
    return Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=WIDTH)


# Titles and cells are Text, because what a plain string has in brackets would be taken for markup.


def number(title: str) -> Column:
    """A column of numbers: never broken, so its title sets its width."""
    return Column(Text(title), justify="right", no_wrap=True)


def word(title: str) -> Column:
    """A column of short words, never broken."""
    return Column(Text(title), no_wrap=True)


def long(title: str) -> Column:
    """What may go on in a second line where the terminal is too narrow."""
    return Column(Text(title), overflow="fold")


def plain_table(columns: list[Column], rows: list[list[str]]) -> Table:
    """A table of plain cells; what a terminal would take for a command is not printed."""
    made = Table(*columns, box=box.SIMPLE_HEAD, show_edge=False, padding=0)
    for row in rows:
        made.add_row(*(Text(plain(cell)) for cell in row))
    return made
