"""Which law an error of an agent is about, and why: errors quote the request that they answer.

For window laws (:mod:`.window_law`) and queue laws (:mod:`.queue_law`), whose requests differ in their
numbers only. The number of a law is that of its port, so a rule of a port names it too.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

from fairq_ryu.channel import framing, oxm
from fairq_ryu.channel.protocol import ofp

ALL_LAWS = 0xFFFFFFFF
UNUSABLE = "its kernel does not run the law (see its log)"
UNUSABLE_LAW = {ofp.OFPT_EXPERIMENTER: (ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_EPERM)}
"""type and code of the error of such an agent, by the type of the request"""

# Where the table and the in_port of a rule for a port are in its FlowMod: in_port is the first field of the
# match.
_TABLE = ofp.OFP_HEADER_SIZE + 16
_IN_PORT = ofp.OFP_HEADER_SIZE + 40 + 4
_IN_PORT_HEAD = struct.pack("!HBB", ofp.OFPXMC_OPENFLOW_BASIC, ofp.OFPXMT_OFB_IN_PORT << 1, 4)
# An agent quotes at most so much of a request, bytes (ONF OpenFlow 1.3.5, section 7.5.4).
_MOST_QUOTED = 64


class LawRequests(NamedTuple):
    """The requests about one kind of laws: the message that sets one and the multipart that asks for states
    (both ``exp_type``), and the table of the rules that refer to them. ``unusable``: as
    :data:`UNUSABLE_LAW`.
    """

    sets: int
    asks: int
    table: int
    unusable: Mapping[int, tuple[int, int]] = UNUSABLE_LAW

    def quoted(self, data: bytes) -> int | None:
        """The law that a quoted request is about; 0: all. None: it is no such request."""
        if len(data) < ofp.OFP_HEADER_SIZE:
            return None
        kind = data[1]
        if kind == ofp.OFPT_FLOW_MOD:
            port = data[_IN_PORT + 4 : _IN_PORT + 8]
            head = data[_IN_PORT : _IN_PORT + 4]
            ours = len(port) == 4 and head == _IN_PORT_HEAD and data[_TABLE] == self.table
            return int.from_bytes(port, "big") if ours else None
        if kind == ofp.OFPT_MULTIPART_REQUEST:
            start, number, offset = ofp.OFP_MULTIPART_REQUEST_SIZE, self.asks, 0
        elif kind == ofp.OFPT_EXPERIMENTER:
            start, number, offset = ofp.OFP_HEADER_SIZE, self.sets, 4
        else:
            return None
        body = start + framing.EXPERIMENTER.size
        if len(data) < body + 8:
            return None
        if framing.EXPERIMENTER.unpack_from(data, start) != (oxm.EXPERIMENTER_ID, number):
            return None
        law = int.from_bytes(data[body + offset : body + offset + 4], "big")
        return 0 if law == ALL_LAWS else law


def reason(error: Any, known: Mapping[int, str]) -> str | None:
    """Why an agent refuses a law, from an experimenter error (Ryu's ``OFPErrorMsg``): the text behind the
    quoted request, or that of its code in ``known``. None: it is an error of another kind.
    """
    if error.experimenter != oxm.EXPERIMENTER_ID or error.exp_type not in known:
        return None
    data = bytes(error.data or b"")
    # The length of the quoted request is in its header.
    quoted = min(int.from_bytes(data[2:4], "big"), _MOST_QUOTED)
    return data[quoted:].decode(errors="replace") or known[error.exp_type]
