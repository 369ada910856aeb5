"""The agent's queue laws: objects of the channel, whose rules live beside the window rule of a port."""

from __future__ import annotations

import dataclasses
import struct
import time
from typing import Any

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.agent import layout
from fairq_ryu.agent.libbpf import BpfError
from fairq_ryu.agent.openflow_server import OpenFlowServer
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.agent.queue_law_table import QueueLawTable, own_state, parameters
from fairq_ryu.channel import flowmod, framing, queue_law, window_law
from fairq_ryu.channel.refusal import OpenFlowError
from fairq_ryu.channel.window_law import ALL_LAWS, LawCommand
from fairq_ryu.far_queue import FAR
from fairq_ryu.laws.afcd import AfcdLaw
from fairq_ryu.laws.afq import AfqLaw
from fairq_ryu.laws.codel import CodelLaw
from fairq_ryu.laws.mark import MarkLaw
from fairq_ryu.laws.red import RedLaw
from fairq_ryu.laws.registry import queue_laws
from fairq_ryu.laws.sfb import SfbLaw
from fairq_ryu.model import WindowKind, WindowRule
from fairq_ryu.queue_law_spec import MOST_INTERVAL_US, MOST_TARGET_US, Limits, QueueLawSpec, Variant
from tests.support.agent_peer import Peer, bad_request, role
from tests.support.fakes import DATAPATH, FakeDatapath, bridge_port

AFCD = AfcdLaw()
LIMITS = QueueLimits("netem", 125_000, 25_000_000)


def add(law: int = 1, spec: QueueLawSpec | None = AFCD, command: LawCommand = LawCommand.ADD) -> Any:
    return queue_law.set_queue_law(DATAPATH, command, law, spec)


def rule(port: int = 1, law: int | None = 1, lease: int = 2) -> Any:
    return flowmod.queue_rule(DATAPATH, port, law, lease)


def states(peer: Peer, law: int = ALL_LAWS) -> list[queue_law.QueueLawState]:
    (answer,) = peer.ask(queue_law.request(DATAPATH, law))
    return queue_law.decode_reply(bytes(answer.body.data))


# The life of a law


def test_a_far_queue_has_no_queue_law(data: FakeDatapath) -> None:
    """Its packets are here already: none can be dropped or marked."""
    data.ports[FAR | 1], data.limits[FAR | 1] = bridge_port(FAR | 1), LIMITS
    table = QueueLawTable(data, 8)
    table.set(queue_law.SetQueueLaw(LawCommand.ADD, 1, AFCD))
    with pytest.raises(OpenFlowError, match="is a far queue") as refused:
        table.install_rule(FAR | 1, WindowRule(WindowKind.QUEUE_LAW, 1), 10**12, 0)
    assert refused.value.code == window_law.ERROR_LAW_NO_QUEUE and data.queue_laws == {}


def test_a_law_does_nothing_until_a_rule_refers_to_it(peer: Peer, data: FakeDatapath) -> None:
    assert peer.ask(add()) == []
    assert data.queue_laws == {}
    assert peer.ask(rule()) == []
    number, law, expires = data.queue_laws[1]
    assert (number, law.kind, law.limit_bytes, law.rate) == (1, AfcdLaw.kind, 125_000, 25_000_000)
    assert 0 < expires - time.monotonic_ns() <= 2_000_000_000
    assert data.installed == {}, "no window rule"


def test_a_port_has_a_window_rule_and_a_queue_law_and_each_ends_by_itself(
    peer: Peer, data: FakeDatapath, switch: OpenFlowServer
) -> None:
    peer.ask(add())
    peer.set_window(31_250, pool=True, lease=1)
    peer.ask(rule(lease=3))
    assert 1 in data.installed and 1 in data.queue_laws
    now = time.monotonic_ns()
    switch.expire_rules(now + 2_000_000_000)
    assert 1 not in data.installed and 1 in data.queue_laws
    peer.set_window(31_250, pool=True, lease=9)
    switch.expire_rules(now + 4_000_000_000)
    assert 1 in data.installed and 1 not in data.queue_laws
    assert peer.ask(rule()) == [], "the law is still there"
    peer.ask(rule(law=None))
    assert 1 in data.installed and data.queue_laws == {}


def test_everything_is_cleared_at_once(peer: Peer, data: FakeDatapath) -> None:
    peer.ask(add())
    peer.set_window(31_250, pool=True)
    peer.ask(rule())
    peer.ask(flowmod.clear(DATAPATH))
    assert data.installed == data.queue_laws == {}


def test_the_rules_that_refer_to_a_deleted_law_are_removed(peer: Peer, data: FakeDatapath) -> None:
    for number in (1, 2):
        peer.ask(add(number))
        told = rule(number, number)
        told.flags = ofp.OFPFF_SEND_FLOW_REM
        peer.ask(told)
    (removed,) = peer.ask(add(1, None, LawCommand.DELETE))
    assert (removed.msg_type, removed.table_id, removed.match["in_port"]) == (ofp.OFPT_FLOW_REMOVED, 1, 1)
    assert data.queue_laws.keys() == {2}
    assert len(peer.ask(add(ALL_LAWS, None, LawCommand.DELETE))) == 1
    assert data.queue_laws == {}
    assert peer.ask(add(1, None, LawCommand.DELETE)) == [], "as with meters, that is no error"


def test_a_law_is_changed_while_it_is_in_force(peer: Peer, data: FakeDatapath) -> None:
    peer.ask(add())
    peer.ask(rule())
    changed = dataclasses.replace(AFCD, target_us=700)
    assert peer.ask(add(1, changed, LawCommand.MODIFY)) == []
    assert layout.own("afcd_law", data.queue_laws[1][1]).target_ns == 700_000


def test_the_parameters_follow_the_port(switch: OpenFlowServer, peer: Peer, data: FakeDatapath) -> None:
    peer.ask(add())
    peer.ask(rule())
    before = data.queue_laws[1][1]
    switch.queue_laws.limits_changed()
    assert data.queue_laws[1][1] is before
    data.limits[1] = QueueLimits("bfifo", 50_000, 5_000_000)
    switch.queue_laws.limits_changed()
    assert (data.queue_laws[1][1].limit_bytes, data.queue_laws[1][1].rate) == (50_000, 5_000_000)
    assert [state.port for state in switch.queue_laws.states(ALL_LAWS)] == [1]
    data.failure = BpfError("no room for another flow table")
    data.limits[1] = QueueLimits("bfifo", 60_000, 5_000_000)
    switch.queue_laws.limits_changed()  # the port has no law any more, and the agent goes on
    assert [state.port for state in switch.queue_laws.states(ALL_LAWS)] == [0]
    data.failure = None
    peer.ask(rule())
    data.limits[1] = QueueLimits("", 0, 0)
    switch.queue_laws.limits_changed()
    assert data.queue_laws == {}
    assert peer.own_refusal(rule()) == window_law.ERROR_LAW_NO_QUEUE


def test_a_port_that_is_removed_loses_its_rule(
    switch: OpenFlowServer, peer: Peer, data: FakeDatapath
) -> None:
    peer.ask(add())
    peer.ask(rule())
    switch.forget_port(1, time.monotonic_ns())
    assert data.queue_laws == {} and states(peer)[0].port == 0


# Refusals change nothing


def test_what_is_refused(peer: Peer, data: FakeDatapath) -> None:
    assert peer.own_refusal(rule()) == window_law.ERROR_LAW_UNKNOWN
    peer.ask(add())
    assert peer.own_refusal(add()) == window_law.ERROR_LAW_EXISTS
    assert peer.own_refusal(add(2, AFCD, LawCommand.MODIFY)) == window_law.ERROR_LAW_UNKNOWN
    assert peer.own_refusal(queue_law.request(DATAPATH, 2)) == window_law.ERROR_LAW_UNKNOWN
    for number in (0, 0xFFFF0001):
        assert peer.own_refusal(add(number)) == window_law.ERROR_LAW_PARAMETER
    body = bytearray(queue_law.encode_set(LawCommand.ADD, 2, AFCD))
    for place, value, code in ((0, 9, window_law.ERROR_LAW_COMMAND), (1, 99, window_law.ERROR_LAW_KIND)):
        wrong = bytes(body[:place]) + bytes([value]) + bytes(body[place + 1 :])
        message = framing.command(DATAPATH, queue_law.EXP_TYPE_SET_QUEUE_LAW, wrong)
        assert peer.own_refusal(message) == code
    short = framing.command(DATAPATH, queue_law.EXP_TYPE_SET_QUEUE_LAW, bytes(body[:-1]))
    assert peer.refusal(short) == bad_request("BAD_LEN")
    peer.ask(rule())
    assert peer.own_refusal(rule(port=2)) == window_law.ERROR_LAW_IN_USE
    assert data.queue_laws.keys() == {1}
    for number in range(2, 9):
        peer.ask(add(number))
    assert peer.own_refusal(add(9)) == window_law.ERROR_LAW_TABLE_FULL


@pytest.mark.parametrize("law", queue_laws().values(), ids=lambda law: law.name)
def test_every_bound_is_checked(peer: Peer, law: type[QueueLawSpec]) -> None:
    for name, code, least, most, _ in law.parameters():
        for value in (least - 1, most + 1):
            if 0 <= value < 1 << 8 * struct.calcsize(f"!{code}"):
                assert peer.own_refusal(add(1, law(**{name: value}))) == window_law.ERROR_LAW_PARAMETER
    assert states(peer) == []


@pytest.mark.parametrize("law", queue_laws().values(), ids=lambda law: law.name)
def test_a_law_fills_its_own_struct(law: type[QueueLawSpec]) -> None:
    fields = [name for name, *_ in layout.STRUCTS[f"{law.name}_law"]._fields_ if not name.startswith("pad")]
    assert sorted(law().own(125_000, 25_000_000)) == sorted(fields)


def test_a_law_that_the_kernel_refuses_is_in_force_nowhere(peer: Peer, data: FakeDatapath) -> None:
    peer.ask(add())
    peer.ask(rule())
    data.failure = BpfError("no memory")
    assert peer.refusal(rule()) == (ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_UNKNOWN)
    assert states(peer)[0].port == 0
    data.failure = None
    assert peer.ask(rule()) == [] and states(peer)[0].port == 1


def test_contradictions_are_refused(peer: Peer) -> None:
    red = RedLaw(min_ppm=250_000)
    sfb = SfbLaw(bin_packets=26)
    assert [peer.own_refusal(add(1, each)) for each in (red, sfb)] == [window_law.ERROR_LAW_PARAMETER] * 2


def test_a_slave_changes_nothing(peer: Peer, data: FakeDatapath) -> None:
    role(peer, ofp.OFPCR_ROLE_SLAVE)
    assert peer.refusal(add()) == bad_request("IS_SLAVE")
    assert peer.refusal(rule()) == bad_request("IS_SLAVE")


# Statistics


def test_the_state_of_a_law(peer: Peer, data: FakeDatapath) -> None:
    peer.ask(add())
    assert states(peer) == [queue_law.QueueLawState(1, 0, AfcdLaw.kind, Variant.OURS, 0)]
    peer.ask(rule())
    state = layout.fq_queue_law_state(fair_q16=500 << 16, flows=4, filled=2000, backlog=62_524)
    state.counts = layout.fq_queue_law_counts(judged=90, dropped=5, marked=3, not_ect=80, unmarked=2)
    data.queue_law_states[1] = state
    (found,) = states(peer, 1)
    assert (found.port, found.limits, found.fair_q16, found.flows, found.samples) == (
        1,
        Limits.SHARE,
        500 << 16,
        4,
        2000,
    )
    assert (found.judged, found.dropped, found.marked, found.not_ect, found.unmarked) == (90, 5, 3, 80, 2)
    # The buffer drains in 5 ms: an interval of 2 x (1 + 5) ms and a twentieth of it.
    assert (found.delay_us, found.target_us, found.interval_us) == (2500, 600, 12_000)
    assert (found.target_bytes, found.sample_every) == (15_000, 10)


def test_rules_are_listed_in_their_table_with_what_they_have_done(peer: Peer, data: FakeDatapath) -> None:
    peer.ask(add())
    peer.set_window(31_250, pool=True)
    peer.ask(rule())
    state = layout.fq_queue_law_state()
    state.counts = layout.fq_queue_law_counts(judged=90, dropped=5, marked=3)
    data.queue_law_states[1] = state

    def listed(table: int) -> list[tuple[int, int, int]]:
        request = parser.OFPFlowStatsRequest(DATAPATH, table_id=table, match=parser.OFPMatch())
        (answer,) = peer.ask(request)
        return [(each.table_id, each.packet_count, each.byte_count) for each in answer.body]

    assert listed(0) == [(0, 0, 0)]
    assert listed(1) == [(1, 90, 8)]
    assert listed(ofp.OFPTT_ALL) == [(0, 0, 0), (1, 90, 8)]
    (tables,) = peer.ask(parser.OFPTableStatsRequest(DATAPATH, 0))
    assert [(each.table_id, each.active_count, each.matched_count) for each in tables.body] == [
        (0, 1, 0),
        (1, 1, 90),
    ]
    again = rule()
    again.flags = ofp.OFPFF_RESET_COUNTS
    peer.ask(again)
    assert listed(1) == [(1, 0, 0)]
    state.counts = layout.fq_queue_law_counts(judged=97, dropped=7, marked=3)
    assert listed(1) == [(1, 7, 2)]


def test_a_removed_rule_is_reported_with_what_its_law_has_done(peer: Peer, data: FakeDatapath) -> None:
    def told() -> Any:
        made = rule()
        made.flags = ofp.OFPFF_SEND_FLOW_REM
        return made

    peer.ask(add())
    peer.ask(told())
    state = layout.fq_queue_law_state()
    state.counts = layout.fq_queue_law_counts(judged=90, dropped=5, marked=3)
    data.queue_law_states[1] = state
    (removed,) = peer.ask(rule(law=None))
    assert (removed.msg_type, removed.packet_count, removed.byte_count) == (ofp.OFPT_FLOW_REMOVED, 90, 8)
    peer.ask(told())
    state.counts.judged, state.counts.marked = 92, 4
    (removed,) = peer.ask(rule(law=None))
    assert (removed.packet_count, removed.byte_count) == (2, 1), "the next rule of the port and the slot"


# Parameters


def test_times_that_are_worked_out_are_within_the_bounds() -> None:
    """Of a megabyte at 100 kbit/s, which takes 80 s to drain."""
    law = parameters(CodelLaw(), QueueLimits("bfifo", 1_000_000, 12_500))
    own = layout.own("codel_law", law)
    assert own.interval_ns == MOST_INTERVAL_US * 1000
    assert own.target_ns <= MOST_TARGET_US * 1000


def own(law: QueueLawSpec) -> Any:
    return layout.own(f"{law.name}_law", parameters(law, LIMITS))


def test_the_parameters_of_each_kind() -> None:
    flags = {name: layout.CONSTANTS[f"FQ_QLAW_{name}"] for name in ("ECN", "FLOWS", "BINS")}
    shares = own(AFCD).sharing
    assert (shares.update_ns, shares.shadow_packets, shares.variant) == (6_250_000, 2000, Variant.OURS)
    assert parameters(AFCD, LIMITS).flags == flags["FLOWS"]
    afq = AfqLaw(variant=Variant.AUTHORS, ecn=1)
    assert parameters(afq, LIMITS).flags == flags["ECN"] | flags["FLOWS"]
    assert (own(afq).sharing.target_bytes, own(afq).sharing.variant) == (25_000, Variant.AUTHORS)
    red = own(RedLaw(max_p_ppm=1_000_000))
    assert (red.min_bytes, red.max_bytes, red.max_p_q32, red.weight_shift) == (10_412, 31_250, 2**32 - 1, 9)
    assert (parameters(RedLaw(weight_shift=7), LIMITS).unit, parameters(AFCD, LIMITS).unit) == (7, 2000)
    assert (own(SfbLaw()).bin_packets, own(SfbLaw()).bin_most) == (20, 25)
    assert parameters(SfbLaw(), LIMITS).flags == flags["BINS"]
    assert own(MarkLaw()).mark_bytes == 30_280
    assert own(MarkLaw(mark_ppm=250_000)).mark_bytes == LIMITS.limit // 4
    assert own(MarkLaw(mark_ppm=1)).mark_bytes == 1514


def test_why_a_law_drops_or_marks_now() -> None:
    states = {law.name: layout.fq_queue_law_state() for law in queue_laws().values()}

    def now(law: QueueLawSpec) -> Limits:
        return law.acting_on(states[law.name], own_state(law, states[law.name]), 120_000)

    assert {now(law()) for law in queue_laws().values()} == {Limits.NOTHING}
    states["mark"].backlog = 30_281
    assert now(MarkLaw()) is Limits.LENGTH and now(MarkLaw(mark_bytes=30_281)) is Limits.NOTHING
    assert now(MarkLaw(mark_ppm=250_000)) is Limits.LENGTH  # 30,000 bytes
    assert now(MarkLaw(mark_ppm=260_000)) is Limits.NOTHING
    layout.own("red_state", states["red"]).since = 1
    layout.own("sfb_state", states["sfb"]).filled_ns = 1
    assert (now(RedLaw()), now(SfbLaw())) == (Limits.MEAN, Limits.UNRESPONSIVE)
    for name in ("afq", "afcd"):
        states[name].fair_q16, states[name].flows = 1 << 16, 2
    assert now(AfqLaw(variant=Variant.PAPER)) is now(AfcdLaw()) is Limits.SHARE
    assert now(AfcdLaw(variant=Variant.PAPER)) is Limits.NOTHING
    states["afcd"].codel.dropping = states["codel"].codel.dropping = 1
    assert now(AfcdLaw()) is now(CodelLaw()) is Limits.DELAY
    states["afq"].flows = 1
    assert now(AfqLaw()) is Limits.NOTHING, "one flow takes no other's share"
