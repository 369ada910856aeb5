"""Frames that reach the controller, the agent or a capture: the headers that flow tracking, host tracking and
recovery need.

Copies may be cut short by the switch and may contain any bytes, so every length is checked; a part that
cannot be read is None, never an exception.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from fairq_ryu.model import FlowKey, TcpSegment, new_tuple
from fairq_ryu.packet import addresses, tcp_options
from fairq_ryu.packet.headers import (
    ACK,
    ARP,
    ETH_ARP,
    ETH_IP,
    ETH_IPV6,
    ETHERNET_SIZE,
    FIN,
    IPPROTO_TCP,
    IPV4,
    IPV6,
    IPV6_EXTENSIONS,
    RST,
    SYN,
    TCP,
    VLAN_BITS,
    VLAN_TYPES,
    mac_text,
)

_MAX_TAGS = 2
_MAX_EXTENSIONS = 6
_FLAGS_AT = 13
# Nearly all frames that are copied: Ethernet without tags, IPv4 without options, and TCP as far as its flags.
_COMMON = struct.Struct("!6s6sH B x H 2x H x B 2x 4s4s HHIIBB")
_COMMON_TCP = ETHERNET_SIZE + IPV4.size
_COMMON_LEAST = _COMMON_TCP + TCP.size


class Arp(NamedTuple):
    """An ARP message for IPv4 over Ethernet."""

    operation: int
    sender_mac: str
    sender_ip: str
    target_ip: str


class Frame(NamedTuple):
    """The contents of a frame: addresses, VLAN tags (TCI, outermost first), and the ARP message or TCP
    segment if it has one.

    ``vlan``: the VLAN of the outermost tag; of a frame without one, that of its port (0: none).
    ``payload``: bytes of TCP data, by the lengths in the headers, which are right for a copy that is cut
    short too (None: no TCP, or lengths that contradict each other). ``tcp_at``: the offset of the TCP header.
    """

    src: str
    dst: str
    tags: tuple[int, ...]
    ip: str | None = None
    arp: Arp | None = None
    tcp: TcpSegment | None = None
    payload: int | None = None
    tcp_at: int | None = None
    vlan: int = 0


class IpPacket(NamedTuple):
    """Where an IP packet is in a frame. ``protocol``: that of its payload (-1: a fragment, or a header length
    that is too small); ``at``: the offset of the payload; ``end``: the end of the packet by its length field,
    which may be behind the end of a copy that is cut short.
    """

    src: bytes
    dst: bytes
    protocol: int
    at: int
    end: int


def parse(data: bytes, untagged: int = 0) -> Frame | None:
    """Read a frame; None if it is shorter than an Ethernet header. ``untagged``: the VLAN of a frame without
    a tag, or with one of VLAN 0.
    """
    if len(data) < ETHERNET_SIZE:
        return None
    common = _parse_common(data, untagged) if len(data) >= _COMMON_LEAST else None
    if common is not None:
        return common
    kind, at, tags = _ethertype(data)
    src, dst = mac_text(data[6:12]), mac_text(data[:6])
    vlan = (tags[0] & VLAN_BITS if tags else 0) or untagged
    if kind == ETH_ARP:
        arp = _parse_arp(data, at)
        return Frame(src, dst, tags, arp.sender_ip if arp else None, arp, vlan=vlan)
    packet = ip_packet(data, kind, at)
    if packet is None:
        return Frame(src, dst, tags, vlan=vlan)
    sender = addresses.text(packet.src)
    tcp = _parse_tcp(data, packet, sender, vlan)
    if tcp is None:
        return Frame(src, dst, tags, sender, vlan=vlan)
    fields = src, dst, tags, sender, None, tcp, _payload(data, packet), packet.at, vlan
    return new_tuple(Frame, fields)


def _parse_common(data: bytes, untagged: int) -> Frame | None:
    """Read a TCP segment in one step, because thousands of copies come in a second. None: it is another
    frame, or its TCP header is too short.
    """
    fields = _COMMON.unpack_from(data)
    target, source, kind, first, total, fragment, protocol, src, dst, *segment = fields
    sport, dport, seq, ack, header, flags = segment
    size = (header >> 4) * 4
    plain = kind == ETH_IP and first == 0x45 and protocol == IPPROTO_TCP and not fragment & 0x3FFF
    if not plain or size < TCP.size:
        return None
    sender, payload = addresses.text(src), total - IPV4.size - size
    mss, wscale, carried = 0, None, 0
    if flags & SYN:
        mss, wscale = tcp_options.mss_and_wscale(data, _COMMON_LEAST, _COMMON_TCP + size)
        carried = max(0, payload)
    key = new_tuple(FlowKey, (sender, addresses.text(dst), sport, dport, untagged))
    bits = flags & SYN != 0, flags & ACK != 0, flags & FIN != 0, flags & RST != 0
    tcp = new_tuple(TcpSegment, (key, seq, ack, *bits, mss, wscale, carried))
    macs = mac_text(source), mac_text(target)
    known = None if payload < 0 else payload
    return new_tuple(Frame, (*macs, (), sender, None, tcp, known, _COMMON_TCP, untagged))


def tcp_options_at(frame: bytes, read: Frame) -> tuple[int, int] | None:
    """Where the TCP options begin and end in a frame that was parsed as ``read``; None: it is no TCP."""
    if read.tcp_at is None or read.tcp is None:
        return None
    return read.tcp_at + TCP.size, read.tcp_at + (frame[read.tcp_at + 12] >> 4) * 4


def is_signed(frame: bytes, read: Frame) -> bool:
    """Whether a frame that was parsed as ``read`` is a TCP segment with a signature (TCP-MD5, TCP-AO)."""
    options = tcp_options_at(frame, read)
    return options is not None and tcp_options.has_signature(frame, *options)


def can_be_lost(frame: bytes) -> bool:
    """Whether this is a TCP segment whose loss its sender notices: one with payload, SYN or FIN. False for
    all other frames and for what cannot be read.
    """
    if len(frame) < ETHERNET_SIZE:
        return False
    kind, at, _ = _ethertype(frame)
    packet = ip_packet(frame, kind, at)
    if packet is None or packet.protocol != IPPROTO_TCP:
        return False
    if len(frame) <= packet.at + _FLAGS_AT:
        return False
    size = (frame[packet.at + _FLAGS_AT - 1] >> 4) * 4
    if size < TCP.size:
        return False
    return bool(frame[packet.at + _FLAGS_AT] & (SYN | FIN)) or packet.end > packet.at + size


def tcp_packet(frame: bytes) -> IpPacket | None:
    """The IP packet of a frame that has a complete TCP header; None for all other frames."""
    if len(frame) < ETHERNET_SIZE:
        return None
    kind, at, _ = _ethertype(frame)
    packet = ip_packet(frame, kind, at)
    if packet is None or packet.protocol != IPPROTO_TCP or len(frame) < packet.at + TCP.size:
        return None
    return packet


def _ethertype(data: bytes) -> tuple[int, int, tuple[int, ...]]:
    """The type of what an Ethernet frame carries, its offset, and the VLAN tags before it."""
    kind, at = int.from_bytes(data[12:14], "big"), ETHERNET_SIZE
    tags: tuple[int, ...] = ()
    while kind in VLAN_TYPES and len(tags) < _MAX_TAGS and len(data) >= at + 4:
        tags += (int.from_bytes(data[at : at + 2], "big"),)
        kind = int.from_bytes(data[at + 2 : at + 4], "big")
        at += 4
    return kind, at, tags


def ip_packet(data: bytes, kind: int, at: int) -> IpPacket | None:
    """The IP packet at an offset of a frame; ``kind`` is its EtherType. None: it is not IP, or its header is
    cut off.
    """
    if kind == ETH_IP and len(data) >= at + IPV4.size and data[at] >> 4 == 4:
        _, _, total, _, fragment, _, protocol, _, src, dst = IPV4.unpack_from(data, at)
        size = (data[at] & 15) * 4
        whole = not fragment & 0x3FFF and size >= IPV4.size
        return new_tuple(IpPacket, (src, dst, protocol if whole else -1, at + size, at + total))
    if kind == ETH_IPV6 and len(data) >= at + IPV6.size and data[at] >> 4 == 6:
        _, length, following, _, src, dst = IPV6.unpack_from(data, at)
        start = at + IPV6.size
        end = start + length
        for _ in range(_MAX_EXTENSIONS):
            if following not in IPV6_EXTENSIONS or len(data) < start + 2:
                break
            following, start = data[start], start + (data[start + 1] + 1) * 8
        return IpPacket(src, dst, following, start, end)
    return None


def _parse_arp(data: bytes, at: int) -> Arp | None:
    if len(data) < at + ARP.size:
        return None
    fields = ARP.unpack_from(data, at)
    hardware, protocol, hlen, plen, operation, sender_mac, sender_ip, _, target_ip = fields
    if (hardware, protocol, hlen, plen) != (1, ETH_IP, 6, 4):
        return None
    return Arp(operation, mac_text(sender_mac), addresses.text(sender_ip), addresses.text(target_ip))


def _payload(data: bytes, packet: IpPacket) -> int | None:
    """Bytes of data behind the TCP header of a packet."""
    if len(data) < packet.at + TCP.size:
        return None
    size = packet.end - packet.at - (data[packet.at + 12] >> 4) * 4
    return size if size >= 0 else None


def _parse_tcp(data: bytes, packet: IpPacket, sender: str, vlan: int) -> TcpSegment | None:
    at = packet.at
    if packet.protocol != IPPROTO_TCP or len(data) < at + TCP.size:
        return None
    sport, dport, seq, ack_number, header, flags, _, _, _ = TCP.unpack_from(data, at)
    size = (header >> 4) * 4
    if size < TCP.size:
        return None
    mss, wscale, payload = 0, None, 0
    if flags & SYN:
        mss, wscale = tcp_options.mss_and_wscale(data, at + TCP.size, at + size)
        payload = _payload(data, packet) or 0
    key = new_tuple(FlowKey, (sender, addresses.text(packet.dst), sport, dport, vlan))
    bits = bool(flags & SYN), bool(flags & ACK), bool(flags & FIN), bool(flags & RST)
    return new_tuple(TcpSegment, (key, seq, ack_number, *bits, mss, wscale, payload))
