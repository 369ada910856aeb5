"""The agent as an OpenFlow switch: messages of controllers as bytes, and its replies as Ryu decodes them."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.agent.controller_session import ControllerSession
from fairq_ryu.agent.libbpf import BpfError
from fairq_ryu.agent.openflow_server import OpenFlowServer
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.agent.rule_table import NS
from fairq_ryu.channel import (
    description,
    flow_changes,
    flow_records,
    flowmod,
    oxm,
    queue_depth,
    segment_state,
)
from fairq_ryu.channel.flow_changes import ChangeRequest, Changes, Chunk, ChunkFlags
from fairq_ryu.model import FlowKey, PortKey, RuleChange, RuleTarget, SegmentState, WindowKind, WindowRule
from fairq_ryu.openflow import pipeline
from tests.support.agent_peer import HELLO, Peer, bad_request, queue_state, role
from tests.support.fakes import DATAPATH, FakeDatapath, bridge_port, ryu_decode, split, wire

FLOW = FlowKey("10.0.0.1", "10.0.0.2", 33000, 80)


def window_of_port(port: int) -> RuleChange:
    return RuleChange(RuleTarget(PortKey(1, port), None), WindowRule(WindowKind.WINDOW, 5))


def raw(kind: int, body: bytes = b"", version: int = 4, length: int | None = None) -> bytes:
    return struct.pack("!BBHI", version, kind, 8 + len(body) if length is None else length, 77) + body


def multipart(kind: int, body: bytes = b"", flags: int = 0) -> bytes:
    return raw(ofp.OFPT_MULTIPART_REQUEST, struct.pack("!HH4x", kind, flags) + body)


# Greeting


def bitmap(versions: int, version: int = 4, before: bytes = b"") -> bytes:
    return raw(ofp.OFPT_HELLO, before + struct.pack("!HHI", 1, 8, versions), version)


def test_the_agent_sends_hello_first(switch):
    (hello,) = Peer(switch, greet=False).greeting
    assert hello.msg_type == ofp.OFPT_HELLO
    assert hello.elements[0].versions == [4]


@pytest.mark.parametrize(
    "hello",
    [
        HELLO,
        raw(ofp.OFPT_HELLO, version=6),  # without a bitmap: everything up to its version
        bitmap(1 << 4),
        bitmap(1 << 1 | 1 << 4, version=6),
        bitmap(1 << 4, version=1),  # the bitmap counts, not the header
        bitmap(1 << 4, before=struct.pack("!HH", 9, 5) + bytes(4)),  # behind an unknown element
    ],
)
def test_a_peer_that_offers_openflow_1_3_is_accepted(switch, hello):
    peer = Peer(switch, greet=False)
    assert peer.ask(hello) == []
    assert not peer.session.closed
    peer.session.ping()
    assert peer.taken()[0].msg_type == ofp.OFPT_ECHO_REQUEST


@pytest.mark.parametrize("hello", [raw(ofp.OFPT_HELLO, version=1), bitmap(1 << 1), bitmap(1 << 5, version=5)])
def test_a_peer_without_openflow_1_3_gets_hello_failed_and_is_disconnected(switch, hello):
    peer = Peer(switch, greet=False)
    assert peer.refusal(hello) == (ofp.OFPET_HELLO_FAILED, ofp.OFPHFC_INCOMPATIBLE)
    assert peer.session.closed
    assert peer.ask(raw(ofp.OFPT_ECHO_REQUEST)) == []


def test_a_controller_that_refuses_this_agent_says_why(peer):
    peer.session.receive(raw(ofp.OFPT_ERROR, struct.pack("!HH", ofp.OFPET_BAD_REQUEST, 0) + b"other"))
    peer.session.receive(raw(ofp.OFPT_ERROR, b"\0"))
    assert not peer.session.closed
    incompatible = struct.pack("!HH", ofp.OFPET_HELLO_FAILED, ofp.OFPHFC_INCOMPATIBLE)
    peer.session.receive(raw(ofp.OFPT_ERROR, incompatible + b"another version\n"))
    assert peer.session.closed and peer.session.refused
    assert peer.session.fault.startswith("it refuses this agent: another version")


@pytest.mark.parametrize("body", [b"\x00\x01", b"\x00\x01\x00\x00", b"\x00\x01\x00\x08\x00"])
def test_broken_elements_end_the_connection(switch, body):
    peer = Peer(switch, greet=False)
    assert peer.refusal(raw(ofp.OFPT_HELLO, body)) == (ofp.OFPET_HELLO_FAILED, ofp.OFPHFC_INCOMPATIBLE)
    assert peer.session.closed
    assert peer.session.fault.startswith("malformed HELLO: element at byte 8 ")


@pytest.mark.parametrize("kind", [ofp.OFPT_FEATURES_REQUEST, ofp.OFPT_FLOW_MOD, ofp.OFPT_MULTIPART_REQUEST])
def test_requests_before_hello_are_refused(switch, kind):
    peer = Peer(switch, greet=False)
    assert peer.ask(raw(kind, bytes(80))) == []
    assert peer.session.closed
    assert peer.session.fault == f"a message of type {kind} and 88 bytes before its HELLO"


def test_a_long_echo_before_hello(switch):
    peer = Peer(switch, greet=False)
    assert len(peer.ask(raw(ofp.OFPT_ECHO_REQUEST, bytes(1016)))) == 1
    peer.session.receive(raw(ofp.OFPT_ECHO_REQUEST, length=1025))  # the rest of the message is not waited for
    assert peer.session.closed


def test_a_half_message_has_an_age(peer):
    now = time.monotonic()
    assert peer.session.incomplete_since(now + 100) == 0
    peer.session.receive(raw(ofp.OFPT_ECHO_REQUEST, length=100))
    assert peer.session.incomplete_since(now + 100) == pytest.approx(100, abs=5)
    peer.session.receive(bytes(10))
    assert peer.session.incomplete_since(now + 100) == pytest.approx(100, abs=5)
    peer.session.receive(bytes(82))
    assert peer.session.incomplete_since(now + 100) == 0


def test_a_peer_that_does_not_read_gets_no_more_replies(switch):
    sent = bytearray()
    session = ControllerSession(switch, sent.extend, lambda: len(sent))
    session.receive(HELLO)
    echo = raw(ofp.OFPT_ECHO_REQUEST, bytes(60000))
    more = session.receive(echo * 100)
    assert more
    assert (1 << 20) < len(sent) < (1 << 20) + 2 * len(echo)
    sent.clear()
    assert session.receive(b"")
    assert len(sent) > 1 << 20


def test_a_long_reply_is_sent_as_its_peer_reads(switch, data):
    """11 MB for 65,536 connections: a controller that reads slowly is not ended for that."""
    data.records = list(records_of(20_000))
    unread, messages = bytearray(), []
    session = ControllerSession(switch, unread.extend, lambda: len(unread))
    session.receive(HELLO)
    more = session.receive(wire(flow_records.request(DATAPATH, 0)) + raw(ofp.OFPT_BARRIER_REQUEST))
    while more:
        assert 0 < len(unread) < (256 << 10) + (1 << 16)
        messages += split(bytes(unread))
        unread.clear()
        more = session.receive(b"")
    messages += split(bytes(unread))
    parts = [ryu_decode(each).body for each in messages if each[1] == ofp.OFPT_MULTIPART_REPLY]
    assert [each for part in parts for each in flow_records.decode_reply(bytes(part.data))] == data.records
    assert [each[1] for each in messages[-2:]] == [ofp.OFPT_MULTIPART_REPLY, ofp.OFPT_BARRIER_REPLY]


def test_a_flood_of_requests_is_processed_in_slices(peer):
    answers, calls = 0, 1
    more = peer.session.receive(raw(ofp.OFPT_ECHO_REQUEST) * 5, 0)
    while more:
        answers += len(peer.taken())
        more, calls = peer.session.receive(b"", 0), calls + 1
    assert answers + len(peer.taken()) == 5
    assert calls > 5


def test_no_asynchronous_message_is_sent_before_hello(switch):
    peer = Peer(switch, greet=False)
    switch.send_port_status(ofp.OFPPR_ADD, bridge_port(3))
    peer.session.ping()
    assert peer.taken() == []


# Symmetric and simple messages


def test_features(peer):
    answer = peer.one(parser.OFPFeaturesRequest(DATAPATH))
    assert answer.datapath_id == oxm.agent_dpid(0x1234)
    assert oxm.is_agent(answer.datapath_id)
    assert oxm.bridge_dpid(answer.datapath_id) == 0x1234
    assert not oxm.is_agent(0x1234)
    assert (answer.n_tables, answer.n_buffers, answer.auxiliary_id) == (2, 0, 0)
    wanted = ofp.OFPC_FLOW_STATS | ofp.OFPC_TABLE_STATS | ofp.OFPC_PORT_STATS | ofp.OFPC_QUEUE_STATS
    assert answer.capabilities == wanted


def test_a_dpid_with_bits_in_place_of_the_marker(data):
    with pytest.raises(ValueError, match="top 16 bits"):
        OpenFlowServer("s1", 1 << 48, data, 8)


def test_echo_barrier_and_config(peer):
    echo = parser.OFPEchoRequest(DATAPATH, data=b"hello there")
    assert peer.one(echo).data == b"hello there"
    assert peer.one(parser.OFPBarrierRequest(DATAPATH)).msg_type == ofp.OFPT_BARRIER_REPLY
    config = peer.one(parser.OFPGetConfigRequest(DATAPATH))
    assert (config.flags, config.miss_send_len) == (0, 0)
    assert peer.ask(parser.OFPSetConfig(DATAPATH, 0, 128)) == []


@pytest.mark.parametrize(
    "kind", [ofp.OFPT_FEATURES_REQUEST, ofp.OFPT_GET_CONFIG_REQUEST, ofp.OFPT_BARRIER_REQUEST]
)
def test_messages_with_an_unexpected_body(peer, kind):
    assert peer.refusal(raw(kind, bytes(8))) == bad_request("BAD_LEN")


@pytest.mark.parametrize("size", [0, 3, 5])
def test_a_set_config_of_a_wrong_length(peer, size):
    assert peer.refusal(raw(ofp.OFPT_SET_CONFIG, bytes(size))) == bad_request("BAD_LEN")


def test_errors_and_echo_replies_are_not_answered(peer):
    assert peer.ask(raw(ofp.OFPT_ERROR, bytes(4))) == []
    assert peer.ask(raw(ofp.OFPT_ECHO_REPLY)) == []


@pytest.mark.parametrize(
    "kind",
    [
        ofp.OFPT_FEATURES_REPLY,
        ofp.OFPT_PACKET_OUT,
        ofp.OFPT_GROUP_MOD,
        ofp.OFPT_PORT_MOD,
        ofp.OFPT_TABLE_MOD,
        ofp.OFPT_QUEUE_GET_CONFIG_REQUEST,
        ofp.OFPT_GET_ASYNC_REQUEST,
        ofp.OFPT_METER_MOD,
        99,
    ],
)
def test_unsupported_messages(peer, kind):
    assert peer.refusal(raw(kind, bytes(80))) == bad_request("BAD_TYPE")
    assert not peer.session.closed


def test_experimenter_messages(peer):
    other = parser.OFPExperimenter(DATAPATH, experimenter=0x2320, exp_type=1, data=b"")
    assert peer.refusal(other) == bad_request("BAD_EXPERIMENTER")
    ours = parser.OFPExperimenter(DATAPATH, experimenter=oxm.EXPERIMENTER_ID, exp_type=99, data=b"")
    assert peer.refusal(ours) == bad_request("BAD_EXP_TYPE")
    assert peer.refusal(raw(ofp.OFPT_EXPERIMENTER, bytes(4))) == bad_request("BAD_LEN")


def test_another_version_after_hello(peer):
    assert peer.refusal(raw(ofp.OFPT_BARRIER_REQUEST, version=1)) == bad_request("BAD_VERSION")


@pytest.mark.parametrize("length", [0, 7])
def test_an_impossible_length(peer, length):
    assert peer.refusal(raw(ofp.OFPT_ECHO_REQUEST, length=length)) == bad_request("BAD_LEN")
    assert peer.session.closed


def test_messages_in_pieces_and_several_at_once(peer):
    stream = b"".join(wire(parser.OFPEchoRequest(DATAPATH, data=bytes([n])), n) for n in range(5))
    for byte in stream:
        peer.session.receive(bytes([byte]))
    assert [answer.xid for answer in peer.taken()] == list(range(5))
    assert [answer.xid for answer in peer.ask(stream)] == list(range(5))


@given(st.lists(st.binary(max_size=80), max_size=5))
def test_random_bytes_get_only_errors(pieces):
    data = FakeDatapath(1)
    peer = Peer(OpenFlowServer("s1", 1, data, 8))
    for piece in pieces:
        peer.session.receive(piece)
    peer.taken()  # every answer can be decoded


@given(st.sampled_from(range(30)), st.binary(max_size=100))
def test_every_message_gets_an_answer_that_can_be_read(kind, body):
    peer = Peer(OpenFlowServer("s1", 1, FakeDatapath(1), 8))
    assert len(peer.ask(raw(kind, body))) <= 1


@given(st.integers(0, 14), st.binary(max_size=60))
def test_every_multipart_request_gets_an_answer_that_can_be_read(kind, body):
    peer = Peer(OpenFlowServer("s1", 1, FakeDatapath(1), 8))
    assert len(peer.ask(multipart(kind if kind < 14 else 0xFFFF, body))) == 1


# Roles


def test_one_master_at_a_time(switch):
    first, second = Peer(switch), Peer(switch)
    assert role(first, ofp.OFPCR_ROLE_NOCHANGE).role == ofp.OFPCR_ROLE_EQUAL
    answer = role(first, ofp.OFPCR_ROLE_MASTER, 5)
    assert (answer.role, answer.generation_id) == (ofp.OFPCR_ROLE_MASTER, 5)
    assert role(second, ofp.OFPCR_ROLE_MASTER, 6).role == ofp.OFPCR_ROLE_MASTER
    assert role(first, ofp.OFPCR_ROLE_NOCHANGE).role == ofp.OFPCR_ROLE_SLAVE
    assert role(second, ofp.OFPCR_ROLE_EQUAL).role == ofp.OFPCR_ROLE_EQUAL
    assert switch.master is None


def test_a_slave_may_read_but_not_change(switch, data):
    slave = Peer(switch)
    role(slave, ofp.OFPCR_ROLE_SLAVE, 1)
    message = flowmod.window_rule(DATAPATH, window_of_port(1), 2)
    assert slave.refusal(message) == bad_request("IS_SLAVE")
    assert not data.installed
    assert slave.one(parser.OFPDescStatsRequest(DATAPATH)).body.mfr_desc == b"fairq_ryu"


@pytest.mark.parametrize(("old", "new"), [(5, 4), (0, 2**64 - 1), (2**63, 2**63 - 1)])
def test_stale_generations(peer, old, new):
    role(peer, ofp.OFPCR_ROLE_MASTER, old)
    request = parser.OFPRoleRequest(DATAPATH, ofp.OFPCR_ROLE_SLAVE, new)
    assert peer.refusal(request) == (ofp.OFPET_ROLE_REQUEST_FAILED, ofp.OFPRRFC_STALE)
    assert role(peer, ofp.OFPCR_ROLE_NOCHANGE).role == ofp.OFPCR_ROLE_MASTER


def test_generations_wrap(peer):
    role(peer, ofp.OFPCR_ROLE_MASTER, 2**64 - 1)
    assert role(peer, ofp.OFPCR_ROLE_MASTER, 0).generation_id == 0


def test_wrong_role_requests(peer):
    wrong = parser.OFPRoleRequest(DATAPATH, 4, 0)
    assert peer.refusal(wrong) == (ofp.OFPET_ROLE_REQUEST_FAILED, ofp.OFPRRFC_BAD_ROLE)
    assert peer.refusal(raw(ofp.OFPT_ROLE_REQUEST, bytes(8))) == bad_request("BAD_LEN")


def test_a_master_that_disconnects(switch):
    first, second = Peer(switch), Peer(switch)
    role(first, ofp.OFPCR_ROLE_MASTER, 1)
    first.session.close()
    first.session.close()
    assert switch.master is None
    assert switch.sessions == [second.session]
    switch.send_port_status(ofp.OFPPR_ADD, bridge_port(3))
    assert first.taken() == []


# Rules


def test_added_rules_are_listed(peer, data):
    peer.set_window(9000, pool=True, lease=5)
    peer.set_window(3000, flow=FLOW)
    data.counted = {slot: (100 + slot, 7) for *_, slot in data.installed.values()}
    answer = peer.one(parser.OFPFlowStatsRequest(DATAPATH))
    found = {stats.match.get("in_port"): stats for stats in answer.body}
    port, flow = found[1], found[None]
    assert dict(port.match.items()) == {"in_port": 1}
    assert dict(flow.match.items()) == {
        "eth_type": 0x0800,
        "ip_proto": 6,
        "ipv4_src": FLOW.dst,  # its ACKs
        "ipv4_dst": FLOW.src,
        "tcp_src": FLOW.dport,
        "tcp_dst": FLOW.sport,
    }
    for stats, name, size in ((port, "tcp_window_pool", 9000), (flow, "tcp_window", 3000)):
        (instruction,) = stats.instructions
        assert instruction.type == ofp.OFPIT_APPLY_ACTIONS
        (action,) = instruction.actions
        assert (action.key, action.value) == (name, size)
        assert stats.packet_count in (100, 101)
        assert stats.byte_count == 7  # of these, lowered
    assert (port.hard_timeout, flow.hard_timeout) == (5, 2)
    assert port.cookie == pipeline.COOKIE_BASE


def test_statistics_of_some_rules(peer):
    peer.set_window(1, cookie=1)
    peer.set_window(2, port=2, cookie=2)
    peer.set_window(3, flow=FLOW, cookie=2)

    def asked(**more: Any) -> list[int]:
        answer = peer.one(parser.OFPFlowStatsRequest(DATAPATH, **more))
        return sorted(stats.instructions[0].actions[0].value for stats in answer.body)

    assert asked() == [1, 2, 3]
    assert asked(table_id=1) == []
    assert asked(cookie=2, cookie_mask=0xFF) == [2, 3]
    assert asked(match=parser.OFPMatch(in_port=2)) == [2]
    assert asked(match=parser.OFPMatch(eth_type=0x0800)) == [3]


def test_aggregate_and_table_statistics(peer, data):
    peer.set_window(1)
    peer.set_window(2, flow=FLOW)
    data.counted = {0: (10, 1), 1: (5, 1)}
    answer = peer.one(
        parser.OFPAggregateStatsRequest(
            DATAPATH, 0, 0xFF, ofp.OFPP_ANY, ofp.OFPG_ANY, 0, 0, parser.OFPMatch()
        )
    )
    assert (answer.body.packet_count, answer.body.flow_count) == (15, 2)
    table, queues = peer.one(parser.OFPTableStatsRequest(DATAPATH, 0)).body
    assert (queues.table_id, queues.active_count) == (1, 0)
    assert (table.table_id, table.active_count, table.matched_count) == (0, 2, 15)


def test_refused_rules_change_nothing(peer, data):
    message = flowmod.window_rule(DATAPATH, window_of_port(9), 2)
    assert peer.refusal(message) == (ofp.OFPET_BAD_MATCH, ofp.OFPBMC_BAD_VALUE)
    assert peer.refusal(raw(ofp.OFPT_FLOW_MOD, bytes(8))) == bad_request("BAD_LEN")
    assert data.writes == 0


def test_a_kernel_that_refuses_is_an_error_like_another(peer, data):
    data.failure = BpfError("map is full")
    message = flowmod.window_rule(DATAPATH, window_of_port(1), 2)
    assert peer.refusal(message) == (ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_UNKNOWN)
    assert peer.one(parser.OFPBarrierRequest(DATAPATH))


def test_flow_removed_is_sent_to_all_but_slaves(switch, data):
    master, equal, slave = Peer(switch), Peer(switch), Peer(switch)
    role(master, ofp.OFPCR_ROLE_MASTER, 1)
    role(slave, ofp.OFPCR_ROLE_SLAVE, 1)
    master.set_window(5, flow=FLOW, flags=ofp.OFPFF_SEND_FLOW_REM, cookie=42, priority=9)
    master.set_window(6)  # the rule has no flag for it
    data.counted[data.installed[FLOW.reversed][2]] = (3, 1)
    end = switch.table.rules()[0].since_ns + 2 * NS + 5
    switch.send_flow_removed(switch.table.expire(end), ofp.OFPRR_HARD_TIMEOUT, end)
    for peer in (master, equal):
        (removed,) = peer.taken()
        assert removed.msg_type == ofp.OFPT_FLOW_REMOVED
        assert (removed.reason, removed.cookie, removed.priority) == (ofp.OFPRR_HARD_TIMEOUT, 42, 9)
        assert (removed.hard_timeout, removed.duration_sec, removed.duration_nsec) == (2, 2, 5)
        assert removed.packet_count == 3
        assert removed.match["ipv4_src"] == FLOW.dst
    assert slave.taken() == []


def test_a_deletion_sends_flow_removed_too(peer):
    peer.set_window(5, flags=ofp.OFPFF_SEND_FLOW_REM)
    (removed,) = peer.ask(pipeline.clear(DATAPATH))
    assert removed.reason == ofp.OFPRR_DELETE


# Ports and queues


def test_description(peer):
    body = peer.one(parser.OFPDescStatsRequest(DATAPATH)).body
    assert description.decode(body) == description.Description("s1", description.ALL)
    assert body.serial_num == b"%016x" % oxm.agent_dpid(0x1234)


def test_port_description(peer, data):
    data._ports[2] = bridge_port(2).__class__(
        2, "a-name-longer-than-fits", 9, "02:00:00:00:00:02", False, False, 0
    )
    first, second = peer.one(parser.OFPPortDescStatsRequest(DATAPATH)).body
    assert (first.port_no, first.name, first.hw_addr) == (1, b"s1-eth1", "02:00:00:00:00:01")
    assert (first.config, first.state, first.curr_speed) == (0, 0, 1_000_000)
    assert second.name == b"a-name-longer-t"
    assert (second.config, second.state) == (ofp.OFPPC_PORT_DOWN, ofp.OFPPS_LINK_DOWN)


@pytest.mark.parametrize("reason", [ofp.OFPPR_ADD, ofp.OFPPR_DELETE, ofp.OFPPR_MODIFY])
def test_port_status(switch, peer, reason):
    switch.send_port_status(reason, bridge_port(3))
    (status,) = peer.taken()
    assert (status.reason, status.desc.port_no, status.desc.name) == (reason, 3, b"s1-eth3")


def test_port_and_queue_statistics(peer, data):
    data.queues[2] = queue_state(packets=5, bytes=600, drops=7)
    both = peer.one(parser.OFPPortStatsRequest(DATAPATH, 0, ofp.OFPP_ANY)).body
    assert [stats.port_no for stats in both] == [1, 2]
    assert (both[1].tx_packets, both[1].tx_bytes, both[1].tx_dropped) == (5, 600, 7)
    assert both[1].rx_packets == 2**64 - 1  # not known
    (one,) = peer.one(parser.OFPPortStatsRequest(DATAPATH, 0, 2)).body
    assert one.tx_packets == 5
    (queue,) = peer.one(parser.OFPQueueStatsRequest(DATAPATH, 0, 2, ofp.OFPQ_ALL)).body
    assert (queue.port_no, queue.queue_id) == (2, 0)
    assert (queue.tx_packets, queue.tx_bytes, queue.tx_errors) == (5, 600, 7)
    assert len(peer.one(parser.OFPQueueStatsRequest(DATAPATH, 0, ofp.OFPP_ANY, 0)).body) == 2


def test_statistics_of_unknown_ports(peer):
    assert peer.refusal(parser.OFPPortStatsRequest(DATAPATH, 0, 9)) == bad_request("BAD_PORT")
    failed = ofp.OFPET_QUEUE_OP_FAILED
    queue = parser.OFPQueueStatsRequest(DATAPATH, 0, 9, 0)
    assert peer.refusal(queue) == (failed, ofp.OFPQOFC_BAD_PORT)
    queue = parser.OFPQueueStatsRequest(DATAPATH, 0, 1, 5)
    assert peer.refusal(queue) == (failed, ofp.OFPQOFC_BAD_QUEUE)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (raw(ofp.OFPT_MULTIPART_REQUEST, bytes(7)), "BAD_LEN"),
        (multipart(ofp.OFPMP_GROUP), "BAD_MULTIPART"),
        (multipart(ofp.OFPMP_METER), "BAD_MULTIPART"),
        (multipart(99), "BAD_MULTIPART"),
        (multipart(ofp.OFPMP_DESC, flags=ofp.OFPMPF_REQ_MORE), "MULTIPART_BUFFER_OVERFLOW"),
        (multipart(ofp.OFPMP_DESC, bytes(8)), "BAD_LEN"),
        (multipart(ofp.OFPMP_TABLE, bytes(1)), "BAD_LEN"),
        (multipart(ofp.OFPMP_PORT_DESC, bytes(1)), "BAD_LEN"),
        (multipart(ofp.OFPMP_PORT_STATS, bytes(4)), "BAD_LEN"),
        (multipart(ofp.OFPMP_QUEUE, bytes(16)), "BAD_LEN"),
        (multipart(ofp.OFPMP_FLOW, bytes(8)), "BAD_LEN"),
        (multipart(ofp.OFPMP_AGGREGATE, bytes(32) + b"\0\1\0\4" + bytes(12)), "BAD_LEN"),
        (multipart(ofp.OFPMP_EXPERIMENTER, bytes(4)), "BAD_LEN"),
        (multipart(ofp.OFPMP_EXPERIMENTER, struct.pack("!II", 0x2320, 1)), "BAD_EXPERIMENTER"),
        (multipart(ofp.OFPMP_EXPERIMENTER, struct.pack("!II", oxm.EXPERIMENTER_ID, 9)), "BAD_EXP_TYPE"),
        (multipart(ofp.OFPMP_EXPERIMENTER, struct.pack("!II", oxm.EXPERIMENTER_ID, 1)), "BAD_LEN"),
        (multipart(ofp.OFPMP_EXPERIMENTER, struct.pack("!III", oxm.EXPERIMENTER_ID, 2, 0)), "BAD_LEN"),
        (multipart(ofp.OFPMP_EXPERIMENTER, struct.pack("!IIII", oxm.EXPERIMENTER_ID, 1, 9, 0)), "BAD_PORT"),
        (multipart(ofp.OFPMP_EXPERIMENTER, struct.pack("!III", oxm.EXPERIMENTER_ID, 3, 0)), "BAD_LEN"),
        (multipart(ofp.OFPMP_EXPERIMENTER, struct.pack("!II40x", oxm.EXPERIMENTER_ID, 3)), "BAD_LEN"),
    ],
)
def test_wrong_multipart_requests(peer, request_, code):
    assert peer.refusal(request_) == bad_request(code)


def test_a_wrong_match_in_a_statistics_request(peer):
    body = bytes(32) + struct.pack("!HHI", 9, 4, 0)
    assert peer.refusal(multipart(ofp.OFPMP_FLOW, body)) == (ofp.OFPET_BAD_MATCH, ofp.OFPBMC_BAD_TYPE)


# Queue depth and flow records


def depths(peer: Peer, port: int = ofp.OFPP_ANY) -> dict[int, queue_depth.QueueDepth]:
    request = queue_depth.request(DATAPATH)
    request.data = queue_depth.encode_request(port)
    answer = peer.one(request)
    assert (answer.body.experimenter, answer.body.exp_type) == (
        oxm.EXPERIMENTER_ID,
        queue_depth.EXP_TYPE_QUEUE_DEPTH,
    )
    return {record.port: record for record in queue_depth.decode_reply(bytes(answer.body.data))}


def test_queue_depth(peer, data):
    data.queues[1] = queue_state(backlog=5, peak=9, drops=2, byte_ns=77, clock_ns=88)
    data.limits[1] = QueueLimits("netem", 1000, 2000)
    data.active[1] = 3
    found = depths(peer)
    assert sorted(found) == [1, 2]
    assert found[1] == queue_depth.QueueDepth(1, 3, 5, 9, 1000, 2000, 2, 77, 88)
    assert list(depths(peer, 2)) == [2]
    assert data.peaks_restarted == 2
    data.limits[1] = QueueLimits("mq", 0, 2000, "mq has many", measured=False)
    assert depths(peer)[1].limit == queue_depth.UNMEASURED


def test_each_controller_has_its_own_peaks(switch, data):
    first, second = Peer(switch), Peer(switch)
    data.queues[1] = queue_state(backlog=10, peak=500)
    assert depths(first)[1].peak == 500
    # The datapath's peak was reset; the other controller still gets it, once.
    assert depths(first)[1].peak == 10
    assert depths(second)[1].peak == 500
    assert depths(second)[1].peak == 10
    data.queues[1] = queue_state(backlog=20, peak=300)
    assert depths(second, 2)[2].peak == 0  # a request for another port: the peak is kept
    assert depths(second)[1].peak == 300
    assert depths(first)[1].peak == 300


def test_another_port_with_the_number_of_one_that_has_gone_has_no_peak_of_it(switch, data):
    first, second = Peer(switch), Peer(switch)
    data.queues[1] = queue_state(backlog=10, peak=500)
    depths(first)
    switch.forget_port(1, 0)
    data.queues[1] = queue_state(backlog=0, peak=0)
    assert depths(second)[1].peak == 0


def records_of(count: int) -> Iterator[flow_records.FlowRecord]:
    for n in range(count):
        key = FLOW._replace(sport=n)
        yield flow_records.FlowRecord(key, 1, flow_records.KNOWN, 7, 1460, n, n, n, 0)


@pytest.mark.parametrize("count", [0, 1, 681, 682, 5000])
def test_flow_records_are_split_into_several_messages(peer, data, count):
    data.records = list(records_of(count))
    answers = peer.ask(flow_records.request(DATAPATH, 4321))
    assert data.flows_asked == [(4321, [1, 2])]
    assert len(answers) == max(1, -(-count // ((60_000 - 8) // 88)))
    found = []
    for n, answer in enumerate(answers):
        assert answer.flags == (ofp.OFPMPF_REPLY_MORE if n + 1 < len(answers) else 0)
        # Each message starts with the experimenter header; otherwise controllers could not decode it.
        body = answer.body
        assert (body.experimenter, body.exp_type) == (oxm.EXPERIMENTER_ID, flow_records.EXP_TYPE_FLOW_RECORDS)
        found += flow_records.decode_reply(bytes(body.data))
    assert found == data.records


def test_flow_records_of_one_port(peer, data):
    (answer,) = peer.ask(flow_records.request(DATAPATH, 5, 2))
    assert data.flows_asked == [(5, [2])]
    assert flow_records.decode_reply(bytes(answer.body.data)) == []
    assert peer.refusal(flow_records.request(DATAPATH, 5, 9)) == bad_request("BAD_PORT")


def test_a_chunk_of_changes_is_one_message(peer, data):
    records = flow_records.encode_reply(records_of(flow_changes.MAX_RECORDS))
    data.changes = Changes(Chunk(9, ChunkFlags.MORE, 1, 2, 3, 4, 5), records, b"")
    (answer,) = peer.ask(flow_changes.request(DATAPATH, ChangeRequest(8, 1000, 640)))
    assert data.changes_asked == [ChangeRequest(8, 1000, 640)]
    assert flow_changes.decode_reply(bytes(answer.body.data)) == data.changes
    assert answer.flags == 0
    short = flow_changes.request(DATAPATH, ChangeRequest(8, 1000, 1))
    assert peer.refusal(short) == bad_request("BAD_LEN")


@pytest.mark.parametrize("count", [0, 1, 2, segment_state.MAX_KEYS])
def test_segment_states(peer, data, count):
    keys = [FLOW._replace(sport=n) for n in range(count)]
    data.segments = {key: SegmentState(key, True, port=1, ack=key.sport) for key in keys[1:]}
    answers = peer.ask(segment_state.request(DATAPATH, keys))
    found = []
    for answer in answers:
        assert (answer.body.experimenter, answer.body.exp_type) == (oxm.EXPERIMENTER_ID, 3)
        found += segment_state.decode_reply(bytes(answer.body.data))
    assert [(state.key, state.found, state.ack) for state in found] == [
        (key, key.sport > 0, key.sport) for key in keys
    ]


def test_many_rules_are_reported_in_several_messages(data):
    peer = Peer(OpenFlowServer("s1", 1, data, 2000))
    for n in range(1500):
        peer.set_window(n, flow=FLOW._replace(sport=n))
    answers = peer.ask(parser.OFPFlowStatsRequest(DATAPATH))
    assert len(answers) > 1
    sizes = [stats.instructions[0].actions[0].value for answer in answers for stats in answer.body]
    assert sorted(sizes) == list(range(1500))
