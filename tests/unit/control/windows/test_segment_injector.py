"""Paused flows are woken; the state of connections is removed with them."""

from __future__ import annotations

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel import segment_state, waking
from fairq_ryu.model import NO_WINDOWS, FlowKey, WindowPlan
from fairq_ryu.packet import tcp_build
from fairq_ryu.packet.parse import Frame
from tests.support.flownet import KEY, A, B, record, segment
from tests.support.site import CLIENT_MAC, SERVER_MAC, Obedient, Site, state


def kinds(site: Site) -> list[tuple[str, str]]:
    """The receivers and kinds of messages, in order."""
    names = {site.bridge.id: "bridge", site.agent.id: "agent"}
    return [(names[dpid], type(message).__name__) for dpid, message in site.log]


def paused(**options) -> Site:
    """KEY is established, and its window rule is 0."""
    site = Site(Obedient(), **options)
    site.open()
    site.policy.plan = WindowPlan(flows={KEY: 0})
    site.sample(B, 0.1)
    assert kinds(site) == [("agent", "OFPFlowMod")]
    site.log.clear()
    return site


def freed(**options) -> Site:
    """KEY has a window again; the agent has confirmed the rule."""
    site = paused(**options)
    site.policy.plan = WindowPlan(flows={KEY: 5000})
    site.sample(B, 0.2)
    site.answer_barriers()
    return site


@pytest.mark.parametrize("after", [WindowPlan(flows={KEY: 5000}), WindowPlan(window=5000), NO_WINDOWS])
def test_a_sender_is_woken_after_its_rule_is_installed(after):
    """First the rule, confirmed; then the state of the receiver; then an ACK by the receiver's port."""
    site = paused()
    site.policy.plan = after
    site.sample(B, 0.2)
    assert set(kinds(site)[:-1]) == {("agent", "OFPFlowMod")}
    assert kinds(site)[-1] == ("agent", "OFPBarrierRequest")
    site.log.clear()
    barrier_xid = site.agent._xid
    site.fabric.barriers.answered((site.agent.id, barrier_xid + 1))
    assert not site.log
    site.fabric.barriers.answered((site.agent.id, barrier_xid))
    (question,) = site.agent.sent
    assert question.exp_type == segment_state.EXP_TYPE_SEGMENTS
    assert segment_state.decode_request(question.data) == [KEY.reversed]
    site.log.clear()
    site.windows.segments_reported([state(KEY)], 0.21)
    (out,) = site.bridge.sent
    assert kinds(site) == [("bridge", "OFPPacketOut")]
    assert out.in_port == B.port
    assert [action.port for action in out.actions] == [ofp.OFPP_TABLE]
    server = tcp_build.Addressing(KEY.reversed, SERVER_MAC, CLIENT_MAC)
    assert out.data == tcp_build.window_update(server, state(KEY))
    assert site.injector.counts == {"wake": 1}
    # Woken once.
    site.windows.segments_reported([state(KEY)], 0.22)
    assert len(site.bridge.sent) == 1


def test_a_flow_that_had_a_window_is_not_woken():
    site = freed()
    site.windows.segments_reported([state(KEY)], 0.21)
    site.log.clear()
    site.policy.plan = WindowPlan(flows={KEY: 9000})
    site.sample(B, 0.3)
    assert kinds(site) == [("agent", "OFPFlowMod")]


@pytest.mark.parametrize(
    ("fields", "counted"),
    [
        ({"window": 0}, "wake: the receiver itself has closed its window"),
        ({"found": False}, "wake: the switch does not know the flow"),
        ({"has_timestamps": None}, "wake: it is not known whether the connection has timestamps"),
        ({"fin": True}, "wake: the receiver has sent FIN or RST"),
    ],
)
def test_states_without_enough_for_an_ack_are_counted(fields, counted):
    site = freed()
    site.log.clear()
    site.windows.segments_reported([state(KEY, **fields)], 0.21)
    assert not site.log and site.injector.counts == {counted: 1}


def test_a_late_state_wakes_no_sender():
    site = freed()
    site.log.clear()
    site.windows.segments_reported([state(KEY)], 0.71)
    assert not site.log and site.injector.counts == {"wake: the numbers came too late": 1}


def test_a_connection_whose_syn_was_not_seen_has_no_addresses():
    site = Site()
    for key, port in ((KEY, B), (KEY.reversed, A)):
        site.windows.apply(site.flows.reconcile(1, [record(key, port)], 0.0), 0.0)
    site.fabric.hosts.seen(SERVER_MAC, B, KEY.dst)
    for window, now in ((0, 0.1), (5000, 0.2)):
        site.policy.plan = WindowPlan(flows={KEY: window})
        site.sample(B, now)
    site.answer_barriers()
    site.windows.segments_reported([state(KEY)], 0.21)
    assert site.injector.counts == {"wake: addresses not known": 1}


def test_the_state_of_a_receiver_without_agent_is_not_requested():
    site = Site(agent=False)
    site.open()
    site.injector.wake([KEY], [], 0.1)
    site.injector.wake([FlowKey("10.9.0.1", "10.9.0.2", 1, 2)], [], 0.1)
    assert not site.log and site.injector.counts == {"wake: the receiver's switch has no agent": 2}


def test_nothing_is_sent_to_a_disconnected_bridge():
    site = freed()
    site.fabric.bridge_disconnected(site.bridge)
    site.log.clear()
    site.windows.segments_reported([state(KEY)], 0.21)
    assert not site.log and site.injector.counts == {"wake: the receiver is not known": 1}


def test_no_state_is_requested_from_an_agent_that_disconnects_before_its_barrier_reply():
    site = paused()
    site.policy.plan = WindowPlan(flows={KEY: 5000})
    site.sample(B, 0.2)
    site.windows.agent_disconnected(site.link)
    sent = len(site.log)
    site.answer_barriers()
    assert len(site.log) == sent


def test_many_states_are_requested_in_several_messages():
    site = Site()
    flows = [KEY._replace(sport=1000 + n) for n in range(segment_state.MAX_KEYS + 1)]
    for flow in flows:
        site.open(flow)
    site.log.clear()
    site.injector.wake(flows, [], 0.1)
    asked = [segment_state.decode_request(message.data) for message in site.agent.sent]
    assert [len(keys) for keys in asked] == [segment_state.MAX_KEYS, 1]
    assert {key.reversed for keys in asked for key in keys} == set(flows)


def test_nothing_is_kept_of_an_ended_connection():
    site = freed()
    assert site.injector._addresses and site.injector._waking
    site.reset(now=0.3)
    assert not site.injector._addresses and not site.injector._waking


@pytest.mark.parametrize("end", [KEY, KEY.reversed])
def test_either_direction_identifies_the_connection(end):
    site = freed()
    site.injector.forget(end)
    assert not site.injector._addresses and not site.injector._waking


def test_an_agent_that_has_copied_a_syn_is_told_the_tags_of_its_own_switch():
    """Switches may add or remove tags: the update leaves a switch as the copied segment has left it."""
    site = Site()
    site.open()
    answer = segment(KEY.reversed, "SA", seq=900, ack=101)
    for dpid, tags in ((1, (10,)), (2, ())):
        site.windows.syn_left(Frame(SERVER_MAC, CLIENT_MAC, tags, KEY.dst, None, answer, 0), dpid)
    site.log.clear()
    site.link.send(site.injector.wake_by_agent(site.link, [KEY]))
    (message,) = site.agent.sent
    assert waking.decode(message.data) == [tcp_build.Addressing(KEY.reversed, SERVER_MAC, CLIENT_MAC, (10,))]
    site.reset(now=0.3)
    assert not site.injector._leaving


def test_syns_without_a_connection_are_forgotten():
    """Their path is unknown, so no port counts them, and their end is no event of any port."""
    site = Site()
    site.open()
    for n in range(10_000):
        key = FlowKey("10.0.0.1", f"10.9.{n // 256}.{n % 256}", 33000, KEY.dport)
        site.syn(key, now=0.1, path=None)
    assert len(site.injector._addresses) == 10_001
    site.injector.prune()
    assert len(site.injector._addresses) == len(site.flows)
    site.windows.apply(site.flows.expire(50.0), 50.0)
    site.injector.prune()
    assert list(site.injector._addresses) == [KEY.connection]
