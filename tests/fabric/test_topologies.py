"""Topologies of several switches on a real Open vSwitch, each with its agents, built and removed without a
trace.

There is no controller: the network itself is tested here.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairq_ryu.errors import UserError
from fairq_ryu.experiments import runner
from tests.support.lab import agent_status, mn, output, until
from tests.support.traces import traces

pytestmark = pytest.mark.root

ROOT = Path(__file__).resolve().parent.parent.parent
SWITCHES = [
    *("left", "right"),
    *(f"{kind}{number}" for kind in ("leaf", "spine") for number in (1, 2, 3)),
    *(f"{kind}{pod}_{place}" for kind in ("edge", "agg") for pod in (1, 2, 3, 4) for place in (1, 2)),
    *(f"core{number}" for number in (1, 2, 3, 4)),
]


@pytest.fixture
def clean():
    before = traces(SWITCHES)
    used = {each for each in before if each.startswith(("bridge", "interface"))}
    if used:
        pytest.fail(f"in use on this machine: {', '.join(sorted(used))}")
    yield
    left = lambda: {e for e in traces(SWITCHES) if e not in before or e.startswith("run file")}  # noqa: E731
    assert until(lambda: not left(), 5), left()


@pytest.fixture
def build(clean):
    from mininet.log import setLogLevel
    from mininet.net import Mininet

    from mininet_topos.switch import FairQSwitch

    setLogLevel("error")
    nets = []

    def make(topo, start=True):
        net = Mininet(topo=topo, switch=FairQSwitch, controller=None, build=False)
        nets.append(net)
        net.build()
        if start:
            net.start()
        return net

    yield make
    for net in nets:
        net.stop()


def dumbbell():
    from mininet_topos.dumbbell import DumbbellTopo

    return DumbbellTopo(n=2, rate=40, buffer=30_000)


def leaf_spine():
    from mininet_topos.leaf_spine import LeafSpineTopo

    return LeafSpineTopo(leaves=3, spines=2, hosts=2, rate=40, buffer=30_000, oversubscription=2)


def fat_tree():
    from mininet_topos.fat_tree import FatTreeTopo

    return FatTreeTopo(k=2, rate=40, buffer=30_000, only="h2")


def interface_numbers(node, name):
    """(own index, its peer's); a veth pair identifies the other end by it."""
    shown = node.cmd(f"cat /sys/class/net/{name}/ifindex /sys/class/net/{name}/iflink").split()
    return tuple(int(number) for number in shown)


@pytest.mark.parametrize("make", [dumbbell, leaf_spine, fat_tree])
def test_a_topology_is_built_as_described_with_all_agents(build, make):
    topo = make()
    net = build(topo)
    assert all(switch.agentRunning() for switch in net.switches)

    for switch in net.switches:
        info = topo.nodeInfo(switch.name)
        shown = output("ovs-vsctl", "get", "Bridge", switch.name, "datapath_id", "fail_mode").split()
        assert [each.strip('"') for each in shown] == [info["dpid"], info["failMode"]]
        wanted = {f"{switch.name}-eth{port}": port for port in topo.ports[switch.name]}
        assert set(output("ovs-vsctl", "list-ports", switch.name).split()) == set(wanted)
        assert {
            name: int(output("ovs-vsctl", "get", "Interface", name, "ofport")) for name in wanted
        } == wanted
        agent = agent_status(switch.name)
        assert {port["name"]: port["ofport"] for port in agent["ports"]} == wanted
        assert agent["unwatched"] == []

    for one, other, info in topo.links(withInfo=True):
        ends = [(info["node1"], info["port1"]), (info["node2"], info["port2"])]
        (mine, its), (again, back) = (interface_numbers(net[n], f"{n}-eth{p}") for n, p in ends)
        assert (its, back) == (again, mine), f"{one} and {other} are the ends of one link"
        for node, port in ends:
            if topo.isSwitch(node):
                kinds = {
                    each["kind"]: each["options"]
                    for each in json.loads(output("tc", "-j", "qdisc", "show", "dev", f"{node}-eth{port}"))
                }
                (seen,) = (each for each in agent_status(node)["ports"] if each["ofport"] == port)
                if "rate" in info:
                    assert {"tbf", "bfifo"} <= set(kinds)
                    assert kinds["bfifo"]["limit"] == info["buffer"] == seen["queue"]["limit"]
                    assert seen["queue"]["rate"] == info["rate"] * 1e6 / 8
                else:
                    assert not {"tbf", "bfifo"} & set(kinds)


def test_the_addresses_are_those_of_the_names(build):
    net = build(leaf_spine(), start=False)
    assert [host.IP() for host in net.hosts] == [f"10.0.0.{number}" for number in range(1, 7)]
    assert [host.name for host in net.hosts] == [f"h{number}" for number in range(1, 7)]


# The agents are replaced by scripts in the tests of when they start and how they fail.


@pytest.fixture
def agents(tmp_path, monkeypatch):
    """Writes a script that is run as `fairq agent --bridge $3`."""

    def write(body):
        script = tmp_path / "fairq"
        script.write_text(f"#!/bin/sh\ncd {tmp_path}\n{body}\n")
        script.chmod(0o755)
        monkeypatch.setenv("FAIRQ", str(script))

    return write


READY = 'echo "fairq agent: bridge $3 ready (0 ports)"\nexec sleep 1000'


def test_agents_load_side_by_side(build, agents):
    agents(f"touch $3.up\nwhile ! [ -e left.up ] || ! [ -e right.up ]; do sleep 0.05; done\n{READY}")
    net = build(dumbbell())  # neither becomes ready before the other one runs
    assert all(switch.agentRunning() for switch in net.switches)


def test_an_agent_that_ends_is_named_and_the_others_are_ended(build, agents):
    from mininet_topos.switch import SwitchError

    agents(f'if [ $3 = right ]; then echo "no BTF" >&2; exit 2; fi\n{READY}')
    net = build(dumbbell(), start=False)
    with pytest.raises(SwitchError, match="agent of right ended with exit code 2: no BTF"):
        net.start()
    assert not any(switch.agentRunning() for switch in net.switches)


def test_an_agent_that_does_not_become_ready_is_named(build, agents, monkeypatch):
    import mininet_topos.switch

    monkeypatch.setattr(mininet_topos.switch, "READY_SECONDS", 0.5)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    agents(f"if [ $3 = left ]; then echo loading; exec sleep 1000; fi\n{READY}")
    net = build(dumbbell(), start=False)
    # Two agents and one processor: twice the time.
    with pytest.raises(
        mininet_topos.switch.SwitchError, match="agent of left is not ready after 1 s: loading"
    ):
        net.start()
    assert not any(switch.agentRunning() for switch in net.switches)


def test_a_restarted_switch_waits_for_its_own_agent(build, agents):
    from mininet_topos.switch import SwitchError

    agents(READY)
    net = build(dumbbell())
    net["left"].stop(deleteIntfs=False)  # as `switch left stop` and `switch left start` of Mininet's CLI
    agents(f"sleep 0.5\n{READY}")
    net["left"].start([])
    assert net["left"].agentReady()
    net["left"].stop(deleteIntfs=False)
    agents("echo gone; exit 3")
    with pytest.raises(SwitchError, match="agent of left ended with exit code 3: gone"):
        net["left"].start([])
    assert not net["left"].agentRunning()
    assert net["right"].agentRunning()


def test_a_single_switch_waits_for_its_agent_without_batch(clean, agents):
    from mininet_topos.switch import FairQSwitch

    agents(f"sleep 0.5\n{READY}")
    switch = FairQSwitch("left", dpid="1", inNamespace=False, batch=False)
    try:
        switch.start([])
        assert switch.agentReady()
    finally:
        switch.stop()
        switch.terminate()


@pytest.mark.parametrize(
    ("file", "topology", "hosts", "test"),
    [
        # Two switches without loops are standalone: without a controller every host reaches every other.
        ("dumbbell.py", "dumbbell,2,right=1", "h1 h2 h3", "pingall"),
        ("leaf_spine.py", "leafspine,2,2,2,rate=40,buffer=30000", "h1 h2 h3 h4", "none"),
        ("fat_tree.py", "fattree,2,uplink=40,buffer=30000", "h1 h2", "none"),
    ],
)
def test_mn_takes_the_file_by_its_path(clean, agents, file, topology, hosts, test):
    agents(READY)
    done = mn(
        "--custom", f"mininet_topos/{file}", "--topo", topology, "--switch", "fairq",
        "--controller", "none", "--test", test, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    printed = done.stdout + done.stderr
    assert hosts in printed
    assert "Caught exception" not in printed
    if test == "pingall":
        assert "0% dropped" in printed


# fairq run


RUN = [
    sys.executable, "-c",
    "import sys\nfrom pathlib import Path\nfrom fairq_ryu.experiments import runner\n"
    "sys.exit(runner.main(sys.argv[1], ['bare'], Path(sys.argv[2]),"
    " dict(each.split('=') for each in sys.argv[3:])))",
]  # fmt: skip


def test_a_dumbbell_runs_without_controller_and_agents(clean, tmp_path):
    settings = ["senders=3", "elephants=2", "rate_mbit=50", "rounds=2", "round_interval_s=0.5"]
    settings += ["warmup_s=1", "elephants_only_s=1", "floor=no"]
    done = subprocess.run(
        [*RUN, "incast-dumbbell", str(tmp_path), *settings],
        cwd=ROOT, capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    whole = json.loads((tmp_path / "result.json").read_text())
    (bare,) = whole["policies"]
    assert bare["failed"] is None
    assert bare["mice"]["unfinished"] == 0
    assert bare["queue"]["port"] == "left-eth4"
    assert bare["elephants"]["goodput_sum_mbit"] > 0
    assert "leaves" not in whole["scenario"]


def test_a_bare_network_with_loops_is_refused_before_anything_starts(clean, tmp_path):
    for name in ("incast-leafspine", "incast-fattree"):
        with pytest.raises(UserError, match="'bare' cannot run on topology"):
            runner.main(name, ["bare"], tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
