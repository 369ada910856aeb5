"""One pass through the flow map: dead flows are removed, and what has changed is noted for controllers.

The pass is made once a second, beside the controllers that are served meanwhile: a part of the map is read,
in a thread because the system call takes long in a large map, and processed, and then the next.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fairq_ryu.agent import layout
from fairq_ryu.agent.flow_changes import FlowChanges, Seen
from fairq_ryu.agent.programs.flow_map import (
    FlowMap,
    Rows,
    arrays,
    established,
    half_open,
    over,
    port_numbers,
    quiet,
)
from fairq_ryu.packet.tcp_options import MAX_WSCALE

_C = layout.CONSTANTS
# After this time an unanswered SYN is forgotten (Linux retransmits its SYN after 1, 3 and 7 s).
HALF_OPEN_NS = 10_000_000_000
# Silent connections that one pass moves: each takes about 20 microseconds, in which the channel waits.
_MOVES = 500
# The flags whose change a controller is told at once.
_TOLD = _C["FQ_KNOWN"] | _C["FQ_WS"] | _C["FQ_FIN"] | _C["FQ_RST"] | _C["FQ_ACK"]
_CLOSED = _C["FQ_FIN"] | _C["FQ_RST"]


class FlowSweep:
    """A pass that removes flows silent for ``idle_ns``, or closed and silent for ``closed_ns``, and
    unanswered SYNs. ``logs``: the changes of each bridge, with its ports by ifindex. ``unify``: the largest
    scale that leaves, and for how long (ns) SYNs stay that have left with a larger one. Linux sends a SYN
    again 16 and 32 s after the last, and if it were forgotten, it would leave with the smaller one: its
    receiver, which may have the first, would read windows that are too large.

    An established connection is moved to the map of silent connections, because its window scale is not
    announced again. That map evicts the connection that was silent longest when it is full.
    """

    def __init__(
        self,
        flow_map: FlowMap,
        logs: Sequence[tuple[FlowChanges, dict[int, int]]],
        now_ns: int,
        idle_ns: int,
        closed_ns: int,
        unify: tuple[int, int] = (MAX_WSCALE, 0),
    ) -> None:
        self._map, self._logs = flow_map, logs
        self.began_ns, self._idle, self._closed = now_ns, idle_ns, closed_ns
        self._unify, self._kept_ns = unify
        self._parts = flow_map.map.parts()
        self._moves_left = _MOVES
        self.gone = self.left = 0
        """Flows that were removed, and that are left."""
        flow_map.unanswered.begin()
        for log, _ in logs:
            log.begin(now_ns)

    def read(self) -> tuple[bytes, bytes] | None:
        """The next part of the map; None: there is none. Other threads run meanwhile. Raises
        :class:`~fairq_ryu.agent.libbpf.BpfError`.
        """
        return next(self._parts, None)

    def process(self, part: tuple[bytes, bytes]) -> None:
        """Remove the dead flows of a part, and note the changes of the others."""
        keys, flows = arrays(*part)
        if not len(keys):
            return
        dead, silent = self._judged(flows)
        for row in silent:
            key = layout.fq_flow_key.from_buffer_copy(keys[row].tobytes())
            self._map.silent.set(key, layout.fq_flow.from_buffer_copy(flows[row].tobytes()))
        self.gone += self._map.map.delete_all(keys[dead].tobytes())
        alive = ~dead
        self.left += int(alive.sum())
        # Half-open ones are never listed; a flood of SYNs can fill the map with them.
        shown = alive & ~half_open(flows)
        names, flows = keys[shown].tobytes(), flows[shown]
        self._map.unanswered.observe(names, flows)
        for log, ofports in self._logs:
            log.observe(names, self._seen(flows, ofports))

    def finish(self) -> None:
        """All parts were processed."""
        self._map.unanswered.end()
        for log, _ in self._logs:
            log.end()

    def _judged(self, flows: Rows) -> tuple[NDArray[np.bool_], list[int]]:
        """Which flows are dead, and the rows of those that are moved to the map of silent ones."""
        flags = flows["dir"]["flags"]
        closed = over(flags)
        patience = np.where(closed, self._closed, self._idle)
        half = half_open(flows)
        patience = np.where(half, np.minimum(patience, HALF_OPEN_NS), patience)
        kept_scale = half & (flows["dir"]["wscale"] > self._unify).any(axis=1)
        patience = np.where(kept_scale, np.maximum(patience, self._kept_ns), patience)
        dead = quiet(flows, self.began_ns) > patience
        kept = np.flatnonzero(dead & ~closed & established(flows)).tolist()
        moved = kept[: self._moves_left]
        self._moves_left -= len(moved)
        dead[kept[len(moved) :]] = False  # they are moved by the next passes
        return dead, moved

    def _seen(self, flows: Rows, ofports: dict[int, int]) -> Seen:
        ends = flows["dir"]
        ports, flags = port_numbers(ends["out"]["ifindex"], ofports), ends["flags"]
        known = flags & _C["FQ_KNOWN"] != 0
        options = np.where(known, ends["mss"].astype(np.uint32) << 8 | ends["wscale"], 0)
        both = (
            ends["packets"].any(axis=1),
            ends["rtt_ns"].all(axis=1),
            *(ends["ruled_until"] > self.began_ns).T,
        )
        state = sum(bits.astype(np.uint32) << place for place, bits in enumerate(both))
        marks = np.column_stack((ports, flags & _TOLD, options, state)).astype(np.uint32)
        here = ports != 0
        unscaled = here & ~known & (flags & _CLOSED == 0)
        return Seen(
            marks,
            here[:, 0].astype(np.uint8) | here[:, 1].astype(np.uint8) << 1,
            unscaled[:, 0].astype(np.uint8) | unscaled[:, 1].astype(np.uint8) << 1,
            (flags & _CLOSED != 0).any(axis=1),
            over(flags),
            ends["last_ns"].max(axis=1).astype(np.int64),
        )
