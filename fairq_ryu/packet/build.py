"""Frames from their fields: Ethernet, ARP, IP and TCP, with right lengths and checksums.

IP addresses are packed; their length selects the IP version. MAC addresses are bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from fairq_ryu.packet import addresses, checksum
from fairq_ryu.packet.headers import (
    ARP,
    ARP_REPLY,
    ARP_REQUEST,
    ETH_ARP,
    ETH_IP,
    ETH_IPV6,
    ETH_VLAN,
    IPPROTO_TCP,
    IPV4,
    IPV6,
    TCP,
    TCP_CHECKSUM_AT,
    mac_bytes,
)
from fairq_ryu.packet.parse import Arp

_DONT_FRAGMENT = 0x4000
_HOP_LIMIT = 64
_MIN_FRAME = 60


def ethernet(src: bytes, dst: bytes, kind: int, tags: Iterable[int] = ()) -> bytes:
    """An Ethernet header; ``tags`` are the TCIs of its VLAN tags, outermost first."""
    vlans = b"".join(struct.pack("!HH", ETH_VLAN, tag) for tag in tags)
    return dst + src + vlans + struct.pack("!H", kind)


def arp(
    operation: int,
    sender: tuple[bytes, bytes],
    target: tuple[bytes, bytes],
) -> bytes:
    """An ARP message for IPv4 over Ethernet, without the Ethernet header. ``sender`` and ``target`` are pairs
    of MAC address and IP address.
    """
    return ARP.pack(1, ETH_IP, 6, 4, operation, *sender, *target)


def arp_frame(
    operation: int,
    sender: tuple[bytes, bytes],
    target: tuple[bytes, bytes],
    dst: bytes,
    tags: Iterable[int] = (),
) -> bytes:
    """An ARP message in a frame to ``dst``, not padded."""
    return ethernet(sender[0], dst, ETH_ARP, tags) + arp(operation, sender, target)


def arp_reply(request: Arp, mac: str, tags: Iterable[int]) -> bytes:
    """The frame that answers an ARP request: the requested address belongs to ``mac``."""
    sender = mac_bytes(mac), addresses.packed(request.target_ip)
    target = mac_bytes(request.sender_mac), addresses.packed(request.sender_ip)
    return arp_frame(ARP_REPLY, sender, target, target[0], tags).ljust(_MIN_FRAME, b"\0")


def arp_question(
    sender: tuple[bytes, bytes], target: tuple[bytes, bytes], dst: bytes, tags: Iterable[int]
) -> bytes:
    """The frame of an ARP request to one host. ``sender`` and ``target`` as in :func:`arp`."""
    return arp_frame(ARP_REQUEST, sender, target, dst, tags).ljust(_MIN_FRAME, b"\0")


def ip(src: bytes, dst: bytes, payload_size: int) -> bytes:
    """The IP header of a TCP segment of ``payload_size`` bytes. It is not ECN-capable, because pure ACKs and
    SYNs must not be (RFC 3168 section 6.1).
    """
    if len(src) == 16:
        return IPV6.pack(6 << 28, payload_size, IPPROTO_TCP, _HOP_LIMIT, src, dst)
    fields = (0x45, 0, IPV4.size + payload_size, 0, _DONT_FRAGMENT, _HOP_LIMIT, IPPROTO_TCP)
    return IPV4.pack(*fields, checksum.internet_checksum(IPV4.pack(*fields, 0, src, dst)), src, dst)


def tcp(
    addresses: bytes,
    ports: tuple[int, int],
    seq: int,
    ack: int,
    flags: int,
    window: int,
    options: bytes = b"",
) -> bytes:
    """A TCP segment without payload. ``addresses`` are those of its source and destination, ``ports``
    likewise; ``options`` are a multiple of 4 bytes.
    """
    size = (TCP.size + len(options)) << 2
    segment = TCP.pack(*ports, seq, ack, size, flags, window, 0, 0) + options
    right = checksum.tcp_checksum(addresses, segment)
    return segment[:TCP_CHECKSUM_AT] + struct.pack("!H", right) + segment[TCP_CHECKSUM_AT + 2 :]


def tcp_frame(
    macs: tuple[bytes, bytes], addresses: tuple[bytes, bytes], segment: bytes, tags: Iterable[int] = ()
) -> bytes:
    """A TCP segment in a frame; ``macs`` and ``addresses`` are those of source and destination."""
    kind = ETH_IP if len(addresses[0]) == 4 else ETH_IPV6
    return ethernet(*macs, kind, tags) + ip(*addresses, len(segment)) + segment
