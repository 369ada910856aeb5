"""The names of what is compared: with its policy, each column and curve names its queue law and its TCP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TAIL_DROP = "tail drop"


def queue_law(policy: Mapping[str, Any]) -> str:
    """The law that judged the packets of the bottleneck, as its agent has reported it."""
    return str((policy.get("queue") or {}).get("law") or TAIL_DROP)


def tcp(policy: Mapping[str, Any], scenario: Mapping[str, Any]) -> str:
    """The congestion control of the hosts; several where they differ."""
    used = policy.get("tcp")
    if isinstance(used, Mapping) and used:
        return " + ".join(map(str, used))
    return str(used or scenario.get("cc", "-"))


def name(policy: Mapping[str, Any], scenario: Mapping[str, Any]) -> str:
    """The policy with its queue law and its TCP, for the key of a picture."""
    return f"{policy['policy']} ({queue_law(policy)}, {tcp(policy, scenario)})"


def rows(result: Mapping[str, Any]) -> list[list[str]]:
    """The rows of a table that name both, for each policy that has figures."""
    listed, scenario = result["policies"], result["scenario"]
    if all(policy["failed"] for policy in listed):
        return []
    there = [None if policy["failed"] else policy for policy in listed]
    found = [(policy or {}).get("queue") or {} for policy in there]
    buffers = [f"{each['limit_bytes']:,}" if "limit_bytes" in each else "-" for each in found]
    return [
        ["queue law", *("-" if policy is None else queue_law(policy) for policy in there)],
        *([["buffer [bytes]", *buffers]] if any(each.get("qdisc") for each in found) else []),
        ["TCP", *("-" if policy is None else tcp(policy, scenario) for policy in there)],
    ]
