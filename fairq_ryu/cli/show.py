"""``fairq show``: the state of the controller, read from its REST interface, as tables or as JSON.

This module depends on the documented interface only (``docs/rest.md``) and imports nothing of the controller,
so it also works on a machine without Ryu.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Mapping
from urllib.parse import urlencode

from rich.console import Console, ConsoleOptions, RenderableType
from rich.live import Live
from rich.segment import Segment
from rich.text import Text

from fairq_ryu import client
from fairq_ryu.cli import columns
from fairq_ryu.cli.port_table import Answer
from fairq_ryu.cli.show_tables import table
from fairq_ryu.errors import UserError

_HTTP_TOO_MANY_REQUESTS = 429
# The list that every valid answer contains, if its name differs from the kind.
_LIST_FIELDS = {"policy": "parameters", "health": "agents_missing"}
_FLOW_FILTERS = ("src", "dst", "port", "state", "limit", "offset")
_PAGED = ("limit", "offset")
_FILTERS = {
    "flows": _FLOW_FILTERS,
    "paths": _PAGED,
    "gif": _PAGED,
    "announcements": _PAGED,
    "events": ("limit", "kind"),
}


# Requests


def fetch(url: str, kind: str, filters: Mapping[str, str]) -> Answer:
    """The controller's answer to ``GET /v1/KIND``. Raises :class:`UserError` if there is none."""
    query = f"?{urlencode(filters, errors='surrogateescape')}" if filters else ""
    answer = client.ask(url, "GET", f"/v1/{kind}{query}", usage="see fairq show --help")
    rows = answer.get(_LIST_FIELDS.get(kind, kind))
    if not isinstance(rows, list) or not (kind == "health" or all(isinstance(row, dict) for row in rows)):
        raise client.not_the_controller(url, f"no list of {kind}")
    return answer


# The command


def main(
    kind: str, url: str, filters: Mapping[str, str], json_output: bool = False, watch: float | None = None
) -> int:
    """Print the state of the controller; with ``watch``, again every ``watch`` seconds, until Ctrl-C.

    ``filters`` are sent to the controller, which checks them. Returns 0, also after Ctrl-C while watching.
    Raises :class:`UserError` if the controller does not answer, or if its answer is not valid.
    """
    unsupported = [f"--{name}" for name in filters if name not in _FILTERS.get(kind, ())]
    if unsupported:
        supporting = [each for each, names in _FILTERS.items() if unsupported[0].removeprefix("--") in names]
        raise UserError(
            f"{', '.join(unsupported)}: {kind} cannot be filtered by that",
            f"use it with fairq show {' or '.join(supporting)}",
        )
    if watch is not None:
        with contextlib.suppress(KeyboardInterrupt):
            _watch(kind, url, filters, json_output, watch)
        return 0
    answer = fetch(url, kind, filters)
    if json_output:
        print(json.dumps(answer))
    else:
        columns.print_whole(columns.console(), table(kind, answer, url))
    return 0


def _watch(kind: str, url: str, filters: Mapping[str, str], json_output: bool, seconds: float) -> None:
    console = columns.console()
    in_place = console.is_terminal and not console.is_dumb_terminal and not json_output
    while not in_place:
        answer = fetch(url, kind, filters)
        if json_output:
            print(json.dumps(answer), flush=True)
        else:
            columns.print_whole(console, table(kind, answer, url))
        time.sleep(seconds)
    more = "--limit or --json" if "limit" in _FILTERS.get(kind, ()) else "--json"
    # An error of the first request ends the command, because there is no table to keep on the screen.
    shown = table(kind, fetch(url, kind, filters), url)
    with Live(_Fitted(shown, more), console=console, auto_refresh=False) as live:
        while True:
            time.sleep(seconds)
            try:
                shown = table(kind, fetch(url, kind, filters), url)
                live.update(_Fitted(shown, more), refresh=True)
            except UserError as error:
                status = error.status if isinstance(error, client.Refused) else 0
                if 400 <= status < 500 and status != _HTTP_TOO_MANY_REQUESTS:
                    raise  # the same request would be refused again
                # The controller may be restarted: keep the last table on the screen until it answers again.
                live.update(_Fitted(shown, more, str(error)), refresh=True)


class _Fitted:
    """Content that is cut to the height of the terminal, with a line that gives the number of lines cut off,
    and to whole columns; below it a ``note``, which is always shown. ``more``: the options that show
    everything.
    """

    def __init__(self, shown: RenderableType, more: str, note: str = "") -> None:
        self._shown = shown
        self._more = more
        self._note = note

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        note = console.render_lines(Text(self._note), options, pad=False) if self._note else []
        fitted = columns.fitted(self._shown, options.max_width)
        lines = console.render_lines(fitted, options, pad=False)
        room = max(1, console.height - len(note))
        if len(lines) > room:
            rest = Text(f"{len(lines) - room + 1:,} more lines: use {self._more}", no_wrap=True)
            lines = [*lines[: room - 1], *console.render_lines(rest, options, pad=False)]
        for line in [*lines, *note]:
            yield from line
            yield Segment.line()
