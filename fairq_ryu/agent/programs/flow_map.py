"""The flow map in bulk: dead flows are removed, the others are encoded as records of the channel.

The map may have tens of thousands of flows and is read every second in the loop that serves controllers, so
it is read in batches and processed with numpy, not flow by flow.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairq_ryu.agent import layout
from fairq_ryu.agent.libbpf import Map
from fairq_ryu.channel import flow_records as records
from fairq_ryu.model import FlowKey, SegmentState

_C = layout.CONSTANTS
# After this time an unanswered SYN is forgotten (Linux retransmits its SYN after 1, 3 and 7 s).
HALF_OPEN_NS = 10_000_000_000
# Shortest time between two reads of all keys for requests of single ports.
_READ_AGAIN_NS = 15_000_000
# ... which is also at least this multiple of the time that one read takes.
_READ_PART = 8
# Silent connections that one sweep moves: each takes about 20 microseconds, in which the channel waits.
_MOVES = 500
# Records in a part of a reply: as many as fit in one message.
_PART = 60000 // records.RECORD_SIZE - 1
# The record of fairq_ryu.channel.flow_records, as numpy packs it; a test compares the two.
RECORD = np.dtype(
    [
        ("src", "u1", 16),
        ("dst", "u1", 16),
        ("sport", ">u2"),
        ("dport", ">u2"),
        ("version", "u1"),
        ("wscale", "u1"),
        ("mss", ">u2"),
        ("port", ">u4"),
        ("flags", ">u4"),
        ("bytes", ">u8"),
        ("packets", ">u8"),
        ("rewritten", ">u8"),
        ("acked", ">u8"),
        ("idle_ms", ">u4"),
        ("rtt_us", ">u4"),
    ]
)

Rows = NDArray[Any]
_COMPLETE = _C["FQ_SEQ"] | _C["FQ_ACK"]


class FlowMap:
    """The connections that the window program has recorded."""

    def __init__(self, flows: Map, silent: Map) -> None:
        """``silent``: the map for established connections without packets."""
        self.map = flows
        self._silent = silent
        self._keys = b""
        self._created: int | None = None  # flows ever entered in the map when the keys were read
        self._read_again_ns = 0

    def rows(self) -> tuple[Rows, Rows]:
        """All keys and flows, as arrays of ``fq_flow_key`` and ``fq_flow``."""
        return _arrays(*self.map.batches())

    def known_rows(self, created: int, now_ns: int) -> tuple[Rows, Rows]:
        """As :meth:`rows`, for a hundred requests a second. Reading the whole map takes milliseconds, however
        few flows are in it, so the keys are read again only after flows were entered (``created``: the number
        ever entered), and not more often than a limit. ``now_ns`` is by CLOCK_MONOTONIC.
        """
        if created != self._created and now_ns >= self._read_again_ns:
            self._keys, flows = self.map.batches()
            self._created = created
            took = time.monotonic_ns() - now_ns
            self._read_again_ns = now_ns + max(_READ_AGAIN_NS, _READ_PART * took)
            return _arrays(self._keys, flows)
        return _arrays(*self.map.lookup_all(self._keys))

    def sweep(self, now_ns: int, idle_ns: int, closed_ns: int) -> tuple[int, int]:
        """Remove flows silent for ``idle_ns``, or closed and silent for ``closed_ns``, and unanswered SYNs.

        An established connection is moved to the map of silent connections, because its window scale is not
        announced again. That map evicts the connection that was silent longest when it is full.

        Returns the numbers of flows removed and left.
        """
        keys, flows = self.rows()
        if not len(keys):
            return 0, 0
        quiet = _quiet(flows, now_ns)
        flags = flows["dir"]["flags"]
        closed = (flags & _C["FQ_RST"]).any(axis=1) | (flags & _C["FQ_FIN"]).all(axis=1)
        patience = np.where(closed, closed_ns, idle_ns)
        patience = np.where(_half_open(flows), np.minimum(patience, HALF_OPEN_NS), patience)
        dead = quiet > patience
        kept = np.flatnonzero(dead & ~closed & _established(flows))
        dead[kept[_MOVES:]] = False  # they are moved by the next sweeps
        for row in kept[:_MOVES]:
            key = layout.fq_flow_key.from_buffer_copy(keys[row].tobytes())
            self._silent.set(key, layout.fq_flow.from_buffer_copy(flows[row].tobytes()))
        gone = sum(self.map.delete(layout.fq_flow_key.from_buffer_copy(key.tobytes())) for key in keys[dead])
        return gone, len(keys) - gone

    def records(
        self, now_ns: int, idle_ms: int, ofports: dict[int, int], created: int | None = None
    ) -> list[bytes]:
        """Records of every flow not silent for ``idle_ms`` (0: of every flow), one for each direction
        whose port is in ``ofports`` (by ifindex), encoded, in parts that fit in a message. ``created``: as
        for :meth:`known_rows`, which is used if it is given.

        An unanswered SYN is no flow yet, and is left out.
        """
        keys, flows = self.rows() if created is None else self.known_rows(created, now_ns)
        if len(keys):
            whole = ~_half_open(flows)
            keys, flows = keys[whole], flows[whole]
        if idle_ms and len(keys):
            fresh = _quiet(flows, now_ns) <= idle_ms * 1_000_000
            keys, flows = keys[fresh], flows[fresh]
        encoded = b"".join(_encode(keys, flows, side, now_ns, ofports) for side in (0, 1))
        size = _PART * RECORD.itemsize
        return [encoded[at : at + size] for at in range(0, len(encoded), size)]


def _arrays(keys: bytes, flows: bytes) -> tuple[Rows, Rows]:
    return (
        np.frombuffer(keys, dtype=np.dtype(layout.fq_flow_key)),
        np.frombuffer(flows, dtype=np.dtype(layout.fq_flow)),
    )


def segment_state(key: FlowKey, own: Any, peer: Any, ofports: dict[int, int], now_ns: int) -> SegmentState:
    """The last segment of ``own`` (an ``fq_dir``: the segments that ``key.src`` sends). ``peer`` is the other
    direction, ``ofports`` the bridge's ports by ifindex.
    """
    flags = own.flags
    if own.ifindex not in ofports or flags & _COMPLETE != _COMPLETE:
        return SegmentState(key, False)
    scaled = flags & peer.flags & _C["FQ_WS"]
    timestamps: bool | None = bool(flags & _C["FQ_TS"])
    if flags & _C["FQ_TS_DUE"] and not timestamps:
        timestamps = None
    return SegmentState(
        key=key,
        found=True,
        port=ofports[own.ifindex],
        seq_next=own.seq_next,
        ack=own.ack,
        window=own.window,
        wscale=None if not flags & _C["FQ_KNOWN"] else own.wscale if scaled else 0,
        tsval=own.tsval if timestamps else 0,
        tsecr=own.tsecr if timestamps else 0,
        has_timestamps=timestamps,
        idle_ms=min(max(0, now_ns - own.last_ns) // 1_000_000, 0xFFFFFFFF),
        fin=bool(flags & _C["FQ_FIN"]),
        rst=bool(flags & _C["FQ_RST"]),
    )


def _quiet(flows: Rows, now_ns: int) -> NDArray[np.int64]:
    """Time since the last segment of either direction, ns."""
    last = flows["dir"]["last_ns"].max(axis=1).astype(np.int64)
    quiet: NDArray[np.int64] = np.maximum(now_ns - last, 0)
    return quiet


def _half_open(flows: Rows) -> NDArray[np.bool_]:
    """Only a SYN was seen: no handshake, no data."""
    known = (flows["dir"]["flags"] & _C["FQ_KNOWN"]).any(axis=1)
    silent: NDArray[np.bool_] = ~known & (flows["dir"]["packets"].sum(axis=1) == 0)
    return silent


def _established(flows: Rows) -> NDArray[np.bool_]:
    """Whether the handshake was seen, with its last segment."""
    wanted = _C["FQ_KNOWN"] | _C["FQ_ACK"]
    found: NDArray[np.bool_] = (flows["dir"]["flags"] & wanted == wanted).all(axis=1)
    return found


def _encode(keys: Rows, flows: Rows, side: int, now_ns: int, ofports: dict[int, int]) -> bytes:
    """One direction of every connection: ``side`` 0 is lo to hi."""
    own = flows["dir"][:, side]
    here = np.isin(own["ifindex"], np.array(list(ofports), dtype=np.uint32))
    keys, own, both = keys[here], own[here], flows["dir"][here]
    # An end has acknowledged something only if it has answered the other's SYN or SYN-ACK.
    established = (both["flags"] & _C["FQ_ACK"]).all(axis=1) | both["packets"].any(axis=1)
    # Each direction has its part of the RTT: from the segment it answers to its answer.
    parts = both["rtt_ns"].astype(np.uint64)
    rtt_us = np.where(parts.all(axis=1), np.maximum(parts.sum(axis=1) // 1000, 1), 0)
    out = np.zeros(len(keys), dtype=RECORD)
    ends = ("lo", "hi") if side == 0 else ("hi", "lo")
    v4 = keys["family"] == 4
    for name, end in zip(("src", "dst"), ends, strict=True):
        out[name] = keys[f"{end}_addr"]
        out[name][v4] = 0
        out[name][v4, :4] = keys[f"{end}_addr"][v4, 12:]
    # Ports are in network byte order in the key.
    out["sport"] = keys[f"{ends[0]}_port"].byteswap() if layout.LITTLE_ENDIAN else keys[f"{ends[0]}_port"]
    out["dport"] = keys[f"{ends[1]}_port"].byteswap() if layout.LITTLE_ENDIAN else keys[f"{ends[1]}_port"]
    out["version"] = keys["family"]
    bits = own["flags"]
    known = bits & _C["FQ_KNOWN"] != 0
    out["wscale"] = np.where(known & (bits & _C["FQ_WS"] != 0), own["wscale"], records.UNSCALED)
    out["mss"] = np.where(known, own["mss"], 0)
    out["port"] = [ofports[index] for index in own["ifindex"].tolist()]
    out["flags"] = (
        np.where(known, records.KNOWN, 0)
        | np.where(bits & (_C["FQ_FIN"] | _C["FQ_RST"]), records.CLOSED, 0)
        | np.where(own["ruled_until"] > now_ns, records.RULED, 0)
        | np.where(established, records.ESTABLISHED, 0)
    )
    out["rtt_us"] = rtt_us
    for name in ("bytes", "packets", "rewritten"):
        out[name] = own[name]
    out["acked"] = both["acked"][:, 1 - side]  # its payload is acknowledged by the other direction
    idle = np.maximum(now_ns - own["last_ns"].astype(np.int64), 0) // 1_000_000
    out["idle_ms"] = np.minimum(idle, 0xFFFFFFFF)
    return out.tobytes()
