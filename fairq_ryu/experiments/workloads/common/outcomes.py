"""Flows that start together: the data to transfer, and the data that has arrived. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Flow:
    """One flow to be sent: ``source`` and ``sink`` are indices into the lists of senders and of receivers."""

    source: int
    sink: int
    size: int
    """bytes; 0: without end"""
    seed: int
    deadline: float | None = None
    """s after the common start"""
    dscp: int = 0
    """in the packets of its source"""


class Outcome(NamedTuple):
    """The result of a flow."""

    flow: Flow
    ms: float | None
    """from the common start to the last byte; None: unfinished"""
    bytes: int
    """of payload that arrived"""
    error: str | None
    """why it is unfinished"""
    retransmissions: int
    rto_timeouts: int | None
    """None where the kernel does not count them"""
    series: Sequence[tuple[int, int]] = ()
    """of an endless flow, (time in ns of the monotonic clock, bytes so far)"""

    @property
    def met(self) -> bool | None:
        """Whether the deadline was met; None without one."""
        return met(self.ms, self.flow.deadline)


def met(ms: float | None, deadline_s: float | None) -> bool | None:
    """Whether a flow that took ``ms`` (None: it is unfinished) met its deadline; None without one."""
    return None if deadline_s is None else ms is not None and ms <= deadline_s * 1000


def last_ms(outcomes: Sequence[Outcome], timeout_s: float) -> float:
    """From the common start to the last byte of all flows; an unfinished flow counts as ``timeout_s``."""
    return max(timeout_s * 1000 if each.ms is None else each.ms for each in outcomes)
