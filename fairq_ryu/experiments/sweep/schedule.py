"""The order of the runs of a sweep, and how long those that are left will take. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fairq_ryu.experiments.measure import stats
from fairq_ryu.experiments.report import repetitions


class Run(NamedTuple):
    """One policy once at one point; a point and a repetition by their numbers, from 0."""

    point: int
    repetition: int
    policy: str


def schedule(points: int, policies: Sequence[str], repeat: int) -> list[Run]:
    """All runs, one repetition of all points after the other. In each repetition another point comes first,
    and at each point and in each repetition another policy, so that a machine whose speed changes over time
    favours none.
    """
    return [
        Run(point, repetition, policy)
        for repetition in range(repeat)
        for point in rotated(range(points), repetition)
        for policy in policies_of(point, repetition, policies)
    ]


def policies_of(point: int, repetition: int, policies: Sequence[str]) -> list[str]:
    """The order in which the policies run at a point in a repetition."""
    return repetitions.order(policies, repetition + point)


def rotated(places: Sequence[int], by: int) -> list[int]:
    """The same, begun at another place."""
    first = by % len(places) if places else 0
    return [*places[first:], *places[:first]]


def seconds_left(left: Sequence[Run], took: Mapping[Run, float]) -> float | None:
    """How long the runs that are left will take, s, by what others took: those of the same point and policy,
    or else of the same policy, or else all. None before the first has ended.
    """
    if not took:
        return None
    every = stats.mean(list(took.values()))
    total = 0.0
    for run in left:
        policy = {each: seconds for each, seconds in took.items() if each.policy == run.policy}
        same = [seconds for each, seconds in policy.items() if each.point == run.point]
        total += stats.mean(same or list(policy.values()) or [every])
    return total


def in_words(seconds: float | None) -> str:
    """A time that is left."""
    if seconds is None:
        return "time left not yet known"
    minutes = round(seconds / 60)
    if minutes < 1:
        return "less than a minute left"
    hours, rest = divmod(minutes, 60)
    return f"about {f'{hours} h ' if hours else ''}{rest} min left"
