"""ACKs as they leave a switch, and how long after a moment the first one has a lower window. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from fairq_ryu.packet import headers, parse


class Ack(NamedTuple):
    """A captured ACK."""

    at: int
    """when it left, ns"""
    flow: tuple[int, int]
    """ports of its source and its destination"""
    window: int
    """receive window as in the header, in steps of the connection's scale"""


def read_ack(at: int, frame: bytes) -> Ack | None:
    """The ACK in an Ethernet frame, which may be cut off behind the TCP header; None for all other frames. A
    SYN-ACK is none: its window is not scaled.
    """
    packet = parse.tcp_packet(frame)
    if packet is None:
        return None
    source, destination, _, _, _, flags, window, _, _ = headers.TCP.unpack_from(frame, packet.at)
    if flags & (headers.SYN | headers.RST) or not flags & headers.ACK:
        return None
    return Ack(at, (source, destination), window)


def delay_to_lowered(moment: int, acks: Iterable[Ack], before: int, within: int) -> float:
    """The time from ``moment`` to the first ACK whose window is lower than all windows of its flow in the
    time ``before`` the moment; infinite if there is none ``within`` that time. All in ns, ``acks`` in order.
    """
    lowest: dict[tuple[int, int], int] = {}
    for ack in acks:
        if moment - before <= ack.at < moment:
            lowest[ack.flow] = min(ack.window, lowest.get(ack.flow, ack.window))
        elif moment <= ack.at < moment + within and ack.window < lowest.get(ack.flow, 0):
            return ack.at - moment
    return math.inf
