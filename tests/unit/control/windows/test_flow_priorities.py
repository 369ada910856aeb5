"""Announced priorities reach the agents of tenants: a controller and a real agent's server, without sockets
and without eBPF.
"""

from __future__ import annotations

from typing import Any

from fairq_ryu.channel import flow_priorities
from fairq_ryu.fabric.deadlines.request import Request
from fairq_ryu.model import FlowKey
from tests.support.flownet import KEY
from tests.support.law_network import Network, policy


def announce(net: Network, priority: int | None, flow: FlowKey = KEY, **more: Any) -> int:
    wanted = Request(flow.src, flow.dst, flow.dport, priority=priority, **more)
    return net.windows.announce(wanted, net.now).id


def syn(net: Network, key: FlowKey = KEY) -> None:
    net.site.syn(key, net.now, seq=100)
    net.deliver()


def told(net: Network) -> list[tuple[FlowKey, int | None]]:
    """What the agent is told with the next tick."""
    net.data.priorities.clear()
    net.now += 0.25
    net.windows.tend_tenants(net.now)
    net.deliver()
    return [tuple(each) for message in net.data.priorities for each in message]


def test_a_flow_that_was_announced_has_its_priority_when_it_begins() -> None:
    net = Network(policy("tenants"))
    announce(net, 400)
    assert told(net) == [], "it does not run yet"
    syn(net)
    assert told(net) == [(KEY, 400)]
    assert told(net) == [], "once"


def test_a_flow_that_runs_is_announced_again_and_the_announcement_withdrawn() -> None:
    net = Network(policy("tenants"))
    syn(net)
    for priority in (400, 50):
        number = announce(net, priority, sport=KEY.sport)
        assert told(net) == [(KEY, priority)]
    net.windows.withdraw(number, net.now)
    assert told(net) == [(KEY, None)]


def test_when_a_flow_ends_its_priority_is_taken_back() -> None:
    net = Network(policy("tenants"))
    announce(net, 400)
    syn(net)
    assert told(net) == [(KEY, 400)]
    net.windows._announced.connection_over(KEY.connection)
    assert told(net) == [(KEY, None)]


def test_an_announcement_without_a_priority_is_not_sent() -> None:
    net = Network(policy("tenants"))
    announce(net, None, size=9000)
    syn(net)
    assert told(net) == []


def test_another_agent_of_the_bridge_is_told_everything() -> None:
    net = Network(policy("tenants"))
    announce(net, 400)
    syn(net)
    assert told(net) == [(KEY, 400)]
    net.connect()
    assert told(net) == [(KEY, 400)]
    assert list(net.data.priorities[0]) == [], "and first that it forgets what it was told before"
    assert told(net) == []


def test_without_tenants_nobody_is_told() -> None:
    net = Network(policy("fairq"))
    announce(net, 400)
    syn(net)
    assert told(net) == []


def test_many_priorities_are_sent_in_several_messages() -> None:
    net = Network(policy("tenants"))
    count = flow_priorities.MAX_FLOWS + 1
    wanted = [flow_priorities.FlowPriority(KEY._replace(sport=each), 7) for each in range(1, count + 1)]
    assert len(net.site.link.set_priorities(wanted)) == 2
