"""The pictures of flows with deadlines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from fairq_ryu.experiments.workloads.common.pictures import QUEUE, Picture, Policy, look, new_figure


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


PICTURES = (
    Picture("completion", "Completion times of flows with deadlines", counted=False, draw=completion),
    Picture("silence", "Longest time without a byte of an endless flow", counted=False, draw=silence),
    QUEUE,
)
