"""The flow map in bulk: flows are encoded as records of the channel.

The map may have tens of thousands of flows, so it is read in batches and processed with numpy, not flow by
flow.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Collection
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairq_ryu.agent import layout
from fairq_ryu.agent.flow_changes import FlowChanges
from fairq_ryu.agent.libbpf import BpfError, Map
from fairq_ryu.agent.tx_queues import device_of
from fairq_ryu.agent.unanswered_flows import UnansweredFlows
from fairq_ryu.channel import flow_records as records
from fairq_ryu.channel.flow_changes import (
    MAX_RECORDS,
    NEVER_MS,
    ChangeRequest,
    Changes,
    Chunk,
    ChunkFlags,
    RequestFlags,
)
from fairq_ryu.model import FlowKey, SegmentState

_C = layout.CONSTANTS
# Shortest time between two reads of all keys for requests of single ports.
_READ_AGAIN_NS = 15_000_000
# ... which is also at least this multiple of the time that one read takes.
_READ_PART = 8
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
        ("vlan", ">u2"),
        ("flags", ">u2"),
        ("bytes", ">u8"),
        ("packets", ">u8"),
        ("rewritten", ">u8"),
        ("acked", ">u8"),
        ("idle_ms", ">u4"),
        ("rtt_us", ">u4"),
    ]
)

# A key of fairq_ryu.channel.segment_state, likewise.
KEY = np.dtype(
    [
        ("src", "u1", 16),
        ("dst", "u1", 16),
        ("sport", ">u2"),
        ("dport", ">u2"),
        ("version", "u1"),
        ("pad", "u1"),
        ("vlan", ">u2"),
    ]
)
KEY_WIDTH = ctypes.sizeof(layout.fq_flow_key)

Rows = NDArray[Any]
_COMPLETE = _C["FQ_SEQ"] | _C["FQ_ACK"]


class FlowMap:
    """The connections that the window program has recorded; ``unanswered``: those without ACKs."""

    def __init__(self, flows: Map, silent: Map) -> None:
        """``silent``: the map for established connections without packets."""
        self.map = flows
        self.silent = silent
        self.unanswered = UnansweredFlows(KEY_WIDTH)
        self._keys = b""
        self._created: int | None = None  # flows ever entered in the map when the keys were read
        self._read_again_ns = 0
        self._thread: ThreadPoolExecutor | None = None
        self._reading: Future[tuple[bytes, int]] | None = None

    def rows(self) -> tuple[Rows, Rows]:
        """All keys and flows, as arrays of ``fq_flow_key`` and ``fq_flow``."""
        return arrays(*self.map.batches())

    def lasting(self) -> tuple[bytes, bytes]:
        """Keys and flows of the connections whose handshakes were seen and that have not ended, those that
        were silent longest first.
        """
        tables = [arrays(*table.batches()) for table in (self.silent, self.map)]
        keys, flows = (np.concatenate(parts) for parts in zip(*tables, strict=True))
        if not len(keys):
            return b"", b""
        chosen = np.flatnonzero(established(flows) & ~over(flows["dir"]["flags"]))
        order = chosen[np.argsort(flows["dir"]["last_ns"].max(axis=1)[chosen], kind="stable")]
        return keys[order].tobytes(), flows[order].tobytes()

    def enter(self, keys: bytes, flows: bytes, ports: Collection[int]) -> int:
        """Enter connections, as :meth:`lasting` returns them, that are not there and leave by ``ports``
        (interface indices). Returns how many. Their ports, whose counters are new, count them with their next
        data.
        """
        width, size = KEY_WIDTH, ctypes.sizeof(layout.fq_flow)
        entered = 0
        for row in range(len(keys) // width):
            flow = layout.fq_flow.from_buffer_copy(flows, row * size)
            for each in flow.dir:
                each.owner = 0  # by a table that this agent does not have
                for place in (each.out, each.far):
                    place.epoch = place.sharing_epoch = place.young_epoch = place.tenant_epoch = 0
            # Other interfaces belong to another network, in which addresses may be the same.
            if any(device_of(each.out.ifindex) in ports for each in flow.dir):
                entered += self.map.add(layout.fq_flow_key.from_buffer_copy(keys, row * width), flow)
        return entered

    def read_in_thread(self) -> None:
        """From now on let a thread read the keys for :meth:`known_rows`, beside the loop that serves
        controllers. Flows that were entered since the last reading are then missing until it is done.
        """
        self._thread = ThreadPoolExecutor(1, "flow-map")

    def known_rows(self, created: int, now_ns: int) -> tuple[Rows, Rows]:
        """As :meth:`rows`, for a hundred requests a second. Reading the whole map takes milliseconds, however
        few flows are in it, so the keys are read again only after flows were entered (``created``: the number
        ever entered), and not more often than a limit. ``now_ns`` is by CLOCK_MONOTONIC.
        """
        if self._reading is not None and self._reading.done():
            reading, self._reading = self._reading, None
            try:
                self._take(reading.result(), now_ns)
            except BpfError:
                self._created = None  # it is read again at the next request
                raise
        if created != self._created and now_ns >= self._read_again_ns and self._reading is None:
            if self._thread is None:
                self._take(self._read_keys(), now_ns)
            else:
                self._reading = self._thread.submit(self._read_keys)
            self._created = created
        return arrays(*self.map.lookup_all(self._keys)) if self._keys else arrays(b"", b"")

    def _read_keys(self) -> tuple[bytes, int]:
        """The keys of all flows, and the time that reading them has taken, ns."""
        began = time.monotonic_ns()
        return self.map.batches()[0], time.monotonic_ns() - began

    def _take(self, read: tuple[bytes, int], now_ns: int) -> None:
        self._reading = None
        self._keys, took = read
        self._read_again_ns = now_ns + max(_READ_AGAIN_NS, _READ_PART * took)

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
            whole = ~half_open(flows)
            keys, flows = keys[whole], flows[whole]
        if idle_ms and len(keys):
            fresh = quiet(flows, now_ns) <= idle_ms * 1_000_000
            keys, flows = keys[fresh], flows[fresh]
        encoded = b"".join(_encode(keys, flows, side, now_ns, ofports)[1].tobytes() for side in (0, 1))
        size = _PART * RECORD.itemsize
        return [encoded[at : at + size] for at in range(0, len(encoded), size)]

    def changed(
        self, log: FlowChanges, wanted: ChangeRequest, now_ns: int, ofports: dict[int, int]
    ) -> Changes:
        """A chunk of the changes that a controller asks for, from the log of a bridge, with its ``ofports``
        (by ifindex). The records are as the map has them now.
        """
        again, lasting = (flag in wanted.flags for flag in (RequestFlags.ENDED_AGAIN, RequestFlags.LASTING))
        log.ask(max(1, wanted.refresh_ms) * 1_000_000, again, lasting)
        changed = log.since(wanted.generation, min(wanted.limit, MAX_RECORDS) // 2)
        keys, flows = self._rows_of(
            b"".join(key for key, listed in zip(changed.keys, changed.listed, strict=True) if listed)
        )
        sides = [_encode(keys, flows, side, now_ns, ofports) for side in (0, 1)]
        # The directions of a connection follow each other.
        order = np.argsort(np.concatenate([rows for rows, _ in sides]), kind="stable")
        records = np.concatenate([found for _, found in sides])[order].astype(RECORD)  # it was native
        removed = list(zip(changed.keys, changed.gone, strict=True))
        gone = [
            _encode_keys(b"".join(key for key, bits in removed if bits >> side & 1), side) for side in (0, 1)
        ]
        age = NEVER_MS if log.read_ns is None else max(0, now_ns - log.read_ns) // 1_000_000
        head = Chunk(
            generation=changed.generation,
            flags=ChunkFlags(ChunkFlags.ANEW * changed.anew | ChunkFlags.MORE * changed.more),
            age_ms=min(age, NEVER_MS),
            refresh_ms=log.refresh_ns // 1_000_000,
            listed=log.listed,
            active=log.active,
            unscaled=log.unscaled,
        )
        return Changes(head, records.tobytes(), b"".join(gone))

    def _rows_of(self, keys: bytes) -> tuple[Rows, Rows]:
        """The flows of these keys that the map still has."""
        found, flows = self.map.lookup_all(keys) if keys else (b"", b"")
        rows = arrays(found, flows)
        whole = ~half_open(rows[1]) if len(rows[0]) else slice(None)
        return rows[0][whole], rows[1][whole]


def arrays(keys: bytes, flows: bytes) -> tuple[Rows, Rows]:
    """Keys and values of the flow map as arrays of ``fq_flow_key`` and ``fq_flow``."""
    return (
        np.frombuffer(keys, dtype=np.dtype(layout.fq_flow_key)),
        np.frombuffer(flows, dtype=np.dtype(layout.fq_flow)),
    )


def knows_segment(own: Any) -> bool:
    """Whether the last segment of a direction (an ``fq_dir``) is known."""
    return bool(own.flags & _COMPLETE == _COMPLETE)


def segment_state(key: FlowKey, own: Any, peer: Any, ofports: dict[int, int], now_ns: int) -> SegmentState:
    """The last segment of ``own`` (an ``fq_dir``: the segments that ``key.src`` sends). ``peer`` is the other
    direction, ``ofports`` the bridge's ports by ifindex.
    """
    flags = own.flags
    if own.out.ifindex not in ofports or not knows_segment(own):
        return SegmentState(key, False)
    scaled = flags & peer.flags & _C["FQ_WS"]
    timestamps: bool | None = bool(flags & _C["FQ_TS"])
    if flags & _C["FQ_TS_DUE"] and not timestamps:
        timestamps = None
    return SegmentState(
        key=key,
        found=True,
        port=ofports[own.out.ifindex],
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
        is_signed=bool(flags & _C["FQ_SIGNED"]),
        passed=own.passed,
    )


def quiet(flows: Rows, now_ns: int) -> NDArray[np.int64]:
    """Time since the last segment of either direction, ns."""
    last = flows["dir"]["last_ns"].max(axis=1).astype(np.int64)
    found: NDArray[np.int64] = np.maximum(now_ns - last, 0)
    return found


def half_open(flows: Rows) -> NDArray[np.bool_]:
    """Only a SYN was seen: no handshake, no data."""
    known = (flows["dir"]["flags"] & _C["FQ_KNOWN"]).any(axis=1)
    silent: NDArray[np.bool_] = ~known & (flows["dir"]["packets"].sum(axis=1) == 0)
    return silent


def established(flows: Rows) -> NDArray[np.bool_]:
    """Whether the handshake was seen, with its last segment."""
    wanted = _C["FQ_KNOWN"] | _C["FQ_ACK"]
    found: NDArray[np.bool_] = (flows["dir"]["flags"] & wanted == wanted).all(axis=1)
    return found


def over(flags: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Whether connections have ended, by the flags of both directions: by RST, or by FIN in each."""
    return np.asarray((flags & _C["FQ_RST"]).any(axis=1) | (flags & _C["FQ_FIN"]).all(axis=1))


def port_numbers(ifindexes: NDArray[Any], ofports: dict[int, int]) -> NDArray[np.uint32]:
    """The OpenFlow numbers of interfaces, in an array of the same shape; 0: it is not in ``ofports``."""
    if not ofports:
        return np.zeros(ifindexes.shape, dtype=np.uint32)
    known = np.array(sorted(ofports), dtype=np.uint32)
    numbers = np.array([ofports[index] for index in known.tolist()], dtype=np.uint32)
    places = np.minimum(np.searchsorted(known, ifindexes), len(known) - 1)
    return np.where(known[places] == ifindexes, numbers[places], np.uint32(0))


def _encode(
    keys: Rows, flows: Rows, side: int, now_ns: int, ofports: dict[int, int]
) -> tuple[NDArray[np.int64], Rows]:
    """One direction of every connection, ``side`` 0 is lo to hi: of those whose port is in ``ofports``, their
    rows and their records.
    """
    own = flows["dir"][:, side]
    ports = port_numbers(own["out"]["ifindex"], ofports)
    here = ports != 0
    keys, own, both, ports = keys[here], own[here], flows["dir"][here], ports[here]
    # An end has acknowledged something only if it has answered the other's SYN or SYN-ACK.
    established = (both["flags"] & _C["FQ_ACK"]).all(axis=1) | both["packets"].any(axis=1)
    # Each direction has its part of the RTT: from the segment it answers to its answer.
    parts = both["rtt_ns"].astype(np.uint64)
    rtt_us = np.where(parts.all(axis=1), np.maximum(parts.sum(axis=1) // 1000, 1), 0)
    out = np.zeros(len(keys), dtype=RECORD)
    _fill_ends(out, keys, side)
    bits = own["flags"]
    known = bits & _C["FQ_KNOWN"] != 0
    out["wscale"] = np.where(known & (bits & _C["FQ_WS"] != 0), own["wscale"], records.UNSCALED)
    out["mss"] = np.where(known, own["mss"], 0)
    out["port"] = ports
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
    return np.flatnonzero(here), out


def _encode_keys(keys: bytes, side: int) -> bytes:
    """One direction of each of these connections: ``side`` 0 is lo to hi."""
    rows = np.frombuffer(keys, dtype=np.dtype(layout.fq_flow_key))
    out = np.zeros(len(rows), dtype=KEY)
    _fill_ends(out, rows, side)
    return out.tobytes()


def _fill_ends(out: Rows, keys: Rows, side: int) -> None:
    """Write the VLAN, the addresses and the ports of one direction of connections."""
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
    out["vlan"] = keys["vlan"]
