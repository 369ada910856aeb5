"""What a switch has refused, and why, in words: OpenFlow 1.3's error messages say it in numbers."""

from __future__ import annotations

from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel import congestion, oxm

_HEADER_BYTES = 8
_ASKED = {
    ofp.OFPT_FLOW_MOD: "a rule",
    ofp.OFPT_METER_MOD: "a meter",
    ofp.OFPT_PACKET_OUT: "a packet to send",
    ofp.OFPT_MULTIPART_REQUEST: "a question",
    ofp.OFPT_EXPERIMENTER: "thresholds of a queue",
    ofp.OFPT_BARRIER_REQUEST: "a barrier",
    ofp.OFPT_ROLE_REQUEST: "a role",
    ofp.OFPT_HELLO: "a greeting",
}
_KINDS = {
    number: name.removeprefix("OFPET_")
    for name, number in vars(ofp).items()
    if name.startswith("OFPET_") and isinstance(number, int)
}
# How the names of a kind's codes begin.
_CODES = {
    ofp.OFPET_HELLO_FAILED: "OFPHFC_",
    ofp.OFPET_BAD_REQUEST: "OFPBRC_",
    ofp.OFPET_BAD_ACTION: "OFPBAC_",
    ofp.OFPET_BAD_INSTRUCTION: "OFPBIC_",
    ofp.OFPET_BAD_MATCH: "OFPBMC_",
    ofp.OFPET_FLOW_MOD_FAILED: "OFPFMFC_",
    ofp.OFPET_ROLE_REQUEST_FAILED: "OFPRRFC_",
}
_OURS = {
    congestion.ERROR_ORDER: "NOM is not below CNG",
    congestion.ERROR_FLAGS: "unknown flags",
    congestion.ERROR_NO_DROPS: "its kernel does not report drops",
}
_MEANING = {
    (ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_PORT): "the port has gone",
    (ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_TABLE_FULL): "its table is full",
}


def words(message: Any) -> str:
    """An error message (Ryu's ``OFPErrorMsg``) in words: ``a question (BAD_REQUEST, BAD_PORT): the port has
    gone``. What it answers is known from the beginning of the refused message, which is sent along.
    """
    data = bytes(message.data or b"")
    asked = _ASKED.get(data[1], f"a message of type {data[1]}") if len(data) >= _HEADER_BYTES else "a message"
    kind = _KINDS.get(message.type, f"error type {message.type}")
    if message.type == ofp.OFPET_EXPERIMENTER:
        ours = message.experimenter == oxm.EXPERIMENTER_ID
        why = _OURS.get(message.exp_type) if ours else None
        return f"{asked} ({kind}, {message.exp_type})" + (f": {why}" if why else "")
    code = next(
        (
            name.removeprefix(prefix)
            for prefix in [_CODES.get(message.type)]
            if prefix
            for name, number in vars(ofp).items()
            if name.startswith(prefix) and number == message.code
        ),
        f"code {message.code}",
    )
    why = _MEANING.get((message.type, message.code))
    return f"{asked} ({kind}, {code})" + (f": {why}" if why else "")
