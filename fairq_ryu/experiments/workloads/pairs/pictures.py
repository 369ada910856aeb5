"""The pictures of pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairq_ryu.experiments.workloads.common.pictures import Draw, Picture, Policy, Shown, key


def _has_pairs(policy: Policy) -> Any:
    return policy.get("pairs")


def _by_rate(kind: str) -> Draw:
    """Mean completion time of the long or of the short flows, by the rate of the link."""

    def draw(axes: Any, shown: Sequence[Shown], _scenario: Mapping[str, Any]) -> None:
        for each in shown:
            rates = each.figures["pairs"]["rates"]
            axes.plot(
                [rate["rate_mbit"] for rate in rates],
                [rate[kind]["fct_ms"]["mean"] / 1000 for rate in rates],
                marker="o",
                **each.curve,
            )
        axes.set_ylim(bottom=0)
        axes.set_xlabel("rate of the bottleneck [Mbit/s]")
        axes.set_ylabel(f"mean completion time\nof {kind} flows [s]")
        key(axes)

    return draw


PICTURES = (
    Picture("short_fct", "Completion time of the short flows", _has_pairs, _by_rate("short")),
    Picture("long_fct", "Completion time of the long flows", _has_pairs, _by_rate("long")),
)
