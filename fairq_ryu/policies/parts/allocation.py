"""SED's division of a total window among flows (Lu 2016, Algorithm 2). Pure arithmetic, in bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from fairq_ryu.model import FlowKey

# The largest window TCP can say: 65535 << 14 (RFC 7323).
LARGEST_WINDOW = 65535 << 14


class Demand(NamedTuple):
    """A deadline flow: ``need`` is the window with which it is in time, ``most`` the largest that it has use
    for; ``sending``: it is not paused now.
    """

    flow: FlowKey
    need: float
    mss: int
    step: int
    sending: bool = False
    most: float = math.inf


class Share(NamedTuple):
    """A flow without deadline."""

    flow: FlowKey
    mss: int
    step: int


class Rules(NamedTuple):
    """``base`` is every share's part, in segments; ``partial``: a demand that exceeds what is left gets what
    is left; ``keep``: one that sends already gets it when it is at least this part of its need (1: never).
    ``floors``: what is taken off the total is the window, at least a segment, and not the need. ``spare``:
    what is left in the end goes to the demands, if there are no shares; otherwise nobody has it.
    """

    base: int = 1
    partial: bool = False
    keep: float = 1.0
    floors: bool = False
    spare: bool = False


def round_up(size: float, step: int) -> int:
    """The least window that can be said and is not less."""
    return math.ceil(size / step) * step


def base_window(mss: int, step: int, segments: int) -> int:
    """The window of so many segments, as it can be said."""
    return round_up(mss * segments, step)


def allocate(
    total: float, demands: Sequence[Demand], shares: Sequence[Share], rules: Rules
) -> dict[FlowKey, int]:
    """A window for each flow; 0 pauses it, any other is at least a segment. ``demands`` in EDF order.

    The paper's steps 2 to 4: base windows for all shares; then each demand in turn its need, if that is
    not more than what is left, or else nothing; what is left in the end goes to the shares in equal
    parts. A demand that is not met in full gets nothing when an earlier one, of no more need, was refused.
    Where there are no shares, ``spare`` is for those that have been granted something, in their order, each
    as much as it has use for; and then for those that were refused.
    """
    bases = {share.flow: base_window(share.mss, share.step, rules.base) for share in shares}
    left = max(0.0, total - sum(bases.values()))
    windows: dict[FlowKey, int] = {}
    least_refused = math.inf
    for demand in demands:
        cost = max(demand.need, demand.mss) if rules.floors else demand.need
        if cost <= left and demand.need < least_refused:
            granted = cost
        elif demand.need < least_refused and (
            (rules.partial and left >= demand.mss)
            or (demand.sending and rules.keep < 1 and left > 0 and left >= rules.keep * demand.need)
        ):
            granted = left
        else:
            least_refused = min(least_refused, demand.need)
            windows[demand.flow] = 0
            continue
        left -= granted
        windows[demand.flow] = _sayable(granted, demand)
    if rules.spare and not shares:
        _hand_out(left, demands, windows)
    extra = left / len(shares) if shares else 0.0
    for share in shares:
        window = bases[share.flow] + math.floor(extra / share.step) * share.step
        windows[share.flow] = min(window, LARGEST_WINDOW)
    return windows


def _sayable(size: float, demand: Demand) -> int:
    return min(round_up(max(size, demand.mss), demand.step), LARGEST_WINDOW)


def _hand_out(left: float, demands: Sequence[Demand], windows: dict[FlowKey, int]) -> None:
    """Add what nobody needs. A flow that was paused is woken for at least a segment."""
    for demand in sorted(demands, key=lambda each: not windows[each.flow]):
        has = windows[demand.flow]
        more = min(left, demand.most - has)
        if more <= 0 or (not has and left < min(demand.mss, demand.most)):
            continue
        # Down to what can be said: what it has already was rounded up.
        added = math.floor(more / demand.step) * demand.step
        windows[demand.flow] = min(has + added, LARGEST_WINDOW) if has else _sayable(more, demand)
        left -= more
