"""Announced deadlines reach the agents where handshakes take turns: a controller and a real agent's server,
without sockets and without eBPF.
"""

from __future__ import annotations

from typing import Any

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.agent import layout
from fairq_ryu.channel import deadlines
from fairq_ryu.fabric.deadlines.request import Request
from fairq_ryu.far_queue import FAR
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.model import FlowKey
from tests.support.agent_peer import Peer, bad_request, role
from tests.support.fakes import DATAPATH, wire
from tests.support.flownet import BACK, KEY, LOCAL, A, B, segment
from tests.support.law_network import Network, policy


def network(turns: str = "on") -> Network:
    """Both ports have the law that FairQ wants with this setting."""
    net = Network(policy("fairq", turns=turns))
    net.read(A, B)
    found = {
        port: bool(law.flags & layout.CONSTANTS["FQ_LAW_TURNS"])
        for port, (_, law, _) in net.data.laws.items()
    }
    assert found == dict.fromkeys((A.port, B.port), turns == "on")
    return net


def announce(net: Network, deadline: float | None, flow: FlowKey = KEY, **more: Any) -> int:
    wanted = Request(flow.src, flow.dst, flow.dport, size=9000, deadline=deadline, **more)
    number = net.windows.announce(wanted, net.now).id
    net.deliver()
    return number


def syn(net: Network, key: FlowKey = KEY) -> None:
    net.site.syn(key, net.now, seq=100)
    net.deliver()


def answer(net: Network, key: FlowKey = KEY) -> None:
    net.site.syn(key.reversed, net.now, "SA", seq=900, ack=101)
    net.deliver()


def told(net: Network) -> list[tuple[FlowKey, int | None]]:
    """What the agent was told: connections, and the time that was left, ms."""
    found = [(key, None if at is None else round((at - when) / 1e6)) for key, at, when in net.data.deadlines]
    net.data.deadlines.clear()
    return found


@pytest.mark.parametrize("flow", [KEY, BACK], ids=["of the opener", "of the answer"])
def test_the_deadline_is_sent_when_the_connection_begins(flow: FlowKey) -> None:
    net = network()
    announce(net, 0.4, flow)
    assert told(net) == [], "no connection is known yet"
    syn(net)
    assert told(net) == [(KEY.connection, 400)]
    answer(net)
    assert told(net) == [], "once"


def test_the_earlier_deadline_of_both_directions_counts() -> None:
    net = network()
    announce(net, 0.4, KEY)
    announce(net, 0.3, BACK)
    syn(net)
    assert told(net) == [(KEY.connection, 300)]


def test_an_announcement_that_comes_while_the_handshake_waits() -> None:
    net = network()
    syn(net)
    assert told(net) == []
    net.now += 0.1
    number = announce(net, 0.4)
    assert told(net) == [(KEY.connection, 300)], "it counts from the start of the flow"
    net.windows.withdraw(number, net.now)
    net.deliver()
    assert told(net) == [(KEY.connection, None)]
    net.now += 0.5
    announce(net, 0.4)
    assert told(net) == [(KEY.connection, 0)], "it has passed"
    net.now += 10
    announce(net, 0.7, sport=KEY.sport)
    assert told(net) == [], "the handshake is over"


def test_a_flow_without_a_deadline_is_not_sent() -> None:
    net = network()
    announce(net, None)
    syn(net)
    assert told(net) == []


def test_nothing_is_sent_where_there_are_no_turns() -> None:
    without = Network(policy("fairq-paper"))
    without.read(A, B)
    for net in (network("off"), without):
        net.windows.announce(Request(KEY.src, KEY.dst, KEY.dport, deadline=0.4), net.now)
        syn(net)
        assert told(net) == []
    net = network()
    net.windows.agent_disconnected(net.site.link)
    announce(net, 0.4)
    syn(net)
    assert told(net) == []


def test_the_agent_where_a_syn_enters_is_told_before_the_flow_table_knows_it() -> None:
    net = network()
    net.windows.syn_copied(KEY, A.dpid, net.now)
    net.deliver()
    assert told(net) == [], "it is not announced"
    announce(net, 0.4, BACK)
    for dpid in (A.dpid, 9):
        net.windows.syn_copied(KEY, dpid, net.now)
    net.deliver()
    assert told(net) == [(KEY.connection, 400)] and net.site.flows.get(KEY) is None
    net = network("off")
    net.windows.announce(Request(KEY.src, KEY.dst, KEY.dport, deadline=0.4), net.now)
    net.windows.syn_copied(KEY, A.dpid, net.now)
    net.deliver()
    assert told(net) == []


def test_a_held_syn_waits_until_the_agent_knows_the_deadline() -> None:
    """What apply() returns gets barriers before the SYN is forwarded."""
    net = network()
    announce(net, 0.4)
    events = net.site.flows.segment(segment(KEY, "S", seq=100), A, LOCAL, net.now)
    assert net.windows.apply(events, net.now).count(net.site.agent) == 1


def test_turns_of_a_far_queue_count_too() -> None:
    net = network("off")
    net.site.link.ports[FAR | A.port].window_law.spec = FairQLaw(turns=1)
    announce(net, 0.4)
    syn(net)
    assert told(net) == [(KEY.connection, 400)]


def test_many_deadlines_are_sent_in_several_messages() -> None:
    net = network()
    wanted = [
        deadlines.HandshakeDeadline(KEY._replace(sport=number), number)
        for number in range(deadlines.MAX_CONNECTIONS + 1)
    ]
    net.site.link.send(net.site.link.set_deadlines(wanted))
    assert len(net.site.agent.sent) == 2
    net.deliver()
    assert [key for key, _, _ in net.data.deadlines] == [each.key for each in wanted]
    assert {at - when - key.sport * 1000 for key, at, when in net.data.deadlines if at is not None} == {0}


def test_the_agent_refuses_malformed_deadlines_and_those_of_a_slave() -> None:
    net = network()
    good = wire(deadlines.set_deadlines(DATAPATH, [deadlines.HandshakeDeadline(KEY, 5)]))
    peer = Peer(net.server)
    bad = deadlines.set_deadlines(DATAPATH, [deadlines.HandshakeDeadline(KEY, 5)])
    bad.data = bad.data[:-1]
    assert peer.refusal(bad) == bad_request("BAD_LEN")
    assert peer.ask(good) == [] and told(net) == [(KEY, 0)]
    role(peer, ofp.OFPCR_ROLE_SLAVE, 1)
    assert peer.refusal(good) == bad_request("IS_SLAVE")
    assert told(net) == []
