"""SED's division of a total window among flows (Lu 2016, Algorithm 2). Pure arithmetic, in bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from fairq_ryu.model import LARGEST_WINDOW, FlowKey

# A flow that is sending gets less than it needs if at least this fraction of it is left.
_KEEP = 0.5


class DeadlineFlow(NamedTuple):
    """A flow with a deadline. ``need``: the window with which it meets the deadline, bytes; ``max_window``:
    the largest window that it can use; ``sending``: it is not paused now.
    """

    flow: FlowKey
    need: float
    mss: int
    step: int
    sending: bool = False
    max_window: float = math.inf


class BestEffortFlow(NamedTuple):
    """A flow without a deadline."""

    flow: FlowKey
    mss: int
    step: int


def round_up(size: float, step: int) -> int:
    """The size, rounded up to a multiple of the window step."""
    return math.ceil(size / step) * step


def base_window(mss: int, step: int, segments: int) -> int:
    """The window of ``segments`` segments, rounded up to a multiple of the window step."""
    return round_up(mss * segments, step)


def allocate(
    total: float,
    deadline_flows: Sequence[DeadlineFlow],
    best_effort: Sequence[BestEffortFlow],
    base: int = 1,
) -> dict[FlowKey, int]:
    """A window for each flow; 0 pauses it, any other is at least a segment. ``deadline_flows`` in EDF order;
    ``base``: window of each best-effort flow, segments.

    The paper's steps 2 to 4: base windows for all best-effort flows; then to each deadline flow in turn its
    need, at least a segment, if the rest of the total suffices, or else nothing; the final rest goes to the
    best-effort flows in equal parts. A flow that is sending gets the rest, in place of a pause, if that is at
    least `_KEEP` of its need. A deadline flow whose need is not met in full gets nothing if an earlier one
    that needs no more was refused. Without best-effort flows, the final rest is given first to flows that
    were granted a window, in their order and up to what each can use, and then to flows that were refused.
    """
    bases = {share.flow: base_window(share.mss, share.step, base) for share in best_effort}
    left = max(0.0, total - sum(bases.values()))
    windows: dict[FlowKey, int] = {}
    least_refused = math.inf
    for demand in deadline_flows:
        cost = max(demand.need, demand.mss)
        if cost <= left and demand.need < least_refused:
            granted = cost
        elif demand.need < least_refused and demand.sending and left > 0 and left >= _KEEP * demand.need:
            granted = left
        else:
            least_refused = min(least_refused, demand.need)
            windows[demand.flow] = 0
            continue
        left -= granted
        windows[demand.flow] = _as_window(granted, demand)
    if not best_effort:
        _distribute_spare(left, deadline_flows, windows)
    extra = left / len(best_effort) if best_effort else 0.0
    for share in best_effort:
        window = bases[share.flow] + math.floor(extra / share.step) * share.step
        windows[share.flow] = min(window, LARGEST_WINDOW)
    return windows


def _as_window(size: float, demand: DeadlineFlow) -> int:
    return min(round_up(max(size, demand.mss), demand.step), LARGEST_WINDOW)


def _distribute_spare(
    left: float, deadline_flows: Sequence[DeadlineFlow], windows: dict[FlowKey, int]
) -> None:
    """Distribute the rest of the total. A paused flow is woken only for at least a segment."""
    for demand in sorted(deadline_flows, key=lambda each: not windows[each.flow]):
        has = windows[demand.flow]
        more = min(left, demand.max_window - has)
        if more <= 0 or (not has and left < min(demand.mss, demand.max_window)):
            continue
        # Rounded down: the window that it has was rounded up.
        added = math.floor(more / demand.step) * demand.step
        windows[demand.flow] = min(has + added, LARGEST_WINDOW) if has else _as_window(more, demand)
        left -= more
