"""The pictures of heterogeneous flows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairq_ryu.experiments.workloads.common.pictures import QUEUE, Picture, Policy, Shown, bars

_NAME = "heterogeneous"


def _throughput(axes: Any, shown: Sequence[Shown], _scenario: Mapping[str, Any]) -> None:
    """Goodput of each long flow, group after group."""

    def label(policy: Policy) -> str:
        return f": Jain's index {policy[_NAME]['jain']:.3f}"

    bars(axes, shown, lambda policy: policy[_NAME]["goodput_mbit"], label)
    groups = shown[0].figures[_NAME]["groups"]
    places, first = [], 1
    for group in groups:
        places.append(first + (group["flows"] - 1) / 2)
        first += group["flows"]
        axes.axvline(first - 0.5, color="0.8", linewidth=1)
    axes.set_xticks(places, [group["kind"] for group in groups])
    axes.set_ylabel("goodput of each flow [Mbit/s]")
    axes.figure.legend(loc="outside upper center", fontsize="small")


THROUGHPUT = Picture(
    "throughput",
    "Goodput of each long flow",
    shows=lambda policy: policy.get(_NAME),
    draw=_throughput,
)
PICTURES = (THROUGHPUT, QUEUE)
