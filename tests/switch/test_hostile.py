"""Hostile packets: they leave unchanged or correctly rewritten; the program never fails."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fairq_ryu.agent import layout
from fairq_ryu.agent.programs.program import ProgramLimits
from tests.switch import packets
from tests.switch.packets import NOP
from tests.switch.rig import Connection, Switch, loaded, namespace
from tests.switch.test_rewriting import SHAPES, TIMESTAMPS

RULE = 3000


def established(switch: Switch, **settings: Any) -> Connection:
    """An open connection with a rule, so that any valid ACK of it is rewritten."""
    switch.rule(2, RULE)
    return Connection(switch, **settings).open()


def shortest(frame: bytes) -> int:
    """The shortest part of a frame that the kernel accepts for a test run: complete IP headers if the
    EtherType announces them.
    """
    kind = struct.unpack_from(">H", frame, 12)[0]
    return {packets.IPV4: 34, packets.IPV6: 54}.get(kind, 15)


@pytest.mark.parametrize("what", ["ack", "data", "syn", "syn_ack"])
@pytest.mark.parametrize("shape", SHAPES)
def test_truncated_at_every_length(switch: Switch, shape: str, what: str) -> None:
    ends, round_it = SHAPES[shape]
    flow = established(switch, **ends, shape=round_it)
    segment = {
        "ack": flow.from_server(options=TIMESTAMPS),
        "data": flow.from_server(options=TIMESTAMPS, payload=b"0123456789"),
        "syn": flow.from_client(flags="S", options=packets.syn_options(1460, 7)),
        "syn_ack": flow.syn_ack_segment(),
    }[what]
    whole = segment.frame()
    handshakes = switch.state(1).handshakes
    for length in range(shortest(whole), len(whole)):
        assert switch.leave(1, whole[:length]) == whole[:length]
    assert switch.state(1).handshakes == handshakes
    assert flow.granted() < 65535, "the flow is none the worse for it"


def test_short_frames_on_the_wire(switch: Switch) -> None:
    """Shorter than a test run allows, these are sent by a socket: real qdisc, real hook."""
    flow = established(switch)
    whole = flow.from_server().frame()
    with (
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as port,
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as host,
    ):
        port.bind(("p1", 0))
        host.bind(("p1h", 3))  # ETH_P_ALL
        host.settimeout(5)
        for length in range(14, len(whole) + 1):
            port.send(whole[:length])
            received, about = host.recvfrom(2048)
            while about[2] == socket.PACKET_OUTGOING or received[:12] != whole[:12]:
                received, about = host.recvfrom(2048)
            if length < len(whole):
                assert received == whole[:length]
    assert packets.window(received) == RULE >> 7


@pytest.mark.parametrize("ihl", range(16))
def test_ipv4_header_length_lies(switch: Switch, ihl: int) -> None:
    # At every possible offset of the TCP header there is a plausible data offset.
    flow = established(switch, client="80.80.80.80", client_isn=0x50505050)
    frame = bytearray(flow.from_server(payload=b"\x50" * 100).frame())
    frame[14] = 0x40 | ihl
    after = switch.leave(1, bytes(frame))
    assert (after == frame) == (ihl != 5)
    if ihl < 5:
        assert switch.state(1).malformed == 1


@pytest.mark.parametrize("version", [0, 5, 6, 15])
def test_ip_version_lies(switch: Switch, version: int) -> None:
    for ends in ({}, {"client": "fe80::1", "server": "fe80::2"}):
        flow = established(switch, **ends)
        frame = bytearray(flow.from_server().frame())
        if frame[14] >> 4 != version:
            frame[14] = version << 4 | frame[14] & 15
            assert switch.leave(1, bytes(frame)) == frame


@pytest.mark.parametrize("v6", [False, True])
def test_total_length_lies(switch: Switch, v6: bool) -> None:
    flow = established(switch, **({"client": "fe80::1", "server": "fe80::2"} if v6 else {}))
    whole = flow.from_server(options=TIMESTAMPS, payload=b"d" * 20).frame()
    at, headers = (18, 32) if v6 else (16, 52)
    true_length = struct.unpack_from(">H", whole, at)[0]
    switch.datapath.reset_counters(0)
    for length in [*range(true_length + 20), 1500, 32767, 32768, 65535]:
        frame = bytearray(whole)
        struct.pack_into(">H", frame, at, length)
        after = switch.leave(1, bytes(frame))
        packets.check_sound(bytes(frame), after)
        # Shorter: the rest is padding. Longer than the frame, or too short: not a TCP segment.
        assert (after != frame) == (headers <= length <= true_length)
    assert switch.state(1).malformed > 0


def test_data_offset_lies(switch: Switch) -> None:
    flow = established(switch)
    for offset in range(16):
        frame = bytearray(flow.from_server(payload=b"d" * 24).frame())
        frame[46] = offset << 4
        after = switch.leave(1, bytes(frame))
        assert (after == frame) == (offset < 5 or offset > 11)
        packets.check_sound(bytes(frame), after)


@pytest.mark.parametrize("fragment", [0x2000, 0x0001, 0x2001, 0x1FFF, 0x3FFF])
def test_fragments(switch: Switch, fragment: int) -> None:
    flow = established(switch)
    frame = bytearray(flow.from_server(payload=b"d" * 24).frame())
    struct.pack_into(">H", frame, 20, fragment)
    assert switch.leave(1, bytes(frame)) == frame
    assert switch.state(1).malformed == 1


def test_dont_fragment_and_evil_bit_do_not_matter(switch: Switch) -> None:
    flow = established(switch)
    for bits in (0, 0x4000, 0x8000):
        frame = bytearray(flow.from_server().frame())
        struct.pack_into(">H", frame, 20, bits)
        assert packets.window(switch.leave(1, bytes(frame))) == RULE >> 7


@pytest.mark.parametrize("protocol", [0, 1, 17, 47, 132, 255])
def test_not_tcp(switch: Switch, protocol: int) -> None:
    for ends, at in (({}, 23), ({"client": "fe80::1", "server": "fe80::2"}, 20)):
        flow = established(switch, **ends)
        frame = bytearray(flow.from_server(payload=b"d" * 24).frame())
        frame[at] = protocol
        if (protocol, at) != (0, 20):  # 0 is hop-by-hop there, and no such header follows
            assert switch.leave(1, bytes(frame)) == frame
        assert switch.state(1).malformed == 0


@pytest.mark.parametrize("kind", [0x0806, 0x88CC, 0x8847, 0x88A8, 0x8100, 0x9100, 0x05DC, 0x0000])
def test_not_ip(switch: Switch, kind: int) -> None:
    flow = established(switch)
    frame = bytearray(flow.from_server().frame())
    struct.pack_into(">H", frame, 12, kind)
    assert switch.leave(1, bytes(frame)) == frame


def test_flags_that_make_no_sense(switch: Switch) -> None:
    """All 256 combinations, each on a new flow."""
    switch.rule(2, RULE)
    for bits in range(256):
        flow = Connection(switch).open()
        flags = "".join(flag for flag, bit in packets.FLAGS.items() if bits & bit)
        before = flow.from_server(flags=flags, payload=b"x").frame()
        after = switch.leave(1, before)
        packets.check_sound(before, after)
        touched = "A" in flags and "R" not in flags
        assert (after != before) == touched
        if touched:
            # An unexpected SYN-ACK is unscaled as well.
            assert packets.window(after) == (RULE if "S" in flags else RULE >> 7)
    assert switch.active(2) <= 256


def test_syn_flood(switch: Switch) -> None:
    flow = established(switch)
    for i in range(5000):
        flood = Connection(switch, client=f"172.16.{i >> 8}.{i & 255}", sport=1)
        flood.syn()
    assert switch.active(2) == 1
    assert flow.granted() == RULE >> 7


@pytest.fixture
def small_switch() -> Iterator[Switch]:
    with (
        namespace(),
        loaded(ProgramLimits(flows=64, rules=16, ports=4, active_timeout=600)) as switch,
    ):
        yield switch


def test_more_flows_than_the_map_holds(small_switch: Switch) -> None:
    switch = small_switch
    switch.rule(2, RULE)
    for i in range(3000):
        flow = Connection(switch, client=f"10.9.{i >> 8}.{i & 255}", sport=1000).open()
        assert flow.granted() == RULE >> 7
        flow.data()
        assert flow.granted() == RULE >> 7
    known = list(switch.datapath.window.flows.keys())
    assert 0 < len(known) <= 64
    # An evicted flow has an unknown scale: it is not changed.
    forgotten = Connection(switch, client="10.9.0.0", sport=1000)
    assert switch.flow(forgotten.data_key) is None
    forgotten.data()
    assert forgotten.granted() == 65535


many = settings(
    max_examples=1500,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@many
@given(
    shape=st.sampled_from(sorted(SHAPES)),
    what=st.sampled_from(["A", "S", "SA", "FA"]),
    options=st.binary(max_size=40),
    changes=st.lists(st.tuples(st.integers(0, 140), st.integers(0, 255)), min_size=1, max_size=4),
    cut=st.integers(0, 60),
)
def test_sound_frames_with_some_bytes_changed(
    loaded_switch: Switch,
    shape: str,
    what: str,
    options: bytes,
    changes: list[tuple[int, int]],
    cut: int,
) -> None:
    switch = loaded_switch
    switch.reset()
    ends, round_it = SHAPES[shape]
    flow = established(switch, **ends, shape=round_it)
    frame = bytearray(flow.from_server(flags=what, options=packets.padded(options), payload=b"d" * 9).frame())
    for at, value in changes:
        if at < len(frame):
            frame[at] = value
    sent = bytes(frame)
    sent = sent[: max(shortest(sent), len(sent) - max(0, cut - 40))]
    packets.check_sound(sent, switch.leave(1, sent))


@many
@given(
    head=st.sampled_from([b"\x08\x00\x45", b"\x08\x00", b"\x86\xdd\x60", b"\x81\x00", b"\x88\xa8", b""]),
    rest=st.binary(max_size=200),
)
@example(head=b"\x81\x00", rest=b"")
@example(head=b"", rest=b"\0" * 200)
@example(head=b"", rest=b"\xff" * 200)
def test_random_bytes(loaded_switch: Switch, head: bytes, rest: bytes) -> None:
    loaded_switch.rule(1, 0)
    frame = packets.MACS + (head + rest).ljust(2, b"\0")
    frame = frame.ljust(shortest(frame), b"\0")
    packets.check_sound(frame, loaded_switch.leave(1, frame))


def test_random_options_of_syns(switch: Switch) -> None:
    """Never an error; the scale that the program reads is 0 to 14."""
    dice = random.Random(7)
    for _ in range(1000):
        flow = Connection(switch)
        flow.syn()
        length = 4 * dice.randrange(11)
        kinds = bytes(dice.choice(b"\0\1\1\2\3\3\4\5\x08\x02\x04\x0a\xff") for _ in range(length))
        before = flow.syn_ack_segment(options=kinds).frame()
        assert switch.leave(1, before) == before
        found = switch.flow(flow.ack_key)
        assert found is not None and found[0].wscale <= 14


def test_option_walk_agrees_with_a_plain_reader(switch: Switch) -> None:
    """The program parses options in an order that the verifier accepts; a plain loop must give the same
    result.
    """
    dice = random.Random(8)
    flags = layout.CONSTANTS
    for _ in range(2000):
        flow = Connection(switch)
        flow.syn()
        pool = [NOP, b"\3\3" + bytes([dice.randrange(256)]), packets.mss(dice.randrange(65536)), b"\4\2"]
        pool += [packets.timestamps(), b"\x05\x0a12345678", b"\0", b"\x03\x02", b"\x09\0", b"\x07\xf0"]
        options, length = b"", dice.randrange(1, 48)
        while len(options) < length:
            options += dice.choice(pool)
        options = packets.padded(options[:40])
        flow.syn_ack(options=options)
        found = switch.flow(flow.ack_key)
        assert found is not None
        size, scale = plain_reader(options)
        assert found[0].mss == (size or 0)
        assert bool(found[0].flags & flags["FQ_WS"]) == (scale is not None)
        assert found[0].wscale == min(scale or 0, 14)


def plain_reader(options: bytes) -> tuple[int | None, int | None]:
    size = scale = None
    at = 0
    while at < len(options) and options[at] != 0:
        if options[at] == 1:
            at += 1
            continue
        length = options[at + 1] if at + 1 < len(options) else 0
        if length < 2 or at + length > len(options):
            break
        if options[at] == 2 and length == 4:
            size = int.from_bytes(options[at + 2 : at + 4], "big")
        if options[at] == 3 and length == 3:
            scale = options[at + 2]
        at += length
    return size, scale
