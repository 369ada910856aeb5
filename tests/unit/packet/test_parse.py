"""Parsing frames of any sender, truncated anywhere; frames are built by Ryu's packet library."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ryu.lib.packet import arp, ethernet, ipv4, ipv6, packet, tcp, udp, vlan

from fairq_ryu.model import FlowKey
from fairq_ryu.packet import headers, parse
from fairq_ryu.packet.build import arp_reply

SRC, DST = "02:00:00:00:00:01", "02:00:00:00:00:02"
KEY4 = FlowKey("10.0.0.1", "10.0.0.2", 33000, 80)
KEY6 = FlowKey("2001:db8::1", "2001:db8::2", 33000, 80)
MSS, SCALE = tcp.TCPOptionMaximumSegmentSize(max_seg_size=1460), tcp.TCPOptionWindowScale(shift_cnt=7)
LINUX_SYN = [
    MSS,
    tcp.TCPOptionSACKPermitted(),
    tcp.TCPOptionTimestamps(ts_val=1, ts_ecr=0),
    tcp.TCPOptionNoOperation(),
    SCALE,
]


def build(*protocols: Any) -> bytes:
    frame = packet.Packet()
    for protocol in protocols:
        frame.add_protocol(protocol)
    frame.serialize()
    return bytes(frame.data)


def segment(flags: int = tcp.TCP_SYN, options: list[Any] | None = None, **more: Any) -> tcp.tcp:
    return tcp.tcp(33000, 80, seq=7, ack=9, bits=flags, option=options, **more)


def over4(*inner: Any, tags: tuple[int, ...] = (), **more: Any) -> bytes:
    return build(*ether(0x0800, tags), ipv4.ipv4(src=KEY4.src, dst=KEY4.dst, proto=6, **more), *inner)


def over6(*inner: Any, nxt: int = 6, extensions: list[Any] | None = None) -> bytes:
    return build(
        *ether(0x86DD), ipv6.ipv6(src=KEY6.src, dst=KEY6.dst, nxt=nxt, ext_hdrs=extensions or []), *inner
    )


def ether(kind: int, tags: tuple[int, ...] = ()) -> list[Any]:
    """Ethernet, and 802.1Q tags of the given VLANs."""
    kinds = [0x8100] * len(tags) + [kind]
    return [
        ethernet.ethernet(dst=DST, src=SRC, ethertype=kinds[0]),
        *(vlan.vlan(vid=vid, ethertype=after) for vid, after in zip(tags, kinds[1:], strict=True)),
    ]


def test_a_syn_of_linux():
    frame = parse.parse(over4(segment(options=LINUX_SYN)))
    assert frame is not None
    assert (frame.src, frame.dst, frame.tags, frame.ip) == (SRC, DST, (), KEY4.src)
    assert frame.arp is None
    found = frame.tcp
    assert found is not None
    assert (found.key, found.seq, found.ack_number) == (KEY4, 7, 9)
    assert (found.syn, found.ack, found.fin, found.rst) == (True, False, False, False)
    assert (found.mss, found.wscale) == (1460, 7)


@pytest.mark.parametrize(("flags", "data"), [(tcp.TCP_SYN, 5), (tcp.TCP_ACK, 0)])
def test_data_in_a_syn(flags, data):
    found = parse.parse(over4(segment(flags), b"hello")[:54])  # the copy is cut short
    assert found is not None and found.tcp is not None
    assert (found.payload, found.tcp.payload) == (5, data)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (tcp.TCP_SYN | tcp.TCP_ACK, {"syn", "ack"}),
        (tcp.TCP_FIN | tcp.TCP_ACK, {"fin", "ack"}),
        (tcp.TCP_RST, {"rst"}),
        (tcp.TCP_SYN | tcp.TCP_ECE | tcp.TCP_CWR, {"syn"}),  # sets up ECN (RFC 3168)
        (tcp.TCP_PSH | tcp.TCP_URG, set()),
    ],
)
def test_flags(flags, expected):
    found = parse.parse(over4(segment(flags))).tcp
    assert {name for name in ("syn", "ack", "fin", "rst") if getattr(found, name)} == expected


@pytest.mark.parametrize(
    ("options", "mss", "scale"),
    [
        ([], 0, None),
        ([MSS], 1460, None),
        ([SCALE], 0, 7),
        ([tcp.TCPOptionWindowScale(shift_cnt=0)], 0, 0),
        ([tcp.TCPOptionWindowScale(shift_cnt=200)], 0, 14),  # RFC 7323: more than 14 means 14
        ([tcp.TCPOptionNoOperation()] * 3 + [SCALE, MSS], 1460, 7),
        ([tcp.TCPOptionEndOfOptionList(), SCALE], 0, None),
    ],
)
def test_syn_options(options, mss, scale):
    found = parse.parse(over4(segment(options=options or None))).tcp
    assert (found.mss, found.wscale) == (mss, scale)


def raw_options(options: bytes, flags: int = 0x02) -> bytes:
    """A SYN with exactly these option bytes, padded with end-of-list."""
    options += b"\0" * (-len(options) % 4)
    header = bytes.fromhex("80e80050") + bytes(8) + bytes([(20 + len(options)) // 4 << 4, flags]) + bytes(6)
    return over4(header + options)


@pytest.mark.parametrize(
    ("options", "mss", "scale"),
    [
        (b"\x02\x00\x05\xb4", 0, None),  # length 0 would loop endlessly
        (b"\x02\x01\x05\xb4", 0, None),
        (b"\x02\x03\x05", 0, None),  # an MSS of one byte
        (b"\x03\x04\x07\x00", 0, None),  # a scale of two bytes
        (b"\x02\x04\x05\xb4\x03\x09\x07", 1460, None),  # longer than the options
        (b"\x01\x01\x01\x02", 0, None),  # truncated after the kind
        (b"\xfe\x04\x00\x00\x03\x03\x05", 0, 5),  # an unknown option is skipped
        (b"\x03\x03\x05\x03\x03\x06", 0, 6),
    ],
)
def test_odd_options(options, mss, scale):
    found = parse.parse(raw_options(options)).tcp
    assert (found.mss, found.wscale) == (mss, scale)


def test_options_count_in_a_syn_only():
    found = parse.parse(raw_options(b"\x02\x04\x05\xb4\x03\x03\x07\x00", flags=0x11)).tcp
    assert (found.fin, found.mss, found.wscale) == (True, 0, None)


@pytest.mark.parametrize("tags", [(), (5,), (5, 4094)])
def test_vlan_tags(tags):
    frame = parse.parse(over4(segment(), tags=tags))
    assert frame.tags == tags
    vlan = tags[0] & 0xFFF if tags else 0
    assert frame.vlan == vlan and frame.tcp.key == KEY4._replace(vlan=vlan)


@pytest.mark.parametrize(("tags", "vlan"), [((), 10), ((0,), 10), ((5,), 5)])
def test_a_frame_without_a_vlan_is_in_that_of_its_port(tags, vlan):
    frame = parse.parse(over4(segment(), tags=tags), 10)
    assert (frame.tags, frame.vlan, frame.tcp.key) == (tags, vlan, KEY4._replace(vlan=vlan))


def test_a_provider_tag_outside():
    plain = over4(segment(), tags=(5,))
    frame = parse.parse(plain[:12] + b"\x88\xa8\x00\x07" + plain[12:])
    assert frame.tags == (7, 5)
    assert frame.tcp.key == KEY4._replace(vlan=7)


def test_a_third_tag_ends_the_parsing():
    frame = parse.parse(over4(segment(), tags=(1, 2, 3)))
    assert frame.tags == (1, 2)
    assert frame.tcp is None


def test_ipv4_options_and_padding():
    assert (
        parse.parse(over4(segment(options=LINUX_SYN), header_length=6, option=b"\x94\x04\x00\x00")).tcp.wscale
        == 7
    )
    assert parse.parse(over4(segment()).ljust(64, b"\xff")).tcp.key == KEY4


def test_fragments_and_other_protocols_are_no_tcp():
    assert parse.parse(over4(segment(), offset=10)).tcp is None
    assert parse.parse(over4(segment(), flags=1)).tcp is None  # more fragments
    assert parse.parse(over4(segment(), flags=2)).tcp is not None  # do not fragment
    frame = parse.parse(build(*ether(0x0800), ipv4.ipv4(src=KEY4.src, dst=KEY4.dst, proto=17), udp.udp(1, 2)))
    assert (frame.ip, frame.tcp) == (KEY4.src, None)


def test_ipv6():
    found = parse.parse(over6(segment(options=LINUX_SYN))).tcp
    assert (found.key, found.wscale) == (KEY6, 7)
    assert parse.parse(over6(segment())).ip == KEY6.src


def test_ipv6_extension_headers():
    # Hop-by-hop options of 8 bytes, then destination options of 16 (RFC 8200, section 4.2), then TCP.
    hop_by_hop = bytes([60, 0, 1, 4, 0, 0, 0, 0])
    destination = bytes([6, 1, 1, 12, *bytes(12)])
    plain = over6(segment(options=LINUX_SYN))
    found = parse.parse(over6(hop_by_hop + destination + plain[54:], nxt=0)).tcp
    assert (found.key, found.wscale) == (KEY6, 7)


def test_ipv6_fragments_are_no_tcp():
    fragment = ipv6.fragment(nxt=6, offset=0, more=1, id_=1)
    assert parse.parse(over6(segment(), nxt=44, extensions=[fragment])).tcp is None


def test_an_endless_chain_of_extension_headers():
    data = over6(b"\x00\x00" + bytes(6), nxt=0) + (b"\x00\x00" + bytes(6)) * 200
    assert parse.parse(data).tcp is None


FRAMES = [
    over4(segment(options=LINUX_SYN), tags=(5, 6)),
    over4(segment(options=LINUX_SYN), b"data"),
    over4(segment(tcp.TCP_FIN | tcp.TCP_ACK)),
    over4(segment(), header_length=6, option=b"\x94\x04\x00\x00"),
    over6(segment(options=LINUX_SYN)),
    over6(
        segment(),
        nxt=60,
        extensions=[ipv6.dst_opts(nxt=6, data=[ipv6.option(type_=1, len_=4, data=bytes(4))])],
    ),
    build(*ether(0x0806, (5,)), arp.arp(src_mac=SRC, src_ip=KEY4.src, dst_ip=KEY4.dst)),
]


@pytest.mark.parametrize("data", FRAMES)
def test_a_truncated_frame_is_parsed_as_far_as_possible(data):
    whole = parse.parse(data)
    for length in range(len(data)):
        frame = parse.parse(data[:length])
        assert (frame is None) == (length < 14)
        if frame is None:
            continue
        assert (frame.src, frame.dst) == (SRC, DST)
        assert frame.tags == whole.tags[: len(frame.tags)]
        assert frame.ip in (None, whole.ip)
        assert frame.arp in (None, whole.arp)
        assert frame.tcp is None or frame.tcp.key == whole.tcp.key


@given(st.binary(max_size=200))
@example(b"")
@example(b"\xff" * 14)
def test_random_bytes_never_raise(data):
    parse.parse(data)


@given(st.sampled_from(FRAMES), st.lists(st.tuples(st.integers(12, 200), st.integers(0, 255)), max_size=8))
def test_frames_with_wrong_bytes_never_raise(data, changes):
    broken = bytearray(data)
    for at, value in changes:
        broken[at % len(broken)] = value
    parse.parse(bytes(broken))


@given(
    st.sampled_from(FRAMES),
    st.integers(0, 200),
    st.lists(st.tuples(st.integers(12, 80), st.integers(0, 255)), max_size=3),
    st.sampled_from([0, 7]),
)
@example(FRAMES[1], 0, [], 7)
@example(FRAMES[2], 0, [], 0)
@example(FRAMES[1], 0, [(16, 0), (17, 30)], 0)
def test_the_short_way_reads_what_the_long_way_reads(data, cut, changes, untagged):
    broken = bytearray(data)
    for at, value in changes:
        broken[at % len(broken)] = value
    frame = bytes(broken[: len(broken) - cut % 60])
    with mock.patch.object(parse, "_parse_common", lambda *_: None):
        expected = parse.parse(frame, untagged)
    assert parse.parse(frame, untagged) == expected


def test_common_frames_take_the_short_way():
    for frame in FRAMES[1:3]:
        found = parse._parse_common(frame, 0)
        assert found is not None and found.tcp.key == KEY4


@pytest.mark.parametrize("tags", [(), (5,), (5, 0x6007)])
def test_an_arp_request_and_its_answer(tags):
    request = arp.arp(opcode=arp.ARP_REQUEST, src_mac=SRC, src_ip="10.0.0.1", dst_ip="10.0.0.2")
    frame = parse.parse(build(*ether(0x0806, tags), request))
    assert frame is not None
    assert frame.arp == parse.Arp(headers.ARP_REQUEST, SRC, "10.0.0.1", "10.0.0.2")
    assert frame.ip == "10.0.0.1"
    reply = arp_reply(frame.arp, DST, tags)
    assert len(reply) >= 60
    layers = packet.Packet(reply).protocols
    assert (layers[0].src, layers[0].dst) == (DST, SRC)
    assert [(layer.pcp << 13 | layer.vid) for layer in layers if isinstance(layer, vlan.vlan)] == list(tags)
    answer = next(layer for layer in layers if isinstance(layer, arp.arp))
    assert answer.opcode == arp.ARP_REPLY
    assert (answer.src_mac, answer.src_ip) == (DST, "10.0.0.2")
    assert (answer.dst_mac, answer.dst_ip) == (SRC, "10.0.0.1")


@pytest.mark.parametrize("wrong", [{"hwtype": 6}, {"proto": 0x86DD}, {"hlen": 8}, {"plen": 16}])
def test_other_kinds_of_arp_are_ignored(wrong):
    head = {"hwtype": 1, "proto": 0x0800, "hlen": 6, "plen": 4} | wrong
    body = headers.ARP.pack(*head.values(), 1, bytes(6), bytes(4), bytes(6), bytes(4))
    frame = parse.parse(build(*ether(0x0806)) + body)
    assert (frame.arp, frame.ip) == (None, None)


# The data length of a segment by its headers: recovery needs the length of the loss.


def with_data(size: int, version: int = 4, options: list[Any] | None = None) -> bytes:
    over = over4 if version == 4 else over6
    return over(segment(tcp.TCP_ACK, options), b"x" * size)


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("size", [0, 1, 1448])
@pytest.mark.parametrize("options", [None, [tcp.TCPOptionTimestamps(ts_val=1, ts_ecr=2)]])
def test_the_data_of_a_segment(version, size, options):
    data = with_data(size, version, options)
    for padded in (data, data + b"\0" * 6):
        frame = parse.parse(padded)
        assert frame is not None
        assert frame.payload == size


def test_the_data_of_a_truncated_copy():
    frame = parse.parse(with_data(1448)[:54])
    assert frame is not None and frame.tcp is not None
    assert frame.payload == 1448


def test_the_data_behind_an_ipv6_extension():
    extension = ipv6.hop_opts(nxt=6, data=[ipv6.option(type_=1, len_=4, data=b"\0\0\0\0")])
    frame = parse.parse(over6(segment(tcp.TCP_ACK), b"x" * 99, nxt=0, extensions=[extension]))
    assert frame is not None
    assert frame.payload == 99


def test_contradictory_lengths_give_no_length():
    data = bytearray(with_data(0))
    data[16:18] = (39).to_bytes(2, "big")
    frame = parse.parse(bytes(data))
    assert frame is not None and frame.tcp is not None
    assert frame.payload is None


def test_frames_without_tcp_have_no_data():
    frame = parse.parse(build(*ether(0x0800), ipv4.ipv4(proto=17), udp.udp(1, 2), b"x" * 50))
    assert frame is not None
    assert frame.payload is None
