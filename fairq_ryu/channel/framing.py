"""The headers around the bodies of the channel's messages: OpenFlow's and the experimenter's; and the
FlowMod that removes rules.

The controller's end creates Ryu messages for a datapath, which Ryu numbers and encodes. The agent's end
creates bytes, because Ryu only decodes what switches send.
"""

from __future__ import annotations

import struct
from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.channel.oxm import EXPERIMENTER_ID

HEADER = struct.Struct(ofp.OFP_HEADER_PACK_STR)
EXPERIMENTER = struct.Struct("!II")


def request(datapath: Any, number: int, body: bytes) -> Any:
    """A multipart request to an agent."""
    return parser.OFPExperimenterStatsRequest(datapath, 0, EXPERIMENTER_ID, number, body)


def command(datapath: Any, number: int, body: bytes) -> Any:
    """An experimenter message to an agent, which answers it only with an error."""
    return parser.OFPExperimenter(datapath, EXPERIMENTER_ID, number, body)


def deletion(datapath: Any, match: Any, strict: bool = False, **fields: int) -> Any:
    """The FlowMod that removes the rules with a match; ``strict``: only the one with exactly this match and
    priority. ``fields``: others of the FlowMod.
    """
    command = ofp.OFPFC_DELETE_STRICT if strict else ofp.OFPFC_DELETE
    to_any = {"out_port": ofp.OFPP_ANY, "out_group": ofp.OFPG_ANY}
    return parser.OFPFlowMod(datapath, command=command, match=match, **to_any, **fields)


def message(kind: int, xid: int, body: bytes = b"") -> bytes:
    """A whole OpenFlow message from an agent."""
    return HEADER.pack(ofp.OFP_VERSION, kind, HEADER.size + len(body), xid) + body


def notification(number: int, body: bytes) -> bytes:
    """An experimenter message that an agent sends without a request."""
    return message(ofp.OFPT_EXPERIMENTER, 0, EXPERIMENTER.pack(EXPERIMENTER_ID, number) + body)


def packet_in(cookie: int, port: int, frame: bytes, total_len: int) -> bytes:
    """A whole PACKET_IN from an agent: a frame of ``total_len`` bytes, or its beginning, at a port.
    ``cookie``: that of the rule, or of what the message is about.
    """
    head = struct.pack(
        ofp.OFP_PACKET_IN_PACK_STR, ofp.OFP_NO_BUFFER, min(total_len, 0xFFFF), ofp.OFPR_ACTION, 0, cookie
    )
    in_port = serialized(parser.OFPMatch(in_port=port))
    return message(ofp.OFPT_PACKET_IN, 0, head + in_port + bytes(2) + frame)


def quotes(error: Any, kind: int, number: int) -> bool:
    """Whether an error message (Ryu's ``OFPErrorMsg``) quotes an experimenter message (``kind``
    OFPT_EXPERIMENTER) or a multipart request of ours with this number: it was refused, for any reason.
    """
    data = bytes(error.data or b"")
    start = ofp.OFP_MULTIPART_REQUEST_SIZE if kind == ofp.OFPT_MULTIPART_REQUEST else HEADER.size
    return (
        len(data) >= start + EXPERIMENTER.size
        and data[1] == kind
        and EXPERIMENTER.unpack_from(data, start) == (EXPERIMENTER_ID, number)
    )


def serialized(part: Any) -> bytes:
    """A match or an instruction of Ryu's, as bytes."""
    buffer = bytearray()
    part.serialize(buffer, 0)
    return bytes(buffer)
