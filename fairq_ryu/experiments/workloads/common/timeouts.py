"""Flows that had a retransmission timeout. Pure functions.

A flow waits for 200 ms or more at its first timeout, so their number says more than the sum of all timeouts:
one flow may have many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def timed_out(timeouts: Sequence[int | None]) -> dict[str, Any]:
    """From the number of retransmission timeouts of each flow:

    timeout_flows   flows with at least one
    timeout_share   the same over all flows; null without flows

    Both are null where the kernel does not count timeouts by connection (before Linux 6.7).
    """
    known = [each for each in timeouts if each is not None]
    if len(known) < len(timeouts):
        return {"timeout_flows": None, "timeout_share": None}
    flows = sum(each > 0 for each in known)
    return {"timeout_flows": flows, "timeout_share": flows / len(known) if known else None}


def together(parts: Sequence[Mapping[str, Any]], count: str) -> dict[str, Any]:
    """The same of several parts, each of which has them, and the number of its flows under the key
    ``count``.
    """
    flows = [each["timeout_flows"] for each in parts]
    if None in flows:
        return {"timeout_flows": None, "timeout_share": None}
    number = sum(each[count] for each in parts)
    return {"timeout_flows": sum(flows), "timeout_share": sum(flows) / number if number else None}
