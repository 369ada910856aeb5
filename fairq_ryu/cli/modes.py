"""``fairq disable`` and ``fairq enable``: ports without windows, and with them again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.text import Text

from fairq_ryu import client
from fairq_ryu.cli.columns import console, long, plain_table, print_whole, word
from fairq_ryu.errors import plain


def main(
    operation: str,
    fields: Mapping[str, Any],
    url: str,
    json_output: bool = False,
    token_file: Path | None = None,
) -> int:
    """Request ``operation`` (``disable`` or ``enable``) and print what it has changed. ``fields`` as in
    ``docs/rest.md``; those that are None are not sent. Returns 0; raises
    :class:`~fairq_ryu.errors.UserError` if the controller does not answer or refuses.
    """
    body = json.dumps({name: value for name, value in fields.items() if value is not None}).encode()
    token = client.read_token(token_file)
    usage, timeout = f"see fairq {operation} --help", client.CHANGE_TIMEOUT
    answer = client.ask(url, "POST", f"/v1/{operation}", body, token=token, usage=usage, timeout=timeout)
    if json_output:
        print(json.dumps(answer))
        return 0
    words = f"{operation}d"
    if fields.get("seconds") is not None:
        words += f" for {fields['seconds']:g} s"
    try:
        rows = [_row(port) for port in answer["ports"]]
        heading = f"{answer['what']}: {words}"
    except (KeyError, TypeError, ValueError) as error:
        raise client.not_the_controller(url, f"{operation} without {error}") from None
    out = console()
    out.print(Text(plain(f"{heading}{'' if rows else '; no port has another mode now'}")))
    if rows:
        print_whole(out, plain_table([word("port"), long("name"), word("mode"), word("rules")], rows))
    return 0


def _row(port: Mapping[str, Any]) -> list[str]:
    return [
        f"{int(port['dpid'], 16):x}:{port['port']:d}",
        str(port["name"]),
        f"{port['before']} -> {port['after']}",
        f"{port['rules_before']:d} -> {port['rules_after']:d}",
    ]
