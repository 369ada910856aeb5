"""The checks of captured ACKs, and the frames of the flood; the bytes are built here as the kernel builds
them.
"""

import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.experiments.measure import acks, capture
from fairq_ryu.experiments.traffic import syns
from fairq_ryu.packet import checksum

FLOW, OTHER = b"\x0a\0\0\x02\x0a\0\0\x01\x13\x89\x9c\x40", b"\x0a\0\0\x03\x0a\0\0\x01\x13\x89\x9c\x40"


def ack(at, number, flow=FLOW, sound=True):
    return acks.Segment(at, flow, number, sound)


def test_acks_that_the_receiver_has_sent_are_accepted():
    sent = [ack(10, 100), ack(20, 300), ack(30, 200)]
    arrived = [ack(15, 100), ack(25, 300), ack(26, 300), ack(35, 250)]
    assert acks.check([sent], [arrived]) == acks.Findings(4, 0, 0)


def test_an_ack_before_its_receiver_sent_one_that_far_is_beyond():
    assert acks.check([[ack(10, 100), ack(20, 300)]], [[ack(15, 101), ack(19, 300)]]).beyond == 2


def test_an_ack_of_a_flow_that_no_receiver_has_is_beyond():
    assert acks.check([[ack(10, 100)]], [[ack(15, 50, OTHER)]]).beyond == 1


def test_numbers_wrap():
    top = 2**32
    sent = [[ack(1, top - 100), ack(3, 50)]]
    assert acks.check(sent, [[ack(2, top - 100), ack(4, 50), ack(5, top - 200)]]).beyond == 0
    assert acks.check(sent, [[ack(2, 50)]]).beyond == 1


def test_segments_without_ack_are_judged_by_their_checksum_alone():
    assert acks.check([], [[ack(1, None, sound=False), ack(2, None)]]) == acks.Findings(0, 0, 1)


def test_hosts_are_merged_by_time():
    sent = [[ack(10, 100), ack(30, 900)], [ack(20, 500, OTHER)]]
    arrived = [[ack(11, 100), ack(31, 900)], [ack(21, 500, OTHER), ack(22, 501, OTHER)]]
    assert acks.check(sent, arrived) == acks.Findings(4, 1, 0)


def test_frames_in_reverse_order_in_a_ring_are_sorted():
    """Two processors have sent at once; the later ACK was recorded first."""
    sent = [[ack(10, 100), ack(31, 500, OTHER), ack(20, 900)]]
    assert acks.check(sent, [[ack(25, 900), ack(32, 500, OTHER)]]) == acks.Findings(2, 0, 0)
    assert acks.check(sent, [[ack(32, 500, OTHER), ack(19, 900)]]) == acks.Findings(2, 1, 0)


MACS = (b"\2\0\0\0\0\1", b"\2\0\0\0\0\2")
addresses = st.integers(1, 2**32 - 2).map(lambda number: socket.inet_ntoa(struct.pack("!I", number)))


@given(addresses, addresses, st.integers(1, 65535), st.integers(1, 65535), st.integers(0, 2**32 - 1))
def test_syns_are_whole(source, target, sport, dport, seq):
    frame = syns.syn(MACS, source, sport, target, dport, seq)
    assert frame[:14] == MACS[1] + MACS[0] + b"\x08\0"
    assert checksum.internet_checksum(frame[14:34]) == 0
    read = acks.segment(5, frame)
    assert read.sound and read.at == 5 and read.ack is None
    assert read.flow == socket.inet_aton(source) + socket.inet_aton(target) + struct.pack("!HH", sport, dport)
    assert frame[47] == 2 and struct.unpack_from("!I", frame, 38)[0] == seq


@given(st.binary(min_size=0, max_size=61), st.integers(0, 10**6), st.integers(0, 7))
def test_a_wrong_bit_is_a_wrong_checksum(padding, place, bit):
    frame = bytearray(syns.syn(MACS, "10.0.0.1", 1, "10.0.0.2", 2, 3))
    at = 34 + place % (len(frame) - 34)
    frame[at] ^= 1 << bit
    # padding of short frames is no part of the packet
    assert not acks.segment(0, bytes(frame) + padding).sound


@given(st.integers(0, 65535))
def test_a_checksum_that_is_left_to_the_card_is_that_of_the_pseudo_header(other):
    frame = bytearray(syns.syn(MACS, "10.0.0.1", 1, "10.0.0.2", 2, 3))
    whole = bytes(frame[50:52])
    pseudo = checksum.ones_complement_sum(bytes(frame[26:34]) + struct.pack("!HH", 6, len(frame) - 34))
    struct.pack_into("!H", frame, 50, pseudo)
    assert acks.segment(0, bytes(frame), unfinished=True).sound
    assert not acks.segment(0, bytes(frame)).sound
    struct.pack_into("!H", frame, 50, other)
    sound = acks.segment(0, bytes(frame), unfinished=True).sound
    assert sound == (other == pseudo or bytes(frame[50:52]) == whole)


def test_an_ack_is_read_with_its_number():
    frame = bytearray(syns.syn(MACS, "10.0.0.1", 1, "10.0.0.2", 2, 3))
    struct.pack_into("!I", frame, 42, 77)
    frame[47] = 0x10
    assert acks.segment(0, bytes(frame)).ack == 77


def test_spare_addresses_are_the_last_of_the_network():
    assert syns.spare_addresses("10.0.0.9/8", 3) == ["10.255.255.254", "10.255.255.253", "10.255.255.252"]


def block(*frames):
    """A block of TPACKET_V3 as the kernel delivers it."""
    body = b""
    for number, (at, frame, unfinished) in enumerate(frames):
        status = 8 if unfinished else 0
        mac = 80
        step = -(-(mac + len(frame)) // 8) * 8
        last = number == len(frames) - 1
        head = struct.pack(
            "=IIIIIIHH", 0 if last else step, at // 10**9, at % 10**9, len(frame), len(frame), status, mac, 0
        )
        body += (head.ljust(mac, b"\0") + frame).ljust(step, b"\0")
    return struct.pack("=IIIIIIQ", 1, 0, 1, len(frames), 48, 48 + len(body), 1).ljust(48, b"\0") + body


def test_blocks_are_read_in_order():
    frames = [
        (3 * 10**9 + 7, b"first", False),
        (4 * 10**9, b"a second one", True),
        (4 * 10**9 + 1, b"x" * 100, False),
    ]
    assert list(capture.caught(block(*frames[:2]) + block() + block(frames[2]))) == frames
    assert list(capture.caught(b"")) == []


@pytest.mark.parametrize("operation", [1, 2])
def test_arp_frames_have_their_fields_where_they_belong(operation):
    frame = syns.arp(operation, MACS[0], "10.0.0.1", MACS[1], "10.0.0.2")
    assert len(frame) == 42 and frame[12:14] == b"\x08\x06" and frame[21] == operation
    assert (frame[22:28], frame[28:32]) == (MACS[0], b"\x0a\0\0\1")
    assert frame[32:38] == (bytes(6) if operation == 1 else MACS[1])
    assert frame[38:] == b"\x0a\0\0\2"
