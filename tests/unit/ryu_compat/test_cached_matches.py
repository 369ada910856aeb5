"""Short matches are decoded as by Ryu, and each message has its own object."""

from __future__ import annotations

import struct

import pytest
from ryu.ofproto.ofproto_v1_3_parser import OFPMatch

from fairq_ryu.ryu_compat import cached_matches

cached_matches.register()

MATCHES = [
    {},
    {"in_port": 7},
    {"in_port": 0xFFFFFFFE, "metadata": 5},
    {"in_port": 1, "tunnel_id": 9},
    {"eth_type": 0x800, "ip_proto": 6, "ipv4_src": "10.0.0.1", "ipv4_dst": "10.0.0.2", "tcp_dst": 80},
]


def packed(fields):
    buffer = bytearray()
    OFPMatch(**fields).serialize(buffer, 0)
    return bytes(buffer)


@pytest.mark.parametrize("fields", MATCHES)
@pytest.mark.parametrize("before", [b"", b"x" * 24])
def test_a_match_equals_the_one_of_ryu(fields, before):
    data = before + packed(fields) + b"behind"
    for _ in range(2):
        found, plain = OFPMatch.parser(data, len(before)), cached_matches._plain(data, len(before))
        assert dict(found.items()) == dict(plain.items()) == fields
        assert (found.type, found.length) == (plain.type, plain.length)
        assert [vars(each) for each in found.fields] == [vars(each) for each in plain.fields]
        assert str(found) == str(plain) and found.to_jsondict() == plain.to_jsondict()


def test_each_message_has_its_own():
    data = packed({"in_port": 7})
    one, other = OFPMatch.parser(data, 0), OFPMatch.parser(data, 0)
    assert one is not other
    one.length = 99
    assert other.length == OFPMatch.parser(data, 0).length == 12


@pytest.mark.parametrize("data", [b"", b"\0\1", b"\0\1\0", struct.pack("!HH", 1, 12) + b"\x80\0\0\4"])
def test_a_truncated_match_fails_as_in_ryu(data):
    def outcome(parser):
        try:
            return parser(data, 0)
        except Exception as error:
            return type(error)

    assert outcome(OFPMatch.parser) == outcome(cached_matches._plain)
