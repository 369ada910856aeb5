"""Packets that reach the controller: the headers that flow tracking, host tracking and recovery need, and ARP
replies. What is forged for TCP is in :mod:`~fairq_ryu.packet.tcp_build`.

Copies are cut short by the switch and come from anybody, so everything is bounds-checked; what
cannot be read is None, never an exception.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
from dataclasses import dataclass

from fairq_ryu.model import FlowKey, TcpSegment

ETH_IP, ETH_ARP, ETH_IPV6 = 0x0800, 0x0806, 0x86DD
_VLAN_TYPES = (0x8100, 0x88A8)
_MAX_TAGS = 2
_IPV6_EXTENSIONS = (0, 43, 60)
_TCP = struct.Struct("!HHIIBBHHH")
_ARP = struct.Struct("!HHBBH6s4s6s4s")
ARP_REQUEST, ARP_REPLY = 1, 2
MAX_WSCALE = 14


@dataclass(frozen=True, slots=True)
class Arp:
    """An ARP message for IPv4 over Ethernet."""

    operation: int
    sender_mac: str
    sender_ip: str
    target_ip: str


@dataclass(frozen=True, slots=True)
class Frame:
    """What a frame says: addresses, VLAN tags (TCI, outermost first), and one of ARP or TCP if it is.

    ``payload``: bytes of TCP data, by the lengths in the headers, which hold when the copy is cut short too
    (None: no TCP, or lengths that contradict each other). ``tcp_at``: where the TCP header begins.
    """

    src: str
    dst: str
    tags: tuple[int, ...]
    ip: str | None = None
    arp: Arp | None = None
    tcp: TcpSegment | None = None
    payload: int | None = None
    tcp_at: int | None = None


def mac_text(raw: bytes) -> str:
    """A MAC address as text."""
    return raw.hex(":")


def parse(data: bytes) -> Frame | None:
    """Read a frame; None if it is not even Ethernet."""
    if len(data) < 14:
        return None
    dst, src = mac_text(data[0:6]), mac_text(data[6:12])
    kind, offset = int.from_bytes(data[12:14], "big"), 14
    tags: tuple[int, ...] = ()
    while kind in _VLAN_TYPES and len(tags) < _MAX_TAGS and len(data) >= offset + 4:
        tags += (int.from_bytes(data[offset : offset + 2], "big"),)
        kind = int.from_bytes(data[offset + 2 : offset + 4], "big")
        offset += 4
    if kind == ETH_ARP:
        arp = _parse_arp(data[offset:])
        return Frame(src, dst, tags, arp.sender_ip if arp else None, arp)
    if kind == ETH_IP:
        return _parse_ipv4(Frame(src, dst, tags), data[offset:], offset)
    if kind == ETH_IPV6:
        return _parse_ipv6(Frame(src, dst, tags), data[offset:], offset)
    return Frame(src, dst, tags)


def _parse_arp(data: bytes) -> Arp | None:
    if len(data) < _ARP.size:
        return None
    hardware, protocol, hlen, plen, operation, sender_mac, sender_ip, _, target_ip = _ARP.unpack_from(data)
    if (hardware, protocol, hlen, plen) != (1, ETH_IP, 6, 4):
        return None
    return Arp(
        operation,
        mac_text(sender_mac),
        str(ipaddress.ip_address(sender_ip)),
        str(ipaddress.ip_address(target_ip)),
    )


def _parse_ipv4(frame: Frame, data: bytes, at: int) -> Frame:
    if len(data) < 20 or data[0] >> 4 != 4:
        return frame
    length = (data[0] & 15) * 4
    src, dst = socket.inet_ntoa(data[12:16]), socket.inet_ntoa(data[16:20])
    fragment = int.from_bytes(data[6:8], "big") & 0x3FFF
    tcp, payload = None, None
    if data[9] == 6 and not fragment and length >= 20:
        tcp = _parse_tcp(src, dst, data[length:])
        payload = _payload(data, length, int.from_bytes(data[2:4], "big"))
    return _with_tcp(frame, src, tcp, payload, at + length)


def _parse_ipv6(frame: Frame, data: bytes, at: int) -> Frame:
    if len(data) < 40 or data[0] >> 4 != 6:
        return frame
    src, dst = (str(ipaddress.IPv6Address(data[at : at + 16])) for at in (8, 24))
    kind, offset = data[6], 40
    for _ in range(6):
        if kind not in _IPV6_EXTENSIONS or len(data) < offset + 2:
            break
        kind, offset = data[offset], offset + (data[offset + 1] + 1) * 8
    tcp, payload = None, None
    if kind == 6:
        tcp = _parse_tcp(src, dst, data[offset:])
        payload = _payload(data, offset, 40 + int.from_bytes(data[4:6], "big"))
    return _with_tcp(frame, src, tcp, payload, at + offset)


def _with_tcp(frame: Frame, src: str, tcp: TcpSegment | None, payload: int | None, at: int) -> Frame:
    if tcp is None:
        return Frame(frame.src, frame.dst, frame.tags, src)
    return Frame(frame.src, frame.dst, frame.tags, src, None, tcp, payload, at)


def _payload(data: bytes, at: int, total: int) -> int | None:
    """Bytes of data behind the TCP header at ``at`` in an IP packet of ``total`` bytes."""
    if len(data) < at + _TCP.size:
        return None
    rest = total - at - (data[at + 12] >> 4) * 4
    return rest if rest >= 0 else None


def _parse_tcp(src: str, dst: str, data: bytes) -> TcpSegment | None:
    if len(data) < _TCP.size:
        return None
    sport, dport, seq, ack_number, header, flags, _, _, _ = _TCP.unpack_from(data)
    length = (header >> 4) * 4
    if length < 20:
        return None
    mss, wscale = _syn_options(data[20:length]) if flags & 0x02 else (0, None)
    return TcpSegment(
        key=FlowKey(src, dst, sport, dport),
        seq=seq,
        ack_number=ack_number,
        syn=bool(flags & 0x02),
        ack=bool(flags & 0x10),
        fin=bool(flags & 0x01),
        rst=bool(flags & 0x04),
        mss=mss,
        wscale=wscale,
    )


def _syn_options(options: bytes) -> tuple[int, int | None]:
    """MSS (0: none) and window scale (None: none; at most 14, RFC 7323 section 2.3)."""
    mss, wscale, at = 0, None, 0
    while at < len(options) and options[at] != 0:
        if options[at] == 1:
            at += 1
            continue
        size = options[at + 1] if at + 1 < len(options) else 0
        if size < 2 or at + size > len(options):
            break
        if options[at] == 2 and size == 4:
            mss = int.from_bytes(options[at + 2 : at + 4], "big")
        elif options[at] == 3 and size == 3:
            wscale = min(options[at + 2], MAX_WSCALE)
        at += size
    return mss, wscale


def arp_reply(request: Arp, mac: str, tags: tuple[int, ...]) -> bytes:
    """The frame that answers an ARP request: ``mac`` is where the wanted address is."""
    own, asker = bytes.fromhex(mac.replace(":", "")), bytes.fromhex(request.sender_mac.replace(":", ""))
    head = (
        asker + own + b"".join(struct.pack("!HH", 0x8100, tag) for tag in tags) + struct.pack("!H", ETH_ARP)
    )
    body = _ARP.pack(
        1,
        ETH_IP,
        6,
        4,
        ARP_REPLY,
        own,
        ipaddress.ip_address(request.target_ip).packed,
        asker,
        ipaddress.ip_address(request.sender_ip).packed,
    )
    return (head + body).ljust(60, b"\0")
