"""How Ryu decodes experimenter multipart replies, with the patch of fairq_ryu."""

from __future__ import annotations

import struct

import pytest
from ryu.ofproto import ofproto_parser
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.ryu_compat import experimenter_multipart
from tests.support.fakes import FakeDatapath

experimenter_multipart.register()


def reply(data: bytes, flags: int = 0) -> bytes:
    size = 16 + 8 + len(data)
    header = struct.pack("!BBHI", ofp.OFP_VERSION, ofp.OFPT_MULTIPART_REPLY, size, 77)
    return header + struct.pack("!HH4xII", ofp.OFPMP_EXPERIMENTER, flags, 0x0002FA17, 3) + data


def read(message: bytes):
    datapath = FakeDatapath(1)
    return ofproto_parser.msg(datapath, *struct.unpack_from("!BBHI", message), message)


@pytest.mark.parametrize("size", [0, 8, 16, 1000, 60_000])
def test_all_of_a_reply_is_its_body(size):
    data = bytes(place % 251 for place in range(size))
    message = read(reply(data, ofp.OFPMPF_REPLY_MORE))
    assert (message.body.experimenter, message.body.exp_type, message.body.data) == (0x0002FA17, 3, data)
    assert (message.flags, message.xid) == (ofp.OFPMPF_REPLY_MORE, 77)


def test_a_long_reply_is_one_entry(monkeypatch):
    """Ryu's own parser makes 3,750 of this one."""
    made = []
    parse = experimenter_multipart.WholeBody.parser
    monkeypatch.setattr(
        experimenter_multipart.WholeBody,
        "parser",
        lambda *where: made.append(where) or parse(*where),
        raising=True,
    )
    assert read(reply(bytes(60_000))).body.data == bytes(60_000)
    assert len(made) == 1
