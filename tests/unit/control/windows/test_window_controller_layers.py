"""SED with its base windows in the switch: the controller's rules of flows are above the law of the port."""

from __future__ import annotations

import time
from typing import Any

import pytest

from fairq_ryu.agent import layout
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.channel.congestion import CongestionNotice
from fairq_ryu.channel.flow_records import ESTABLISHED, FlowRecord
from fairq_ryu.laws.sed import SedLaw
from fairq_ryu.model import Congestion, FlowKey, Thresholds, WindowKind
from fairq_ryu.policies.switch_port import LOOK_INTERVAL
from tests.support.flownet import KEY, B
from tests.support.law_network import RATE, Network, policy
from tests.support.site import LIMIT

K = LIMIT // 4
TWIN = K + RATE // 1000
OTHER = KEY._replace(sport=KEY.sport + 2)


def windows(net: Network) -> dict[FlowKey, int]:
    """The windows of single flows that the agent has, by the direction of the data."""
    return {
        key.reversed: rule.bytes for key, (rule, *_) in net.data.installed.items() if isinstance(key, FlowKey)
    }


def sending(net: Network, *keys: FlowKey, sent: int = 1000) -> None:
    """The agent reports that these flows have sent so much."""
    found = [FlowRecord(key, B.port, ESTABLISHED, 0, 1460, 0, sent, 1, 0) for key in keys]
    net.windows.port_flows_reported(net.site.link, B.port, found, net.now)
    net.deliver()


def congested(net: Network, state: Congestion = Congestion.CNG, backlog: int = K) -> None:
    notice = CongestionNotice(B.port, state, backlog, int(net.now * 1e9))
    net.windows.threshold_crossed(net.site.link, notice, net.now)
    net.deliver()


def network(name: str = "sed", *keys: FlowKey, **values: Any) -> Network:
    net = Network(policy(name, **values))
    net.now = time.monotonic()  # refusals have the time of the real clock
    net.read(B)
    for key in keys:
        net.site.open(key, net.now)
    net.deliver()
    sending(net, *keys)
    return net


@pytest.mark.parametrize(("name", "drops"), [("sed", False), ("rsed", True)])
def test_the_switch_gets_the_law_and_the_thresholds(name, drops):
    net = network(name)
    number, law, _ = net.data.laws[B.port]
    assert (number, law.kind) == (B.port, SedLaw.kind)
    own = layout.own("sed_law", law)
    assert (law.target, own.calm, own.linger_ns) == (K, K // 5 + 1, 100_000_000)
    assert (own.limiting_segments, own.anticipate, law.first_window) == (1, 1, 10)
    assert net.data.thresholds[B.port] == Thresholds(K, K // 5, drops)
    assert net.shown(B) == ("switch", None)


def test_grants_of_flows_come_and_go_above_the_law():
    net = network("sed", KEY, OTHER)
    law = net.data.installed[B.port][0]
    assert (law.kind, windows(net)) == (WindowKind.LAW, {})
    congested(net)
    assert windows(net) == {KEY: TWIN // 2, OTHER: TWIN // 2}
    congested(net, Congestion.NOM, 0)
    for sent in range(2, 14):
        net.read(B, after=0.01)
        sending(net, KEY, OTHER, sent=1000 * sent)
    assert windows(net) == {}
    assert net.data.installed[B.port][0] == law, "the port's law is the switch's, in congestion or not"


def test_a_report_of_the_switch_replaces_a_lost_message():
    net = network("sed", KEY)
    net.data.active[B.port] = 1
    for mode, wanted in ((1, {KEY: TWIN}), (1, {KEY: TWIN}), (0, {})):
        net.data.law_states[B.port] = layout.fq_law_state(window=1460, mode=mode)
        for sent in range(20):  # longer than `linger`: shares stay while the base windows do
            net.site.link.send(net.site.link.window_laws.request(0.0, net.now))
            net.read(B, after=0.01)
            sending(net, KEY, sent=int(net.now * 1e6) + sent)
        assert windows(net) == wanted


@pytest.mark.parametrize("name", ["sed", "rsed"])
def test_a_switch_that_refuses_the_law_has_no_windows_of_flows_either(name, caplog):
    caplog.set_level("WARNING")
    net = network(name, KEY)
    congested(net)
    assert windows(net) == {KEY: TWIN}
    net.data.limits[B.port] = QueueLimits("", LIMIT, 0)
    net.read(B, after=1.0)
    assert (net.shown(B)[0], len(net.data.laws)) == (None, 0)
    (line,) = [record.message for record in caplog.records]
    assert "no windows on port 2" in line and "no queue of known size and rate" in line
    sending(net, KEY, sent=2_000)
    congested(net)
    net.read(B, after=0.01)
    assert (net.data.installed, windows(net)) == ({}, {})


def test_leases_of_both_layers_are_renewed_and_end():
    net = network("sed", KEY)
    congested(net)
    ends = [expires for _, expires, _ in net.data.installed.values()]
    for sent in range(2, 80):
        net.read(B, after=0.01)
        sending(net, KEY, sent=1000 * sent)
        congested(net)
    assert min(expires for _, expires, _ in net.data.installed.values()) > max(ends)
    net.server.expire_rules(time.monotonic_ns() + 10 * 10**9)
    assert net.data.installed == net.data.laws == {}


def test_queues_are_read_as_often_as_the_controller_s_part_needs():
    """Without flows rarely, and at once when the first one starts."""
    net = network("sed")
    link = net.site.link
    assert net.windows.interval(link) == LOOK_INTERVAL
    link.poll_now.clear()
    net.site.open(KEY, net.now)
    assert link.poll_now.is_set() and net.windows.interval(link) == 0.01
    link.poll_now.clear()
    net.site.open(OTHER, net.now)
    assert not link.poll_now.is_set()
    for key in (KEY, OTHER):
        net.site.reset(key, net.now)
    assert net.windows.interval(link) == LOOK_INTERVAL
