"""Which rounds of mice count on a machine whose host takes CPU time away, and how many are to be made.

A round is *disturbed* when the host stole CPU time during its volley. Disturbed rounds are made again, under
every policy alike and by this rule alone: what the mice of a round met has no say in it, but for the length
of the volley. All functions take ``stolen``: for each round made so far, in order, the share of all CPU time
that was stolen, percent.
"""

from __future__ import annotations

from collections.abc import Sequence

DISTURBED_PERCENT = 1.0
"""A round with more than this share of its CPU time stolen is disturbed.

The kernel counts in ticks of 10 ms, so a share above 0 means one tick at least. In a volley of some 30 ms a
single tick is far more than this on a machine of a few CPUs. A volley of a second is let off one tick for
each CPU: on a machine whose host takes a little all the time, hardly any has none.
"""


def disturbed(stolen: Sequence[float]) -> list[int]:
    """The numbers of the rounds that the host disturbed."""
    return [number for number, percent in enumerate(stolen) if percent > DISTURBED_PERCENT]


def needed(stolen: Sequence[float], wanted: int) -> int:
    """How many rounds to make as it stands: one more for each disturbed one, at most twice ``wanted``."""
    return min(wanted + len(disturbed(stolen)), 2 * wanted)


def counted(stolen: Sequence[float], wanted: int) -> list[int]:
    """The numbers of the rounds that count, in order: ``wanted`` of them, or all when fewer were made.

    The undisturbed ones first. Where they are too few, the least disturbed of the others too, of equal ones
    the earlier.
    """
    bad = disturbed(stolen)
    good = sorted(set(range(len(stolen))) - set(bad))
    return sorted([*good, *sorted(bad, key=lambda number: stolen[number])][:wanted])


def step(stolen: Sequence[float], wanted: int) -> str:
    """What the next round is called."""
    if len(stolen) < wanted:
        return f"round {len(stolen) + 1} of {wanted}"
    return f"round {len(stolen) + 1}, the host disturbed {len(disturbed(stolen))}"


def figures(stolen: Sequence[float], wanted: int) -> dict[str, int]:
    """What the result says of the rounds, see `result`."""
    bad = disturbed(stolen)
    return {
        "wanted": wanted,
        "made": len(stolen),
        "disturbed": len(bad),
        "counted_disturbed": len(set(bad) & set(counted(stolen, wanted))),
    }
