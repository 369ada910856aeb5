"""FlowMods with window rules: created by the controller, strictly decoded by the agent (ONF OpenFlow 1.3.5,
section 7.3.4.1). Rules for copies of segments, which the agent takes as well, are in segment_copies.py.

Ryu's own parser is made for controllers and trusts its peer. A switch must answer every malformed or
unsupported message with the right error and change nothing, so the agent decodes the bytes here. The
constants are Ryu's.
"""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass
from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.channel import oxm, segment_copies
from fairq_ryu.channel.refusal import OpenFlowError as OpenFlowError  # for those who import it from here
from fairq_ryu.channel.segment_copies import CopyAction
from fairq_ryu.model import FlowKey, RuleChange, WindowKind, WindowRule

_FIXED = struct.Struct("!QQBBHHHIIIH2x")
_HH = struct.Struct("!HH")
_OXM = struct.Struct("!HBB")
FLOW_MOD_HEADER = ofp.OFP_HEADER_SIZE + _FIXED.size
TABLE_ID, QUEUE_TABLE_ID = 0, WindowKind.QUEUE_LAW.table
TABLES = (TABLE_ID, QUEUE_TABLE_ID)
ETH_TYPE_IP, ETH_TYPE_IPV6, IPPROTO_TCP = 0x0800, 0x86DD, 6
WINDOW_RULE_COOKIE = 0xFA17_0003 << 32  # as the rules of bridges, with the number of their layout
QUEUE_RULE_COOKIE = 0xFA17_0004 << 32
_ADD_FLAGS = (
    ofp.OFPFF_SEND_FLOW_REM
    | ofp.OFPFF_CHECK_OVERLAP
    | ofp.OFPFF_RESET_COUNTS
    | ofp.OFPFF_NO_PKT_COUNTS
    | ofp.OFPFF_NO_BYT_COUNTS
)
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
_KNOWN_INSTRUCTIONS = {1, 2, 3, 4, 5, 6}

MatchFields = dict[str, int | str]


@dataclass(frozen=True, slots=True)
class FlowMod:
    """A decoded, supported FlowMod: ``window`` is that of a window rule, or the queue law of a port, ``copy``
    that of a rule for copies; both are None for deletions. ``table`` of a deletion may be OFPTT_ALL.
    """

    command: int
    match: MatchFields
    window: WindowRule | None
    cookie: int
    cookie_mask: int
    hard_timeout: int
    priority: int
    out_port: int
    out_group: int
    flags: int
    copy: CopyAction | None = None
    table: int = TABLE_ID


# The controller's end


class PackedOnce(parser.OFPFlowMod):
    """A FlowMod that is packed when it is first sent, and may be sent again without a change, with the same
    transaction id.
    """

    def serialize(self) -> None:
        """Pack it, unless that was done."""
        if self.buf is None:
            super().serialize()


def window_rule(datapath: Any, change: RuleChange, lease: int) -> Any:
    """The FlowMod that installs, renews or removes a window rule in a bridge's agent; ``lease`` in seconds. A
    flow's rule matches its ACKs, so it names the flow reversed.
    """
    target = change.target
    matched = match(target.port.port if target.flow is None else target.flow.reversed)
    if change.rule is None:
        return parser.OFPFlowMod(
            datapath,
            cookie=WINDOW_RULE_COOKIE,
            command=ofp.OFPFC_DELETE_STRICT,
            out_port=ofp.OFPP_ANY,
            out_group=ofp.OFPG_ANY,
            match=matched,
        )
    action = parser.OFPActionSetField(**{change.rule.kind.field: min(change.rule.bytes, 0xFFFFFFFF)})
    kind = parser.OFPFlowMod if change.rule.law is None else PackedOnce
    return kind(
        datapath,
        cookie=WINDOW_RULE_COOKIE,
        hard_timeout=lease,
        match=matched,
        instructions=[parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, [action])],
    )


def queue_rule(datapath: Any, port: int, law: int | None, lease: int) -> Any:
    """The FlowMod that puts a queue law in force on a port, or renews its lease (seconds); ``law`` None
    removes the rule.
    """
    if law is None:
        return parser.OFPFlowMod(
            datapath,
            cookie=QUEUE_RULE_COOKIE,
            command=ofp.OFPFC_DELETE_STRICT,
            table_id=QUEUE_TABLE_ID,
            out_port=ofp.OFPP_ANY,
            out_group=ofp.OFPG_ANY,
            match=match(port),
        )
    action = parser.OFPActionSetField(**{WindowKind.QUEUE_LAW.field: law})
    return PackedOnce(
        datapath,
        cookie=QUEUE_RULE_COOKIE,
        table_id=QUEUE_TABLE_ID,
        hard_timeout=lease,
        match=match(port),
        instructions=[parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, [action])],
    )


def clear(datapath: Any) -> Any:
    """The FlowMod that removes every rule of a switch, in all of its tables."""
    return parser.OFPFlowMod(
        datapath,
        command=ofp.OFPFC_DELETE,
        table_id=ofp.OFPTT_ALL,
        out_port=ofp.OFPP_ANY,
        out_group=ofp.OFPG_ANY,
        match=parser.OFPMatch(),
    )


def match(target: int | FlowKey) -> Any:
    """An OFPMatch of :func:`match_fields`. Ryu would sort the fields by their numbers and normalise each
    value by packing and unpacking it, which for many new flows is a tenth of the controller's time.
    """
    # Of these, IPv6 addresses have the highest numbers; the others are in order.
    fields = sorted(match_fields(target).items(), key=lambda field: field[0].startswith("ipv6"))
    return parser.OFPMatch(_ordered_fields=fields)


# The agent's end


def decode_flow_mod(message: bytes) -> FlowMod:
    """Decode a whole FlowMod message, header included. Raises :class:`OpenFlowError`."""
    if len(message) < FLOW_MOD_HEADER + ofp.OFP_MATCH_SIZE:
        raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_LEN, "FlowMod too short")
    (
        cookie,
        cookie_mask,
        table,
        command,
        idle_timeout,
        hard_timeout,
        priority,
        buffer_id,
        out_port,
        out_group,
        flags,
    ) = _FIXED.unpack_from(message, ofp.OFP_HEADER_SIZE)
    if command not in range(5):
        raise OpenFlowError(ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_BAD_COMMAND, f"command {command}")
    deletes = command in (ofp.OFPFC_DELETE, ofp.OFPFC_DELETE_STRICT)
    if table not in TABLES and not (deletes and table == ofp.OFPTT_ALL):
        raise OpenFlowError(ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_BAD_TABLE_ID, f"table {table}")
    if flags & ~_ADD_FLAGS:
        raise OpenFlowError(ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_BAD_FLAGS, f"flags {flags:#x}")
    fields, offset = decode_match(message, FLOW_MOD_HEADER)
    window: WindowRule | None = None
    copy: CopyAction | None = None
    if not deletes:
        if buffer_id != ofp.OFP_NO_BUFFER:
            raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BUFFER_UNKNOWN, "no packet is buffered")
        # The lease: a rule without one could outlive its controller.
        if command == ofp.OFPFC_ADD and (idle_timeout or not hard_timeout):
            raise OpenFlowError(
                ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_BAD_TIMEOUT, "a rule needs a hard timeout, no idle one"
            )
        action = _decode_instructions(message, offset)
        _check_table(table, action)
        if command == ofp.OFPFC_ADD:
            _check_action(fields, action)
        if isinstance(action, CopyAction):
            copy = action
        else:
            window = action
        # A modification without in_port would reach the rules of flows as well.
        if window is not None and window.kind.port_only and "in_port" not in fields:
            raise OpenFlowError(
                ofp.OFPET_BAD_ACTION,
                ofp.OFPBAC_MATCH_INCONSISTENT,
                f"{window.kind.field} is for a port, not for a flow",
            )
    return FlowMod(
        command,
        fields,
        window,
        cookie,
        cookie_mask,
        hard_timeout,
        priority,
        out_port,
        out_group,
        flags,
        copy,
        table,
    )


def _check_table(table: int, action: WindowRule | CopyAction) -> None:
    """Whether the rules of a table can have this action. Raises :class:`OpenFlowError`."""
    if isinstance(action, CopyAction):
        if table != TABLE_ID:
            raise OpenFlowError(
                ofp.OFPET_BAD_ACTION, ofp.OFPBAC_BAD_TYPE, f"rules of table {table} have no output"
            )
    elif action.kind.table != table:
        raise OpenFlowError(
            ofp.OFPET_BAD_ACTION,
            ofp.OFPBAC_BAD_SET_TYPE,
            f"rules that set {action.kind.field} are in table {action.kind.table}, not {table}",
        )


def _check_action(fields: MatchFields, action: WindowRule | CopyAction) -> None:
    """Whether a rule with this match can have this action. Raises :class:`OpenFlowError`."""
    copies = segment_copies.segment_match(fields) is not None
    if not copies:
        rule_target(fields)
    if copies != isinstance(action, CopyAction):
        raise OpenFlowError(
            ofp.OFPET_BAD_ACTION,
            ofp.OFPBAC_MATCH_INCONSISTENT,
            "a rule with tcp_flags outputs to the controller, any other sets a window",
        )


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


def _decode_instructions(message: bytes, offset: int) -> WindowRule | CopyAction:
    def bad(code: int, text: str) -> OpenFlowError:
        return OpenFlowError(ofp.OFPET_BAD_INSTRUCTION, code, text)

    action: WindowRule | CopyAction | None = None
    while offset < len(message):
        if offset + 8 > len(message):
            raise bad(ofp.OFPBIC_BAD_LEN, "instruction truncated")
        kind, length = _HH.unpack_from(message, offset)
        if length < 8 or length % 8 or offset + length > len(message):
            raise bad(ofp.OFPBIC_BAD_LEN, f"instruction length {length}")
        if kind == ofp.OFPIT_EXPERIMENTER:
            raise bad(ofp.OFPBIC_BAD_EXPERIMENTER, "experimenter instruction")
        if kind not in _KNOWN_INSTRUCTIONS:
            raise bad(ofp.OFPBIC_UNKNOWN_INST, f"instruction {kind}")
        if kind != ofp.OFPIT_APPLY_ACTIONS or action is not None:
            raise bad(ofp.OFPBIC_UNSUP_INST, "one apply_actions is all that this table supports")
        action = _decode_actions(message, offset + 8, offset + length)
        offset += length
    if action is None:
        raise bad(ofp.OFPBIC_UNSUP_INST, "a rule needs apply_actions with a set_field or an output")
    return action


def _decode_actions(message: bytes, offset: int, end: int) -> WindowRule | CopyAction:
    def bad(code: int, text: str) -> OpenFlowError:
        return OpenFlowError(ofp.OFPET_BAD_ACTION, code, text)

    action: WindowRule | CopyAction | None = None
    while offset < end:
        kind, length = _HH.unpack_from(message, offset)
        if length < 8 or length % 8 or offset + length > end:
            raise bad(ofp.OFPBAC_BAD_LEN, f"action length {length}")
        if kind == ofp.OFPAT_EXPERIMENTER:
            raise bad(ofp.OFPBAC_BAD_EXPERIMENTER, "experimenter action")
        if kind not in (ofp.OFPAT_SET_FIELD, ofp.OFPAT_OUTPUT):
            raise bad(ofp.OFPBAC_BAD_TYPE, f"action {kind} is neither set_field nor output")
        if action is not None:
            raise bad(ofp.OFPBAC_TOO_MANY, "a rule has one action")
        body = message[offset + 4 : offset + length]
        sets = kind == ofp.OFPAT_SET_FIELD
        action = _decode_set_field(body) if sets else segment_copies.decode_output(body)
        offset += length
    if action is None:
        raise bad(ofp.OFPBAC_BAD_TYPE, "a rule needs a set_field or an output")
    return action


def _decode_set_field(tlv: bytes) -> WindowRule:
    def bad(code: int, text: str) -> OpenFlowError:
        return OpenFlowError(ofp.OFPET_BAD_ACTION, code, text)

    oxm_class, field_mask, size = _OXM.unpack_from(tlv, 0)
    kind = oxm.KINDS.get(field_mask >> 1)
    if oxm_class != ofp.OFPXMC_EXPERIMENTER or field_mask & 1 or kind is None:
        raise bad(ofp.OFPBAC_BAD_SET_TYPE, f"set_field of {oxm_class:#x}/{field_mask >> 1}")
    # The TLV and its padding to 8 bytes fill the action exactly.
    if size != oxm.OXM_LENGTH or len(tlv) != 12:
        raise bad(ofp.OFPBAC_BAD_SET_LEN, f"set_field of {size} bytes, not {oxm.OXM_LENGTH}")
    experimenter, value = struct.unpack_from("!II", tlv, 4)
    if experimenter != oxm.EXPERIMENTER_ID:
        raise bad(ofp.OFPBAC_BAD_SET_TYPE, f"experimenter {experimenter:#010x}")
    return WindowRule(kind, value)
