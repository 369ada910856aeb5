"""Checks captured ACKs: an ACK that reaches a sender must not acknowledge more than its receiver had
acknowledged before, and each segment that reaches a sender must have a correct TCP checksum (RFC 9293, 3.1).

Works on captures of both ends; pure.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from fairq_ryu.packet import checksum, headers, parse

_HALF = 1 << 31
_MODULO = 1 << 32
# The maximum distance of a segment in a ring from its place in the order of time.
_SWAPPED = 256


class Segment(NamedTuple):
    """A captured TCP segment over IPv4."""

    at: int
    """time of capture, ns"""
    flow: bytes
    """addresses and ports of its source and its destination, as in the packet"""
    ack: int | None
    """acknowledgement number; None without the ACK flag"""
    sound: bool
    """whether its checksum is right"""


class Findings(NamedTuple):
    """The results of `check`."""

    acks: int
    """segments with the ACK flag that reached a sender"""
    beyond: int
    """those of them with a number that the receiver had not sent yet"""
    bad_checksums: int
    """segments that reached a sender with a wrong TCP checksum"""


def segment(at: int, frame: bytes, unfinished: bool = False) -> Segment:
    """Read an Ethernet frame with TCP over IPv4, captured whole at ``at`` ns. ``unfinished``: its checksum is
    left to the network card, and has the sum of the pseudo-header only.
    """
    if unfinished:
        frame = checksum.completed(frame)
    packet = parse.ip_packet(frame, headers.ETH_IP, headers.ETHERNET_SIZE)
    assert packet is not None  # the filter of the capture passes nothing else
    tcp = frame[packet.at : packet.end]
    _, _, _, number, _, flags, _, _, _ = headers.TCP.unpack_from(tcp)
    addresses = packet.src + packet.dst
    return Segment(
        at=at,
        flow=addresses + tcp[:4],
        ack=number if flags & headers.ACK else None,
        sound=checksum.tcp_checksum(addresses, tcp) == 0,
    )


def check(sent: Sequence[Iterable[Segment]], came: Sequence[Iterable[Segment]]) -> Findings:
    """Compare the segments that left the receivers (``sent``) with those that reached the senders (``came``);
    for each host its captured segments. An ACK before the first one of its receiver counts as ``beyond``.
    """
    acks = beyond = bad = 0
    highest: dict[bytes, int] = {}
    events = [((each.at, 0, each) for each in _in_order(host)) for host in sent]
    events += [((each.at, 1, each) for each in _in_order(host)) for host in came]
    for _at, arrived, each in heapq.merge(*events, key=lambda event: event[:2]):
        if arrived and not each.sound:
            bad += 1
        if each.ack is None:
            continue
        known = highest.get(each.flow)
        newer = known is None or 0 < (each.ack - known) % _MODULO < _HALF
        if not arrived:
            if newer:
                highest[each.flow] = each.ack
            continue
        acks += 1
        beyond += newer
    return Findings(acks, beyond, bad)


def _in_order(caught: Iterable[Segment]) -> Iterator[Segment]:
    """The segments by time: those that two processors send at the same time may be reversed in a ring."""
    waiting: list[tuple[int, int, Segment]] = []
    for number, each in enumerate(caught):
        heapq.heappush(waiting, (each.at, number, each))
        if len(waiting) > _SWAPPED:
            yield heapq.heappop(waiting)[2]
    while waiting:
        yield heapq.heappop(waiting)[2]
