"""The topologies of stored scenarios: one bottleneck, and uplinks with the rates that the scenario sets."""

from collections import Counter

import pytest

from fairq_ryu.experiments import scenario
from fairq_ryu.experiments.testbed import make_topology
from tests.support.topologies import neighbours, queues


@pytest.mark.parametrize("name", [name for name in scenario.names() if name.startswith("incast")])
def test_the_bottleneck_of_a_stored_scenario_is_its_only_queue(name):
    chosen = scenario.load(name)
    topo, shape = make_topology(chosen), chosen.plan
    switch, behind = shape.bottleneck
    (port,) = (port for port, (peer, _) in neighbours(topo, switch).items() if peer == behind)
    found = queues(topo)
    assert found.pop((switch, port)) == (chosen.rate_mbit, chosen.buffer_bytes)
    if chosen.topology == "dumbbell":  # its other direction
        assert found.popitem() == (("right", 2), (chosen.rate_mbit, chosen.buffer_bytes))
    assert found == {}
    assert {*shape.senders(chosen.senders), shape.receiver} <= set(topo.hosts())
    assert {topo.nodeInfo(host)["cc"] for host in topo.hosts()} == {chosen.cc}


@pytest.mark.parametrize("receivers", [1, 2])
def test_ports_behind_a_switch_that_is_not_ours_may_be_shaped_together(receivers):
    chosen = scenario.load("incast-tor", {"shaped": "0.9", "receivers": str(receivers)})
    found = queues(make_topology(chosen))
    assert found.pop(("tor", chosen.senders + 1)) == (25, 125_000)
    assert found == {(switch, 2): (22.5 / receivers, 125_000) for switch in chosen.governed_ports}


def test_uplinks_of_a_scenario_have_their_rate_and_the_same_buffer():
    chosen = scenario.load("incast-leafspine", {"uplink_mbit": "400"})
    found = Counter(queues(make_topology(chosen)).values())
    assert found == {(25, 125_000): 1, (400, 125_000): 12}
    chosen = scenario.load("incast-fattree", {"uplink_mbit": "400"})
    found = Counter(queues(make_topology(chosen)).values())
    assert found == {(25, 125_000): 1, (400, 125_000): 64}


@pytest.mark.parametrize(
    ("settings", "offloads"),
    [({}, None), ({"offloads": "no"}, False), ({"rtt_ms": "5"}, False)],
    ids=["as the datapath allows", "off", "a delay line"],
)
@pytest.mark.parametrize("name", ["incast", "incast-dumbbell", "incast-leafspine", "incast-fattree"])
def test_hosts_keep_their_offloads_unless_something_forbids_it(name, settings, offloads):
    topo = make_topology(scenario.load(name, settings))
    assert {topo.nodeInfo(host)["offloads"] for host in topo.hosts()} == {offloads}
