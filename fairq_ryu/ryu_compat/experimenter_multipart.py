"""Experimenter multipart replies, decoded in time that grows with their length, not with its square.

Ryu's parser takes the body of such a reply (OpenFlow 1.3.5, section 7.3.5.16) for a list of entries of 16
bytes, decodes each with a copy of all bytes that follow, and keeps the first. For 60,000 bytes of flow
records that takes 20 ms, in which the controller does nothing else.
"""

from __future__ import annotations

import struct
from typing import Any

from ryu.ofproto import ofproto_v1_3, ofproto_v1_3_parser

_HEADER = struct.Struct(ofproto_v1_3.OFP_EXPERIMENTER_MULTIPART_HEADER_PACK_STR)


class WholeBody(ofproto_v1_3_parser.OFPExperimenterMultipart):
    """``experimenter``, ``exp_type``, ``data``: the whole body as one entry."""

    @classmethod
    def parser(cls, buf: bytes, offset: int) -> Any:
        """The body that begins at ``offset`` and ends with the message."""
        experimenter, exp_type = _HEADER.unpack_from(buf, offset)
        body = cls(experimenter, exp_type, buf[offset + _HEADER.size :])
        body.length = len(buf) - offset
        return body


def register() -> None:
    """Make Ryu use :class:`WholeBody`. Other applications get the same objects as before."""
    ofproto_v1_3_parser.OFPExperimenterStatsReply.cls_stats_body_cls = WholeBody
