"""The model of one port, and what the laws of the switch do on it."""

from __future__ import annotations

import pytest

from bench.laws import Network, specs, volleys
from bench.packet_model import HEADERS, MSS, Bottleneck, switch_law
from fairq_ryu.agent.law_table import parameters
from fairq_ryu.agent.qdisc import QueueLimits

FAST = Network(1e9, 200, 125_000)


def law_of(name):
    return switch_law(parameters(specs(FAST)[name], QueueLimits("model", FAST.buffer, int(FAST.rate / 8))))


def port_of(name):
    return Bottleneck(FAST.rate, FAST.round_trip * 1000, FAST.buffer, law_of(name))


def test_one_flow_on_an_empty_port_takes_its_time():
    port = Bottleneck(1e9, 200_000, 125_000, seed=0)
    flow = port.start(port.now, 5 * MSS)
    port.run(port.now + 10_000_000)
    wire = 5 * int((MSS + HEADERS) * 8)
    late = 200_000 // 50
    # A round trip for the handshake, the bytes on the wire, and a round trip for the last.
    assert 0 <= flow.end - flow.start - (2 * 200_000 + wire) <= late
    assert (port.backlog, port.drops) == (0, 0)


def test_what_does_not_fit_is_dropped_and_sent_again():
    port = Bottleneck(1e9, 200_000, 3 * (MSS + HEADERS))
    flow = port.start(port.now, 10 * MSS)
    port.run(port.now + 2_000_000_000)
    assert flow.end is not None and flow.acked == 10 * MSS
    assert port.drops > 0 and port.peak <= port.buffer


@pytest.mark.parametrize("name", ["fairq", "fairswitch", "las"])
def test_the_queue_is_at_its_target_and_the_link_is_busy(name):
    found = volleys(FAST, port_of(name))
    target = 0.15 if name == "las" else 0.25
    assert found.queue == pytest.approx(target, abs=0.02)
    assert found.goodput > 0.99
    assert found.unfinished == 0


def test_las_serves_a_volley_sooner_than_fairq_and_its_last_mouse_no_later():
    las, fairq = (volleys(FAST, port_of(name)) for name in ("las", "fairq"))
    assert las.mean < fairq.mean and las.p99 < fairq.p99
    assert las.drops == 0


@pytest.mark.parametrize("name", ["fairq", "las"])
@pytest.mark.parametrize("round_trip", [100, 500])
def test_flows_fill_the_link_again_when_datagrams_have_gone(name, round_trip):
    """The receivers are next to the switch, and round trips are shorter than the law assumes: while the queue
    is empty, the switch has seen nothing of what is under way.
    """
    spec = specs(Network(10e9, 1000, 500_000))[name]
    law = switch_law(parameters(spec, QueueLimits("model", 500_000, int(10e9 / 8))))
    port = Bottleneck(10e9, round_trip * 1000, 500_000, law, behind=0)
    flows = [port.start(port.now) for _ in range(8)]
    port.run(port.now + 50_000_000)
    port.load(port.now + 20_000_000)
    port.run(port.now + 60_000_000)
    before = sum(flow.acked for flow in flows)
    port.run(port.now + 20_000_000)
    got = sum(flow.acked for flow in flows) - before
    assert got * (MSS + HEADERS) / MSS * 8 / 0.02 / 10e9 > 0.97


@pytest.mark.parametrize("name", ["fairq", "las"])
@pytest.mark.parametrize("rate", [50e6, 200e6])
def test_a_lone_flow_with_a_long_round_trip_fills_the_link_with_default_settings(name, rate):
    """The laws assume a round trip of 1 ms. A flow with 20 ms waits longer for the answer to its last window,
    and needs a pool of what is on the way in 20 ms.
    """
    spec = specs(Network(rate, 1000, 125_000))[name]
    law = switch_law(parameters(spec, QueueLimits("model", 125_000, int(rate / 8))))
    port = Bottleneck(rate, 20_000_000, 125_000, law)
    flow = port.start(port.now)
    port.run(port.now + 2_000_000_000)
    before = flow.acked
    port.run(port.now + 2_000_000_000)
    assert (flow.acked - before) * (MSS + HEADERS) / MSS * 8 / 2 / rate > 0.95
    assert port.drops == 0
