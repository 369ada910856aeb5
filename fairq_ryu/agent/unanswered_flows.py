"""Flows whose data leaves by a port, and whose ACKs leave by no port of this agent: nothing can be lowered
for them. Their ACKs come back another way: by a bridge that the agent does not run on, under other addresses
(NAT), in another VLAN, or not through this host at all.

Every pass through the flow map looks for them. A flow that sends data for less than :data:`PATIENCE_NS` is
not counted; one that does so for a pass longer is counted for certain. Bounded by the flow map.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairq_ryu.agent.tx_queues import device_of

PATIENCE_NS = 1_000_000_000


class Unanswered(NamedTuple):
    """Flows of a port without ACKs: those in the flow map ``now``, and all since the port was added."""

    now: int
    total: int


class UnansweredFlows:
    """The flows without ACKs of one flow map; keys have ``width`` bytes."""

    def __init__(self, width: int) -> None:
        # When each was first seen to have sent, ns, and whether it has been counted; sorted by key.
        self._dtype = np.dtype([("key", f"S{width}"), ("first", np.int64), ("counted", np.bool_)])
        self._known = np.empty(0, self._dtype)
        self._passing: list[NDArray[Any]] = []
        self._now: Counter[int] = Counter()
        self._counting: Counter[int] = Counter()
        self._total: Counter[int] = Counter()

    def begin(self) -> None:
        """A pass begins."""
        self._passing, self._counting = [], Counter()

    def observe(self, keys: bytes, flows: NDArray[Any]) -> None:
        """A part of the pass: the concatenated keys of connections, and what the map has of them."""
        ends = flows["dir"]
        rows, sides = np.nonzero((ends["packets"] > 0) & (ends["last_ns"][:, ::-1] == 0))
        if not len(rows):
            return
        last = ends["last_ns"][rows, sides].astype(np.int64)
        found = np.empty(len(rows), self._dtype)
        found["key"] = np.frombuffer(keys, self._dtype["key"])[rows]
        found["first"], found["counted"] = last, False
        if len(self._known):
            at = np.searchsorted(self._known["key"], found["key"]).clip(max=len(self._known) - 1)
            again = self._known["key"][at] == found["key"]
            for name in ("first", "counted"):
                found[name][again] = self._known[name][at[again]]
        for_long = last - found["first"] >= PATIENCE_NS
        interfaces = ends["out"]["ifindex"][rows, sides]
        for counts, which in ((self._counting, for_long), (self._total, for_long & ~found["counted"])):
            for known, number in zip(*np.unique(interfaces[which], return_counts=True), strict=True):
                counts[device_of(int(known))] += int(number)
        found["counted"] |= for_long
        self._passing.append(found)

    def end(self) -> None:
        """The pass is complete."""
        found = np.concatenate([np.empty(0, self._dtype), *self._passing])
        self._known, self._now = found[np.argsort(found["key"])], self._counting

    def of_port(self, ifindex: int) -> Unanswered:
        """Those whose data leaves by a port."""
        return Unanswered(self._now[ifindex], self._total[ifindex])

    def forget_port(self, ifindex: int) -> None:
        """The port has gone."""
        for counts in (self._now, self._counting, self._total):
            counts.pop(ifindex, None)
