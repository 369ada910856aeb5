"""Pauses that end and losses that are recovered in the agent: a controller and a real agent's server, without
sockets and without eBPF.
"""

from __future__ import annotations

import logging
from typing import Any

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.agent.openflow_server import OpenFlowServer
from fairq_ryu.channel import recovery, waking
from fairq_ryu.channel.description import ALL, Capability, Description
from fairq_ryu.channel.queue_depth import QueueDepth
from fairq_ryu.channel.recovery import SetRecovery
from fairq_ryu.control.arrivals.agent_messages import AgentMessages
from fairq_ryu.control.arrivals.refusals import Refusals
from fairq_ryu.control.reports.counters import Counts
from fairq_ryu.model import SegmentState, Thresholds, WindowPlan
from fairq_ryu.packet.parse import Frame, parse
from fairq_ryu.packet.tcp_build import Addressing
from fairq_ryu.policies.base import Recovery
from fairq_ryu.policies.choice import PolicyChoice
from tests.support.agent_peer import Peer, queue_state
from tests.support.fakes import FakeDatapath
from tests.support.flownet import BACK, KEY, A, B, segment
from tests.support.site import CLIENT_MAC, LIMIT, SERVER_MAC, Obedient, Site
from tests.switch.packets import Segment, window

REINJECT = Recovery(False, True, 1 << 20, 0.5)
CNG = 30_000
NS = 1_000_000_000


class Network:
    """Bridge 1, its agent and a controller. KEY is open: its data leaves by B, its ACKs by A."""

    def __init__(self, recovery: Recovery | None = None, capabilities: Capability = ALL) -> None:
        self.site = Site(Obedient(recovery=recovery), agent=False)
        self.windows = self.site.windows
        self.about = Description("s1", capabilities)
        self.data = FakeDatapath(1, 2, 3)
        self.data.segments[BACK] = SegmentState(BACK, True, A.port, 901, 101, 500, 7, has_timestamps=False)
        log, counts = logging.getLogger("injection"), Counts()
        self.refusals = Refusals(self.site.fabric, self.windows, counts, log, lambda _, line: self.fail(line))
        self.messages = AgentMessages(self.windows, lambda *_: None, lambda *_: None, counts, log)
        self.now = 100.0
        self.names: list[str] = []
        self.connect()
        self.site.open(now=self.now)
        self.deliver()
        self.names.clear()

    def fail(self, line: str) -> None:
        raise AssertionError(line)

    def connect(self) -> None:
        if self.windows.links:
            self.windows.agent_disconnected(self.site.link)
        self.server = OpenFlowServer("s1", 1, self.data, rule_capacity=8)
        self.peer = Peer(self.server)
        self.site.connect_agent(self.about)
        self.deliver()

    def deliver(self) -> None:
        """Take the controller's messages to the agent, one by one, and the answers back."""
        while self.site.agent.sent:
            sent = self.site.agent.sent
            self.site.log[:] = [entry for entry in self.site.log if entry[0] != self.site.agent.id]
            for message in sent:
                number = getattr(message, "exp_type", None)
                self.names.append(type(message).__name__ if number is None else str(number))
                for answer in self.peer.ask(bytes(message.buf)):
                    answer.datapath = self.site.agent
                    if answer.msg_type == ofp.OFPT_ERROR:
                        self.refusals.refused(answer)
                    elif answer.msg_type == ofp.OFPT_BARRIER_REPLY:
                        self.site.fabric.barriers.answered((self.site.agent.id, message.xid))
                    else:
                        self.messages.reply(answer, self.now)

    def read(self, backlog: int = 0, after: float = 0.05) -> None:
        """The agent reports the queue of B."""
        self.now += after
        record = QueueDepth(B.port, 1, backlog, backlog, LIMIT, 25_000_000, 0, 0, int(self.now * NS))
        self.windows.queues_read(self.site.link, [record], self.now)
        self.deliver()

    def plan(self, plan: WindowPlan) -> None:
        self.site.policy.plan = plan
        self.read()

    def count(self) -> None:
        self.site.link.send(self.site.link.request_counts(float("-inf"), self.now))
        self.deliver()

    @property
    def woken(self) -> list[tuple[int, str, str]]:
        found = []
        for port, frame in self.data.frames:
            read = parse(frame)
            assert read is not None
            found.append((port, read.src, read.dst))
        return found


# Wakes


@pytest.mark.parametrize("after", [WindowPlan(flows={KEY: 5000}), WindowPlan(window=5000), WindowPlan()])
def test_a_paused_sender_is_woken_by_the_agent_in_the_same_turn(after):
    """The WAKE follows the rule, without a barrier and without a question."""
    net = Network()
    net.plan(WindowPlan(flows={KEY: 0}))
    assert net.data.installed[BACK][0].bytes == 0 and net.data.frames == []
    net.names.clear()
    net.plan(after)
    assert net.names[-1] == str(waking.EXP_TYPE_WAKE)
    assert set(net.names[:-1]) == {"OFPFlowMod"}
    assert net.woken == [(A.port, SERVER_MAC, CLIENT_MAC)]
    (_, frame) = net.data.frames[0]
    read = parse(frame)
    assert read is not None and read.tcp is not None
    assert (read.tcp.key, read.tcp.seq, read.tcp.ack_number) == (BACK, 901, 101)
    assert window(frame) == 500
    assert not net.site.bridge.sent, "no packet-out"


def test_a_flow_that_had_a_window_is_not_woken():
    net = Network()
    net.plan(WindowPlan(flows={KEY: 0}))
    net.plan(WindowPlan(flows={KEY: 5000}))
    net.plan(WindowPlan(flows={KEY: 9000}))
    assert len(net.data.frames) == 1


@pytest.mark.parametrize("opener", [KEY, BACK])
def test_the_addresses_are_those_of_the_acks_whichever_syn_was_copied_last(opener):
    net = Network()
    net.plan(WindowPlan(flows={KEY: 0}))
    macs = (CLIENT_MAC, SERVER_MAC) if opener == KEY else (SERVER_MAC, CLIENT_MAC)
    net.site.injector.learn(Frame(*macs, (), opener.src, None, segment(opener, "S"), 0))
    sent: list[Any] = []
    net.site.link.wake = lambda acks: sent.extend(acks) or []
    net.plan(WindowPlan(flows={KEY: 5000}))
    assert sent == [Addressing(BACK, SERVER_MAC, CLIENT_MAC)]


def test_a_sender_whose_addresses_are_not_known_is_not_woken():
    net = Network()
    net.plan(WindowPlan(flows={KEY: 0}))
    net.site.injector.forget(KEY)
    net.plan(WindowPlan(flows={KEY: 5000}))
    assert net.data.frames == []
    assert net.site.injector.counts == {"wake: addresses not known": 1}


def test_the_counts_of_the_agent_are_added_up():
    net = Network()
    net.plan(WindowPlan(flows={KEY: 0}))
    net.plan(WindowPlan(flows={KEY: 5000}))
    net.count()
    net.count()
    assert net.site.injector.counts == {"wake": 1}
    # Another controller, or a new connection of this one: what was counted before is not counted again.
    peer, server = net.peer, net.server
    net.windows.agent_disconnected(net.site.link)
    net.peer, net.server = Peer(server), server
    assert peer is not net.peer
    net.site.connect_agent()
    net.deliver()
    net.count()
    assert net.site.injector.counts == {"wake": 1}


# Recovery


def losing(mode: Recovery = REINJECT) -> Network:
    net = Network(mode)
    net.site.policy.wanted = Thresholds(CNG, 6_000, drops=True)
    net.read()
    return net


def settings(net: Network) -> SetRecovery | None:
    return net.server.recovery.settings(B.port)


def lost(seq: int = 101) -> bytes:
    return Segment(KEY.src, KEY.dst, KEY.sport, KEY.dport, seq, 901, payload=b"x" * 1000).frame()


@pytest.mark.parametrize(
    ("dupack", "reinject", "flags"), [(True, False, 1), (False, True, 2), (True, True, 3)]
)
def test_the_agent_is_told_how_to_recover(dupack, reinject, flags):
    net = losing(Recovery(dupack, reinject, 5000, 0.25))
    assert settings(net) == SetRecovery(B.port, flags, 5000, 250, CNG, net.windows.lease)
    # It watches drops for itself, and sends none of them to the controller.
    assert net.data.thresholds[B.port] == Thresholds(CNG, 6_000, True)
    assert net.server.congestion.thresholds[B.port] == Thresholds(CNG, 6_000, False)


def test_the_lease_is_renewed_and_nothing_is_sent_before_that():
    net = losing()
    net.names.clear()
    for _ in range(9):  # 0.45 s of a lease of 2 s
        net.read()
    assert str(recovery.EXP_TYPE_SET_RECOVERY) not in net.names
    for _ in range(40):
        net.read()
    assert net.names.count(str(recovery.EXP_TYPE_SET_RECOVERY)) == 4


@pytest.mark.parametrize("mode", [None, Recovery(False, False, 1000, 1.0)])
def test_a_policy_without_recovery_gets_none(mode):
    net = losing(mode)
    assert settings(net) is None


def test_a_loss_is_put_back_without_the_controller():
    net = losing()
    frame = lost()
    net.data.queues[B.port] = queue_state(CNG - 1)
    net.server.recovery.dropped([(B.port, frame, len(frame))], 0)
    due = net.server.recovery.next_ns
    assert due is not None and due < 1_000_000
    net.server.recovery.work(due)
    assert net.data.frames == [(B.port, frame)]
    net.count()
    assert net.windows.recovery.outcomes["reinjected"] == 1 and net.windows.recovery.stored == 1
    assert net.site.injector.counts == {"reinject": 1}
    assert net.windows.interval(net.site.link) == net.site.policy.interval, "queues are not read faster"


def test_another_policy_ends_the_recovery():
    net = losing()
    net.windows.use(PolicyChoice(Obedient("other")))
    net.read()
    assert settings(net) is None
    net.names.clear()
    net.read()
    assert str(recovery.EXP_TYPE_SET_RECOVERY) not in net.names


def test_nothing_is_asked_of_an_agent_whose_kernel_reports_no_drops():
    net = Network(REINJECT, ALL & ~Capability.DROP_REPORTS)
    net.data.reports_drops = False
    net.site.policy.wanted = Thresholds(CNG, 6_000, drops=True)
    for _ in range(20):
        net.read()
    assert settings(net) is None and str(recovery.EXP_TYPE_SET_RECOVERY) not in net.names
    assert net.server.congestion.thresholds[B.port] == Thresholds(CNG, 6_000, False)


def test_the_controller_sends_no_segments_again():
    with pytest.raises(ValueError, match="reinject needs by_agent"):
        Recovery(False, True, 5000, 1.0, by_agent=False)


def test_the_controller_recovers_where_the_policy_wants_that():
    """The packet comes by packet-in, three duplicates go by packet-out, with the window last passed on."""
    net = Network(Recovery(True, False, 5000, 1.0, by_agent=False))
    net.data.segments[BACK] = net.data.segments[BACK]._replace(passed=22)
    net.site.policy.wanted = Thresholds(CNG, 6_000, drops=True)
    net.read()
    assert settings(net) is None
    assert net.server.congestion.thresholds[B.port] == Thresholds(CNG, 6_000, True)
    frame = lost()
    net.windows.packet_dropped(B, frame, len(frame), net.now)
    net.deliver()
    outs = [message.data for message in net.site.bridge.sent]
    assert len(outs) == 3 and len(set(outs)) == 1 and window(outs[0]) == 22
    read = parse(outs[0])
    assert read is not None and read.tcp is not None
    assert (read.tcp.key, read.tcp.seq, read.tcp.ack_number) == (BACK, 901, 101)
    assert net.data.frames == [] and net.site.injector.counts == {"dupack": 1}


def test_the_controller_takes_over_from_the_agent_with_such_a_policy():
    net = losing()
    assert settings(net) is not None
    other = Obedient("other", recovery=Recovery(True, False, 5000, 1.0, by_agent=False))
    other.wanted = Thresholds(CNG, 6_000, drops=True)
    net.windows.use(PolicyChoice(other))
    net.read()
    assert settings(net) is None
    assert net.server.congestion.thresholds[B.port] == Thresholds(CNG, 6_000, True)


def test_a_port_that_is_removed_is_told_again_when_it_comes_back():
    net = losing()
    net.windows.port_removed(B)
    net.server.forget_port(B.port, 0)
    net.names.clear()
    net.read()
    assert str(recovery.EXP_TYPE_SET_RECOVERY) in net.names
