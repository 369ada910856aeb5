"""``fairq announce``: announces size, deadline or priority of a flow, before it starts or while it runs."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from fairq_ryu import client
from fairq_ryu.errors import UserError

# As in everyday use: k is 1000, Ki is 1024.
_UNITS = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
_UNITS |= {f"{name}i": 1024**power for power, name in enumerate("kmgt", 1)}
_NUMBER = r"([0-9]{1,18}(?:\.[0-9]{1,18})?)"


def byte_count(text: str) -> int:
    """A size such as ``12000000``, ``12MB`` (powers of 1000) or ``64KiB`` (of 1024), for argparse.

    A lower-case ``b`` means bits. Sizes are in bytes, so this is refused; the error shows both readings.
    """
    bits = re.fullmatch(_NUMBER + r"\s*((?:[kmgt]i?)?)(?:b|bits?)", text.strip(), re.ASCII | re.IGNORECASE)
    if bits and not text.strip().endswith("B"):
        size = Fraction(bits[1]) * _UNITS[bits[2].lower()]
        raise argparse.ArgumentTypeError(
            f"{text!r} are bits, and a size is in bytes: write {bits[1]}{bits[2]}B for {float(size):,.12g} "
            f"bytes, or {float(size / 8):.12g} if you mean bits"
        )
    found = re.fullmatch(_NUMBER + r"\s*((?:[kmgt]i?)?)B?", text.strip(), re.ASCII | re.IGNORECASE)
    size = Fraction(found[1]) * _UNITS[found[2].lower()] if found else Fraction(0)
    if size < 1 or size.denominator != 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of bytes, such as 12000000, 12MB or 64KiB"
        )
    return int(size)


def seconds(text: str) -> float:
    """A time such as ``0.3``, ``0.3s`` or ``300ms``, for argparse."""
    found = re.fullmatch(_NUMBER + r"\s*(|s|ms)", text.strip().lower(), re.ASCII)
    time = Fraction(found[1]) / (1000 if found[2] == "ms" else 1) if found else Fraction(0)
    if not time:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time, such as 0.3 (seconds) or 300ms")
    return float(time)


def main(
    fields: Mapping[str, Any], url: str, json_output: bool = False, token_file: Path | None = None
) -> int:
    """Announce a flow and print the announcement as the controller has stored it. Returns 0; raises
    :class:`UserError` if the controller does not answer or refuses.
    """
    if all(fields[name] is None for name in ("size", "deadline", "priority")):
        raise UserError("there is nothing to announce", "give --size, --deadline or --priority")
    row = client.post(fields, url, client.read_token(token_file))
    print(json.dumps(row) if json_output else _sentence(row, fields))
    return 0


def _sentence(row: Mapping[str, Any], fields: Mapping[str, Any]) -> str:
    """As text: ``announcement 3: 10.0.0.2:any -> 10.0.0.1:5001, 12,000,000 bytes; waits ...``."""
    ends = [
        f"[{fields[end]}]:{port}" if ":" in str(fields[end]) else f"{fields[end]}:{port}"
        for end, port in (("src", fields["sport"] or "any"), ("dst", fields["dport"]))
    ]
    parts = [" -> ".join(ends)]
    if fields["vlan"] is not None:
        parts.append(f"VLAN {fields['vlan']}" if fields["vlan"] else "no VLAN")
    if fields["size"] is not None:
        parts.append(f"{fields['size']:,} bytes")
    if fields["deadline"] is not None:
        parts.append(f"within {fields['deadline']:g} s")
    if fields["priority"] is not None:
        parts.append(f"priority {fields['priority']}")
    flows = row.get("flows")
    has = "a flow that runs has it" if flows else "waits for the flow to start"
    return f"announcement {row['id']}: {', '.join(parts)}; {has}"
