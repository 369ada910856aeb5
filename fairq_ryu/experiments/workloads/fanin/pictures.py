"""The pictures of a fan-in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fairq_ryu.experiments.workloads.common import pictures as common
from fairq_ryu.experiments.workloads.common.pictures import Picture, Policy, Shown


def _has_rounds(policy: Policy) -> Any:
    return policy.get("fanin")


def _has_deadlines(policy: Policy) -> Any:
    return policy.get("fanin") and policy["fanin"]["deadlines"]


def _by_senders(
    axes: Any, shown: Sequence[Shown], value: Callable[[Mapping[str, Any]], float], label: str
) -> None:
    """A value of each entry of the sweep, by the number of flows of each application."""
    for each in shown:
        sweep = each.figures["fanin"]["sweep"]
        axes.plot(
            [entry["n"] for entry in sweep],
            list(map(value, sweep)),
            marker="o",
            markersize=4,
            clip_on=False,
            **each.curve,
        )
    axes.set_ylim(0, max(1, axes.get_ylim()[1]))
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("senders of each application")
    axes.set_ylabel(label)


def _missed(axes: Any, shown: Sequence[Shown], _scenario: Mapping[str, Any]) -> None:
    """Share of the deadlines that were missed."""
    _by_senders(axes, shown, lambda entry: 100 * entry["missed"] / entry["deadlines"], "deadlines missed [%]")
    common.key(axes)


def _last_byte(axes: Any, shown: Sequence[Shown], _scenario: Mapping[str, Any]) -> None:
    """Median of the time to the last byte of a round; with one number of flows, the times of all rounds."""
    if len(shown[0].figures["fanin"]["sweep"]) == 1:
        for each in shown:
            times = each.figures["fanin"]["sweep"][0]["last_byte_list_ms"]
            common.distribution(axes, each, times, len(times))
        axes.set_xlabel("from the start of a round to its last byte [ms]")
        axes.set_ylabel("share of rounds")
    else:
        _by_senders(
            axes, shown, lambda entry: entry["last_byte_ms"]["p50"], "last byte of\nthe median round [ms]"
        )
    common.key(axes)


def _sweep(policy: Policy) -> Any:
    """Several numbers of flows: of one there is no curve."""
    return policy.get("fanin") and len(policy["fanin"]["sweep"]) > 1


def _has_timeouts(policy: Policy) -> Any:
    return _sweep(policy) and all(each["timeout_share"] is not None for each in policy["fanin"]["sweep"])


def _goodput(axes: Any, shown: Sequence[Shown], _scenario: Mapping[str, Any]) -> None:
    """Payload of all rounds in the time to their last bytes."""
    _by_senders(axes, shown, lambda entry: entry["goodput_mbit"], "goodput [Mbit/s]")
    common.key(axes)


def _timeouts(axes: Any, shown: Sequence[Shown], _scenario: Mapping[str, Any]) -> None:
    """Share of the flows that had at least one timeout."""
    _by_senders(axes, shown, lambda entry: 100 * entry["timeout_share"], "flows with a timeout [%]")
    common.key(axes)


PICTURES = (
    Picture("missed", "Deadlines missed", _has_deadlines, _missed),
    Picture("last_byte", "Last byte of each round", _has_rounds, _last_byte),
    Picture("fanin_goodput", "Goodput by the number of senders", _sweep, _goodput),
    Picture("fanin_timeouts", "Flows with at least one timeout", _has_timeouts, _timeouts),
    common.QUEUE,
)
