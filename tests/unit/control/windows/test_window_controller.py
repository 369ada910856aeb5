"""Flows, queues, progress and losses reach the policies, and the plans of the policies reach the agents."""

from __future__ import annotations

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel import congestion, flow_records, segment_state, waking
from fairq_ryu.channel.flow_records import ESTABLISHED, FlowRecord
from fairq_ryu.channel.hidden_queue import HiddenQueue
from fairq_ryu.config.loader import Config
from fairq_ryu.control.reports.event_reporter import EventReporter
from fairq_ryu.control.reports.events import Kind, Occurrence
from fairq_ryu.fabric.deadlines.request import Request
from fairq_ryu.far_queue import FAR, Why
from fairq_ryu.model import NO_WINDOWS, Announcement, FlowKey, FlowProgress, Thresholds, WindowPlan
from fairq_ryu.packet import tcp_build
from fairq_ryu.policies.base import Recovery
from fairq_ryu.policies.choice import PolicyChoice
from fairq_ryu.uplink import Member, Uplink
from tests.support.flownet import KEY, B
from tests.support.site import CLIENT_MAC, SERVER_MAC, Obedient, Site, state

RACK = Uplink("rack", (Member("1", "s1-eth1"), Member("2", "eth0")), 10**9)
DUPACK = Recovery(True, False, 1 << 20, 1.0, by_agent=False)


def announced(site: Site) -> list[Announcement | None]:
    return [call[2] for call in site.law(B).calls if call[0] == "announced" and call[1] == KEY]


# Announcements


def test_an_announcement_before_the_flow_reaches_its_law():
    site = Site()
    site.windows.announce(Request(KEY.src, KEY.dst, KEY.dport, size=9000, deadline=0.5), 1.0)
    site.open(now=2.0)
    assert announced(site) == [Announcement(9000, 2.5)]


def test_an_announcement_of_a_running_flow_reaches_its_law_and_can_be_withdrawn():
    site = Site()
    site.open(now=2.0)
    entry = site.windows.announce(Request(KEY.src, KEY.dst, KEY.dport, size=9000, deadline=0.5), 2.1)
    assert announced(site) == [Announcement(9000, 2.5)]
    site.windows.withdraw(entry.id, 2.2)
    assert announced(site) == [Announcement(9000, 2.5), None]


def test_an_announcement_ends_with_its_flow():
    site = Site()
    site.windows.announce(Request(KEY.src, KEY.dst, KEY.dport, size=9000), 1.0)
    site.open(now=2.0)
    site.reset(now=3.0)
    assert not len(site.windows.announcements)
    site.open(now=9.0)
    assert announced(site) == [Announcement(9000, None)]


def test_a_reused_port_pair_is_another_flow():
    """The end of the old connection was not observed; its announcement and its start are not those of the new
    one.
    """
    site = Site()
    site.windows.announce(Request(KEY.src, KEY.dst, KEY.dport, size=9000, deadline=5.0), 1.0)
    site.open(now=2.0)
    site.windows.announce(Request(KEY.src, KEY.dst, KEY.dport, size=70, deadline=5.0), 3.0)
    site.syn(KEY, 10.0, seq=7000)
    site.syn(KEY.reversed, 10.0, "SA", seq=8000, ack=7001)
    assert site.flows.get(KEY).since == 10.0
    assert announced(site) == [Announcement(9000, 7.0), Announcement(70, 15.0)]


# Far queues


def test_a_leased_part_of_an_uplink_is_no_rate_that_was_found():
    """It follows the flows: an event at each change would hide the others."""
    for uplinks, kinds in ((), [Kind.RATE, Kind.RATE]), ((RACK,), []):
        site = Site(config=Config(uplinks=uplinks))
        seen: list[Occurrence] = []
        site.windows._reporter = EventReporter(seen.append, lambda _: "")
        site.link.ports[1].name = "s1-eth1"
        site.link.ports[FAR | 1].name = "s1-eth1@far"
        for line in (10**6, 2 * 10**6, 3 * 10**6):
            found = HiddenQueue(FAR | 1, Why.SHARE, 0, 0, line, line, line, 0, 0)
            site.windows.hidden_queues_reported(site.link, [found])
        assert [each.kind for each in seen] == kinds


def test_a_far_queue_that_was_never_listed_is_not_believed():
    """Whoever says that it is an agent could fill the memory and the list of events."""
    site = Site()
    seen: list[Occurrence] = []
    site.windows._reporter = EventReporter(seen.append, lambda _: "")
    before = set(site.link.ports)
    for line in (10**6, 2 * 10**6):
        for port in (900, FAR | 9):
            site.windows.hidden_queues_reported(
                site.link, [HiddenQueue(port, Why.OTHERS, 0, 0, line, line, line, 0, 0)]
            )
    assert seen == [] and set(site.link.ports) == before


# Thresholds


def thresholds(site: Site) -> list[tuple[int, int, int, int]]:
    return [
        tuple(congestion.decode_set(message.data))
        for message in site.agent.sent
        if type(message).__name__ == "OFPExperimenter"
        and message.exp_type == congestion.EXP_TYPE_SET_THRESHOLDS
    ]


def test_thresholds_are_sent_once_and_again_after_a_change_or_a_reconnect():
    site = Site()
    site.open()
    site.sample(B, 0.1)
    assert thresholds(site) == []
    site.policy.wanted = Thresholds(30_000, 6_000)
    for tick in range(2, 5):
        site.sample(B, tick / 10)
    assert thresholds(site) == [(B.port, 30_000, 6_000, 0)]
    site.policy.wanted = Thresholds(30_000, 6_000, drops=True)
    site.sample(B, 0.6)
    assert thresholds(site) == [(B.port, 30_000, 6_000, 0), (B.port, 30_000, 6_000, congestion.REPORT_DROPS)]
    site.windows.agent_disconnected(site.link)
    site.log.clear()
    site.connect_agent()
    site.sample(B, 0.7)
    assert thresholds(site) == [(B.port, 30_000, 6_000, congestion.REPORT_DROPS)]


def test_the_thresholds_of_a_port_that_was_added_again_are_sent_again():
    site = Site()
    site.policy.wanted = Thresholds(30_000, 6_000)
    site.open()
    site.sample(B, 0.1)
    site.windows.port_removed(B)
    site.sample(B, 0.2)
    assert len(thresholds(site)) == 2


def test_a_policy_without_thresholds_removes_those_of_the_former_policy():
    site = Site()
    site.policy.wanted = Thresholds(30_000, 6_000)
    site.open()
    site.sample(B, 0.1)
    site.windows.use(PolicyChoice(Obedient("other")))
    site.sample(B, 0.2)
    assert thresholds(site) == [(B.port, 30_000, 6_000, 0), (B.port, 0, 0, 0)]


# Pauses


def woken(site: Site) -> list[FlowKey]:
    """The flows that the agent is told to wake."""
    sent = [m.data for m in site.agent.sent if getattr(m, "exp_type", None) == waking.EXP_TYPE_WAKE]
    return [each.key.reversed for data in sent for each in waking.decode(data)]


@pytest.mark.parametrize("after", [WindowPlan(flows={KEY: 1460}), WindowPlan(window=1460), NO_WINDOWS])
def test_a_flow_paused_before_its_agent_disconnected_is_woken_after_the_reconnect(after):
    site = Site()
    site.open()
    site.policy.plan = WindowPlan(flows={KEY: 0})
    site.sample(B, 0.1)
    site.windows.agent_disconnected(site.link)
    site.policy.plan = after
    site.log.clear()
    site.connect_agent()
    assert not woken(site)
    site.sample(B, 0.3)
    assert woken(site) == [KEY]
    site.log.clear()
    site.sample(B, 0.4)
    assert not woken(site)


def test_a_pause_that_ends_while_the_agent_is_away_waits_for_it():
    site = Site()
    site.open()
    site.policy.plan = WindowPlan(flows={KEY: 0})
    site.sample(B, 0.1)
    site.windows.agent_disconnected(site.link)
    site.log.clear()
    site.windows.use(PolicyChoice(Obedient("other")))
    assert not woken(site) and not site.injector.counts
    site.connect_agent()
    site.sample(B, 0.3)
    assert woken(site) == [KEY]


# Progress


def questions(site: Site, kind: int) -> list[bytes]:
    return [message.data for message in site.agent.sent if getattr(message, "exp_type", None) == kind]


def test_progress_is_requested_at_the_interval_of_the_policy():
    site = Site(Obedient(interval=0.01))
    site.open()
    for tick in range(100):
        site.sample(B, tick / 1000)
    assert not questions(site, flow_records.EXP_TYPE_FLOW_RECORDS)
    site.policy.progress = True
    for tick in range(100, 200):
        site.sample(B, tick / 1000)
    asked = questions(site, flow_records.EXP_TYPE_FLOW_RECORDS)
    assert 10 <= len(asked) <= 12
    # A flow that is silent for long has no progress.
    assert {tuple(flow_records.decode_request(body)) for body in asked} == {(1000, B.port)}


def flow_record(n: int, port: int = B.port) -> FlowRecord:
    key = KEY._replace(sport=1000 + n)
    return FlowRecord(key, port, ESTABLISHED, 7, 1460, 0, 10 * n, n, 0, acked=5 * n, rtt_us=2000)


def test_progress_is_reported_for_the_port_s_own_flows():
    site = Site()
    site.open()
    site.windows.port_flows_reported(site.link, B.port, [flow_record(4), flow_record(5, port=3)], 0.1)
    progress = [call[1] for call in site.law(B).calls if call[0] == "progressed"]
    assert progress == [{KEY._replace(sport=1004): FlowProgress(20, 40, 0.002, True)}]


# Losses


def lost_frame(payload: int = 1000, seq: int = 101) -> bytes:
    """A data segment of KEY: built like an ACK of the client, and made longer."""
    client = tcp_build.Addressing(KEY, CLIENT_MAC, SERVER_MAC)
    made = tcp_build.window_update(client, state(KEY.reversed, seq_next=seq, ack=901))
    assert isinstance(made, bytes)
    total = len(made) - 14 + payload
    return made[:16] + total.to_bytes(2, "big") + made[18:] + bytes(payload)


def losing() -> Site:
    site = Site(Obedient(recovery=DUPACK))
    site.policy.wanted = Thresholds(30_000, 6_000, drops=True)
    site.open()
    site.sample(B, 0.1, backlog=125_000)
    site.log.clear()
    site.link.poll_now.clear()
    frame = lost_frame()
    site.windows.packet_dropped(B, frame, len(frame), 0.1)
    return site


def test_a_loss_is_checked_with_the_agent_and_signalled_to_its_sender():
    site = losing()
    (asked,) = questions(site, segment_state.EXP_TYPE_SEGMENTS)
    assert segment_state.decode_request(asked) == [KEY.reversed]
    assert site.link.poll_now.is_set()
    site.windows.recovery.segments([state(KEY, ack=101)], 0.11)
    assert [out.in_port for out in site.bridge.sent] == [B.port] * 3
    assert {tuple(action.port for action in out.actions) for out in site.bridge.sent} == {(ofp.OFPP_TABLE,)}
    assert len({bytes(out.data) for out in site.bridge.sent}) == 1
    assert site.injector.counts == {"dupack": 1}


def test_a_loss_without_addresses_is_counted():
    site = losing()
    site.injector.forget(KEY)
    site.windows.recovery.segments([state(KEY, ack=101)], 0.11)
    assert not site.bridge.sent and site.injector.counts == {"dupack: addresses not known": 1}


def test_queues_are_polled_fast_while_receivers_may_ask_for_losses():
    site = losing()
    assert site.windows.interval(site.link) == 0.001
    site.windows.recovery.segments([state(KEY, ack=1101)], 0.2)
    assert site.windows.interval(site.link) == site.policy.interval


def test_losses_at_other_ports_do_not_speed_up_polling():
    site = losing()
    site.windows.port_removed(B)
    site.open(KEY._replace(sport=7))
    site.sample(B, 0.2)
    frame = lost_frame()
    site.windows.packet_dropped(B._replace(dpid=2), frame, len(frame), 0.2)
    assert site.windows.interval(site.link) == site.policy.interval


def test_a_policy_without_recovery_gets_no_losses():
    site = Site()
    site.open()
    site.log.clear()
    frame = lost_frame()
    site.windows.packet_dropped(B, frame, len(frame), 0.1)
    assert not site.log and not list(site.windows.recovery)


def test_losses_are_forgotten_with_the_policy_that_recovered_them():
    site = losing()
    site.windows.use(PolicyChoice(Obedient("other")))
    assert not sum(len(each) for each in site.windows.recovery)
    site.sample(B, 0.2)
    assert site.windows.interval(site.link) == site.policy.interval
    site.windows.recovery.segments([state(KEY, ack=101)], 0.3)
    assert not site.bridge.sent


def test_losses_are_forgotten_when_their_ports_are_used_again():
    site = losing()
    site.syn(KEY, 0.2, seq=7000)
    assert sum(len(each) for each in site.windows.recovery), "anybody can send a SYN"
    site.syn(KEY.reversed, 0.25, "SA", seq=9000, ack=7001)
    site.windows.recovery.segments([state(KEY, ack=101)], 0.3)
    assert not site.bridge.sent


# Names


def test_ports_get_their_policy_when_they_are_named():
    special = Obedient("special")
    site = Site(rules=(("s1-eth2", special),))
    site.open()
    site.sample(B, 0.1)
    assert site.windows.engine.policy_of(B) is site.policy
    site.windows.name_ports(0.2)
    assert site.windows.engine.policy_of(B) is special
    assert ("started", KEY) in special.laws[B].calls
    site.fabric.names[B] = "other"
    site.windows.name_ports(0.3)
    assert site.windows.engine.policy_of(B) is site.policy


def test_ports_get_their_policy_when_their_role_is_known():
    special = Obedient("special")
    site = Site(rules=(("role:host", special),))
    site.windows.name_ports(0.1)
    assert site.windows.engine.policy_of(B) is site.policy
    site.fabric.tick(20.0)
    site.windows.name_ports(20.0)
    assert site.windows.engine.policy_of(B) is special
