"""``fairq far``: the far queues that the controller knows, and changes of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rich.text import Text

from fairq_ryu import client
from fairq_ryu.cli import columns, show, show_tables
from fairq_ryu.errors import UserError, plain

_USAGE = "see fairq far --help"
_FORM = "write rate RATE buffer BYTES share PART, each of the three or none"


def show_all(url: str, json_output: bool = False) -> int:
    """Print the rows of the far queues. Returns 0. Raises :class:`UserError`."""
    answer = show.fetch(url, "ports", {})
    try:
        rows = [row for row in answer["ports"] if row["far_of"] is not None]
    except (KeyError, TypeError) as error:
        raise client.not_the_controller(url, f"ports without {error}") from None
    if json_output:
        print(json.dumps({**answer, "ports": rows}))
        return 0
    out = columns.console()
    if not rows:
        none = "no far queues: add one with fairq far add, or in section [far_queues] of the agents"
        for line in (none, *show_tables.unanswered(answer)):
            out.print(Text(plain(line)))
        return 0
    columns.print_whole(out, show_tables.table("ports", {**answer, "ports": rows}, url))
    answer = client.ask(url, "GET", "/v1/far-queues", usage=_USAGE)
    try:
        lines = [_described(each) for each in answer["far_queues"]]
    except (KeyError, TypeError, ValueError) as error:
        raise client.not_the_controller(url, f"a far queue without {error}") from None
    for line in lines:
        out.print(Text(plain(line)))
    return 0


def change(
    port: tuple[str, str],
    words: Sequence[str] | None,
    url: str,
    json_output: bool = False,
    token_file: Path | None = None,
) -> int:
    """Add or change the far queue of a port (bridge and interface) or, with ``words`` None, remove it, and
    print it. Returns 0. Raises :class:`UserError`.
    """
    path = f"/v1/far-queues/{'/'.join(quote(each, safe='', errors='surrogateescape') for each in port)}"
    method, body = "DELETE", None
    if words is not None:
        method, body = "PUT", json.dumps(fields(words)).encode()
    token, timeout = client.read_token(token_file), client.CHANGE_TIMEOUT
    answer = client.ask(url, method, path, body, token=token, usage=_USAGE, timeout=timeout)
    if json_output:
        print(json.dumps(answer))
        return 0
    try:
        line = f"{answer['name']} of bridge {answer['bridge']}: {_said(answer)}"
    except (KeyError, TypeError, ValueError) as error:
        raise client.not_the_controller(url, f"a far queue without {error}") from None
    out = columns.console()
    out.print(Text(plain(line if words is not None else f"{line}: removed")))
    out.print(Text("to keep it for good, write it into the configuration of the agent as well"))
    return 0


def fields(words: Sequence[str]) -> dict[str, Any]:
    """The body of a request: words and values as in a line of ``[far_queues]``. Raises :class:`UserError`."""
    names = list(words[::2])
    for name in names:
        if name not in ("rate", "buffer", "share"):
            raise UserError(f"there is no {name!r} of a far queue", _FORM)
        if names.count(name) > 1:
            raise UserError(f"{name} is there twice", "take one of them out")
    if len(words) % 2:
        raise UserError(f"{words[-1]} has no value", _FORM)
    found: dict[str, Any] = dict(zip(names, words[1::2], strict=True))
    if "share" in found:
        try:
            found["share"] = float(found["share"])
        except ValueError:
            raise UserError(f"share {found['share']}: it is not a number", _FORM) from None
    return found


def _described(row: Mapping[str, Any]) -> str:
    """A far queue, and where it comes from."""
    origin = f"uplink {row['uplink']}" if row["uplink"] is not None else f"by {row['origin']}"
    leased = f", now {row['leased_bps']:d}bit" if row["leased_bps"] is not None else ""
    return f"{row['name']} of bridge {row['bridge']}: {_said(row)}, {origin}{leased}"


def _said(row: Mapping[str, Any]) -> str:
    """A far queue as its line in the configuration has it."""
    rate = f"rate {row['rate_bps']:d}bit " if row["rate_bps"] else ""
    buffer = f"buffer {row['buffer_bytes']:d} " if row["buffer_bytes"] else ""
    return f"{rate}{buffer}share {row['share']:g}"
