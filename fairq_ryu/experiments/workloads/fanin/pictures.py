"""The pictures of a fan-in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from fairq_ryu.experiments.workloads.common.pictures import QUEUE, Picture, Policy, look, new_figure


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


PICTURES = (
    Picture("missed", "Deadlines missed", counted=False, draw=missed),
    Picture("last_byte", "Last byte of each round", counted=False, draw=last_byte),
    QUEUE,
)
