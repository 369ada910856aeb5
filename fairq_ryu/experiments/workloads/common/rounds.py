"""Which rounds count on a machine whose host takes CPU time away, and how many rounds are needed.

A round is *disturbed* when the host stole CPU time during its volley. Disturbed rounds are repeated, under
every policy alike and by this rule alone: the completion times of a round do not matter, except that a longer
volley is more easily disturbed. All functions take ``stolen``: for each round made so far, in order, the
share of all CPU time that was stolen, percent.
"""

from __future__ import annotations

from collections.abc import Sequence

STOLEN_DELAY_S = 0.01
"""Stolen time is read this long after the end of a volley: the kernel updates it at its next tick, which is
1 to 10 ms later.
"""
DISTURBED_PERCENT = 1.0
"""A round with more than this share of its CPU time stolen is disturbed.

The kernel counts in ticks of 10 ms, so a share above 0 means one tick at least. In a volley of some 30 ms a
single tick is far more than this on a machine of a few CPUs. A volley of a second may lose one tick for each
CPU: on a machine whose host takes a little all the time, hardly any volley loses none.
"""


def number(rounds: float) -> str:
    """A number of rounds as text: whole, or a mean of several repetitions with one decimal place."""
    return f"{rounds:,.0f}" if rounds == int(rounds) else f"{rounds:,.1f}"


def disturbed(stolen: Sequence[float]) -> list[int]:
    """The numbers of the rounds that the host disturbed."""
    return [number for number, percent in enumerate(stolen) if percent > DISTURBED_PERCENT]


def needed(stolen: Sequence[float], wanted: int) -> int:
    """The number of rounds to make: one more for each disturbed one, at most twice ``wanted``."""
    return min(wanted + len(disturbed(stolen)), 2 * wanted)


def counted(stolen: Sequence[float], wanted: int) -> list[int]:
    """The numbers of the rounds that count, in order: ``wanted`` of them, or all when fewer were made.

    The undisturbed rounds first. Where they are too few, the least disturbed of the others too; of equally
    disturbed rounds the earlier.
    """
    bad = disturbed(stolen)
    good = sorted(set(range(len(stolen))) - set(bad))
    return sorted([*good, *sorted(bad, key=lambda number: stolen[number])][:wanted])


def step(stolen: Sequence[float], wanted: int) -> str:
    """The name of the next round in progress messages."""
    if len(stolen) < wanted:
        return f"round {len(stolen) + 1} of {wanted}"
    return f"round {len(stolen) + 1}, the host disturbed {len(disturbed(stolen))}"


def figures(stolen: Sequence[float], wanted: int) -> dict[str, int]:
    """The ``rounds`` object of the result, see `incast.figures`."""
    bad = disturbed(stolen)
    return {
        "wanted": wanted,
        "made": len(stolen),
        "disturbed": len(bad),
        "counted_disturbed": len(set(bad) & set(counted(stolen, wanted))),
    }
