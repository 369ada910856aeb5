"""OpenFlow error messages as text for the log: which request a switch has refused, and why."""

from __future__ import annotations

from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel import (
    congestion,
    deadlines,
    far_queues,
    flow_priorities,
    framing,
    oxm,
    port_mode,
    queue_law,
    quoted_law,
    recovery,
    tenants,
    window_law,
)

_REQUESTS = {
    ofp.OFPT_FLOW_MOD: "a rule",
    ofp.OFPT_METER_MOD: "a meter",
    ofp.OFPT_PACKET_OUT: "a PACKET_OUT",
    ofp.OFPT_MULTIPART_REQUEST: "a multipart request",
    ofp.OFPT_EXPERIMENTER: "an experimenter message",
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

# By how their bodies begin.
_OF_OURS = {
    framing.EXPERIMENTER.pack(oxm.EXPERIMENTER_ID, number): name
    for number, name in {
        congestion.EXP_TYPE_SET_THRESHOLDS: "thresholds of a queue",
        deadlines.EXP_TYPE_SET_DEADLINES: "deadlines",
        far_queues.EXP_TYPE_FAR_QUEUES: "far queues",
        far_queues.EXP_TYPE_LEASE_FAR_RATES: "rates of far queues",
        flow_priorities.EXP_TYPE_SET_PRIORITIES: "priorities of flows",
        port_mode.EXP_TYPE_PORT_MODE: "modes of ports",
        queue_law.EXP_TYPE_SET_QUEUE_LAW: "a queue law",
        recovery.EXP_TYPE_SET_RECOVERY: "recovery",
        tenants.EXP_TYPE_SET_TENANTS: "a table of tenants",
        window_law.EXP_TYPE_SET_LAW: "a window law",
    }.items()
}
_OURS = (
    congestion.ERRORS
    | window_law.ERRORS
    | recovery.ERRORS
    | port_mode.ERRORS
    | far_queues.ERRORS
    | tenants.ERRORS
)


def described(message: Any) -> str:
    """An error message (Ryu's ``OFPErrorMsg``) as text: ``a multipart request (BAD_REQUEST, BAD_PORT): the
    port does not exist``. The refused request is known from its first bytes, which the error message
    contains.
    """
    data = bytes(message.data or b"")
    request = "a message"
    if len(data) >= ofp.OFP_HEADER_SIZE:
        request = _REQUESTS.get(data[1], f"a message of type {data[1]}")
        if data[1] == ofp.OFPT_EXPERIMENTER:
            request = _OF_OURS.get(data[8:16], request)
    kind = _KINDS.get(message.type, f"error type {message.type}")
    if message.type == ofp.OFPET_EXPERIMENTER:
        why = quoted_law.reason(message, _OURS)
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
