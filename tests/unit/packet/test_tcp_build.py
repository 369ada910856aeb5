"""Built segments, decoded by Ryu's packet library; their checksums are recomputed from 16-bit words."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ryu.lib.packet import ipv4, ipv6, packet, tcp, vlan

from fairq_ryu.model import FlowKey
from fairq_ryu.packet import checksum, parse, tcp_build
from tests.support.checksum import word_sum

SENDER, RECEIVER = "02:00:00:00:00:01", "02:00:00:00:00:02"
DATA4 = FlowKey("10.0.0.1", "10.0.0.2", 33000, 5001)
DATA6 = FlowKey("2001:db8::1", "2001:db8::2", 33000, 5001)


class State(NamedTuple):
    key: FlowKey = DATA4.reversed
    found: bool = True
    seq_next: int = 0x01020304
    ack: int = 0xFFFFFF00
    window: int = 502
    tsval: int = 777
    tsecr: int = 4_000_000_000
    has_timestamps: bool | None = True
    fin: bool = False
    rst: bool = False
    is_signed: bool = False
    passed: int = 0


def link(key: FlowKey = DATA4, tags: tuple[int, ...] = ()) -> tcp_build.Addressing:
    return tcp_build.Addressing(key, SENDER, RECEIVER, tags)


def made(answer: bytes | tcp_build.Refusal) -> bytes:
    assert isinstance(answer, bytes), answer
    return answer


def assert_checksums(frame: bytes, tags: int, version: int) -> None:
    packet_of = frame[14 + 4 * tags :]
    if version == 4:
        assert word_sum(packet_of[:20]) == 0xFFFF
        assert int.from_bytes(packet_of[2:4], "big") == len(packet_of)
        addresses, segment = packet_of[12:20], packet_of[20:]
    else:
        addresses, segment = packet_of[8:40], packet_of[40:]
        assert int.from_bytes(packet_of[4:6], "big") == len(segment)
    pseudo = addresses + struct.pack("!II", len(segment), 6)
    assert word_sum(pseudo + segment) == 0xFFFF


def header(frame: bytes, kind: Any) -> Any:
    return packet.Packet(frame).get_protocol(kind)


@pytest.mark.parametrize("timestamps", [True, False])
@pytest.mark.parametrize(("key", "version"), [(DATA4, 4), (DATA6, 6)])
@pytest.mark.parametrize("tags", [(), (5,), (7, 0x6005)])
def test_a_window_update_has_the_numbers_of_the_receiver(timestamps, key, version, tags):
    state = State(key=key.reversed, has_timestamps=timestamps)
    frame = made(tcp_build.window_update(link(key, tags), state))
    assert_checksums(frame, len(tags), version)
    segment = header(frame, tcp.tcp)
    assert (segment.src_port, segment.dst_port) == (5001, 33000)
    assert (segment.seq, segment.ack, segment.window_size) == (state.seq_next, state.ack, 502)
    assert (segment.bits, segment.urgent) == (tcp.TCP_ACK, 0)
    kinds = [option.kind for option in segment.option or []]
    assert kinds == ([1, 1, 8] if timestamps else [])
    if timestamps:
        assert (segment.option[2].ts_val, segment.option[2].ts_ecr) == (777, 4_000_000_000)
    ip = header(frame, ipv4.ipv4 if version == 4 else ipv6.ipv6)
    assert (ip.src, ip.dst) == (key.dst, key.src)
    assert [each.vid for each in packet.Packet(frame).get_protocols(vlan.vlan)] == [t & 0xFFF for t in tags]
    read = parse.parse(frame)
    assert read is not None
    assert (read.src, read.dst, read.tags, read.payload) == (RECEIVER, SENDER, tags, 0)


def test_addresses_may_be_learnt_from_either_side():
    state = State()
    assert tcp_build.window_update(link().reversed, state) == made(tcp_build.window_update(link(), state))


def test_addresses_are_taken_from_any_copied_segment():
    frame = parse.parse(made(tcp_build.window_update(link(tags=(5,)), State())))
    assert frame is not None
    found = link(tags=(5,)).reversed
    assert tcp_build.addressing(frame) == found._replace(key=found.key._replace(vlan=5))
    assert tcp_build.addressing(parse.Frame(SENDER, RECEIVER, ())) is None


def test_duplicates_are_three_equal_acks_with_the_last_lowered_window():
    frames = tcp_build.duplicates(link(), State(passed=11))
    assert isinstance(frames, list)
    assert len(frames) == tcp_build.DUPLICATES == 3
    assert len(set(frames)) == 1
    segment = header(frames[0], tcp.tcp)
    assert (segment.window_size, segment.ack, segment.seq) == (11, 0xFFFFFF00, 0x01020304)
    assert_checksums(frames[0], 0, 4)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"found": False}, tcp_build.Refusal.NOT_FOUND),
        ({"fin": True}, tcp_build.Refusal.ENDED),
        ({"rst": True}, tcp_build.Refusal.ENDED),
        ({"is_signed": True}, tcp_build.Refusal.SIGNED),
        ({"has_timestamps": None}, tcp_build.Refusal.TIMESTAMPS),
        ({"key": DATA6.reversed}, tcp_build.Refusal.ADDRESSES),
        ({"key": DATA4.reversed._replace(sport=5002)}, tcp_build.Refusal.ADDRESSES),
        ({"ack": 1 << 32}, tcp_build.Refusal.NUMBERS),
        ({"seq_next": -1}, tcp_build.Refusal.NUMBERS),
        ({"tsval": 1 << 32}, tcp_build.Refusal.NUMBERS),
        ({"tsval": 0, "tsecr": 0}, tcp_build.Refusal.NUMBERS),
        ({"window": 1 << 16}, tcp_build.Refusal.NUMBERS),
        ({"window": -1}, tcp_build.Refusal.NUMBERS),
    ],
)
def test_without_enough_state_nothing_is_built(change, why):
    state = State()._replace(**change)
    assert tcp_build.window_update(link(), state) is why
    assert tcp_build.duplicates(link(), state) is why


def test_a_window_that_the_receiver_closed_is_not_opened():
    assert tcp_build.window_update(link(), State(window=0)) is tcp_build.Refusal.CLOSED_WINDOW


def test_a_window_is_never_raised():
    assert tcp_build.duplicates(link(), State(window=502, passed=503)) is tcp_build.Refusal.WINDOW
    assert tcp_build.duplicates(link(), State(window=502, passed=-1)) is tcp_build.Refusal.WINDOW
    assert isinstance(tcp_build.duplicates(link(), State(window=502, passed=502)), list)


numbers = st.integers(0, (1 << 32) - 1)
ports = st.integers(1, 65535)
keys = st.one_of(
    st.builds(
        FlowKey,
        *(st.ip_addresses(v=version).map(str),) * 2,
        *(ports,) * 2,
        st.just(0),
    )
    for version in (4, 6)
)


@given(
    key=keys,
    seq=numbers,
    ack=numbers,
    window=st.integers(1, 65535),
    stamps=st.tuples(numbers.map(lambda n: n or 1), numbers) | st.none(),
    data=st.data(),
)
def test_any_segment_has_right_checksums_and_only_known_values(key, seq, ack, window, stamps, data):
    lowered = data.draw(st.integers(0, window))
    state = State(key, True, seq, ack, window, *(stamps or (0, 0)), stamps is not None, passed=lowered)
    frames = tcp_build.duplicates(link(key), state)
    assert isinstance(frames, list)
    for frame, wanted in [(made(tcp_build.window_update(link(key), state)), window), (frames[0], lowered)]:
        assert_checksums(frame, 0, key.version)
        segment = header(frame, tcp.tcp)
        assert (segment.seq, segment.ack, segment.window_size) == (seq, ack, wanted)
        read = parse.parse(frame)
        assert read is not None and read.tcp is not None
        assert (read.tcp.key, read.payload) == (key, 0)


@given(st.binary(max_size=200))
@example(b"")
@example(b"\xff\xff")
@example(b"\0\0")
def test_the_checksum_is_the_one_of_the_rfc(data):
    assert checksum.internet_checksum(data) == 0xFFFF - word_sum(data)
