"""Messages that must not reach Ryu's decoder: parts shorter than their own header, or longer than their
parent.
"""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.channel import framing, wellformed
from fairq_ryu.channel.layouts import Malformed
from fairq_ryu.channel.wellformed import Phase
from tests.fuzz import messages
from tests.fuzz.messages import message, reply
from tests.support.endless_messages import ENDLESS, NICIRA, apply, entry
from tests.support.fakes import DATAPATH

REAL = messages.from_switch()


def check(data: bytes, phase: Phase = Phase.JOINED) -> None:
    version, kind, length, _ = framing.HEADER.unpack_from(data)
    wellformed.check_header(version, kind, length, phase)
    wellformed.check(data, phase)


def refusal(data: bytes, phase: Phase = Phase.JOINED) -> str:
    with pytest.raises(Malformed) as caught:
        check(data, phase)
    return str(caught.value)


@pytest.mark.parametrize("name", sorted(REAL.keys() - {"hello-1.0"}))
def test_real_messages_pass_and_ryu_decodes_them(name):
    data = REAL[name]
    check(data)
    decoded = parser.msg_parser(DATAPATH, *framing.HEADER.unpack_from(data), data)
    assert decoded.msg_type == data[1]


@pytest.mark.parametrize("name", ENDLESS)
def test_messages_that_make_ryu_loop_are_refused(name):
    assert "length 0, less than" in refusal(ENDLESS[name]) or name == "queue-property-unknown"


BROKEN = {
    "header": (struct.pack("!BBHI", 4, ofp.OFPT_ECHO_REPLY, 7, 0), "length 7 in the header"),
    "a controller's type": (message(ofp.OFPT_FLOW_MOD, bytes(48)), "a switch sends no such message"),
    "unknown type": (message(99), "a switch sends no such message"),
    "another version": (message(ofp.OFPT_BARRIER_REPLY, version=5), "version 0x05 instead of 0x04"),
    "error": (message(ofp.OFPT_ERROR, bytes(3)), "11 bytes instead of at least 12"),
    "error without its request": (
        message(ofp.OFPT_ERROR, b"\x00\x01\x00\x00"),
        "12 bytes instead of at least 20",
    ),
    "experimenter": (message(ofp.OFPT_EXPERIMENTER, bytes(7)), "15 bytes"),
    "features": (message(ofp.OFPT_FEATURES_REPLY, bytes(23)), "31 bytes"),
    "port status": (message(ofp.OFPT_PORT_STATUS, bytes(71)), "79 bytes"),
    "why a port": (message(ofp.OFPT_PORT_STATUS, b"\3" + bytes(71)), "reason 3 is not known"),
    "packet-in": (message(ofp.OFPT_PACKET_IN, bytes(16)), "24 bytes"),
    "packet-in without padding": (
        message(ofp.OFPT_PACKET_IN, bytes(16) + struct.pack("!HHI", 1, 4, 0) + b"\0"),
        "33 bytes instead of at least 34",
    ),
    "a long match": (
        message(ofp.OFPT_PACKET_IN, bytes(16) + struct.pack("!HHI", 1, 100, 0) + bytes(2)),
        "says length 104, but there are 10 bytes",
    ),
    "an old match": (
        message(ofp.OFPT_PACKET_IN, bytes(16) + struct.pack("!HHI", 0, 4, 0) + bytes(2)),
        "has type 0, not 1",
    ),
    "a match field of nothing": (
        message(ofp.OFPT_PACKET_IN, bytes(16) + struct.pack("!HHI", 1, 8, 0x80000000) + bytes(2)),
        "says length 4, less than 5",
    ),
    "a match field too long": (
        message(ofp.OFPT_PACKET_IN, bytes(16) + struct.pack("!HHI", 1, 8, 0x80000004) + bytes(2)),
        "says length 8, but there are 4 bytes",
    ),
    "an experimenter's field": (
        message(ofp.OFPT_PACKET_IN, bytes(16) + struct.pack("!HHII4x", 1, 12, 0xFFFF0004, 5) + bytes(2)),
        "says length 8, less than 9",
    ),
    "multipart": (message(ofp.OFPT_MULTIPART_REPLY, bytes(7)), "15 bytes"),
    "multipart type": (reply(14), "multipart type 14 is not known"),
    "two descriptions": (reply(ofp.OFPMP_DESC, bytes(2 * 1056)), "2112 bytes instead of 1056"),
    "no aggregate": (reply(ofp.OFPMP_AGGREGATE), "0 bytes instead of 24"),
    "ports": (reply(ofp.OFPMP_PORT_DESC, bytes(65)), "is no multiple of 64"),
    "a flow beyond the message": (reply(ofp.OFPMP_FLOW, entry(b"", 57)), "says length 57, but there are 56"),
    "an unknown instruction": (
        reply(ofp.OFPMP_FLOW, entry(struct.pack("!HHI", 7, 8, 0))),
        "has type 7, which is not known",
    ),
    "goto of another length": (
        reply(ofp.OFPMP_FLOW, entry(struct.pack("!HH12x", 1, 16))),
        "says length 16 instead of 8",
    ),
    "an unknown action": (reply(ofp.OFPMP_FLOW, apply(struct.pack("!HHI", 10, 8, 0))), "has type 10"),
    "output of another length": (
        reply(ofp.OFPMP_FLOW, apply(struct.pack("!HHI", 0, 8, 0))),
        "says length 8 instead of 16",
    ),
    "an action beyond its instruction": (
        reply(ofp.OFPMP_FLOW, apply(struct.pack("!HHI", 22, 16, 0))),
        "says length 16, but there are 8 bytes",
    ),
    "a property for ever": (
        reply(ofp.OFPMP_TABLE_FEATURES, struct.pack("!H62xHH", 64 + 9000, 2, 9000) + bytes(8996)),
        "more than 8192",
    ),
    "a band of another length": (
        reply(ofp.OFPMP_METER_CONFIG, struct.pack("!HHIHH12x", 24, 0, 1, 1, 16)[:-4]),
        "but there are",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_malformed_messages_are_refused_with_a_reason(name):
    data, reason = BROKEN[name]
    assert reason in refusal(data)


def test_the_nesting_of_actions_is_limited():
    inner = b""
    for _ in range(4):
        inner = (
            struct.pack("!HH", 0xFFFF, 24 + len(inner))
            + NICIRA
            + struct.pack("!HHIHB3xH", 35, *[0] * 5)
            + inner
        )
    assert "actions within actions" in refusal(reply(ofp.OFPMP_FLOW, apply(inner)))


OWN = {"hello", "error", "echo-request", "echo-reply"}
LATER = {"features", "ports", "port-status", "packet-in-syn", "congestion", "flow-removed"}


@pytest.mark.parametrize("name", ["barrier", "role", "flows", "desc", "queue-config", "get-config", "tables"])
@pytest.mark.parametrize("phase", [Phase.GREETING, Phase.JOINING])
def test_answers_before_the_handshake_is_over(name, phase):
    assert "not allowed before the handshake" in refusal(REAL[name], phase)


def test_messages_that_are_allowed_before_the_handshake_is_complete():
    for name in OWN:
        check(REAL[name], Phase.GREETING)
    for name in OWN | LATER:
        check(REAL[name], Phase.JOINING)
    for name in LATER:
        assert "not allowed before the handshake" in refusal(REAL[name], Phase.GREETING)


def test_a_long_message_is_refused_by_its_header():
    wellformed.check_header(4, ofp.OFPT_ECHO_REQUEST, 1024, Phase.JOINING)
    with pytest.raises(Malformed, match="1025 bytes; 1024 are the maximum before the handshake is complete"):
        wellformed.check_header(4, ofp.OFPT_ECHO_REQUEST, 1025, Phase.JOINING)
    wellformed.check_header(4, ofp.OFPT_MULTIPART_REPLY, 65535, Phase.JOINING)
    wellformed.check_header(4, ofp.OFPT_ECHO_REQUEST, 65535, Phase.JOINED)


@pytest.mark.parametrize(
    ("hello", "offers"),
    [
        (REAL["hello"], True),
        (REAL["hello-bare"], True),
        (REAL["hello-two-elements"], True),
        (REAL["hello-1.0"], False),
        (message(0, version=6), True),
        (message(0, struct.pack("!HHI", 1, 8, 1 << 4), version=1), True),
        (message(0, struct.pack("!HHI", 1, 8, 1 << 5), version=5), False),
        # Twelve bytes and their padding: Ryu would decode the padding as an element of length 0.
        (message(0, struct.pack("!HHII4x", 1, 12, 1 << 4, 0)), True),
    ],
)
def test_hello_that_offers_openflow_1_3(hello, offers):
    wellformed.check(hello, Phase.GREETING)
    assert wellformed.offers_1_3(hello) is offers


@given(st.sampled_from(sorted(wellformed.NAMES)), st.binary(max_size=300))
def test_any_bytes_are_refused_or_accepted(kind, body):
    data = message(kind, body)
    try:
        check(data)
    except Malformed as error:
        assert str(error)
