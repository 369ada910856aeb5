"""Rules for copies of SYN, FIN and RST on the wire, and the copies themselves.

The refused messages are built from numbers here, so that the decoder is not checked against itself. Types and
codes are those of OpenFlow 1.3.5, section 7.4.4, by Ryu's names.
"""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.channel import dropped_packet, segment_copies
from fairq_ryu.channel.flow_match import decode_match
from fairq_ryu.channel.flowmod_decoder import decode_flow_mod
from fairq_ryu.channel.refusal import OpenFlowError
from fairq_ryu.channel.segment_copies import CopyAction, SegmentCopy, SegmentMatch
from fairq_ryu.openflow import pipeline
from tests.support.fakes import DATAPATH, ryu_decode, wire

ADD, MODIFY, MODIFY_STRICT, DELETE, DELETE_STRICT = range(5)
SYN, FIN, RST = 2, 1, 4
CONTROLLER = 0xFFFFFFFD


# Bytes by hand


def field(number: int, value: bytes, class_: int = 0x8000, mask: int = 0) -> bytes:
    """An OXM TLV."""
    return struct.pack("!HBB", class_, number << 1 | mask, len(value)) + value


def flags(
    value: int = SYN, mask: int | None = SYN, experimenter: int = 0x4F4E4600, number: int = 42
) -> bytes:
    """The ONF's field of TCP flags."""
    body = struct.pack("!IH", experimenter, value)
    if mask is None:
        return field(number, body, 0xFFFF)
    return field(number, body + struct.pack("!H", mask), 0xFFFF, 1)


def output(port: int = CONTROLLER, max_len: int = 192, size: int = 16) -> bytes:
    """An output action."""
    return struct.pack("!HHIH", 0, size, port, max_len) + bytes(size - 10)


def rule(match: bytes, actions: bytes, command: int = ADD, lease: int = 2) -> bytes:
    """A whole FlowMod with apply_actions."""
    size = 4 + len(match)
    body = struct.pack("!QQBBHHHIIIHxx", 7, 0, 0, command, 0, lease, 9, 2**32 - 1, 2**32 - 1, 2**32 - 1, 0)
    body += struct.pack("!HH", 1, size) + match + bytes(-size % 8)
    body += struct.pack("!HH4x", 4, 8 + len(actions)) + actions
    return struct.pack("!BBHI", 4, 14, 8 + len(body), 1) + body


ETH_IP, ETH_IPV6, TCP = field(5, b"\x08\x00"), field(5, b"\x86\xdd"), field(10, b"\x06")
IN_PORT = field(0, struct.pack("!I", 3))
TUPLE = ETH_IP + TCP + field(11, bytes(4)) + field(12, bytes(4)) + field(13, bytes(2)) + field(14, bytes(2))
MATCH = ETH_IP + TCP + flags()
SET_WINDOW = struct.pack("!HHHBBII", 25, 16, 0xFFFF, 1 << 1, 8, 0x0002FA17, 3000)


def refusal(message: bytes) -> tuple[int, str]:
    """Type, and name of the code."""
    with pytest.raises(OpenFlowError) as caught:
        decode_flow_mod(message)
    names = {2: "OFPBAC_", 3: "OFPBIC_", 4: "OFPBMC_", 5: "OFPFMFC_"}
    prefix = names[caught.value.type]
    (name,) = [
        name.removeprefix(prefix)
        for name, code in vars(ofp).items()
        if name.startswith(prefix) and code == caught.value.code
    ]
    return caught.value.type, name


# Accepted rules


@pytest.mark.parametrize("flag", [SYN, FIN, RST])
@pytest.mark.parametrize(("eth", "number"), [(ETH_IP, 0x0800), (ETH_IPV6, 0x86DD)])
def test_a_rule_made_by_hand(flag, eth, number):
    decoded = decode_flow_mod(rule(eth + TCP + flags(flag, flag), output(max_len=128)))
    assert (decoded.command, decoded.cookie, decoded.hard_timeout, decoded.priority) == (ADD, 7, 2, 9)
    assert (decoded.window, decoded.copy) == (None, CopyAction(128))
    assert segment_copies.segment_match(decoded.match) == SegmentMatch(number, flag)


def test_the_order_of_the_fields_does_not_matter():
    decoded = decode_flow_mod(rule(flags() + TCP + ETH_IP, output()))
    assert segment_copies.segment_match(decoded.match) == SegmentMatch(0x0800, SYN)


def test_a_modification_needs_neither_a_whole_match_nor_a_lease():
    decoded = decode_flow_mod(rule(ETH_IP, output(max_len=64), MODIFY, lease=0))
    assert (decoded.match, decoded.copy) == ({"eth_type": 0x0800}, CopyAction(64))


def test_the_controllers_requests_are_decoded():
    messages = [decode_flow_mod(wire(each)) for each in segment_copies.requests(DATAPATH, 5)]
    found = [segment_copies.segment_match(each.match) for each in messages]
    assert sorted(found) == [(eth, flag) for eth in (0x0800, 0x86DD) for flag in (FIN, SYN, RST)]
    for each in messages:
        assert (each.command, each.hard_timeout, each.flags) == (ADD, 5, 0)
        assert (each.cookie, each.copy) == (segment_copies.COOKIE_COPY, CopyAction(pipeline.COPY_BYTES))


def test_the_controllers_withdrawals_are_decoded():
    messages = [decode_flow_mod(wire(each)) for each in segment_copies.withdrawals(DATAPATH)]
    asked = [decode_flow_mod(wire(each)).match for each in segment_copies.requests(DATAPATH, 5)]
    assert [each.match for each in messages] == asked
    for each in messages:
        assert (each.command, each.cookie_mask, each.out_port) == (DELETE_STRICT, 0, ofp.OFPP_ANY)


@pytest.mark.parametrize("target", [SegmentMatch(0x0800, SYN), SegmentMatch(0x86DD, RST)])
def test_the_match_of_a_rule_as_ryu_writes_it(target):
    data = bytearray()
    segment_copies.ryu_match(target).serialize(data, 0)
    fields, end = decode_match(bytes(data), 0)
    assert (segment_copies.segment_match(fields), end) == (target, len(data))
    assert fields == segment_copies.match_fields(target)


def test_a_rule_of_the_bridges_pipeline_is_decoded():
    """The same field, as the controller has always written it."""
    match = parser.OFPMatch(eth_type=0x0800, ip_proto=6, tcp_flags=(SYN, SYN))
    data = bytearray()
    match.serialize(data, 0)
    fields = "80000a020800" + "8000140106" + "ffff55084f4e460000020002"
    assert bytes(data).hex() == "0001001b" + fields + "00" * 5
    assert decode_match(bytes(data), 0)[0] == segment_copies.match_fields(SegmentMatch(0x0800, SYN))


# Refused rules

MATCHES = {
    "no mask": (ETH_IP + TCP + flags(mask=None), "BAD_MASK"),
    "two flags": (ETH_IP + TCP + flags(SYN | RST, SYN | RST), "BAD_MASK"),
    "a SYN without ACK": (ETH_IP + TCP + flags(SYN, SYN | 0x10), "BAD_MASK"),
    "ACK": (ETH_IP + TCP + flags(0x10, 0x10), "BAD_MASK"),
    "no flag": (ETH_IP + TCP + flags(0, 0), "BAD_MASK"),
    "without SYN": (ETH_IP + TCP + flags(0, SYN), "BAD_VALUE"),
    "flags outside the mask": (ETH_IP + TCP + flags(SYN | FIN, SYN), "BAD_WILDCARDS"),
    "too long": (ETH_IP + TCP + field(42, bytes.fromhex("4f4e4600000200020000"), 0xFFFF, 1), "BAD_LEN"),
    "too short": (ETH_IP + TCP + field(42, bytes.fromhex("4f4e46000002"), 0xFFFF, 1), "BAD_LEN"),
    "too short without a mask": (ETH_IP + TCP + field(42, bytes.fromhex("4f4e4600"), 0xFFFF), "BAD_LEN"),
    "no experimenter": (ETH_IP + TCP + field(42, b"ONF", 0xFFFF, 1), "BAD_LEN"),
    "no value": (ETH_IP + TCP + field(42, b"", 0xFFFF, 1), "BAD_LEN"),
    "another experimenter": (ETH_IP + TCP + flags(experimenter=0x00002320), "BAD_FIELD"),
    "ours": (ETH_IP + TCP + flags(experimenter=0x0002FA17), "BAD_FIELD"),
    "another field": (ETH_IP + TCP + flags(number=43), "BAD_FIELD"),
    "twice": (ETH_IP + TCP + flags() + flags(FIN, FIN), "DUP_FIELD"),
    "without ip_proto": (ETH_IP + flags(), "BAD_PREREQ"),
    "alone": (flags(), "BAD_PREREQ"),
    "of UDP": (ETH_IP + field(10, b"\x11") + flags(), "BAD_PREREQ"),
    "of ARP": (field(5, b"\x08\x06") + TCP + flags(), "BAD_VALUE"),
    "at a port": (IN_PORT + MATCH, "BAD_WILDCARDS"),
    "of a flow": (TUPLE + flags(), "BAD_WILDCARDS"),
    "of everything": (b"", "BAD_WILDCARDS"),
}


@pytest.mark.parametrize(("given", "code"), MATCHES.values(), ids=MATCHES)
def test_wrong_match(given, code):
    assert refusal(rule(given, output())) == (4, code)


ACTIONS = {
    "to a port": (output(3), "BAD_OUT_PORT"),
    "to all": (output(0xFFFFFFFC), "BAD_OUT_PORT"),
    "of the whole packet": (output(max_len=0xFFFF), "BAD_ARGUMENT"),
    "longer than allowed": (output(max_len=0xFFE6), "BAD_ARGUMENT"),
    "too long an action": (output(size=24), "BAD_LEN"),
    "too short an action": (struct.pack("!HHI", 0, 8, CONTROLLER), "BAD_LEN"),
    "twice": (output() * 2, "TOO_MANY"),
    "and a window": (output() + SET_WINDOW, "TOO_MANY"),
    "a window": (SET_WINDOW, "MATCH_INCONSISTENT"),
    "none": (b"", "BAD_TYPE"),
    "a group": (struct.pack("!HHI", 22, 8, 1), "BAD_TYPE"),
}


@pytest.mark.parametrize(("given", "code"), ACTIONS.values(), ids=ACTIONS)
def test_wrong_action(given, code):
    assert refusal(rule(MATCH, given)) == (2, code)


@pytest.mark.parametrize("match", [IN_PORT, TUPLE])
def test_only_rules_with_tcp_flags_output(match):
    assert refusal(rule(match, output())) == (2, "MATCH_INCONSISTENT")


def test_a_rule_needs_a_lease():
    assert refusal(rule(MATCH, output(), lease=0)) == (5, "BAD_TIMEOUT")


@pytest.mark.parametrize("max_len", [0, 192, 0xFFE5])
def test_any_length_that_openflow_allows(max_len):
    assert decode_flow_mod(rule(MATCH, output(max_len=max_len))).copy == CopyAction(max_len)


@given(st.binary(max_size=12), st.integers(0, 255))
def test_any_bytes_of_the_field_are_one_flag_or_refused(value, field_mask):
    try:
        flag = segment_copies.decode_flag(field_mask, value)
    except OpenFlowError as error:
        assert error.type == 4
    else:
        assert value == struct.pack("!IHH", 0x4F4E4600, flag, flag) and flag in (SYN, FIN, RST)


# Copies


@given(st.integers(1, 0xFFFFFF00), st.binary(max_size=192), st.integers(0, 60_000))
def test_copies_arrive_as_they_were_sent(port, frame, rest):
    copy = SegmentCopy(port, frame, len(frame) + rest)
    message = ryu_decode(segment_copies.encode(copy))
    assert segment_copies.decode(message) == copy
    assert (message.buffer_id, message.reason, message.table_id) == (ofp.OFP_NO_BUFFER, ofp.OFPR_ACTION, 0)
    assert dropped_packet.decode(message) is None and not pipeline.is_ours(message.cookie)


def test_the_length_of_a_very_long_segment():
    message = ryu_decode(segment_copies.encode(SegmentCopy(1, b"x" * 60, 70_000)))
    assert message.total_len == 0xFFFF


def test_packet_ins_of_others_are_no_copies():
    copy = SegmentCopy(3, b"frame", 5)
    assert segment_copies.decode(ryu_decode(segment_copies.encode(copy, cookie=7))) is None
    dropped: Any = ryu_decode(dropped_packet.encode(dropped_packet.DroppedPacket(3, b"frame", 5)))
    assert segment_copies.decode(dropped) is None
    message = ryu_decode(segment_copies.encode(copy))
    message.match = parser.OFPMatch()
    assert segment_copies.decode(message) is None
