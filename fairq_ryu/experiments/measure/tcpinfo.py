"""The kernel's counters of one TCP connection (TCP_INFO), and of a namespace (SNMP counters)."""

from __future__ import annotations

import socket
import struct
from pathlib import Path
from typing import NamedTuple

# Offsets in `struct tcp_info` of include/uapi/linux/tcp.h; the kernel only ever appends to it.
_SND_MSS = 16
_RTT = 68
_TOTAL_RETRANS = 100
_DATA_SEGS_IN = 152
_TOTAL_RTO = 240  # since Linux 6.7
_ROOM = 512


class TcpInfo(NamedTuple):
    """Counters of one connection since it was opened. ``total_rto`` is None on kernels before 6.7."""

    snd_mss: int
    """largest payload of a segment, bytes"""
    rtt_us: int
    """smoothed round trip, microseconds"""
    total_retrans: int
    """segments sent again, SYNs included"""
    data_segs_in: int
    """segments with payload received, duplicates included"""
    data_segs_out: int
    """segments with payload sent, retransmissions included"""
    total_rto: int | None
    """retransmission timeouts, of the handshake too"""


def parse(raw: bytes) -> TcpInfo:
    """Read the answer of ``getsockopt(TCP_INFO)``. ``ValueError`` when the kernel is too old (< 4.6)."""
    if len(raw) < _DATA_SEGS_IN + 8:
        raise ValueError(f"TCP_INFO has {len(raw)} bytes, no segment counters (Linux 4.6 or newer has)")
    data_segs_in, data_segs_out = struct.unpack_from("=II", raw, _DATA_SEGS_IN)
    total_rto = struct.unpack_from("=H", raw, _TOTAL_RTO)[0] if len(raw) >= _TOTAL_RTO + 2 else None
    return TcpInfo(
        snd_mss=struct.unpack_from("=I", raw, _SND_MSS)[0],
        rtt_us=struct.unpack_from("=I", raw, _RTT)[0],
        total_retrans=struct.unpack_from("=I", raw, _TOTAL_RETRANS)[0],
        data_segs_in=data_segs_in,
        data_segs_out=data_segs_out,
        total_rto=total_rto,
    )


def of(sock: socket.socket) -> TcpInfo:
    """The counters of an open socket. ``OSError`` when it is closed."""
    return parse(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _ROOM))


def namespace_counters(pid: int) -> dict[str, int]:
    """TCP's counters in the network namespace of process ``pid``, such as RetransSegs and TCPTimeouts."""
    counters: dict[str, int] = {}
    for name in ("snmp", "netstat"):
        lines = Path(f"/proc/{pid}/net/{name}").read_text().splitlines()
        for keys, values in zip(lines[::2], lines[1::2], strict=True):
            if keys.split(":")[0] in ("Tcp", "TcpExt"):
                counters.update(zip(keys.split()[1:], map(int, values.split()[1:]), strict=True))
    return counters
