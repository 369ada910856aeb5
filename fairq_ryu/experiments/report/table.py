"""The figures of a result, as rows for people: on the terminal, and in the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

Policy = Mapping[str, Any]
MACHINE_LIMIT_PERCENT = 60.0
"""From this share of a processor on, packets wait for the thread that forwards them, and not only in the
queue: the machine was measured and not the network."""

# Label, unit, where the figure lies in a policy's result, how it is written.
_ROWS: list[tuple[str, str, tuple[str, ...], str]] = [
    ("flows with a deadline", "", ("deadlines", "deadlines"), "d"),
    ("deadlines missed", "", ("deadlines", "missed"), "d"),
    ("deadlines that the link cannot meet", "", ("deadlines", "impossible"), "d"),
    ("runs with a missed deadline", "", ("deadlines", "runs_with_missed"), "d"),
    ("flows unfinished", "", ("deadlines", "unfinished"), "d"),
    ("flows retransmissions", "", ("deadlines", "retransmissions"), "d"),
    ("flows RTO timeouts", "", ("deadlines", "rto_timeouts"), "d"),
    ("flows announced", "", ("deadlines", "announced"), "d"),
    ("endless flows goodput", "Mbit/s", ("deadlines", "endless_goodput_mbit"), ".1f"),
    ("endless flows longest silence", "ms", ("deadlines", "endless_longest_gap_ms"), ".0f"),
    ("all n: flows", "", ("fanin", "flows"), "d"),
    ("all n: flows unfinished", "", ("fanin", "unfinished"), "d"),
    ("all n: flows with a deadline", "", ("fanin", "deadlines"), "d"),
    ("all n: deadlines missed", "", ("fanin", "missed"), "d"),
    ("all n: RTO timeouts", "", ("fanin", "rto_timeouts"), "d"),
    ("all n: flows announced", "", ("fanin", "announced"), "d"),
    ("rounds made", "", ("rounds", "made"), "d"),
    ("rounds disturbed (host took CPU)", "", ("rounds", "disturbed"), "d"),
    ("disturbed rounds kept", "", ("rounds", "counted_disturbed"), "d"),
    ("mice", "", ("mice", "count"), "d"),
    ("mice unfinished", "", ("mice", "unfinished"), "d"),
    ("mice FCT mean", "ms", ("mice", "fct_ms", "mean"), ".1f"),
    ("mice FCT sd", "ms", ("mice", "fct_ms", "sd"), ".1f"),
    ("mice FCT p50", "ms", ("mice", "fct_ms", "p50"), ".1f"),
    ("mice FCT p95", "ms", ("mice", "fct_ms", "p95"), ".1f"),
    ("mice FCT p99", "ms", ("mice", "fct_ms", "p99"), ".1f"),
    ("mice FCT max", "ms", ("mice", "fct_ms", "max"), ".1f"),
    ("a volley's physical limit", "ms", ("distance", "limit_ms"), ".1f"),
    ("mice FCT p99 / physical limit", "", ("distance", "limit_times"), ".2f"),
    ("a volley alone, idle link: FCT p99", "ms", ("distance", "floor_ms"), ".1f"),
    ("mice FCT p99 / volley alone", "", ("distance", "floor_times"), ".2f"),
    ("mice RTO timeouts", "", ("mice", "rto_timeouts"), "d"),
    ("mice segments dropped", "", ("mice", "segments_dropped"), "d"),
    ("mice retransmissions", "", ("mice", "retransmissions"), "d"),
    ("elephants goodput", "Mbit/s", ("elephants", "goodput_sum_mbit"), ".1f"),
    ("SYNs a second", "1/s", ("flood", "syn_rate"), ".0f"),
    ("elephants Jain's index", "", ("elephants", "jain"), ".4f"),
    ("elephants RTO timeouts", "", ("elephants", "rto_timeouts"), "d"),
    ("senders retransmissions", "", ("senders", "retransmissions"), "d"),
    ("senders RTO timeouts", "", ("senders", "rto_timeouts"), "d"),
    ("drops at the bottleneck", "", ("queue", "qdisc_drops"), "d"),
    ("queue mean", "bytes", ("queue", "rounds", "mean_bytes"), ".0f"),
    ("queue p99", "bytes", ("queue", "rounds", "p99_bytes"), ".0f"),
    ("ACKs rewritten", "", ("queue", "rounds", "acks_rewritten"), "d"),
    ("switch's thread, of one CPU", "%", ("cpu", "switch_thread_percent"), ".0f"),
    ("CPU idle", "%", ("cpu", "idle_percent"), ".0f"),
    ("CPU stolen by the host", "%", ("cpu", "stolen_percent"), ".1f"),
    ("alone: goodput", "Mbit/s", ("elephants", "alone_sum_mbit"), ".1f"),
    ("alone: queue mean", "bytes", ("queue", "alone", "mean_bytes"), ".0f"),
    ("alone: queue p99", "bytes", ("queue", "alone", "p99_bytes"), ".0f"),
    ("alone: drops", "", ("queue", "alone", "drops"), "d"),
    ("afterwards: goodput", "Mbit/s", ("elephants", "after_sum_mbit"), ".1f"),
    ("afterwards / alone: goodput", "", ("elephants", "after_share"), ".1%"),
    ("during / before the flood: goodput", "", ("flood", "during_share"), ".1%"),
    ("flows compared byte for byte", "", ("integrity", "flows"), "d"),
    ("captured ACKs at senders", "", ("capture", "acks"), "d"),
    ("captured: ACKs beyond the receiver's", "", ("capture", "beyond"), "d"),
    ("captured: wrong TCP checksums", "", ("capture", "bad_checksums"), "d"),
    ("packets not captured", "", ("capture", "missed"), "d"),
    ("left out: mice", "", ("mice_left_out", "count"), "d"),
    ("left out: mice unfinished", "", ("mice_left_out", "unfinished"), "d"),
    ("left out: mice FCT p99", "ms", ("mice_left_out", "fct_ms", "p99"), ".1f"),
    ("left out: mice RTO timeouts", "", ("mice_left_out", "rto_timeouts"), "d"),
]

# The same of each number of flows of a fan-in, and of each flow with a deadline.
_OF_N: list[tuple[str, str, tuple[str, ...], str]] = [
    ("flows", "", ("flows",), "d"),
    ("deadlines missed", "", ("missed",), "d"),
    ("goodput", "Mbit/s", ("goodput_mbit",), ".1f"),
    ("last byte p50", "ms", ("last_byte_ms", "p50"), ".1f"),
    ("last byte p99", "ms", ("last_byte_ms", "p99"), ".1f"),
    ("physical limit", "ms", ("distance", "limit_ms"), ".1f"),
    ("last byte p50 / physical limit", "", ("distance", "limit_times"), ".2f"),
    ("last byte p50 alone, ample buffer", "ms", ("distance", "floor_ms"), ".1f"),
    ("last byte p50 / alone", "", ("distance", "floor_times"), ".2f"),
    ("RTO timeouts", "", ("rto_timeouts",), "d"),
    ("retransmissions", "", ("retransmissions",), "d"),
    ("drops at the bottleneck", "", ("qdisc_drops",), "d"),
]
_OF_FLOW: list[tuple[str, str, tuple[str, ...], str]] = [
    ("mean", "ms", ("ms", "mean"), ".0f"),
    ("max", "ms", ("ms", "max"), ".0f"),
    ("missed", "", ("missed",), "d"),
]

_RATIOS: list[tuple[str, str, Callable[[float], str]]] = [
    ("FCT p99, times lower", "fct_p99_times_lower", lambda value: f"{value:.1f}"),
    ("FCT sd, times lower", "fct_sd_times_lower", lambda value: f"{value:.1f}"),
    ("mice RTO timeouts", "mice_rto_share", lambda value: f"{value:.1%}"),
    ("mice segments dropped", "mice_drops_share", lambda value: f"{value:.1%}"),
    ("elephants goodput", "goodput_share", lambda value: f"{value:.1%}"),
    ("Jain's index", "jain_share", lambda value: f"{value:.1%}"),
    ("elephants goodput afterwards", "after_share", lambda value: f"{value:.1%}"),
    ("deadlines missed", "deadlines_missed_share", lambda value: f"{value:.1%}"),
    ("endless flows goodput", "endless_goodput_share", lambda value: f"{value:.1%}"),
    ("all n: deadlines missed", "fanin_missed_share", lambda value: f"{value:.1%}"),
    ("all n: RTO timeouts", "fanin_rto_share", lambda value: f"{value:.1%}"),
    ("last byte p50, times sooner, worst n", "last_byte_times_lower", lambda value: f"{value:.1f}"),
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
    out = _lines(_ROWS, policies)
    for place, number in _places(policies, ("fanin", "sweep"), "n"):
        parts = [_member(policy, ("fanin", "sweep"), place) for policy in policies]
        out += _lines(_OF_N, parts, f"n = {number}: ")
    for place, size in _places(policies, ("deadlines", "by_flow"), "size_bytes"):
        parts = [_member(policy, ("deadlines", "by_flow"), place) for policy in policies]
        deadline = next(part["deadline_s"] for part in parts if part)
        out += _lines(_OF_FLOW, parts, f"{size / 1e6:g} MB" + (f" in {deadline:g} s: " if deadline else ": "))
    return out


def _lines(
    wanted: Sequence[tuple[str, str, tuple[str, ...], str]], policies: Sequence[Policy], before: str = ""
) -> list[list[str]]:
    """Those of the wanted rows that one of the policies (or parts of them) has; ``before`` each label."""
    out: list[list[str]] = []
    for label, unit, path, style in wanted:
        values = [figure(policy, path) for policy in policies]
        if any(value is not None for value in values):
            name = f"{before}{label} [{unit}]" if unit else f"{before}{label}"
            halves = [figure(policy, ("interval", *path)) for policy in policies]
            out.append([name, *(_written(*each, style) for each in zip(values, halves, strict=True))])
    return out


def _written(value: float | None, half: float | None, style: str) -> str:
    """A figure, and where it is a mean of several repetitions half of its 95 % confidence interval."""
    if value is None:
        return "-"
    if style == "d" and not isinstance(value, int):
        style = ".1f"  # a mean of counts
    return f"{value:,{style}}" + (f" \u00b1 {half:,{style}}" if half else "")


def _places(policies: Sequence[Policy], path: tuple[str, ...], key: str) -> list[tuple[int, Any]]:
    """The places in the lists at ``path``, which all policies have alike, with the ``key`` of each."""
    listed: Sequence[Policy] = next((found for policy in policies if (found := figure(policy, path))), [])
    return [(place, each[key]) for place, each in enumerate(listed)]


def _member(policy: Policy, path: tuple[str, ...], place: int) -> Policy:
    """The member of a list in a policy's result; empty where there is no list."""
    listed, halves = figure(policy, path), figure(policy, ("interval", *path))
    if not listed:
        return {}
    return {**listed[place], "interval": halves[place]} if halves else listed[place]


def ratio_rows(result: Mapping[str, Any]) -> list[list[str]]:
    """Label, then the ratio to the first policy that ran, for each policy; empty with a single one."""
    comparison, intervals = result["comparison"], result.get("comparison_interval", {})
    first = next((each["policy"] for each in result["policies"] if not each["failed"]), "")
    if not comparison:
        return []
    out: list[list[str]] = []
    for label, key, write in _RATIOS:
        values = [comparison.get(policy["policy"], {}).get(key) for policy in result["policies"]]
        if any(value is not None for value in values):
            bounds = [intervals.get(policy["policy"], {}).get(key) for policy in result["policies"]]
            texts = [
                "-" if value is None else write(value) + (f" [{write(at[0])}, {write(at[1])}]" if at else "")
                for value, at in zip(values, bounds, strict=True)
            ]
            out.append([f"{label} vs {first}", *texts])
    return out


def heading(result: Mapping[str, Any]) -> list[str]:
    """The names of the columns."""
    return ["", *(policy["policy"] for policy in result["policies"])]


def unsound(policy: Policy) -> str | None:
    """A line that says why a policy's figures are not its own; None when they are."""
    why = policy.get("unsound")
    return (
        f"{policy['policy']}: {why}; these figures are not those of the policy, see its logs" if why else None
    )


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
    for remark in remarks(result):
        console.out(remark, highlight=False)


def remarks(result: Mapping[str, Any]) -> Iterator[str]:
    """What a reader of the table must know of it."""
    repeat = result.get("repeat", 1)
    if repeat > 1:
        yield f"Means of {repeat} repetitions, counts too; \u00b1 and [low, high]: 95 % confidence intervals."
    elif result["comparison"]:
        yield "One repetition: ratios have no confidence interval. --repeat 5 gives them one."
    for policy in result["policies"]:
        share = figure(policy, ("cpu", "switch_thread_percent"))
        if share is not None and share >= MACHINE_LIMIT_PERCENT:
            yield (
                f"{policy['policy']}: the thread of Open vSwitch that forwards used {share:.0f} % of a CPU"
                f" ({MACHINE_LIMIT_PERCENT:.0f} % or more): this measured the machine, not only the network"
            )
        if missed := figure(policy, ("capture", "missed")):
            yield (
                f"{policy['policy']}: {missed:,g} packets were not captured,"
                " so an honest ACK may be counted as one beyond"
            )
        if policy["failed"]:
            yield f"{policy['policy']} failed: {policy['failed']}"
        if words := unsound(policy):
            yield words
        if kept := figure(policy, ("rounds", "counted_disturbed")):
            yield (
                f"{policy['policy']}: the host took CPU away in {kept:,g} of the {policy['rounds']['wanted']}"
                " rounds counted; its mice are not those of an undisturbed machine"
            )
