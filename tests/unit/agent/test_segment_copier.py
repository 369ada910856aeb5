"""Rules for copies in the agent: who asks, for how long, and which controllers get the copies."""

from __future__ import annotations

import time
from typing import Any

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.agent.layout import CONSTANTS
from fairq_ryu.agent.libbpf import BpfError
from fairq_ryu.agent.openflow_server import OpenFlowServer
from fairq_ryu.agent.programs.copies import RULES
from fairq_ryu.agent.segment_copier import CopiedSegment
from fairq_ryu.channel import flowmod, segment_copies
from fairq_ryu.channel.segment_copies import COOKIE_COPY, COPY_BYTES, SegmentCopy, SegmentMatch
from tests.support.agent_peer import Peer, bad_request, role
from tests.support.fakes import DATAPATH

IP, IPV6 = 0x0800, 0x86DD
SYN, FIN, RST = 2, 1, 4
EVERY = [SegmentMatch(eth, flag) for eth in (IP, IPV6) for flag in (SYN, FIN, RST)]
OF_SYN = SegmentMatch(IP, SYN)
NS = 1_000_000_000


def ask(peer: Peer, lease: int = 5) -> None:
    for message in segment_copies.requests(DATAPATH, lease):
        assert peer.ask(message) == []


def changed(message: Any, **fields: Any) -> Any:
    for name, value in fields.items():
        setattr(message, name, value)
    return message


def request(target: SegmentMatch = OF_SYN, lease: int = 5, **fields: Any) -> Any:
    """One of the controller's requests, with some fields changed."""
    messages = dict(zip(EVERY, segment_copies.requests(DATAPATH, lease), strict=True))
    return changed(messages[target], **fields)


def output(max_len: int) -> list[Any]:
    action = parser.OFPActionOutput(ofp.OFPP_CONTROLLER, max_len)
    return [parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, [action])]


def delete(match: Any, **fields: Any) -> Any:
    settings = {"out_port": ofp.OFPP_ANY, "out_group": ofp.OFPG_ANY, "command": ofp.OFPFC_DELETE} | fields
    return parser.OFPFlowMod(DATAPATH, match=match, **settings)


def copied(target: SegmentMatch = OF_SYN, port: int = 1, frame: bytes = b"f" * 80) -> CopiedSegment:
    return CopiedSegment(target, port, frame, 1000)


def deliver(switch: OpenFlowServer, *copies: CopiedSegment, ahead: float = 0) -> None:
    switch.copier.deliver(copies, time.monotonic_ns() + int(ahead * NS))


def received(peer: Peer) -> list[SegmentCopy | None]:
    return [segment_copies.decode(message) for message in peer.taken()]


def rules(peer: Peer, match: Any = None) -> list[Any]:
    wanted = parser.OFPFlowStatsRequest(DATAPATH, match=parser.OFPMatch() if match is None else match)
    return [stats for answer in peer.ask(wanted) for stats in answer.body]


# Rules


def test_a_controller_asks_and_renews(switch, peer, data):
    before = time.monotonic_ns()
    ask(peer, lease=5)
    assert list(data.copies) == EVERY
    assert all(0 <= until - before - 5 * NS < 60 * NS for until in data.copies.values())
    data.copies_counted[OF_SYN] = (8, 7)
    first = dict(data.copies)
    ask(peer, lease=5)
    assert all(data.copies[target] > first[target] for target in EVERY)
    assert data.copies_counted[OF_SYN] == (8, 7), "a renewal keeps the counts"
    assert peer.ask(request(flags=ofp.OFPFF_RESET_COUNTS)) == []
    assert data.copies_counted[OF_SYN] == (0, 0)
    assert data.installed == {}, "no window rule"


def test_without_a_request_nothing_changes(switch, peer, data):
    peer.set_window(3000)
    deliver(switch, copied())
    assert (data.copies, peer.taken(), len(switch.copier)) == ({}, [], 0)
    assert [stats.match["in_port"] for stats in rules(peer)] == [1]


def test_statistics_list_the_rules(peer, data):
    peer.set_window(3000)
    ask(peer)
    data.copies_counted[OF_SYN] = (8, 7)
    found = {
        SegmentMatch(stats.match["eth_type"], stats.match["tcp_flags"][0]): stats
        for stats in rules(peer)
        if "tcp_flags" in stats.match
    }
    assert list(found) == EVERY
    stats = found[OF_SYN]
    assert (stats.cookie, stats.hard_timeout, stats.packet_count, stats.byte_count) == (COOKIE_COPY, 5, 8, 7)
    assert stats.match["tcp_flags"] == (SYN, SYN)
    (action,) = stats.instructions[0].actions
    assert (action.type, action.port, action.max_len) == (ofp.OFPAT_OUTPUT, ofp.OFPP_CONTROLLER, COPY_BYTES)
    assert len(rules(peer, parser.OFPMatch(eth_type=IPV6))) == 3
    assert len(rules(peer, parser.OFPMatch(in_port=1))) == 1
    aggregate = peer.one(parser.OFPAggregateStatsRequest(DATAPATH, 0, 0, 0, 0, 0, 0, parser.OFPMatch())).body
    assert (aggregate.flow_count, aggregate.packet_count, aggregate.byte_count) == (7, 8, 7)
    table, _queue_laws = peer.one(parser.OFPTableStatsRequest(DATAPATH, 0)).body
    assert (table.active_count, table.matched_count) == (7, 8)


def test_a_modification_changes_the_length_and_no_lease(peer, data, switch):
    ask(peer)
    until = dict(data.copies)
    every = parser.OFPMatch(eth_type=IP)
    change = parser.OFPFlowMod(
        DATAPATH, command=ofp.OFPFC_MODIFY, match=every, hard_timeout=9, instructions=output(60)
    )
    assert peer.ask(change) == [] and data.copies == until
    assert {rule.target: rule.action.max_len for rule in switch.copier.rules()} == {
        target: 60 if target.eth_type == IP else COPY_BYTES for target in EVERY
    }


def test_a_modification_changes_rules_of_its_own_kind_only(peer, data, switch):
    peer.set_window(3000)
    ask(peer)
    window = parser.OFPActionSetField(tcp_window=5000)
    change = parser.OFPFlowMod(
        DATAPATH,
        command=ofp.OFPFC_MODIFY,
        match=parser.OFPMatch(),
        instructions=[parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, [window])],
    )
    assert peer.ask(change) == []
    assert data.installed[1][0].bytes == 5000
    assert peer.ask(changed(change, instructions=output(60), xid=None)) == []
    assert data.installed[1][0].bytes == 5000
    assert {rule.action.max_len for rule in switch.copier.rules()} == {60}


def test_deletions(peer, data):
    peer.set_window(3000)
    ask(peer)
    for message in segment_copies.withdrawals(DATAPATH)[:2]:
        assert peer.ask(message) == []
    assert list(data.copies) == EVERY[2:]
    assert peer.ask(delete(parser.OFPMatch(eth_type=IPV6))) == []
    assert list(data.copies) == [SegmentMatch(IP, RST)]
    assert peer.ask(delete(parser.OFPMatch(), cookie=1, cookie_mask=1)) == []  # its lowest bit is set
    assert (data.copies, list(data.installed)) == ({}, [1])


@pytest.mark.parametrize(
    ("fields", "copies", "windows"),
    [
        ({}, 0, 0),
        ({"out_port": ofp.OFPP_CONTROLLER}, 0, 1),
        ({"out_port": 1}, 6, 1),
        ({"out_group": 1}, 6, 1),
        ({"command": ofp.OFPFC_DELETE_STRICT}, 6, 1),
        ({"cookie": 1, "cookie_mask": 1 << 63}, 6, 0),
    ],
    ids=str,
)
def test_deletions_by_output_and_cookie(peer, data, fields, copies, windows):
    peer.set_window(3000, cookie=0)
    ask(peer)
    assert peer.ask(delete(parser.OFPMatch(), **fields)) == []
    assert (len(data.copies), len(data.installed)) == (copies, windows)


def test_the_controllers_deletion_of_all_rules(peer, data):
    ask(peer)
    assert peer.ask(flowmod.clear(DATAPATH)) == []
    assert data.copies == {}


def test_leases_end(switch, peer, data):
    ask(peer, lease=1)
    peer.ask(request(lease=60, flags=ofp.OFPFF_SEND_FLOW_REM))
    switch.expire_rules(time.monotonic_ns() + 2 * NS)
    assert list(data.copies) == [OF_SYN] and peer.taken() == []
    data.copies_counted[OF_SYN] = (8, 7)
    switch.expire_rules(time.monotonic_ns() + 61 * NS)
    (gone,) = peer.taken()
    assert (gone.msg_type, gone.reason, gone.cookie) == (
        ofp.OFPT_FLOW_REMOVED,
        ofp.OFPRR_HARD_TIMEOUT,
        COOKIE_COPY,
    )
    assert (gone.match["tcp_flags"], gone.packet_count, gone.byte_count) == ((SYN, SYN), 8, 7)
    assert data.copies == {}


def test_refused_requests_change_nothing(switch, peer, data):
    ask(peer)
    before, writes = switch.copier.rules(), data.writes
    overlap = (ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_OVERLAP)
    assert peer.refusal(request(flags=ofp.OFPFF_CHECK_OVERLAP)) == overlap
    at_port = parser.OFPMatch(in_port=1, eth_type=IP, ip_proto=6, tcp_flags=(SYN, SYN))
    assert peer.refusal(request(match=at_port)) == (ofp.OFPET_BAD_MATCH, ofp.OFPBMC_BAD_WILDCARDS)
    whole = output(ofp.OFPCML_NO_BUFFER)
    assert peer.refusal(request(instructions=whole)) == (ofp.OFPET_BAD_ACTION, ofp.OFPBAC_BAD_ARGUMENT)
    data.failure = BpfError("no room")
    unknown = (ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_UNKNOWN)
    assert peer.refusal(request(lease=9)) == unknown
    role(peer, ofp.OFPCR_ROLE_SLAVE, 1)
    assert peer.refusal(request(lease=9)) == bad_request("IS_SLAVE")
    assert (switch.copier.rules(), data.writes) == (before, writes)


# Copies


def test_a_copy_is_a_packet_in(switch, peer):
    ask(peer)
    frame = bytes(range(200))
    deliver(switch, copied(port=2, frame=frame))
    (message,) = peer.taken()
    assert (message.msg_type, message.cookie) == (ofp.OFPT_PACKET_IN, COOKIE_COPY)
    assert segment_copies.decode(message) == SegmentCopy(2, frame[:COPY_BYTES], 1000)
    assert (switch.copier.counts.sent, switch.copier.counts.unread) == (1, 0)


def test_the_rule_says_how_much_of_a_segment_is_sent_and_with_which_cookie(switch, peer):
    peer.ask(request(cookie=77, instructions=output(20)))
    deliver(switch, copied())
    (message,) = peer.taken()
    assert (message.cookie, bytes(message.data), message.total_len) == (77, b"f" * 20, 1000)
    peer.ask(request(instructions=output(5000)))
    deliver(switch, copied(frame=b"f" * 196))  # with a VLAN tag that was beside the frame
    assert len(peer.taken()[0].data) == COPY_BYTES


def test_copies_keep_their_order(switch, peer):
    ask(peer)
    sent = [copied(EVERY[n % 6], n % 2 + 1, bytes([n]) * 60) for n in range(30)]
    deliver(switch, *sent[:17])
    deliver(switch, *sent[17:])
    assert [(copy.port, copy.frame) for copy in received(peer)] == [(each.port, each.frame) for each in sent]


def test_only_those_who_asked_get_copies(switch, peer):
    other, slave = Peer(switch), Peer(switch)
    ask(peer)
    other.ask(request(SegmentMatch(IP, FIN)))
    ask(slave)
    role(slave, ofp.OFPCR_ROLE_SLAVE, 1)
    deliver(switch, copied(), copied(SegmentMatch(IP, FIN)))
    assert (len(received(peer)), len(received(other)), received(slave)) == (2, 1, [])
    assert (switch.copier.counts.sent, switch.copier.counts.unread) == (3, 0)


def test_a_controller_whose_lease_is_over_gets_none(switch, peer):
    other = Peer(switch)
    ask(peer, lease=5)
    ask(other, lease=60)
    deliver(switch, copied(), ahead=6)
    assert (received(peer), len(received(other))) == ([], 1)
    switch.expire_rules(time.monotonic_ns() + 61 * NS)
    deliver(switch, copied())
    assert received(other) == []


def test_a_controller_that_does_not_read_loses_copies(switch, peer):
    other = Peer(switch)
    ask(peer)
    ask(other)
    peer.session._unread = lambda: 1 << 21
    deliver(switch, copied(), copied())
    assert (received(peer), len(received(other))) == ([], 2)
    assert (switch.copier.counts.sent, switch.copier.counts.unread) == (2, 2)
    peer.session._unread = lambda: 0
    deliver(switch, copied())
    assert len(received(peer)) == len(received(other)) == 1


def test_copies_end_with_the_last_connection_that_asked(switch, peer, data):
    other, bystander = Peer(switch), Peer(switch)
    ask(peer, lease=600)
    other.ask(request(lease=600, flags=ofp.OFPFF_SEND_FLOW_REM))
    peer.session.close()
    assert list(data.copies) == [OF_SYN]
    deliver(switch, copied(), copied(SegmentMatch(IP, FIN)))
    assert len(received(other)) == 1 and peer.taken() == []
    other.session.close()
    other.session.close()
    assert data.copies == {}
    (gone,) = bystander.taken()
    assert (gone.msg_type, gone.reason) == (ofp.OFPT_FLOW_REMOVED, ofp.OFPRR_DELETE)


def test_the_numbers_of_the_channel_are_those_of_the_program():
    assert CONSTANTS["FQ_COPY_BYTES"] == COPY_BYTES
    assert list(RULES) == EVERY
    assert sorted(RULES.values()) == list(range(CONSTANTS["FQ_COPY_RULES"]))
    for flag in (SYN, FIN, RST):
        ahead = RULES[SegmentMatch(IPV6, flag)] - RULES[SegmentMatch(IP, flag)]
        assert ahead == CONSTANTS["FQ_COPY_FLAGS"]
