"""The figures of a result, as rows for people: on the terminal, and in the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

Policy = Mapping[str, Any]

# Label, unit, where the figure lies in a policy's result, how it is written.
_ROWS: list[tuple[str, str, tuple[str, ...], str]] = [
    ("rounds made", "", ("rounds", "made"), "d"),
    ("rounds disturbed (host took CPU)", "", ("rounds", "disturbed"), "d"),
    ("disturbed rounds counted", "", ("rounds", "counted_disturbed"), "d"),
    ("mice", "", ("mice", "count"), "d"),
    ("mice unfinished", "", ("mice", "unfinished"), "d"),
    ("mice FCT mean", "ms", ("mice", "fct_ms", "mean"), ".1f"),
    ("mice FCT sd", "ms", ("mice", "fct_ms", "sd"), ".1f"),
    ("mice FCT p50", "ms", ("mice", "fct_ms", "p50"), ".1f"),
    ("mice FCT p95", "ms", ("mice", "fct_ms", "p95"), ".1f"),
    ("mice FCT p99", "ms", ("mice", "fct_ms", "p99"), ".1f"),
    ("mice FCT max", "ms", ("mice", "fct_ms", "max"), ".1f"),
    ("mice RTO timeouts", "", ("mice", "rto_timeouts"), "d"),
    ("mice segments dropped", "", ("mice", "segments_dropped"), "d"),
    ("mice retransmissions", "", ("mice", "retransmissions"), "d"),
    ("elephants goodput", "Mbit/s", ("elephants", "goodput_sum_mbit"), ".1f"),
    ("elephants Jain's index", "", ("elephants", "jain"), ".4f"),
    ("elephants RTO timeouts", "", ("elephants", "rto_timeouts"), "d"),
    ("senders retransmissions", "", ("senders", "retransmissions"), "d"),
    ("senders RTO timeouts", "", ("senders", "rto_timeouts"), "d"),
    ("drops at the bottleneck", "", ("queue", "qdisc_drops"), "d"),
    ("queue mean", "bytes", ("queue", "rounds", "mean_bytes"), ".0f"),
    ("queue p99", "bytes", ("queue", "rounds", "p99_bytes"), ".0f"),
    ("ACKs rewritten", "", ("queue", "rounds", "acks_rewritten"), "d"),
    ("CPU idle", "%", ("cpu", "idle_percent"), ".0f"),
    ("CPU stolen by the host", "%", ("cpu", "stolen_percent"), ".1f"),
    ("alone: goodput", "Mbit/s", ("elephants", "alone_sum_mbit"), ".1f"),
    ("alone: queue mean", "bytes", ("queue", "alone", "mean_bytes"), ".0f"),
    ("alone: queue p99", "bytes", ("queue", "alone", "p99_bytes"), ".0f"),
    ("alone: drops", "", ("queue", "alone", "drops"), "d"),
    ("left out: mice", "", ("mice_left_out", "count"), "d"),
    ("left out: mice unfinished", "", ("mice_left_out", "unfinished"), "d"),
    ("left out: mice FCT p99", "ms", ("mice_left_out", "fct_ms", "p99"), ".1f"),
    ("left out: mice RTO timeouts", "", ("mice_left_out", "rto_timeouts"), "d"),
]

_RATIOS: list[tuple[str, str, Callable[[float], str]]] = [
    ("FCT p99, times lower", "fct_p99_times_lower", lambda value: f"{value:.1f}"),
    ("FCT sd, times lower", "fct_sd_times_lower", lambda value: f"{value:.1f}"),
    ("mice RTO timeouts", "mice_rto_share", lambda value: f"{value:.1%}"),
    ("mice segments dropped", "mice_drops_share", lambda value: f"{value:.1%}"),
    ("elephants goodput", "goodput_share", lambda value: f"{value:.1%}"),
    ("Jain's index", "jain_share", lambda value: f"{value:.1%}"),
]


def figure(policy: Policy, path: tuple[str, ...]) -> Any:
    """The figure at ``path`` of a policy's result; None where there is none."""
    value: Any = policy
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def rows(result: Mapping[str, Any]) -> list[list[str]]:
    """Label, then one text a policy. Rows that no policy has are left out."""
    policies = result["policies"]
    out: list[list[str]] = []
    for label, unit, path, style in _ROWS:
        values = [figure(policy, path) for policy in policies]
        if any(value is not None for value in values):
            name = f"{label} [{unit}]" if unit else label
            out.append([name, *("-" if value is None else f"{value:,{style}}" for value in values)])
    return out


def ratio_rows(result: Mapping[str, Any]) -> list[list[str]]:
    """Label, then the ratio to the first policy that ran, for each policy; empty with a single one."""
    comparison = result["comparison"]
    first = next((each["policy"] for each in result["policies"] if not each["failed"]), "")
    if not comparison:
        return []
    out: list[list[str]] = []
    for label, key, write in _RATIOS:
        values = [comparison.get(policy["policy"], {}).get(key) for policy in result["policies"]]
        if any(value is not None for value in values):
            out.append([f"{label} vs {first}", *("-" if value is None else write(value) for value in values)])
    return out


def heading(result: Mapping[str, Any]) -> list[str]:
    """The names of the columns."""
    return ["", *(policy["policy"] for policy in result["policies"])]


def show(result: Mapping[str, Any], console: Console | None = None) -> None:
    """Print the table; columns of plain text where the output is no terminal."""
    console = console or Console()
    lines = [*rows(result), *ratio_rows(result)]
    if not console.is_terminal:
        listed = [heading(result), *lines]
        widths = [max(len(line[place]) for line in listed) for place in range(len(listed[0]))]
        for line in listed:
            _label, *values = (text.rjust(width) for text, width in zip(line, widths, strict=True))
            console.out(line[0].ljust(widths[0]), *values, sep="  ", highlight=False)
    else:
        table = Table(title=result["scenario"]["title"], title_justify="left")
        for place, name in enumerate(heading(result)):
            table.add_column(name, justify="right" if place else "left", no_wrap=True)
        # As Text: a plain string's "[ms]" would be taken for markup, and vanish.
        for line in rows(result):
            table.add_row(*map(Text, line))
        table.add_section()
        for line in ratio_rows(result):
            table.add_row(*map(Text, line))
        console.print(table)
    for policy in result["policies"]:
        if policy["failed"]:
            console.out(f"{policy['policy']} failed: {policy['failed']}", highlight=False)
        elif kept := figure(policy, ("rounds", "counted_disturbed")):
            console.out(
                f"{policy['policy']}: the host took CPU away in {kept} of the {policy['rounds']['wanted']}"
                " rounds counted; its mice are not those of an undisturbed machine",
                highlight=False,
            )
