"""Packets of several segments (TSO, GSO, GRO, BIG TCP) count as they will be on the wire."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from ctypes import c_uint32

import pytest

from bench.program_run import UNSPEC, LoadedProgram, Segments
from fairq_ryu.agent import layout
from fairq_ryu.agent.programs.program import DROP_PRIORITY, QUEUE_LAW_PRIORITY, TAILDROP_PRIORITY
from fairq_ryu.agent.programs.taildrop import start_taildrop
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.laws.mark import MarkLaw
from fairq_ryu.laws.red import RedLaw
from fairq_ryu.model import Thresholds
from fairq_ryu.packet.checksum import completed
from tests.support.host_queue_laws import QueueLawParameters
from tests.switch import packets, test_acdc
from tests.switch.packets import Segment
from tests.switch.queue_rig import take_drops
from tests.switch.rig import Connection, Switch

STOLEN = 4
PORT = 2
MSS = 1000
HEADERS = 14 + 20 + 20
LIMIT = 60_000
FRAME = Segment(payload=bytes(2500)).frame()
THREE = Segments(3, MSS, len(FRAME) + 2 * HEADERS)


def backlog(switch: Switch, size: int) -> None:
    """The queue of the port has this length; it stays so for an hour, however slow the machine."""
    test_acdc.backlog(switch, size)
    slot = c_uint32(switch.datapath.window.slots[switch.ports[PORT].ifindex])
    depth = layout.fq_depth(last_ns=time.monotonic_ns() + 3600 * 10**9, backlog=size, low=size)
    switch.datapath.queues.law_maps.depths.set(slot, depth)


@pytest.fixture(autouse=True)
def nothing_left(switch: Switch) -> Iterator[None]:
    yield
    data = switch.datapath
    data.set_thresholds(PORT, None)
    data.remove_law(PORT)
    data.remove_queue_law(PORT)
    data.set_queue_limits({}, [switch.ports[PORT].ifindex])
    backlog(switch, 0)


# The window program


def test_segments_are_counted(switch: Switch) -> None:
    flow = Connection(switch).open()
    switch.leave(PORT, flow.from_client(payload=bytes(2500)), THREE)
    switch.leave(PORT, flow.from_client(payload=bytes(700), seq=flow.client_isn + 2501))
    data, _ = switch.flow(flow.data_key) or pytest.fail("no flow")
    assert (data.packets, data.bytes) == (4, 3200)
    assert data.seq_next == flow.client_isn + 3201


def test_a_guest_leaves_the_number_of_segments_out(switch: Switch) -> None:
    flow = Connection(switch).open()
    switch.leave(PORT, flow.from_client(payload=bytes(2500)), THREE._replace(number=0))
    data, _ = switch.flow(flow.data_key) or pytest.fail("no flow")
    assert data.packets == 3


def big_tcp(frame: bytes, at: int) -> bytes:
    """The frame with the length 0 in its IP header, ``at`` there."""
    return frame[:at] + b"\0\0" + frame[at + 2 :]


JUMBOGRAM = (packets.HOP_BY_HOP, b"\xc2\x04" + struct.pack(">I", 100_000))
BIG = {
    "IPv4": ({}, 16),
    "IPv4 options": ({"ip_options": b"\x01" * 8}, 16),
    "IPv4, a tag": ({"vlans": ((packets.VLAN, 7),)}, 20),
    "IPv6": ({"src": "fd00::1", "dst": "fd00::2"}, 18),
    "IPv6, option": ({"src": "fd00::1", "dst": "fd00::2", "extensions": (JUMBOGRAM,)}, 18),
}


@pytest.mark.parametrize("shape", BIG)
def test_big_tcp_has_no_length_in_its_ip_header(switch: Switch, shape: str) -> None:
    outer, at = BIG[shape]
    ends = ("fd00::1", "fd00::2") if "IPv6" in shape else ("10.0.0.1", "10.0.0.2")
    vlans = outer.get("vlans", ())
    flow = Connection(switch, *ends, shape={"vlans": vlans} if vlans else None).open()
    frame = big_tcp(flow.from_client(payload=bytes(2500)).but(**outer).frame(), at)
    switch.leave(PORT, frame, THREE)
    data, _ = switch.flow(flow.data_key) or pytest.fail("no flow")
    assert (data.packets, data.bytes) == (3, 2500)
    # Otherwise a length of 0 is wrong.
    before = switch.state(PORT).malformed
    switch.leave(PORT, frame)
    assert switch.state(PORT).malformed == before + 1


def test_acdc_marks_the_segments_above_its_threshold(switch: Switch) -> None:
    test_acdc.install(switch)
    flow = Connection(switch, server_scale=0)
    flow.syn()
    flow.syn_ack()
    flow.ack()
    backlog(switch, test_acdc.K - len(FRAME) - 2 * HEADERS + 2000)
    switch.leave(PORT, flow.from_client(payload=bytes(2500)), THREE)
    assert test_acdc.state(switch, flow).marks == 2000 > test_acdc.MSS


# Drops


def test_the_tail_drop_counts_the_headers_of_every_segment(switch: Switch) -> None:
    ifindex = switch.ports[PORT].ifindex
    drop = start_taildrop({switch.ports[PORT].name: LIMIT})
    try:
        with LoadedProgram.attached(ifindex, TAILDROP_PRIORITY) as program:

            def fits(room: int, segments: Segments | None) -> bool:
                queue = layout.fq_queue(backlog=LIMIT - room, last_ns=time.monotonic_ns() + 3600 * 10**9)
                drop._queue.queues.set(c_uint32(ifindex), queue)
                verdict = program.run(FRAME, ifindex, segments=segments).verdict
                assert verdict in (UNSPEC, STOLEN)
                return verdict == UNSPEC

            assert fits(len(FRAME), None) and not fits(len(FRAME) - 1, None)
            assert fits(THREE.wire_len, THREE) and not fits(THREE.wire_len - 1, THREE)
        counted = drop._counts.get(c_uint32(ifindex))
        assert counted is not None
        assert (counted.packets, counted.bytes) == (1 + 3, len(FRAME) + THREE.wire_len)
    finally:
        drop.close()


def test_a_packet_of_several_segments_is_left_to_the_queue(switch: Switch) -> None:
    """Nobody could put it back as one frame. One segment of the same length is dropped before the queue."""
    data, ifindex = switch.datapath, switch.ports[PORT].ifindex
    data.set_queue_limits({ifindex: QueueLimits("bfifo", LIMIT, 1_000_000)}, [ifindex])
    data.set_thresholds(PORT, Thresholds(0, 0, True))
    frame = Segment(payload=bytes(1500)).frame()
    two = Segments(2, MSS, len(frame) + HEADERS)
    backlog(switch, LIMIT)
    with LoadedProgram.attached(ifindex, DROP_PRIORITY) as program:
        assert program.run(frame, ifindex, segments=two).verdict == UNSPEC
        assert take_drops(data, 10) == []
        assert program.run(frame, ifindex).verdict == STOLEN
    assert take_drops(data, 10) == [(PORT, completed(frame), len(frame))]


def counts(switch: Switch) -> tuple[int, ...]:
    found = switch.datapath.queue_law_counts(PORT)
    return found.judged, found.dropped, found.dropped_bytes, found.marked


def grown(switch: Switch, before: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(now - then for now, then in zip(counts(switch), before, strict=True))


def law(switch: Switch, kind: int, **settings: int) -> LoadedProgram:
    given = QueueLawParameters(kind, 12_500_000, **settings).made()
    switch.datapath.install_queue_law(PORT, 1, given, time.monotonic_ns() + 3600 * 10**9)
    return LoadedProgram.attached(switch.ports[PORT].ifindex, QUEUE_LAW_PRIORITY)


def test_what_a_law_drops_of_several_segments_is_handed_over_without_its_end(switch: Switch) -> None:
    """So that it is never put back as one frame."""
    data, ifindex = switch.datapath, switch.ports[PORT].ifindex
    data.set_thresholds(PORT, Thresholds(0, 0, True))
    frame = Segment(payload=bytes(1500)).frame()
    before = counts(switch)
    with law(switch, RedLaw.kind, min_bytes=100, max_bytes=200, weight_shift=1) as program:
        backlog(switch, 100_000)
        two = Segments(2, MSS, len(frame) + HEADERS)
        assert program.run(frame, ifindex, segments=two).verdict == STOLEN
        assert program.run(frame, ifindex).verdict == STOLEN
    assert take_drops(data, 10) == [(PORT, frame[:-1], len(frame)), (PORT, frame, len(frame))]
    assert grown(switch, before) == (3, 3, 2 * len(frame) + HEADERS, 0)


def test_a_packet_is_marked_if_its_middle_segment_is(switch: Switch) -> None:
    ifindex = switch.ports[PORT].ifindex
    middle = (THREE.wire_len + THREE.wire_len // 3) // 2
    ect = FRAME[:15] + b"\x02" + FRAME[16:]
    before = counts(switch)
    with law(switch, MarkLaw.kind, mark_bytes=LIMIT) as program:
        for room, marked in ((middle, False), (middle - 1, True)):
            backlog(switch, LIMIT - room)
            seen = program.run(ect, ifindex, segments=THREE).packet[15]
            assert seen == (3 if marked else 2)
    assert grown(switch, before) == (6, 0, 0, 3)
