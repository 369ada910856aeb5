"""The names of what is compared: with its policy, each column and curve names its queue law and its TCP. A
table also names what a baseline has changed: the buffer, and settings of the scenario.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairq_ryu.setting import value_text

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


def replaced(changed: Mapping[str, Any]) -> str:
    """The settings of the scenario that a baseline has replaced, without the congestion control, which `tcp`
    names; "-": none.
    """
    told = ("cc", "sender_cc")
    listed = [f"{key} = {value_text(value)}" for key, value in changed.items() if key not in told]
    return ", ".join(listed) or "-"


def buffers(policies: Sequence[Mapping[str, Any]], scenario: Mapping[str, Any]) -> list[int]:
    """The buffers of the bottleneck under the policies, bytes, each once; that of the scenario where the
    figures have none.
    """
    found = [(policy.get("queue") or {}).get("limit_bytes") for policy in policies]
    return list(dict.fromkeys(scenario["buffer_bytes"] if each is None else each for each in found))


def name(policy: Mapping[str, Any], scenario: Mapping[str, Any]) -> str:
    """The policy with its queue law and its TCP, for the key of a picture."""
    return f"{policy['policy']} ({queue_law(policy)}, {tcp(policy, scenario)})"


def rows(result: Mapping[str, Any]) -> list[list[str]]:
    """The rows of a table that name queue law and TCP, for each policy that has figures; the buffers if a
    qdisc of the kernel has one or if they differ, and the settings of the scenario if a baseline has
    replaced any.
    """
    listed, scenario = result["policies"], result["scenario"]
    if all(policy["failed"] for policy in listed):
        return []
    there = [None if policy["failed"] else policy for policy in listed]
    found = [(policy or {}).get("queue") or {} for policy in there]
    sizes = [f"{each['limit_bytes']:,}" if "limit_bytes" in each else "-" for each in found]
    differ = len({each["limit_bytes"] for each in found if "limit_bytes" in each}) > 1
    settings = (result.get("metadata") or {}).get("changed") or {}
    changed = ["-" if policy is None else replaced(settings.get(policy["policy"], {})) for policy in there]
    return [
        ["queue law", *("-" if policy is None else queue_law(policy) for policy in there)],
        *([["buffer [bytes]", *sizes]] if differ or any(each.get("qdisc") for each in found) else []),
        ["TCP", *("-" if policy is None else tcp(policy, scenario) for policy in there)],
        *([["changed", *changed]] if set(changed) != {"-"} else []),
    ]
