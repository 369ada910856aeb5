"""Which links have a delay line, and which delays are refused. tests/fabric/test_delay.py tests the line
itself.
"""

import pytest
from mininet.util import buildTopo

from fairq_ryu.experiments import scenario
from fairq_ryu.experiments.testbed import make_topology
from mininet_topos import delays
from mininet_topos.delays import DelayedLink, DelayLine
from mininet_topos.dumbbell import DumbbellTopo
from mininet_topos.fat_tree import FatTreeTopo
from mininet_topos.incast import IncastTopo
from mininet_topos.leaf_spine import LeafSpineTopo
from mininet_topos.links import ShallowLink

SHAPES = [
    (IncastTopo, {"n": 3}, {"h1", "h2", "h3"}),
    (DumbbellTopo, {"n": 2, "right": 2}, {"h1", "h2"}),
    (LeafSpineTopo, {"leaves": 3, "hosts": 2}, {"h1", "h2", "h3", "h4"}),
    (FatTreeTopo, {"k": 2}, {"h1"}),
]


def delayed(topo):
    """The hosts behind a delay line, and the lines."""
    links = [info for _, _, info in topo.links(withInfo=True) if issubclass(info["cls"], DelayedLink)]
    return {info["node1"] for info in links}, {info["line"] for info in links}


def lines_of(topo):
    """The round-trip time of the line of each host that has one."""
    links = [info for _, _, info in topo.links(withInfo=True) if issubclass(info["cls"], DelayedLink)]
    return {info["node1"]: info["line"].rtt for info in links}


@pytest.mark.parametrize(("topology", "arguments", "senders"), SHAPES)
def test_hosts_that_send_are_behind_one_line(topology, arguments, senders):
    hosts, lines = delayed(topology(**arguments, rtt=2.5))
    assert hosts == senders
    (line,) = lines
    assert line.rtt == 2.5


@pytest.mark.parametrize(("topology", "arguments", "senders"), SHAPES)
def test_without_a_delay_links_are_unchanged(topology, arguments, senders):
    topo = topology(**arguments)
    assert {info["cls"] for _, _, info in topo.links(withInfo=True)} == {ShallowLink}


@pytest.mark.parametrize("rtt", [-1, 1000.1, "5ms", float("nan"), True, None])
def test_a_delay_out_of_bounds_is_refused(rtt):
    with pytest.raises(ValueError, match="must be a number of ms from 0 to 1000"):
        IncastTopo(n=1, rtt=rtt)


def test_mn_accepts_a_delay():
    assert delayed(buildTopo({"incast": IncastTopo}, "incast,2,rtt=5"))[0] == {"h1", "h2"}


def test_a_scenario_sets_the_delay():
    for name in scenario.names():
        chosen = scenario.load(name, {"rtt_ms": "5"})
        lines = lines_of(make_topology(chosen))
        senders = set(chosen.plan.senders(chosen.senders))
        assert senders <= set(lines)
        assert {lines.pop(name) for name in senders} == {make_topology(chosen).line.rtt} == {5}
        own = dict(zip(chosen.plan.receivers, chosen.receiver_rtts_ms, strict=False))
        expected = {name: delay for name, delay in own.items() if delay}
        assert {name: lines.get(name) for name in chosen.plan.receivers if name in lines} == expected
        at_once = lines_of(make_topology(scenario.load(name, {"rtt_ms": "0"})))
        assert at_once == expected


def test_receivers_can_have_delays_of_their_own():
    topo = DumbbellTopo(n=2, right=3, right_rtts=(0, 2.5))
    assert lines_of(topo) == {"h4": 2.5}
    # A delay line takes finished frames only, also those that hosts without one have sent.
    assert {topo.nodeInfo(host)["offloads"] for host in topo.hosts()} == {False}
    with pytest.raises(ValueError, match="must be a number of ms"):
        DumbbellTopo(n=2, right_rtts=(0, -1))


def test_a_missing_delay_program_is_an_error_with_a_remedy(monkeypatch, tmp_path):
    monkeypatch.setattr(delays, "PROGRAM", tmp_path / "delayline")
    with pytest.raises(delays.DelayError, match="run `make setup`"):
        DelayLine(5).connect(("h1-eth0", 1), ("s1-eth1", 1))


def test_a_program_that_ends_is_an_error_and_leaves_nothing(monkeypatch, tmp_path):
    program = tmp_path / "delayline"
    program.write_text("#!/bin/sh\necho $1 >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(delays, "PROGRAM", program)
    line = DelayLine(0.0002)
    line.log = tmp_path / "log"
    with pytest.raises(delays.DelayError, match="has ended"):
        line.connect(("h1-eth0", 1), ("s1-eth1", 1))
    assert line._process is None
    assert line.log.read_text() == "1\n"  # microseconds, and never none
