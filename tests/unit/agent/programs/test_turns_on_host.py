"""The turns program, compiled for the host: which packets it holds, and what it writes.

tests/switch/test_turns.py has it in the kernel.
"""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fairq_ryu.agent import law_header, layout
from fairq_ryu.agent.programs.flow_key import flow_key
from fairq_ryu.agent.programs.turns import mark_of
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.model import FlowKey
from tests.switch import packets
from tests.switch.packets import Segment

SOURCES = Path(__file__).parents[3] / "support/host_turns"
STRUCTS, FLAGS = layout.STRUCTS, layout.CONSTANTS
HELD, PASSES = 4, -1  # TC_ACT_STOLEN, TC_ACT_UNSPEC
PORT, NOW, BUCKET, FRAME = 7, 10**12, 25_000_000, 1526
U32 = ctypes.c_uint32


class World(ctypes.Structure):
    """``struct world`` of turns.c."""

    _fields_ = [
        ("port", STRUCTS["fq_port"]),
        ("law", STRUCTS["fq_port_law"]),
        ("state", STRUCTS["fq_law_state"]),
        ("queue", STRUCTS["fq_queue"]),
        ("check", STRUCTS["fq_queue_check"]),
        ("config", STRUCTS["fq_config"]),
        ("turns", STRUCTS["fq_turns"]),
        ("turn_port", STRUCTS["fq_turn_port"]),
        ("agent", STRUCTS["fq_turn_agent"]),
        ("key", STRUCTS["fq_flow_key"]),
        ("flow", STRUCTS["fq_flow"]),
        ("rival", STRUCTS["fq_flow"]),
        ("rule_key", STRUCTS["fq_flow_key"]),
        ("rule", STRUCTS["fq_rule"]),
        ("held", STRUCTS["fq_held"]),
        ("now", ctypes.c_uint64),
        *((name, U32) for name in ("slot", "known", "ring_full", "submitted")),
    ]


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    into = tmp_path_factory.mktemp("turns")
    law_header.write(into)
    found = into / "turns.so"
    flags = ["-O1", "-Wall", "-Werror", "-Wno-unused", "-Wno-unknown-attributes", "-shared", "-fPIC"]
    checks = ["-fsanitize=undefined", "-fsanitize-trap=all"]
    places = [f"-I{SOURCES}", f"-I{layout.BPF_DIR}", f"-I{into}", "-o", str(found), str(SOURCES / "turns.c")]
    subprocess.run(["clang", *flags, *checks, *places], check=True)
    return ctypes.CDLL(str(found))


@pytest.fixture
def leave(library: Any) -> Any:
    def run(world: Any, packet: Segment | bytes, mark: int = 0, ifindex: int = PORT) -> int:
        frame = packet.frame() if isinstance(packet, Segment) else packet
        left = U32(mark)
        verdict = library.host_take_turns(ctypes.byref(world), frame, len(frame), ifindex, ctypes.byref(left))
        ours = FLAGS["FQ_TURN_MARK"], FLAGS["FQ_TURN_CLOSED"]
        assert left.value == 0 or mark >> 20 not in ours, "later filters do not see our mark"
        return int(verdict)

    return run


def world(flows: int = 10) -> Any:
    """A port whose buffer holds 10 segments, and so many flows with one each."""
    made: Any = World(now=NOW, slot=3)
    made.config.bucket_ns = BUCKET
    made.port.ifindex = PORT
    epoch = NOW // BUCKET
    made.port.sharing[epoch % 8] = epoch << 32 | flows
    law = STRUCTS["fq_law"](
        kind=FairQLaw.kind,
        flags=FLAGS["FQ_LAW_TURNS"],
        limit=10 * FRAME,
        target=1,
        rate=25_000_000,
        floor_segments=1,
        first_window=10,
        syn_allowance=20,
    )
    made.law = STRUCTS["fq_port_law"](law=law, expires_ns=NOW + BUCKET)
    made.state.segment = 1460
    made.agent.until_ns = NOW + BUCKET
    return made


def know(made: Any, packet: Segment) -> tuple[Any, Any]:
    """The connection of a packet is known: the direction of its sender, and the other, all zeros."""
    made.known, made.key = 1, flow_key(flow_of(packet))
    own = direction(packet)
    return made.flow.dir[own], made.flow.dir[1 - own]


def flow_of(packet: Segment) -> FlowKey:
    vlan = packet.vlans[0][1] & 0xFFF if packet.vlans else 0
    return FlowKey(packet.src, packet.dst, packet.sport, packet.dport, vlan)


def direction(packet: Segment) -> int:
    return int(flow_key(flow_of(packet), directed=True).dir)


OPTIONS = packets.syn_options(1460, 7)
SYN_ACK = Segment("10.0.0.2", "10.0.0.1", 80, 40000, seq=5000, ack=1001, flags="SA", options=OPTIONS)
ALL = {
    "SYN-ACK": SYN_ACK,
    "SYN": Segment("10.0.0.1", "10.0.0.2", 40000, 80, seq=1000, flags="S", options=OPTIONS),
    "IPv6": SYN_ACK.but(src="fd00::2", dst="fd00::1"),
    "VLAN": SYN_ACK.but(vlans=((packets.VLAN, 7),)),
}
every = pytest.mark.parametrize("packet", ALL.values(), ids=list(ALL))


@every
def test_it_is_handed_over_without_room(leave: Any, packet: Segment) -> None:
    made = world()
    assert leave(made, packet) == HELD
    held, frame = made.held, packet.frame()
    assert bytes(held.data[: held.captured]) == frame and (held.ifindex, held.ns) == (PORT, NOW)
    assert bytes(held.key) == bytes(flow_key(flow_of(packet), directed=True))
    assert (made.turns.held, made.turns.first, made.turns.expected) == (1, FRAME, 0)


@every
def test_it_passes_with_room_and_its_first_window_is_expected(leave: Any, packet: Segment) -> None:
    made = world(9)
    assert leave(made, packet) == PASSES
    assert (made.submitted, made.turns.expected, made.turns.expected_ns) == (0, FRAME, NOW)
    # That was the last room, for twice the time in which the port sends its buffer.
    made.queue.backlog, made.queue.last_ns, made.check.drain_ns = 9 * FRAME, NOW, BUCKET
    assert made.turns.hold_ns == 10 * FRAME * 40
    made.now += 2 * made.turns.hold_ns - 1
    assert leave(made, packet) == HELD, "whatever the port has sent meanwhile"
    made.now += 1
    assert leave(made, packet) == PASSES


@every
def test_flows_count_with_the_minimum_window_of_the_law(leave: Any, packet: Segment) -> None:
    # With a sixth flow, the law lowers the minimum of all to a segment; but five have two under way.
    for flows, verdict, floor, first in ((4, PASSES, 2, 2), (5, HELD, 2, 1), (6, PASSES, 1, 1)):
        made = world(flows)
        made.law.law.floor_segments = 2
        made.law.law.flags |= FLAGS["FQ_LAW_FLOOR"]
        assert leave(made, packet) == verdict
        assert (made.turns.floor, made.turns.first) == (floor * FRAME, first * FRAME)


@every
def test_a_full_queue_has_no_room_unless_it_is_stale(leave: Any, packet: Segment) -> None:
    for stale, verdict in ((0, HELD), (1, PASSES)):
        made = world(9)
        made.check.drain_ns = 10**9
        made.queue.backlog, made.queue.last_ns = 10 * FRAME, NOW - 10**9 - stale
        assert leave(made, packet) == verdict


@every
def test_it_waits_behind_others(leave: Any, packet: Segment) -> None:
    made = world(9)
    made.turn_port.waiting = 1
    assert leave(made, packet) == HELD


@every
def test_it_passes_without_agent_lease_turns_or_room_in_the_ring(leave: Any, packet: Segment) -> None:
    made = world()
    made.agent.until_ns = NOW
    assert leave(made, packet) == PASSES and made.turns.expected == FRAME
    made = world()
    made.law.expires_ns = NOW
    assert leave(made, packet) == PASSES
    made = world()
    made.law.law.flags = 0xFFFF - FLAGS["FQ_LAW_TURNS"]
    assert leave(made, packet) == PASSES
    made = world()
    made.ring_full = 1
    assert leave(made, packet) == PASSES and (made.turns.held, made.turns.full) == (0, 1)
    assert leave(world(), packet, ifindex=8) == PASSES
    made = world()
    made.port.ifindex = 9  # the slot is another port's now
    assert leave(made, packet) == PASSES


@every
def test_other_packets_pass(leave: Any, packet: Segment) -> None:
    changes: list[dict[str, Any]] = [{"payload": b"x"}, {"flags": "RA"}, {"flags": "SF"}]
    changes += [{"flags": "A", "options": b""}, {"payload": b"x" * 1000}]
    for change in changes:
        assert leave(world(), packet.but(**change)) == PASSES
    frame = packet.frame()
    for length in range(14, len(frame)):
        assert leave(world(), frame[:length]) == PASSES


@every
def test_a_flow_with_a_rule_of_its_own_passes(leave: Any, packet: Segment) -> None:
    made = world()
    # A rule is about ACKs, here those of what the sender of this packet will send.
    made.rule_key = flow_key(flow_of(packet).reversed, directed=True)
    made.rule.expires_ns = NOW + 1
    assert leave(made, packet) == PASSES
    made = world()
    made.rule_key = flow_key(flow_of(packet).reversed, directed=True)
    made.rule.expires_ns = NOW
    assert leave(made, packet) == HELD, "it has expired"
    made = world()
    made.rule_key = flow_key(flow_of(packet), directed=True)
    made.rule.expires_ns = NOW + 1
    assert leave(made, packet) == HELD, "it is about the other direction"


@every
def test_what_has_had_its_turn_passes(leave: Any, packet: Segment) -> None:
    for flag in ("FQ_SYN_SEEN", "FQ_KNOWN"):
        made = world()
        own, _ = know(made, packet)
        own.flags, own.isn = FLAGS[flag], packet.seq
        assert leave(made, packet) == PASSES and made.turns.expected == 0
        own.isn += 1
        assert leave(made, packet) == HELD, "another connection with these ports"


def waiting_syn(made: Any, flow: Any, isn: int = 1000) -> Any:
    other = flow.dir[1 - direction(SYN_ACK)]
    other.flags, other.isn, other.seq_next = FLAGS["FQ_SYN_SEEN"], isn, isn + 1
    other.syn_ns = NOW - 60_000_000
    return other


@pytest.mark.parametrize("of_rival", [False, True])
def test_the_wait_is_taken_out_of_the_round_trip_time(leave: Any, of_rival: bool) -> None:
    made = world()
    know(made, SYN_ACK)
    answered = waiting_syn(made, made.rival if of_rival else made.flow)
    other = waiting_syn(made, made.flow if of_rival else made.rival, isn=2000)
    assert leave(made, SYN_ACK, mark_of(50_000_000)) == PASSES
    assert answered.syn_ns == NOW - 10_000_000 and other.syn_ns == NOW - 60_000_000
    assert (made.submitted, made.turns.expected) == (0, FRAME), "a packet that has waited leaves, and counts"


def test_a_syn_that_was_repeated_gives_no_round_trip_time(leave: Any) -> None:
    made = world()
    know(made, SYN_ACK)
    answered = waiting_syn(made, made.flow)
    answered.syn_ns = 0
    assert leave(made, SYN_ACK, mark_of(50_000_000)) == PASSES
    assert answered.syn_ns == 0


@every
def test_nobody_waits_and_nothing_is_expected_while_a_flood_uses_up_the_allowance(
    leave: Any, packet: Segment
) -> None:
    made = world()
    made.turns.begun, made.turns.begun_ns, made.turns.proven = 24, NOW - 9_999_999_999, 3
    made.state.proven = 8
    assert leave(made, packet) == HELD, "19 handshakes are incomplete"
    made.state.proven = 7
    for mark in (0, mark_of(50_000_000)):
        assert leave(made, packet, mark) == PASSES
    assert (made.turns.begun, made.turns.expected, made.turns.full) == (24, 0, 1)
    made.turn_port.waiting = 9
    assert leave(made, packet) == PASSES, "nor behind others"
    made.turn_port.waiting = 0
    made.now += 1
    made.law.expires_ns = made.agent.until_ns = made.now + BUCKET
    assert leave(made, packet) == HELD, "they are forgotten after ten seconds"


def test_a_flood_uses_up_the_allowance_and_takes_no_more_room(leave: Any) -> None:
    """A hundred SYNs with forged addresses, which leave late; then a flood on an idle port."""
    made = world()
    syn = ALL["SYN"]
    for number in range(100):
        assert leave(made, syn.but(sport=1000 + number), mark_of(500_000_000)) == PASSES
    assert (made.turns.begun, made.turns.expected) == (20, 10 * FRAME)
    made = world(0)
    verdicts = [leave(made, syn.but(sport=1000 + number)) for number in range(100)]
    # The buffer holds ten, and the agent has the others.
    assert verdicts == [PASSES] * 10 + [HELD] * 90
    assert (made.turns.begun, made.turns.held, made.turns.full) == (10, 90, 0)


def test_other_marks_mean_nothing(leave: Any) -> None:
    assert leave(world(), SYN_ACK, 50) == HELD
    assert leave(world(), SYN_ACK, (FLAGS["FQ_TURN_MARK"] - 1) << 20) == HELD
    assert leave(world(), SYN_ACK, (FLAGS["FQ_TURN_CLOSED"] + 1) << 20) == HELD


def test_no_first_window_is_expected_of_a_sender_whose_window_is_closed(leave: Any) -> None:
    made = world()
    assert leave(made, SYN_ACK, mark_of(600_000_000, closed=True)) == PASSES
    assert (made.turns.begun, made.turns.expected) == (1, 0)
    assert leave(made, SYN_ACK, mark_of(600_000_000)) == PASSES
    assert (made.turns.begun, made.turns.expected) == (2, FRAME)
