"""Pictures of flows with deadlines, of fan-ins, and of elephants before and after something."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from fairq_ryu.experiments.report.pictures import Policy, look, new_figure


def completion(policies: Sequence[Policy], _scenario: Mapping[str, Any]) -> Figure | None:
    """Every completion time of every flow, with its deadline."""
    shown = [each for each in policies if each.get("deadlines")]
    if not shown:
        return None
    figure, axes = new_figure()
    flows = shown[0]["deadlines"]["by_flow"]
    for place, each in enumerate(shown):
        colour = look(policies.index(each))["color"]
        shift = (place - (len(shown) - 1) / 2) * 0.8 / len(shown)
        across: list[float] = []
        times: list[float] = []
        for run in each["deadlines"]["runs"]:
            for number, flow in enumerate(run["flows"]):
                if flow["ms"] is not None:
                    across.append(number + shift)
                    times.append(flow["ms"] / 1000)
        axes.plot(across, times, "o", markersize=4, alpha=0.7, color=colour, label=each["policy"])
    for number, flow in enumerate(flows):
        if flow["deadline_s"] is not None:
            axes.plot([number - 0.45, number + 0.45], [flow["deadline_s"]] * 2, color="0.2", linewidth=1.5)
    axes.set_xticks(range(len(flows)), [f"{flow['size_bytes'] / 1e6:g} MB" for flow in flows])
    axes.set_ylim(bottom=0)
    axes.set_ylabel("completion time [s]; the lines are deadlines")
    axes.grid(axis="x", visible=False)
    axes.legend()
    return figure


def silence(policies: Sequence[Policy], _scenario: Mapping[str, Any]) -> Figure | None:
    """How long endless flows got nothing through, in each run."""
    shown = [each for each in policies if each.get("deadlines") and each["deadlines"]["runs"][0]["endless"]]
    if not shown:
        return None
    figure, axes = new_figure()
    width = 0.8 / len(shown)
    for place, each in enumerate(shown):
        longest = [
            max(flow["longest_gap_ms"] for flow in run["endless"]) for run in each["deadlines"]["runs"]
        ]
        axes.bar(
            [number + 1 + (place - (len(shown) - 1) / 2) * width for number in range(len(longest))],
            longest,
            width=width,
            color=look(policies.index(each))["color"],
            label=f"{each['policy']}: {each['deadlines']['endless_goodput_mbit']:.1f} Mbit/s",
        )
    axes.set_xlabel("run")
    axes.set_ylabel("longest time without a byte [ms]")
    axes.grid(axis="x", visible=False)
    axes.legend()
    return figure


def missed(policies: Sequence[Policy], _scenario: Mapping[str, Any]) -> Figure | None:
    """Share of the deadlines that were missed, by the number of flows of each application."""
    shown = [each for each in policies if each.get("fanin") and each["fanin"]["deadlines"]]
    if not shown:
        return None
    figure, axes = new_figure()
    for each in shown:
        sweep = each["fanin"]["sweep"]
        axes.plot(
            [entry["n"] for entry in sweep],
            [100 * entry["missed"] / entry["deadlines"] for entry in sweep],
            marker="o",
            linewidth=2,
            label=each["policy"],
            **look(policies.index(each)),
        )
    axes.set_ylim(bottom=0)
    axes.set_xlabel("senders of each application")
    axes.set_ylabel("deadlines missed [%]")
    axes.legend()
    return figure


def last_byte(policies: Sequence[Policy], _scenario: Mapping[str, Any]) -> Figure | None:
    """Median of the time to the last byte of a round, by the number of flows; with one number, all rounds."""
    shown = [each for each in policies if each.get("fanin")]
    if not shown:
        return None
    figure, axes = new_figure()
    if len(shown[0]["fanin"]["sweep"]) == 1:
        for each in shown:
            times = sorted(each["fanin"]["sweep"][0]["last_byte_list_ms"])
            shares = [(rank + 1) / len(times) for rank in range(len(times))]
            axes.step(
                times, shares, where="post", linewidth=2, label=each["policy"], **look(policies.index(each))
            )
        axes.set_ylim(0, 1.01)
        axes.set_xlabel("from the start of a round to its last byte [ms]")
        axes.set_ylabel("share of rounds")
    else:
        for each in shown:
            sweep = each["fanin"]["sweep"]
            axes.plot(
                [entry["n"] for entry in sweep],
                [entry["last_byte_ms"]["p50"] for entry in sweep],
                marker="o",
                linewidth=2,
                label=each["policy"],
                **look(policies.index(each)),
            )
        axes.set_ylim(bottom=0)
        axes.set_xlabel("senders of each application")
        axes.set_ylabel("last byte of the median round [ms]")
    axes.legend()
    return figure


def phases(policies: Sequence[Policy], _scenario: Mapping[str, Any]) -> Figure | None:
    """Goodput of all elephants before, during and after mice or a flood."""
    names = [("before", "alone_sum_mbit"), ("during", "goodput_sum_mbit"), ("after", "after_sum_mbit")]
    shown = [each for each in policies if (each.get("elephants") or {}).get("after_sum_mbit") is not None]
    if not shown:
        return None
    figure, axes = new_figure()
    width = 0.8 / len(shown)
    for place, each in enumerate(shown):
        bars = axes.bar(
            [number + (place - (len(shown) - 1) / 2) * width for number in range(len(names))],
            [each["elephants"][key] or 0 for _name, key in names],
            width=width,
            color=look(policies.index(each))["color"],
            label=each["policy"],
        )
        axes.bar_label(bars, fmt="%.0f", padding=2)
    axes.set_xticks(range(len(names)), [name for name, _key in names])
    axes.set_ylabel("goodput of all elephants [Mbit/s]")
    axes.grid(axis="x", visible=False)
    figure.legend(loc="outside upper center", ncols=len(shown), fontsize="small")
    return figure
