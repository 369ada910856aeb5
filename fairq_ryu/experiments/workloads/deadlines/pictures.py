"""The pictures of flows with deadlines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairq_ryu.experiments.workloads.common import pictures as common
from fairq_ryu.experiments.workloads.common.pictures import Picture, Policy, Shown


def _has_flows(policy: Policy) -> Any:
    return policy.get("deadlines")


def _has_endless_flows(policy: Policy) -> Any:
    return policy.get("deadlines") and policy["deadlines"]["runs"][0]["endless"]


def _completion(axes: Any, shown: Sequence[Shown], _scenario: Mapping[str, Any]) -> None:
    """Every completion time of every flow, with its deadline."""
    flows = shown[0].figures["deadlines"]["by_flow"]
    for place, each in enumerate(shown):
        shift = common.offset(place, len(shown))
        across: list[float] = []
        times: list[float] = []
        for run in each.figures["deadlines"]["runs"]:
            for number, flow in enumerate(run["flows"]):
                if flow["ms"] is not None:
                    across.append(number + shift)
                    times.append(flow["ms"] / 1000)
        axes.plot(across, times, "o", markersize=4, alpha=0.7, color=each.colour, label=each.name)
    for number, flow in enumerate(flows):
        if flow["deadline_s"] is not None:
            axes.plot([number - 0.45, number + 0.45], [flow["deadline_s"]] * 2, color="0.2", linewidth=1.5)
    axes.set_xticks(range(len(flows)), [f"{flow['size_bytes'] / 1e6:g} MB" for flow in flows])
    axes.set_ylim(bottom=0)
    axes.set_ylabel("completion time [s];\nthe lines are deadlines")
    axes.grid(axis="x", visible=False)
    common.key(axes)


def _longest_gaps(policy: Policy) -> list[float]:
    return [max(flow["longest_gap_ms"] for flow in run["endless"]) for run in policy["deadlines"]["runs"]]


def _silence(axes: Any, shown: Sequence[Shown], _scenario: Mapping[str, Any]) -> None:
    """How long endless flows got nothing through, in each run."""
    common.bars(
        axes,
        shown,
        _longest_gaps,
        lambda policy: f": {policy['deadlines']['endless_goodput_mbit']:.1f} Mbit/s",
    )
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("run")
    axes.set_ylabel("longest time\nwithout a byte [ms]")
    common.key(axes)


PICTURES = (
    Picture("completion", "Completion times of flows with deadlines", _has_flows, _completion),
    Picture("silence", "Longest time without a byte of an endless flow", _has_endless_flows, _silence),
    common.QUEUE,
)
