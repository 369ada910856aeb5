"""``fairq show``: what the controller's REST interface says, as tables or as JSON.

Knows the interface by its documentation only (``docs/rest.md``) and imports nothing of the controller,
so it also works from a machine without Ryu.
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
from fairq_ryu.cli.show_tables import Answer, table
from fairq_ryu.errors import UserError

_TOO_MANY = 429
# What an answer must have to be one, where that is not a list of the same name.
_MARKS = {"policy": "parameters", "health": "agents_missing"}
_OF_FLOWS = ("src", "dst", "port", "state", "limit", "offset")
_PAGED = ("limit", "offset")
_CHOICES = {
    "flows": _OF_FLOWS,
    "paths": _PAGED,
    "gif": _PAGED,
    "announcements": _PAGED,
    "events": ("limit", "kind"),
}


# Asking


def fetch(url: str, kind: str, filters: Mapping[str, str]) -> Answer:
    """The controller's answer to ``GET /v1/KIND``. Raises :class:`UserError` if there is none."""
    query = f"?{urlencode(filters)}" if filters else ""
    answer = client.ask(url, "GET", f"/v1/{kind}{query}", usage="see fairq show --help")
    rows = answer.get(_MARKS.get(kind, kind))
    if not isinstance(rows, list) or not (kind == "health" or all(isinstance(row, dict) for row in rows)):
        raise client.not_ours(url, f"no list of {kind}")
    return answer


# The command


def main(
    kind: str, url: str, filters: Mapping[str, str], json_output: bool = False, watch: float | None = None
) -> int:
    """Print what the controller knows; with ``watch``, again after so many seconds, until Ctrl-C.

    ``filters`` are handed to the controller, which checks them. Returns 0, also after Ctrl-C while
    watching. Raises :class:`UserError` if the controller does not answer, or not as it should.
    """
    unfit = [f"--{name}" for name in filters if name not in _CHOICES.get(kind, ())]
    if unfit:
        fitting = [each for each, names in _CHOICES.items() if unfit[0].removeprefix("--") in names]
        raise UserError(
            f"{', '.join(unfit)}: {kind} cannot be filtered by that",
            f"use it with fairq show {' or '.join(fitting)}",
        )
    if watch is not None:
        with contextlib.suppress(KeyboardInterrupt):
            _watch(kind, url, filters, json_output, watch)
        return 0
    answer = fetch(url, kind, filters)
    if json_output:
        print(json.dumps(answer))
    else:
        columns.console().print(table(kind, answer, url))
    return 0


def _watch(kind: str, url: str, filters: Mapping[str, str], json_output: bool, seconds: float) -> None:
    console = columns.console()
    in_place = console.is_terminal and not console.is_dumb_terminal and not json_output
    while not in_place:
        answer = fetch(url, kind, filters)
        if json_output:
            print(json.dumps(answer), flush=True)
        else:
            console.print(table(kind, answer, url))
        time.sleep(seconds)
    more = "--limit or --json" if "limit" in _CHOICES.get(kind, ()) else "--json"
    # The first time, an error ends the command: there is nothing to watch yet.
    shown = table(kind, fetch(url, kind, filters), url)
    with Live(_Fitted(shown, more), console=console, auto_refresh=False) as live:
        while True:
            time.sleep(seconds)
            try:
                shown = table(kind, fetch(url, kind, filters), url)
                live.update(_Fitted(shown, more), refresh=True)
            except UserError as error:
                status = error.status if isinstance(error, client.Refused) else 0
                if 400 <= status < 500 and status != _TOO_MANY:
                    raise  # asked again, it would be refused again
                # A controller that is started again comes back; until then, what was known last.
                live.update(_Fitted(shown, more, str(error)), refresh=True)


class _Fitted:
    """As much as there is room for on a terminal, and a line that says how much more there is; below, a
    ``note``, which always stays. ``more``: the options by which all of it can be seen.
    """

    def __init__(self, shown: RenderableType, more: str, note: str = "") -> None:
        self._shown = shown
        self._more = more
        self._note = note

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        note = console.render_lines(Text(self._note), options, pad=False) if self._note else []
        lines = console.render_lines(self._shown, options, pad=False)
        room = max(1, console.height - len(note))
        if len(lines) > room:
            said = Text(f"{len(lines) - room + 1:,} more lines: use {self._more}", no_wrap=True)
            lines = [*lines[: room - 1], *console.render_lines(said, options, pad=False)]
        for line in [*lines, *note]:
            yield from line
            yield Segment.line()
