"""OpenFlow error messages as text for the log: which request a switch has refused, and why."""

from __future__ import annotations

from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel import congestion, framing, oxm, window_law

_REQUESTS = {
    ofp.OFPT_FLOW_MOD: "a rule",
    ofp.OFPT_METER_MOD: "a meter",
    ofp.OFPT_PACKET_OUT: "a PACKET_OUT",
    ofp.OFPT_MULTIPART_REQUEST: "a multipart request",
    ofp.OFPT_EXPERIMENTER: "thresholds of a queue",
    ofp.OFPT_BARRIER_REQUEST: "a barrier",
    ofp.OFPT_ROLE_REQUEST: "a role request",
    ofp.OFPT_HELLO: "a HELLO",
}
_KINDS = {
    number: name.removeprefix("OFPET_")
    for name, number in vars(ofp).items()
    if name.startswith("OFPET_") and isinstance(number, int)
}
# The prefix of the names of each type's codes.
_CODES = {
    ofp.OFPET_HELLO_FAILED: "OFPHFC_",
    ofp.OFPET_BAD_REQUEST: "OFPBRC_",
    ofp.OFPET_BAD_ACTION: "OFPBAC_",
    ofp.OFPET_BAD_INSTRUCTION: "OFPBIC_",
    ofp.OFPET_BAD_MATCH: "OFPBMC_",
    ofp.OFPET_FLOW_MOD_FAILED: "OFPFMFC_",
    ofp.OFPET_ROLE_REQUEST_FAILED: "OFPRRFC_",
}
_MEANING = {
    (ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_PORT): "the port does not exist",
    (ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_TABLE_FULL): "its table is full",
}

# How the body of a SET_LAW begins.
_SET_LAW = framing.EXPERIMENTER.pack(oxm.EXPERIMENTER_ID, window_law.EXP_TYPE_SET_LAW)
_OURS = congestion.ERRORS | window_law.ERRORS


def described(message: Any) -> str:
    """An error message (Ryu's ``OFPErrorMsg``) as text: ``a multipart request (BAD_REQUEST, BAD_PORT): the
    port does not exist``. The refused request is known from its first bytes, which the error message
    contains.
    """
    data = bytes(message.data or b"")
    request = "a message"
    if len(data) >= ofp.OFP_HEADER_SIZE:
        request = _REQUESTS.get(data[1], f"a message of type {data[1]}")
        if data[1] == ofp.OFPT_EXPERIMENTER and data[8:16] == _SET_LAW:
            request = "a window law"
    kind = _KINDS.get(message.type, f"error type {message.type}")
    if message.type == ofp.OFPET_EXPERIMENTER:
        ours = message.experimenter == oxm.EXPERIMENTER_ID
        why = _OURS.get(message.exp_type) if ours else None
        return f"{request} ({kind}, {message.exp_type})" + (f": {why}" if why else "")
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
    return f"{request} ({kind}, {code})" + (f": {why}" if why else "")
