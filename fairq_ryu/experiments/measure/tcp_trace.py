"""What TCP did: samples of the connections of the senders, which of them are kept, and their file. Pure, but
for `write` and `load`.

The file is JSON, compressed by gzip. Times are in ms since the trace began:

    interval_ms   time between two samples as ordered, and taken_ms, as it was on average
    cpu_share     part of a processor that the trace took
    rate_mbit, buffer_bytes   of the bottleneck
    queue         [time, bytes]: backlog of the bottleneck's queue, wherever it has changed
    law           [time, kind, pool, window, active flows]: the law that lowers the windows of the
                  bottleneck's port ("": none), its pool for all flows and the window of every flow, in bytes
                  (0: it has none); wherever something has changed; empty without an agent
    flows         those that were kept, the one with most bytes first, then the slowest:
      host, port, peer_port   of the sender's end
      bytes         acknowledged
      began_ms, ended_ms   when it was seen first and last; until its first sample it is in its handshake
      syn_acks_again       how often its SYN-ACK was repeated
      rto_timeouts  null before Linux 6.7
      retransmissions
      samples       one list for each sample that differs from the one before it, in the order of `COLUMNS`
"""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE_NAME = "tcp-trace.json.gz"
COLUMNS = ("ms", "state", "cwnd", "rwnd", "in_flight", "srtt_us", "retransmissions", "backoff")
"""Of a sample. ``state`` is an index of `STATES`; ``cwnd``, ``rwnd`` (as the sender saw it last) and
``in_flight`` in bytes; ``retransmissions`` segments so far; ``backoff`` timeouts since the last ACK.
"""
STATES = ("Open", "Disorder", "CWR", "Recovery", "Loss")
_SHORT_S = 0.05
"""A flow of no bytes is as slow as this many seconds make it: no flow ends before some round trips."""
_LONG_SHARE = 0.5
"""A connection that is there for more than this part of the trace is a long one, and not slow; but not if it
has no more bytes than the link carries in `_SHORT_S`.
"""

# Offsets in `struct tcp_info` of include/uapi/linux/tcp.h.
_CA_STATE, _BACKOFF = 1, 4
_MSS, _UNACKED, _SACKED, _LOST, _RETRANS, _RTT, _CWND = 16, 24, 28, 32, 36, 68, 80
_TOTAL_RETRANS, _BYTES_ACKED, _BYTES_SENT, _SND_WND, _TOTAL_RTO = 100, 120, 200, 228, 240
_ONE = struct.Struct("=dBBIIIII")


@dataclass
class Connection:
    """The samples of one connection, packed: there are many."""

    host: str
    port: int
    peer_port: int
    began_s: float
    ended_s: float = 0.0
    acked: int = 0
    """bytes"""
    retransmissions: int = 0
    timeouts: int | None = None
    syn_acks_again: int = 0
    _last: bytes = b""
    _packed: bytearray = field(default_factory=bytearray)

    def sample(self, at_s: float, info: bytes) -> None:
        """Add a sample from TCP_INFO (of Linux 5.4 or newer)."""
        self.ended_s = at_s
        (mss,) = struct.unpack_from("=I", info, _MSS)
        unacked, sacked, lost, retrans = struct.unpack_from("=IIII", info, _UNACKED)
        (rtt,) = struct.unpack_from("=I", info, _RTT)
        (cwnd,) = struct.unpack_from("=I", info, _CWND)
        (self.retransmissions,) = struct.unpack_from("=I", info, _TOTAL_RETRANS)
        (acked,) = struct.unpack_from("=Q", info, _BYTES_ACKED)
        (rwnd,) = struct.unpack_from("=I", info, _SND_WND) if len(info) >= _SND_WND + 4 else (0,)
        if len(info) >= _TOTAL_RTO + 2:
            (self.timeouts,) = struct.unpack_from("=H", info, _TOTAL_RTO)
        self.acked = max(self.acked, acked)
        sent, again = struct.unpack_from("=QQ", info, _BYTES_SENT)
        # The kernel counts packets (tcp_packets_in_flight), which may be small ones: no more than was sent.
        packets = max(0, unacked - sacked - lost + retrans)
        in_flight = min(packets * mss, max(0, sent - again - acked))
        values = (info[_CA_STATE], info[_BACKOFF], cwnd * mss, rwnd, in_flight, rtt, self.retransmissions)
        packed = _ONE.pack(at_s, *values)
        if packed[8:] != self._last:
            self._last = packed[8:]
            self._packed += packed

    def slowness(self, rate_mbit: float) -> float:
        """Its time over that of its bytes at this rate and `_SHORT_S`."""
        return (self.ended_s - self.began_s) / (_SHORT_S + self.acked * 8e-6 / rate_mbit)

    def described(self) -> dict[str, Any]:
        """As in the file."""
        samples = [
            [round(at * 1e3, 1), state, cwnd, rwnd, in_flight, rtt, retransmissions, backoff]
            for at, state, backoff, cwnd, rwnd, in_flight, rtt, retransmissions in _ONE.iter_unpack(
                self._packed
            )
        ]
        return {
            "host": self.host,
            "port": self.port,
            "peer_port": self.peer_port,
            "bytes": self.acked,
            "began_ms": round(self.began_s * 1e3, 1),
            "ended_ms": round(self.ended_s * 1e3, 1),
            "syn_acks_again": self.syn_acks_again,
            "rto_timeouts": self.timeouts,
            "retransmissions": self.retransmissions,
            "samples": samples,
        }


def chosen(
    connections: Sequence[Connection], count: int, rate_mbit: float, seconds: float
) -> list[Connection]:
    """At most ``count`` of them: the one with most bytes, if more than one is wanted, and the slowest of the
    others, which are no long ones if there are others. ``seconds``: how long the trace is.
    """
    with_data = [each for each in connections if each.acked]
    most = max(with_data, key=lambda each: each.acked, default=None)
    first = [most] if most is not None and count > 1 else []
    rest = [each for each in with_data if each not in first]
    little = _SHORT_S * rate_mbit * 1e6 / 8
    short = [
        each for each in rest if each.ended_s - each.began_s <= _LONG_SHARE * seconds or each.acked <= little
    ]
    slowest = sorted(short or rest, key=lambda each: each.slowness(rate_mbit), reverse=True)
    return [*first, *slowest[: count - len(first)]]


def write(path: Path, trace: Mapping[str, Any]) -> None:
    """Write the file."""
    with gzip.open(path, "wt", encoding="ascii") as file:
        json.dump(trace, file, separators=(",", ":"))


def load(path: Path) -> dict[str, Any]:
    """Read the file. ``OSError`` or ``ValueError`` when it is none."""
    with gzip.open(path, "rt", encoding="ascii") as file:
        found: dict[str, Any] = json.load(file)
    return found
