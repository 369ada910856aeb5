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
        self._width = width
        # When each was first seen to have sent, ns, and whether it has been counted; the same of this pass.
        self._known: dict[bytes, tuple[int, bool]] = {}
        self._passing: dict[bytes, tuple[int, bool]] = {}
        self._now: Counter[int] = Counter()
        self._counting: Counter[int] = Counter()
        self._total: Counter[int] = Counter()

    def begin(self) -> None:
        """A pass begins."""
        self._passing, self._counting = {}, Counter()

    def observe(self, keys: bytes, flows: NDArray[Any]) -> None:
        """A part of the pass: the concatenated keys of connections, and what the map has of them."""
        ends = flows["dir"]
        alone = (ends["packets"] > 0) & (ends["last_ns"][:, ::-1] == 0)
        for row, side in zip(*np.nonzero(alone), strict=True):
            key = keys[row * self._width : (row + 1) * self._width]
            last = int(ends["last_ns"][row, side])
            first, counted = self._known.get(key, (last, False))
            if last - first >= PATIENCE_NS:
                port = device_of(int(ends["ifindex"][row, side]))
                self._counting[port] += 1
                self._total[port] += not counted
                counted = True
            self._passing[key] = first, counted

    def end(self) -> None:
        """The pass is complete."""
        self._known, self._now = self._passing, self._counting

    def of_port(self, ifindex: int) -> Unanswered:
        """Those whose data leaves by a port."""
        return Unanswered(self._now[ifindex], self._total[ifindex])

    def forget_port(self, ifindex: int) -> None:
        """The port has gone."""
        for counts in (self._now, self._counting, self._total):
            counts.pop(ifindex, None)
