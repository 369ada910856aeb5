"""Copies of SYN, FIN and RST: which segments the window program believes and copies, in which order, and how
many.

Rules have no rate here, except where a test sets one: a copy then pays for an hour, so that counts are exact,
and the test is the clock.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from ctypes import c_uint32
from typing import Any

import pytest

from fairq_ryu.agent import layout
from fairq_ryu.agent.programs.copies import RULES, token_bucket
from fairq_ryu.agent.segment_copier import CopiedSegment
from fairq_ryu.channel.segment_copies import COPY_BYTES, SegmentMatch
from tests.switch import packets
from tests.switch.packets import Segment
from tests.switch.rig import Connection, Switch

IP, IPV6 = 0x0800, 0x86DD
SYN, FIN, RST = 2, 1, 4
HOUR = 3_600_000_000_000
NO_LIMIT = layout.fq_copy_limit()
SHAPES: dict[str, dict[str, Any]] = {
    "IPv4": {},
    "VLAN": {"shape": {"vlans": ((packets.VLAN, 7),)}},
    "two tags": {"shape": {"vlans": ((packets.QINQ, 0xE007), (packets.VLAN, 9))}},
    "IPv6": {"client": "fd00::1", "server": "fd00::2"},
}


def ask(switch: Switch, lease: float = 3600, rules: Any = RULES) -> None:
    until = time.monotonic_ns() + int(lease * 1e9)
    for rule in rules:
        switch.datapath.install_copies(rule, until)


def take(switch: Switch) -> list[CopiedSegment]:
    return switch.datapath.copied(switch.datapath.copies.take(20_000))


def flags(switch: Switch) -> list[str]:
    """The TCP flags of the copies that were made since the last call."""
    names = [(SYN, "S"), (FIN, "F"), (RST, "R"), (0x10, "A")]
    found = []
    for copy in take(switch):
        view = packets.view(copy.frame)
        assert view is not None
        bits = copy.frame[view.tcp + 13]
        found.append("".join(name for bit, name in names if bits & bit))
    return found


def in_bucket(number: int) -> Any:
    """So many copies at once, and one more in an hour."""
    return layout.fq_copy_limit(gap_ns=HOUR, burst_ns=number * HOUR + HOUR // 2)


@pytest.fixture
def copying(switch: Switch) -> Iterator[Switch]:
    """All segments are asked for, at any rate."""
    copies = switch.datapath.copies
    before = copies.port_limit, copies.bridge_limit
    copies.port_limit = copies.bridge_limit = NO_LIMIT
    switch.datapath.window.copy_state.set(c_uint32(0), layout.fq_copy_state())
    for rule in RULES:
        copies.reset_counts(rule)
    take(switch)
    ask(switch)
    yield switch
    for rule in RULES:
        copies.remove(rule)
    copies.port_limit, copies.bridge_limit = before


# What is copied


@pytest.mark.parametrize("settings", SHAPES.values(), ids=SHAPES)
def test_beginning_and_end_of_a_connection(copying: Switch, settings: dict[str, Any]) -> None:
    flow = Connection(copying, **settings)
    copying.rule(2, 3000)
    syn, answer = (flow.from_client(flags="S", seq=1000, ack=0), flow.syn_ack_segment())
    fin = flow.from_client(flags="FA", payload=b"d" * 300, seq=1101)
    last, ack = flow.from_server(flags="FA", ack=1402), flow.from_client(seq=1402, ack=5002)
    copying.leave(2, syn)
    assert packets.window(copying.leave(1, answer)) < answer.window
    flow.data(100)
    for port, segment in ((2, fin), (1, last), (2, ack)):
        copying.leave(port, segment)
    family = IPV6 if ":" in flow.client else IP
    expected = [(2, SYN, syn), (1, SYN, answer), (2, FIN, fin), (1, FIN, last)]
    assert take(copying) == [
        CopiedSegment(SegmentMatch(family, flag), port, segment.frame()[:COPY_BYTES], len(segment.frame()))
        for port, flag, segment in expected
    ], "in their order, as they came: with the window that the receiver advertised"
    counts = {rule: copying.datapath.copy_counts(rule) for rule in RULES}
    assert counts[SegmentMatch(family, SYN)] == counts[SegmentMatch(family, FIN)] == (2, 2)
    assert [copying.state(port).copies for port in (1, 2, 3)] == [2, 2, 0]


def test_a_syn_with_other_flags_and_data(copying: Switch) -> None:
    """ECN is negotiated with two more flags (RFC 3168); Fast Open has data in the SYN (RFC 7413)."""
    Connection(copying).syn(flags="SEC")
    Connection(copying).syn(payload=b"d" * 500)
    assert [copy.length for copy in take(copying)] == [14 + 20 + 20 + 12, 14 + 20 + 20 + 12 + 500]


def test_retransmitted_syns_and_fins_are_copied_again(copying: Switch) -> None:
    flow = Connection(copying)
    for _ in range(2):
        flow.syn()
    for _ in range(2):
        flow.syn_ack()
    for _ in range(2):
        flow.data(10, flags="FA")
    assert flags(copying) == ["S", "S", "SA", "SA", "FA", "FA"]


def test_a_segment_that_leaves_by_several_ports_is_copied_once(copying: Switch) -> None:
    """The bridge does not know the host yet, or there is a mirror."""
    flow = Connection(copying)
    segments = [
        flow.from_client(flags="S", seq=1000, ack=0),
        flow.syn_ack_segment(),
        flow.from_client(flags="FA"),
    ]
    for segment in segments:
        for port in (3, 2, 1) if segment.src == flow.client else (1, 2, 3):
            copying.leave(port, segment)
    assert [(copy.rule.flag, copy.port) for copy in take(copying)] == [(SYN, 3), (SYN, 1), (FIN, 3)]


def test_a_connection_on_another_port_of_the_bridge(copying: Switch) -> None:
    """The host has moved: the first SYN of the next connection does not leave by the recorded port."""
    flow = Connection(copying).open()
    flow.data(0, flags="FA")
    flow.ack(flags="FA", ack=1002)
    again = Connection(copying, sport=flow.sport, client_isn=9_000, server_port=3)
    again.syn()
    assert [(copy.rule.flag, copy.port) for copy in take(copying)][-2:] == [(FIN, 1), (SYN, 3)]


# What is believed


@pytest.mark.parametrize("end", ["FA", "R", "RA"])
@pytest.mark.parametrize("side", ["client", "server"])
def test_an_end_out_of_sequence_is_not_copied(copying: Switch, end: str, side: str) -> None:
    flow = Connection(copying).open()
    flow.data(100)
    flow.ack(ack=1101)
    assert flags(copying) == ["S", "SA"]
    port, segment = (2, flow.from_client) if side == "client" else (1, flow.from_server)
    right = {"seq": 1101} if side == "client" else {"seq": 5001, "ack": 1101}
    # A FIN within the window may be ahead of lost data; a reset must have the exact number.
    for seq in (0, 2**32 - 7, right["seq"] + 2**30, right["seq"] + (2**30 if end == "FA" else 1)):
        copying.leave(port, segment(**right | {"flags": end, "seq": seq}))
    assert flags(copying) == []
    copying.leave(port, segment(flags=end, **right))
    assert flags(copying) == [end]


def test_a_fin_behind_lost_data_is_in_the_flow_map_only(copying: Switch) -> None:
    """It counts when the receiver acknowledges it: that segment has no FIN."""
    flow = Connection(copying).open()
    flow.data(100)
    copying.leave(2, flow.from_client(flags="FA", seq=1201))
    flow.data(100, seq=1101)
    flow.ack(ack=1202)
    found = copying.flow(flow.data_key)
    assert found is not None and found[0].flags & layout.CONSTANTS["FQ_FIN"]
    assert flags(copying) == ["S", "SA"]


def test_ends_of_unknown_connections_are_not_copied(copying: Switch) -> None:
    flow = Connection(copying)
    for end in ("R", "RA", "FA"):
        copying.leave(2, flow.from_client(flags=end))
    copying.leave(2, flow.from_client(flags="FA", payload=b"d"))  # it is entered in the flow map
    assert flags(copying) == []


def test_an_unknown_connection_with_data_is_known(copying: Switch) -> None:
    flow = Connection(copying)
    flow.data(100)
    copying.leave(2, flow.from_client(flags="FA", seq=1101))
    assert flags(copying) == ["FA"]


def test_one_reset_of_a_connection_is_copied(copying: Switch) -> None:
    flow = Connection(copying).open()
    for _ in range(3):
        copying.leave(2, flow.from_client(flags="R", seq=1001))
    flow.ack(flags="RA")
    assert flags(copying) == ["S", "SA", "R"]


def test_a_refused_connection(copying: Switch) -> None:
    flow = Connection(copying)
    flow.syn()
    flow.ack(flags="RA", seq=0, ack=77)  # does not answer the SYN
    flow.ack(flags="RA", seq=0)
    assert flags(copying) == ["S", "RA"]


def test_a_syn_ack_whose_syn_was_not_seen(copying: Switch) -> None:
    """There is nothing to compare it with, and nothing that it could end."""
    Connection(copying).syn_ack()
    assert flags(copying) == ["SA"]


def test_a_handshake_with_the_ports_of_a_connection(copying: Switch) -> None:
    """Ports are used again, and the end was not seen; or it is forged. A controller learns of it, but not of
    ends that are not those of the recorded connection.
    """
    flow = Connection(copying).open()
    flow.data(100)
    flags(copying)
    new = Connection(copying, sport=flow.sport, client_isn=2_000_000_000, server_isn=3_000_000_000)
    new.syn_ack()  # no SYN: it answers nothing
    assert flags(copying) == []
    new.syn()
    new.syn_ack()
    assert flags(copying) == ["S", "SA"]
    new.syn_ack(seq=77, ack=5)
    copying.leave(2, new.from_client(flags="R"))
    copying.leave(1, new.from_server(flags="RA"))
    assert flags(copying) == []
    copying.leave(2, flow.from_client(flags="R", seq=1101))
    assert flags(copying) == ["R"]


def test_the_end_of_a_connection_that_has_replaced_another(copying: Switch) -> None:
    old = Connection(copying).open()
    old.data(100)
    new = Connection(copying, sport=old.sport, client_isn=2_000_000_000, server_isn=3_000_000_000).open()
    new.data(0)  # completes its handshake
    flags(copying)
    copying.leave(2, new.from_client(flags="FA"))
    assert flags(copying) == ["FA"]


@pytest.mark.parametrize(
    "frame",
    [
        Segment(flags="S").frame()[:50],  # half a TCP header
        Segment(flags="S", sport=1).frame()[:12] + b"\x08\x06" + bytes(60),
        Segment(flags="").frame(),
        Segment(flags="PA", payload=b"d").frame(),
    ],
    ids=["truncated", "ARP", "no flag", "data"],
)
def test_other_frames_are_not_copied(copying: Switch, frame: bytes) -> None:
    copying.leave(2, frame)
    assert flags(copying) == []


# Who asks


def test_nobody_asked(switch: Switch) -> None:
    take(switch)
    flow = Connection(switch).open()
    flow.data(0, flags="FA")
    assert take(switch) == [] and switch.state(2).copies == switch.state(2).copies_suppressed == 0


def test_only_what_was_asked_for(copying: Switch) -> None:
    for rule in RULES:
        copying.datapath.remove_copies(rule)
    ask(copying, rules=[SegmentMatch(IP, FIN), SegmentMatch(IPV6, SYN)])
    for settings in (SHAPES["IPv4"], SHAPES["IPv6"]):
        flow = Connection(copying, **settings).open()
        flow.data(0, flags="FA")
        flow.ack(flags="R", ack=1002)
    found = [copy.rule for copy in take(copying)]
    assert found == [SegmentMatch(IP, FIN), SegmentMatch(IPV6, SYN), SegmentMatch(IPV6, SYN)]


def test_nothing_is_copied_when_the_lease_is_over(copying: Switch) -> None:
    ask(copying, lease=-1)
    flow = Connection(copying).open()
    flow.data(0, flags="FA")
    assert take(copying) == []
    ask(copying, lease=3600)
    flow.ack(flags="FA", ack=1002)
    assert flags(copying) == ["FA"]


def test_a_port_that_is_not_the_agents(copying: Switch) -> None:
    gone = copying.ports[3]
    copying.datapath.remove_port(3)
    try:
        Connection(copying, server_port=3).syn()
        assert take(copying) == []
    finally:
        copying.datapath.add_port(gone)


# How many


def limited(switch: Switch, port: Any = NO_LIMIT, bridge: Any = NO_LIMIT) -> None:
    switch.datapath.copies.port_limit, switch.datapath.copies.bridge_limit = port, bridge
    ask(switch)


def suppressed(switch: Switch) -> list[int]:
    """At each port, and on the bridge."""
    ports = [switch.state(port).copies_suppressed for port in (1, 2, 3)]
    return [*ports, switch.datapath.not_copied[0]]


def syns(switch: Switch, port: int, number: int) -> None:
    for _ in range(number):
        Connection(switch, server_port=port).syn()


def test_a_port_copies_no_more_than_its_rate(copying: Switch) -> None:
    limited(copying, port=in_bucket(5))
    syns(copying, 2, 8)
    syns(copying, 3, 2)
    assert [copy.port for copy in take(copying)] == [2] * 5 + [3] * 2
    assert suppressed(copying) == [0, 3, 0, 3]
    assert copying.datapath.copy_counts(SegmentMatch(IP, SYN)) == (10, 7)
    assert copying.state(2).copies == 5
    # The other flags have the same buckets.
    flow = Connection(copying).open()
    flow.data(0, flags="FA")
    assert flags(copying) == ["SA"] and suppressed(copying) == [0, 5, 0, 5]


def test_a_bridge_copies_no_more_than_its_rate(copying: Switch) -> None:
    limited(copying, port=in_bucket(5), bridge=in_bucket(7))
    for port in (1, 2, 3):
        syns(copying, port, 6)
    assert [copy.port for copy in take(copying)] == [1] * 5 + [2] * 2
    assert suppressed(copying) == [1, 4, 6, 11], "what a port may not copy takes nothing from the others"


def test_time_fills_the_buckets(copying: Switch) -> None:
    limited(copying, bridge=in_bucket(2))
    syns(copying, 2, 4)
    assert len(take(copying)) == 2
    state, zero = copying.datapath.window.copy_state, c_uint32(0)
    for hours, more in ((3, 2), (1, 1), (0, 0), (1000, 2)):  # no more than the bucket holds
        found = state.get(zero)
        found.copy_ns = max(0, found.copy_ns - hours * HOUR)
        state.set(zero, found)
        syns(copying, 2, 4)
        assert len(take(copying)) == more


@pytest.mark.parametrize("rate", [1, 3, 7, 1000, 1_000_000])
def test_a_second_has_as_many_copies_as_the_rate_says(rate: int) -> None:
    bucket = token_bucket(rate)
    assert bucket.burst_ns // bucket.gap_ns == rate


def test_a_ring_buffer_without_room(copying: Switch) -> None:
    """The agent is too slow: what it does not get is counted, and no packet waits."""
    frame, number = Connection(copying).from_client(flags="S", seq=1000, ack=0).frame(), 10_000
    copying.program.run(frame, copying.ports[2].ifindex, repeat=number)
    assert copying.datapath.copy_counts(SegmentMatch(IP, SYN))[0] == number
    found = len(take(copying))
    assert copying.datapath.not_copied == (0, number - found) and 0 < found < number
    assert copying.state(2).copies == found
    syns(copying, 2, 1)
    assert flags(copying) == ["S"]
