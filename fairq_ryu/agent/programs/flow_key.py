"""The key of a flow in the eBPF maps, as the window program computes it."""

from __future__ import annotations

import ipaddress
import socket
import sys
from typing import Any, Literal

from fairq_ryu.agent import layout
from fairq_ryu.model import FlowKey

_BYTEORDER: Literal["little", "big"] = sys.byteorder


def flow_key(flow: FlowKey, directed: bool = False) -> Any:
    """The map key of a flow: the same for both directions, unless ``directed``."""
    family = flow.version
    src, dst = (ipaddress.ip_address(a).packed for a in (flow.src, flow.dst))
    sport, dport = flow.sport, flow.dport
    direction = _direction(family, src, dst, sport, dport)
    if direction:
        src, dst, sport, dport = dst, src, dport, sport
    key = layout.fq_flow_key(
        lo_port=socket.htons(sport),
        hi_port=socket.htons(dport),
        family=family,
        dir=direction if directed else 0,
        vlan=flow.vlan,
    )
    key.lo_addr[:] = src.rjust(16, b"\0")
    key.hi_addr[:] = dst.rjust(16, b"\0")
    return key


def _direction(family: int, src: bytes, dst: bytes, sport: int, dport: int) -> int:
    """Which end sorts first. Compares as the program does: host-order loads of raw bytes."""
    words = 8 if family == 6 else 4

    def loads(address: bytes) -> list[int]:
        return [int.from_bytes(address[i : i + words], _BYTEORDER) for i in range(0, len(address), words)]

    if src != dst:
        return int(loads(src) > loads(dst))
    return int(socket.htons(sport) > socket.htons(dport))
