"""Decodes FlowMods at the agent, strictly (ONF OpenFlow 1.3.5, section 7.3.4.1): those with window rules, and
those for copies of segments, whose own parts are in segment_copies.py.

Ryu's own parser is made for controllers and trusts its peer. A switch must answer every malformed or
unsupported message with the right error and change nothing, so the agent decodes the bytes here. The
constants are Ryu's.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel import oxm, segment_copies
from fairq_ryu.channel.flow_match import MatchFields, decode_match, rule_target
from fairq_ryu.channel.flowmod import TABLE_ID, TABLES
from fairq_ryu.channel.refusal import OpenFlowError
from fairq_ryu.channel.segment_copies import CopyAction
from fairq_ryu.model import WindowRule

_FIXED = struct.Struct("!QQBBHHHIIIH2x")
_HH = struct.Struct("!HH")
_OXM = struct.Struct("!HBB")
FLOW_MOD_HEADER = ofp.OFP_HEADER_SIZE + _FIXED.size
_ADD_FLAGS = (
    ofp.OFPFF_SEND_FLOW_REM
    | ofp.OFPFF_CHECK_OVERLAP
    | ofp.OFPFF_RESET_COUNTS
    | ofp.OFPFF_NO_PKT_COUNTS
    | ofp.OFPFF_NO_BYT_COUNTS
)
_KNOWN_INSTRUCTIONS = {1, 2, 3, 4, 5, 6}


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
