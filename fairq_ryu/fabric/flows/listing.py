"""What a switch lists: the directions of its flow records, from changes.

A switch that reports changes names a direction once, and again when it sends or its state changes. Meanwhile
it stays listed, as if the switch had repeated the record. Most records agree with the flow table, and need
not be looked at again. Those that do not are kept in ``recheck``: the rules of
:mod:`~fairq_ryu.fabric.flows.reconcile` depend on time and on the records of other switches, so the same
record may have an effect later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fairq_ryu.fabric.flows.connection import SeenFlow
from fairq_ryu.model import FlowKey, PortKey

LAG = 0.5
"""The maximum delay of a record's message, by which the record looks younger than it is. Seconds."""
MOST_LISTED = 2_000_000
"""Directions that are kept of a switch: those of as many connections as the flow table has room for."""


@dataclass(slots=True)
class Listed:
    """A record of a direction as a switch reported it last, with the times of its last segment and of the
    report, seconds. ``strange``: there was no entry for it then.
    """

    port: PortKey
    closed: bool
    moved_at: float
    wscale: int | None
    mss: int
    reported_at: float
    strange: bool = False

    def record(self, key: FlowKey, now: float) -> SeenFlow:
        """The same record, as if the switch repeated it now. Its counters are known already."""
        return SeenFlow(key, self.port, self.closed, now - self.moved_at, 0, self.wscale, self.mss)


class Listing:
    """The directions that a switch lists. ``heard_at``: when it was heard last, seconds."""

    def __init__(self) -> None:
        self.flows: dict[FlowKey, Listed] = {}
        self.recheck: dict[FlowKey, None] = {}
        self.heard_at = -math.inf

    def add(self, key: FlowKey, record: SeenFlow, now: float) -> None:
        """The switch reports a direction. Those beyond :data:`MOST_LISTED` are left out."""
        if len(self.flows) >= MOST_LISTED and key not in self.flows:
            return
        moved_at = now - record.idle
        self.flows[key] = Listed(record.port, record.closed, moved_at, record.wscale, record.mss, now)

    def has_sent_since(self, key: FlowKey, moved_at: float) -> bool:
        """Whether a direction that had no entry when it was reported last has sent since: a segment at
        ``moved_at``, seconds, is not the same one.
        """
        last = self.flows.get(key)
        return last is not None and last.strange and moved_at > last.moved_at + LAG

    def remove(self, key: FlowKey) -> bool:
        """The switch does not list a direction any more. False if it did not."""
        self.recheck.pop(key, None)
        return self.flows.pop(key, None) is not None
