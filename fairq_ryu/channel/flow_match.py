"""The matches of window rules: in_port, or the 5-tuple of a flow (ONF OpenFlow 1.3.5, section 7.2.2). Created
by the controller, strictly decoded by the agent; segment_copies.py has the field of rules for copies.
"""

from __future__ import annotations

import ipaddress
import struct
from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.channel import segment_copies
from fairq_ryu.channel.refusal import OpenFlowError
from fairq_ryu.model import FlowKey

ETH_TYPE_IP, ETH_TYPE_IPV6, IPPROTO_TCP = 0x0800, 0x86DD, 6
_HH = struct.Struct("!HH")
_OXM = struct.Struct("!HBB")
# OXM field -> (name, length in bytes)
_FIELDS: dict[int, tuple[str, int]] = {
    ofp.OFPXMT_OFB_IN_PORT: ("in_port", 4),
    ofp.OFPXMT_OFB_ETH_TYPE: ("eth_type", 2),
    ofp.OFPXMT_OFB_VLAN_VID: ("vlan_vid", 2),
    ofp.OFPXMT_OFB_IP_PROTO: ("ip_proto", 1),
    ofp.OFPXMT_OFB_IPV4_SRC: ("ipv4_src", 4),
    ofp.OFPXMT_OFB_IPV4_DST: ("ipv4_dst", 4),
    ofp.OFPXMT_OFB_TCP_SRC: ("tcp_src", 2),
    ofp.OFPXMT_OFB_TCP_DST: ("tcp_dst", 2),
    ofp.OFPXMT_OFB_IPV6_SRC: ("ipv6_src", 16),
    ofp.OFPXMT_OFB_IPV6_DST: ("ipv6_dst", 16),
}
_PREREQUISITES: dict[str, tuple[str, int | None]] = {
    "ip_proto": ("eth_type", None),
    "ipv4_src": ("eth_type", ETH_TYPE_IP),
    "ipv4_dst": ("eth_type", ETH_TYPE_IP),
    "ipv6_src": ("eth_type", ETH_TYPE_IPV6),
    "ipv6_dst": ("eth_type", ETH_TYPE_IPV6),
    "tcp_src": ("ip_proto", IPPROTO_TCP),
    "tcp_dst": ("ip_proto", IPPROTO_TCP),
    segment_copies.FIELD: ("ip_proto", IPPROTO_TCP),
}
_VLAN_BITS = 0xFFF

MatchFields = dict[str, int | str]


def match(target: int | FlowKey) -> Any:
    """An OFPMatch of :func:`match_fields`. Ryu would sort the fields by their numbers and normalise each
    value by packing and unpacking it, which for many new flows is a tenth of the controller's time.
    """
    # Of these, IPv6 addresses have the highest numbers; the others are in order.
    fields = sorted(match_fields(target).items(), key=lambda field: field[0].startswith("ipv6"))
    return parser.OFPMatch(_ordered_fields=fields)


def rule_target(match: MatchFields) -> int | FlowKey:
    """The target of a rule's match: a port number, or the flow of the ACKs whose windows it lowers.

    Raises :class:`OpenFlowError` if the match is neither ``in_port`` alone nor a full 5-tuple, with a VLAN or
    without one.
    """
    if match.keys() == {"in_port"}:
        return int(match["in_port"])
    vlan = int(match.get("vlan_vid", 0)) & _VLAN_BITS
    for src, dst in (("ipv4_src", "ipv4_dst"), ("ipv6_src", "ipv6_dst")):
        if match.keys() - {"vlan_vid"} == {"eth_type", "ip_proto", src, dst, "tcp_src", "tcp_dst"}:
            ports = int(match["tcp_src"]), int(match["tcp_dst"])
            return FlowKey(str(match[src]), str(match[dst]), *ports, vlan)
    raise OpenFlowError(
        ofp.OFPET_BAD_MATCH, ofp.OFPBMC_BAD_WILDCARDS, "match in_port alone, or a full 5-tuple alone"
    )


def match_fields(target: int | FlowKey) -> MatchFields:
    """The match of a rule for a port, or for the flow of the ACKs it lowers: :func:`rule_target` back."""
    if isinstance(target, int):
        return {"in_port": target}
    v6 = ":" in target.src
    vlan: MatchFields = {"vlan_vid": ofp.OFPVID_PRESENT | target.vlan} if target.vlan else {}
    return {
        "eth_type": ETH_TYPE_IPV6 if v6 else ETH_TYPE_IP,
        **vlan,
        "ip_proto": IPPROTO_TCP,
        "ipv6_src" if v6 else "ipv4_src": target.src,
        "ipv6_dst" if v6 else "ipv4_dst": target.dst,
        "tcp_src": target.sport,
        "tcp_dst": target.dport,
    }


def decode_match(message: bytes, start: int) -> tuple[MatchFields, int]:
    """The ``ofp_match`` at ``start``: its fields and the offset behind it. Raises OpenFlowError."""

    def bad(code: int, text: str) -> OpenFlowError:
        return OpenFlowError(ofp.OFPET_BAD_MATCH, code, text)

    if start + ofp.OFP_MATCH_SIZE > len(message):
        raise bad(ofp.OFPBMC_BAD_LEN, "match truncated")
    kind, length = _HH.unpack_from(message, start)
    if kind != ofp.OFPMT_OXM:
        raise bad(ofp.OFPBMC_BAD_TYPE, f"match type {kind}")
    end, behind = start + length, start + (length + 7) // 8 * 8
    if length < 4 or behind > len(message):
        raise bad(ofp.OFPBMC_BAD_LEN, f"match length {length}")
    fields: MatchFields = {}
    offset = start + 4
    while offset < end:
        if offset + 4 > end:
            raise bad(ofp.OFPBMC_BAD_LEN, "match field truncated")
        oxm_class, field_mask, size = _OXM.unpack_from(message, offset)
        offset += 4
        if offset + size > end:
            raise bad(ofp.OFPBMC_BAD_LEN, "match field truncated")
        name, found = _decode_field(oxm_class, field_mask, message[offset : offset + size])
        if name in fields:
            raise bad(ofp.OFPBMC_DUP_FIELD, f"{name} twice")
        fields[name] = found
        offset += size
    for name, (needed, value) in _PREREQUISITES.items():
        if name in fields and (needed not in fields or value not in (None, fields[needed])):
            raise bad(ofp.OFPBMC_BAD_PREREQ, f"{name} without its {needed}")
    if fields.get("eth_type", ETH_TYPE_IP) not in (ETH_TYPE_IP, ETH_TYPE_IPV6):
        raise bad(ofp.OFPBMC_BAD_VALUE, "eth_type is neither IPv4 nor IPv6")
    vlan = int(fields.get("vlan_vid", ofp.OFPVID_PRESENT | 1))
    if not vlan & ofp.OFPVID_PRESENT or not 0 < vlan & ~ofp.OFPVID_PRESENT <= _VLAN_BITS:
        raise bad(ofp.OFPBMC_BAD_VALUE, f"vlan_vid {vlan:#x} is no VLAN")
    if fields.get("ip_proto", IPPROTO_TCP) != IPPROTO_TCP:
        raise bad(ofp.OFPBMC_BAD_VALUE, "ip_proto is not TCP")
    return fields, behind


def _decode_field(oxm_class: int, field_mask: int, raw: bytes) -> tuple[str, int | str]:
    """Name and value of a match field."""

    def bad(code: int, text: str) -> OpenFlowError:
        return OpenFlowError(ofp.OFPET_BAD_MATCH, code, text)

    if oxm_class == ofp.OFPXMC_EXPERIMENTER:
        return segment_copies.FIELD, segment_copies.decode_flag(field_mask, raw)
    if oxm_class != ofp.OFPXMC_OPENFLOW_BASIC or field_mask >> 1 not in _FIELDS:
        raise bad(ofp.OFPBMC_BAD_FIELD, f"match field {oxm_class:#x}/{field_mask >> 1}")
    name, expected = _FIELDS[field_mask >> 1]
    if field_mask & 1:
        raise bad(ofp.OFPBMC_BAD_MASK, f"{name} cannot be masked")
    if len(raw) != expected:
        raise bad(ofp.OFPBMC_BAD_LEN, f"{name} has {len(raw)} bytes, not {expected}")
    if name.startswith("ipv"):
        return name, str(ipaddress.ip_address(raw))
    return name, int.from_bytes(raw, "big")
