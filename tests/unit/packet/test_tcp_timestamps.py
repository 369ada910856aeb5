"""Timestamps of segments that are put back; the checksum is recomputed from 16-bit words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ryu.lib.packet import ethernet, ipv4, ipv6, packet, tcp, vlan

from fairq_ryu.packet import parse, tcp_timestamps
from tests.support.checksum import word_sum

HEAD = b"\x01\x01"  # NOP, NOP: the layout of usual stacks


def frame(
    version: int = 4, tags: int = 0, tsval: int | None = 1000, before: bytes = HEAD, data: bytes = b"hello"
) -> bytes:
    kind = {4: 0x0800, 6: 0x86DD}[version]
    layers = [ethernet.ethernet("02:00:00:00:00:02", "02:00:00:00:00:01", 0x8100 if tags else kind)]
    layers += [vlan.vlan(vid=7 + tag, ethertype=0x8100 if tag + 1 < tags else kind) for tag in range(tags)]
    if version == 4:
        layers.append(ipv4.ipv4(src="10.0.0.1", dst="10.0.0.2", proto=6))
    else:
        layers.append(ipv6.ipv6(src="2001:db8::1", dst="2001:db8::2", nxt=6))
    options = before
    if tsval is not None:
        options += b"\x08\x0a" + tsval.to_bytes(4, "big") + (77).to_bytes(4, "big")
    options = options.ljust(-(-len(options) // 4) * 4, b"\0")
    layers.append(tcp.tcp(33000, 5001, seq=5, ack=9, bits=0x18, offset=5 + len(options) // 4, option=options))
    made = packet.Packet()
    for layer in layers:
        made.add_protocol(layer)
    made.serialize()
    # Ryu's checksum does not cover plain bytes after the header.
    return with_checksum(bytes(made.data) + data, version)


def transport(whole: bytes, version: int) -> tuple[int, bytes]:
    """The offset of TCP, and the pseudo-header."""
    read = parse.parse(whole)
    assert read is not None and read.tcp_at is not None
    at = read.tcp_at
    addresses = whole[at - 8 : at] if version == 4 else whole[at - 32 : at]
    return at, addresses + (6).to_bytes(2, "big") + (len(whole) - at).to_bytes(2, "big")


def with_checksum(whole: bytes, version: int) -> bytes:
    at, pseudo = transport(whole, version)
    cleared = whole[at : at + 16] + b"\0\0" + whole[at + 18 :]
    checksum = 0xFFFF ^ word_sum(pseudo + cleared)
    return whole[: at + 16] + checksum.to_bytes(2, "big") + whole[at + 18 :]


def is_right(whole: bytes, version: int) -> bool:
    at, pseudo = transport(whole, version)
    return word_sum(pseudo + whole[at:]) == 0xFFFF


def tsval(whole: bytes) -> int | None:
    read = parse.parse(whole)
    assert read is not None
    at = tcp_timestamps.tsval_at(whole, read)
    return None if at is None else int.from_bytes(whole[at : at + 4], "big")


@given(
    version=st.sampled_from([4, 6]),
    tags=st.integers(0, 2),
    own=st.integers(0, (1 << 32) - 1),
    later=st.integers(1, (1 << 31) - 1),
    before=st.sampled_from([HEAD, b"", b"\x01", b"\x05\x0a" + bytes(8), b"\x02\x04\x05\xb4\x01"]),
    data=st.binary(max_size=9),
)
def test_a_newer_timestamp_replaces_the_segments_and_nothing_else(version, tags, own, later, before, data):
    old = frame(version, tags, own, before, data)
    assert is_right(old, version) and tsval(old) == own
    newer = (own + later) % (1 << 32)
    new = tcp_timestamps.renewed(old, newer)
    assert tsval(new) == newer and is_right(new, version)
    read = parse.parse(old)
    at = tcp_timestamps.tsval_at(old, read)
    changed = {place for place in range(len(old)) if old[place] != new[place]}
    assert changed <= {*range(at, at + 4), read.tcp_at + 16, read.tcp_at + 17} and len(old) == len(new)


@pytest.mark.parametrize(
    "echoed", [1000, 999, (1000 - (1 << 31)) % (1 << 32), (1000 + (1 << 31)) % (1 << 32)]
)
def test_a_timestamp_is_never_made_older(echoed):
    assert tcp_timestamps.renewed(frame(tsval=1000), echoed) == frame(tsval=1000)


def test_a_checksum_that_was_wrong_stays_wrong():
    """A damaged segment must not be made to look valid."""
    damaged = frame()[:-1] + b"?"
    assert not is_right(damaged, 4)
    assert not is_right(tcp_timestamps.renewed(damaged, 2000), 4)


@pytest.mark.parametrize(
    "odd",
    [
        b"",
        b"\0" * 60,
        frame(tsval=None, before=b""),
        frame()[:60],  # cut within the option
        frame(before=b"\x08\x0a", tsval=None),  # an option without its end
        frame(before=b"\x07\x01\x01\x01", tsval=5),  # one without a length
        frame(before=b"\x00\x01\x01\x01", tsval=5),  # after the end of the list
    ],
)
def test_frames_without_a_timestamp_stay_as_they_are(odd):
    assert tcp_timestamps.renewed(odd, 1 << 30) == odd


@given(junk=st.binary(max_size=120), cut=st.integers(0, 90))
def test_no_input_raises(junk, cut):
    assert tcp_timestamps.renewed(junk, 5) == junk or len(junk) > 50
    short = frame()[:cut]
    assert len(tcp_timestamps.renewed(short + junk, 1 << 30)) == len(short + junk)
