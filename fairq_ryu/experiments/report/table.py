"""The tables of a result: on the terminal, and in the report. Their rows are described by the workloads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairq_ryu.experiments.hostcc.names import own
from fairq_ryu.experiments.report import better, origin
from fairq_ryu.experiments.workloads import registry
from fairq_ryu.experiments.workloads.common import naming
from fairq_ryu.experiments.workloads.common.rows import Row, RowGroup, Shown, figure

Policy = Mapping[str, Any]
MACHINE_LIMIT_PERCENT = 60.0
"""At this share of a processor or more, packets also wait for the forwarding thread and not only in the
queue: the run has measured the machine and not the network.
"""
FAST_MBIT = 1000.0
"""From this rate on, times have microseconds."""


def rows(result: Mapping[str, Any], full: bool) -> list[list[str]]:
    """Label, then one text for each policy: all rows that a policy has, or those of the short table."""
    policies, table = result["policies"], registry.of_result(result["scenario"]).table
    out = _lines(_exact(table.rows, result), policies, full)
    for group in table.groups:
        out += _group(group._replace(rows=_exact(group.rows, result)), policies, full)
    return out


def _exact(rows: Sequence[Row], result: Mapping[str, Any]) -> tuple[Row, ...]:
    """The rows, those of times with microseconds if the rate is high."""
    fast = result["scenario"]["rate_mbit"] >= FAST_MBIT
    return tuple(row._replace(style=".3f") if fast and row.unit == "ms" else row for row in rows)


def _group(group: RowGroup, policies: Sequence[Policy], full: bool) -> list[list[str]]:
    """The rows of each member of a list, which has the same members in all policies."""
    listed: Sequence[Policy] = next((found for each in policies if (found := figure(each, group.path))), [])
    out: list[list[str]] = []
    for index, member in enumerate(listed):
        parts = [_member(policy, group.path, index) for policy in policies]
        out += _lines(group.rows, parts, full, group.prefix(member))
    return out


def _lines(rows: Sequence[Row], policies: Sequence[Policy], full: bool, prefix: str = "") -> list[list[str]]:
    """The rows for which at least one policy (or member) has a figure."""
    out: list[list[str]] = []
    for label, unit, path, style, shown in rows:
        values = [figure(policy, path) for policy in policies]
        wanted = full or shown is Shown.SHORT or (shown is Shown.NONZERO and any(values))
        if wanted and any(value is not None for value in values):
            name = f"{prefix}{label} [{unit}]" if unit else f"{prefix}{label}"
            halves = [figure(policy, ("interval", *path)) for policy in policies]
            out.append([name, *(written(*each, style) for each in zip(values, halves, strict=True))])
    return out


def written(value: float | None, half: float | None, style: str) -> str:
    """A figure, and where it is a mean of several repetitions half of its 95 % confidence interval."""
    if value is None:
        return "-"
    if style == "d" and not isinstance(value, int):
        style = ".1f"  # a mean of counts
    return f"{value:,{style}}" + (f" \u00b1 {half:,{style}}" if half else "")


def _member(policy: Policy, path: tuple[str, ...], index: int) -> Policy:
    """The member of a list in a policy's result; empty where there is no list."""
    listed, halves = figure(policy, path), figure(policy, ("interval", *path))
    if not listed:
        return {}
    return {**listed[index], "interval": halves[index]} if halves else listed[index]


def ratio_rows(result: Mapping[str, Any], full: bool) -> list[list[str]]:
    """Label, then the ratio to the first policy that ran, for each policy: all, or those of the short table;
    empty with a single policy.
    """
    comparison, intervals = result["comparison"], result["comparison_interval"]
    first = next((each["policy"] for each in result["policies"] if not each["failed"]), "")
    if not comparison:
        return []
    out: list[list[str]] = []
    for ratio in registry.ratios():
        values = [comparison.get(policy["policy"], {}).get(ratio.name) for policy in result["policies"]]
        wanted = ratio.label and (full or ratio.shown is Shown.SHORT)
        if wanted and any(value is not None for value in values):
            bounds = [intervals.get(policy["policy"], {}).get(ratio.name) for policy in result["policies"]]
            texts = [_ratio(*each, ratio.style) for each in zip(values, bounds, strict=True)]
            out.append([f"{ratio.label} vs {first}", *texts])
    return out


def _ratio(value: float | None, bounds: Sequence[float] | None, style: str) -> str:
    """A ratio, and where it is a mean of several repetitions its 95 % confidence interval."""
    if value is None:
        return "-"
    return f"{value:{style}}" + (f" [{bounds[0]:{style}}, {bounds[1]:{style}}]" if bounds else "")


def heading(result: Mapping[str, Any]) -> list[str]:
    """The names of the columns."""
    return ["", *(policy["policy"] for policy in result["policies"])]


def unsound(policy: Policy) -> str | None:
    """A sentence on why a policy's figures are not its own; None when they are."""
    why = policy.get("unsound")
    return (
        f"{policy['policy']}: {why}; these figures are not those of the policy, see its logs" if why else None
    )


def sections(result: Mapping[str, Any], full: bool) -> list[list[list[str]]]:
    """The rows of the table: queue law and TCP (in the short one where they differ between the policies),
    the figures, and the ratios.
    """
    named = [line for line in naming.rows(result) if full or len(set(line[1:])) > 1]
    return [named, rows(result, full), ratio_rows(result, full)]


def show(result: Mapping[str, Any], full: bool, console: Console | None = None) -> None:
    """Print the short table or the full one; columns of plain text where the output is no terminal."""
    console = console or Console()
    parts = sections(result, full)
    write(result["scenario"]["title"], heading(result), parts, console)
    for remark in remarks(result):
        console.out(remark, highlight=False)
    lines, count = (sum(map(len, each)) for each in (parts, sections(result, full=True)))
    if lines < count:
        hint = f"{lines} of {count} rows; `fairq report DIR --full` prints all"
        console.out(f"{hint}, result.json has every figure.", highlight=False)
    console.out(f"Of commit {origin.commit(result['metadata'])}.", highlight=False)


def write(
    title: str, heading: Sequence[str], parts: Sequence[Sequence[Sequence[str]]], console: Console
) -> None:
    """Print a table of several parts; columns of plain text where the output is no terminal."""
    listed = [heading, *(line for part in parts for line in part)]
    widths = [max(len(line[place]) for line in listed) for place in range(len(listed[0]))]
    if not console.is_terminal:
        for line in listed:
            _label, *values = (text.rjust(width) for text, width in zip(line, widths, strict=True))
            console.out(line[0].ljust(widths[0]), *values, sep="  ", highlight=False)
    else:
        for places in _tables(widths, console.width):
            table = Table(title=title, title_justify="left")
            for place in (0, *places):
                table.add_column(listed[0][place], justify="right" if place else "left", no_wrap=True)
            for part in parts:
                # As Text, because Rich would interpret the "[ms]" of a plain string as markup.
                for line in part:
                    table.add_row(*(Text(line[place]) for place in (0, *places)))
                table.add_section()
            console.print(table)


def _tables(widths: Sequence[int], most: int) -> list[list[int]]:
    """The columns of policies, by place, in tables of at most ``most`` characters each, labels included."""
    tables: list[list[int]] = []
    # Rich adds a line and two spaces to each column, and a line at the end.
    begun = widths[0] + 4
    left = 0
    for place in range(1, len(widths)):
        taken = widths[place] + 3
        if taken > left:
            tables.append([])
            left = most - begun
        tables[-1].append(place)
        left -= taken
    return tables


def remarks(result: Mapping[str, Any]) -> Iterator[str]:
    """Sentences below the table: first where rivals are better, then what explains its figures."""
    if ahead := better.rivals(result):
        yield ahead
    source, claim = result["scenario"]["source"], result["scenario"]["claim"]
    of_ours = source.startswith("ours")
    if source:
        named = f"O{source[1:]}" if of_ours else f"After {source}"
        yield f"{named}; k = {result['scenario']['scale']:g}."
    if claim:
        yield f"{'Expected' if of_ours else 'What it found'}: {claim}"
    yield from registry.of_result(result["scenario"]).table.about(result["scenario"])
    repeat = result["repeat"]
    if repeat > 1:
        yield f"Means of {repeat} repetitions, counts too; \u00b1 and [low, high]: 95 % confidence intervals."
    elif result["comparison"]:
        yield "One repetition: ratios have no confidence interval. --repeat 5 gives them one."
    yield from policy_remarks(result)


def policy_remarks(result: Mapping[str, Any]) -> Iterator[str]:
    """Those about single policies."""
    workload = registry.of_result(result["scenario"])
    for policy in result["policies"]:
        shares = (
            (figure(policy, ("cpu", "switch_thread_percent")), ""),
            (figure(policy, ("cpu", "switch_thread_volleys_percent")), " during volleys"),
        )
        for share, when in shares:
            if share is not None and share >= MACHINE_LIMIT_PERCENT:
                yield (
                    f"{policy['policy']}: the thread of Open vSwitch that forwards used {share:.0f} % of a"
                    f" CPU{when} ({MACHINE_LIMIT_PERCENT:.0f} % or more): this measured the machine, not only"
                    " the network"
                )
                break
        for name, what in policy.get("tcp", {}).items():
            if own(name):  # the others are the kernel's, by their name in the scenario
                yield f"{policy['policy']}: hosts with {name} ran {what}"
        for name in policy.get("tcp_left_out", {}):
            if count := figure(policy, ("tcp_left_out", name)):
                yield (
                    f"{policy['policy']}: this kernel has reduced {count:,g} windows without asking {name}:"
                    " the figures contain bursts that it would not have sent (docs/policies/peers.md)"
                )
        if missed := figure(policy, ("capture", "missed")):
            yield (
                f"{policy['policy']}: {missed:,g} packets were not captured,"
                " so an honest ACK may be counted as one beyond"
            )
        if policy["failed"]:
            yield f"{policy['policy']} failed: {policy['failed']}"
        if reason := unsound(policy):
            yield reason
        yield from workload.table.remarks(policy)
