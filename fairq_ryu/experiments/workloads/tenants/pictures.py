"""The pictures of tenants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairq_ryu.experiments.workloads.common.pictures import QUEUE, Picture, Policy, Shown, bars, key

_NAME = "tenants"


def _goodput(axes: Any, shown: Sequence[Shown], _scenario: Mapping[str, Any]) -> None:
    """Goodput of each tenant in the last stage."""

    def label(policy: Policy) -> str:
        jain = policy[_NAME]["jain"]
        return "" if jain is None else f": Jain's index {jain:.3f}"

    bars(axes, shown, lambda policy: policy[_NAME]["goodput_mbit"], label)
    members = shown[0].figures[_NAME]["members"]
    axes.set_xticks(range(1, len(members) + 1), [f"{each['name']}\n{each['flows']:.0f}" for each in members])
    axes.set_xlabel("tenant, and its flows")
    axes.set_ylabel("goodput [Mbit/s]")
    axes.figure.legend(loc="outside upper center", fontsize="small")


def _has_stages(policy: Policy) -> Any:
    found = policy.get(_NAME)
    return found and found["jain"] is not None and len(found["stages"]) > 1


def _fairness(axes: Any, shown: Sequence[Shown], scenario: Mapping[str, Any]) -> None:
    """Jain's index over the tenants in each stage."""
    for each in shown:
        stages = each.figures[_NAME]["stages"]
        starts = [stage["from_s"] for stage in stages]
        axes.stairs(
            [stage["jain"] for stage in stages],
            [*starts, starts[-1] + scenario["stage_s"]],
            baseline=None,
            color=each.colour,
            linestyle=each.line,
            linewidth=2,
            label=each.name,
        )
    axes.set_ylim(0, 1.05)
    axes.set_xlabel("time [s]")
    axes.set_ylabel("Jain's index over tenants")
    key(axes)


PICTURES = (
    Picture("tenants", "Goodput of each tenant, with all flows", lambda policy: policy.get(_NAME), _goodput),
    Picture("fairness", "Jain's index over tenants in each stage", _has_stages, _fairness),
    QUEUE,
)
