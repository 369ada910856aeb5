"""The names of what is compared: with its policy, each column and curve names its queue law and its TCP. A
table also names what a baseline has changed: the buffer, and settings of the scenario.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fairq_ryu.setting import value_text

TAIL_DROP = "tail drop"


def queue_law(policy: Mapping[str, Any]) -> str:
    """The law that judged the packets of the bottleneck, as its agent has reported it."""
    return str(policy["queue"]["law"] or TAIL_DROP)


def tcp(policy: Mapping[str, Any]) -> str:
    """The congestion control of the hosts; several where they differ, "-" if all flows are UDP."""
    return " + ".join(policy["tcp"]) or "-"


def replaced(changed: Mapping[str, Any]) -> str:
    """The settings of the scenario that a baseline has replaced, without the congestion control, which `tcp`
    names; "-": none.
    """
    told = ("cc", "sender_cc")
    listed = [f"{key} = {value_text(value)}" for key, value in changed.items() if key not in told]
    return ", ".join(listed) or "-"


def buffers(policies: Sequence[Mapping[str, Any]]) -> list[int]:
    """The buffers of the bottleneck under the policies, bytes, each once."""
    return list(dict.fromkeys(policy["queue"]["limit_bytes"] for policy in policies))


def name(policy: Mapping[str, Any]) -> str:
    """The policy with its queue law and its TCP, for the key of a picture."""
    return f"{policy['policy']} ({queue_law(policy)}, {tcp(policy)})"


def rows(result: Mapping[str, Any]) -> list[list[str]]:
    """The rows of a table that name queue law and TCP, for each policy that has figures; the buffers if a
    qdisc of the kernel has one or if they differ, and the settings of the scenario if a baseline has
    replaced any.
    """
    ran = [policy for policy in result["policies"] if not policy["failed"]]
    if not ran:
        return []

    def row(label: str, text: Callable[[Mapping[str, Any]], str]) -> list[str]:
        return [label, *("-" if policy["failed"] else text(policy) for policy in result["policies"])]

    sized = len(buffers(ran)) > 1 or any(policy["queue"]["qdisc"] for policy in ran)
    settings = result["metadata"].get("changed", {})  # not of a simulated run
    changed = row("changed", lambda policy: replaced(settings.get(policy["policy"], {})))
    return [
        row("queue law", queue_law),
        *([row("buffer [bytes]", lambda policy: f"{policy['queue']['limit_bytes']:,}")] if sized else []),
        row("TCP", tcp),
        *([changed] if set(changed[1:]) != {"-"} else []),
    ]
