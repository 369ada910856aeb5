"""The layouts and numbers of the headers that are read in parse.py and written in build.py."""

from __future__ import annotations

import struct

ETH_IP, ETH_ARP, ETH_IPV6, ETH_LLDP = 0x0800, 0x0806, 0x86DD, 0x88CC
ETH_VLAN, ETH_SERVICE_VLAN = 0x8100, 0x88A8
VLAN_TYPES = (ETH_VLAN, ETH_SERVICE_VLAN)
VLAN_BITS = 0xFFF  # of a tag's TCI
ETHERNET_SIZE = 14
ARP = struct.Struct("!HHBBH6s4s6s4s")
ARP_REQUEST, ARP_REPLY = 1, 2
IPV4 = struct.Struct("!BBHHHBBH4s4s")
IPV6 = struct.Struct("!IHBB16s16s")
IPPROTO_TCP = 6
# Hop-by-hop options, routing, destination options. Fragments (44) are not followed.
IPV6_EXTENSIONS = (0, 43, 60)
TCP = struct.Struct("!HHIIBBHHH")
TCP_CHECKSUM_AT = 16
FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10


def mac_text(raw: bytes) -> str:
    """A MAC address as text."""
    return raw.hex(":")


def mac_bytes(text: str) -> bytes:
    """A MAC address as bytes. Raises ValueError if the text is not hexadecimal."""
    return bytes.fromhex(text.replace(":", ""))
