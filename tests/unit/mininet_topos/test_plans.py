"""Topologies as graphs: the ports and queues of hosts and links. No network is built."""

import re
import shlex
from collections import Counter
from pathlib import Path

import pytest
from mininet.util import buildTopo

from fairq_ryu.experiments import scenario
from mininet_topos import plans
from mininet_topos.dumbbell import DumbbellTopo
from mininet_topos.fat_tree import FatTreeTopo
from mininet_topos.incast import IncastTopo
from mininet_topos.leaf_spine import LeafSpineTopo
from mininet_topos.plain import PlainSwitch
from mininet_topos.tor import TorTopo
from tests.support.topologies import neighbours, queues

ROOT = Path(__file__).parents[3]
FILES = {
    "incast": "incast.py",
    "tor": "tor.py",
    "dumbbell": "dumbbell.py",
    "leafspine": "leaf_spine.py",
    "fattree": "fat_tree.py",
}


def custom(file):
    """The tables that `mn --custom` reads from a file of topologies."""
    path = ROOT / file
    space = {}
    exec(compile(path.read_bytes(), path, "exec"), space)
    return space


SMALL = [
    IncastTopo(n=3),
    DumbbellTopo(n=3),
    DumbbellTopo(n=3, right=1),
    LeafSpineTopo(),
    LeafSpineTopo(leaves=3, spines=4, hosts=5),
    FatTreeTopo(k=2),
    FatTreeTopo(k=4),
    FatTreeTopo(k=6),
]
LARGE = [
    DumbbellTopo(n=1000),
    LeafSpineTopo(leaves=64, spines=64, hosts=1),
    LeafSpineTopo(leaves=2, spines=64, hosts=1000),
    FatTreeTopo(k=16),
]


@pytest.mark.parametrize("topo", SMALL + LARGE, ids=lambda topo: type(topo).__name__)
def test_names_ports_and_dpids_are_right(topo):
    for switch in topo.switches():
        ports = neighbours(topo, switch)
        assert sorted(ports) == list(range(1, len(ports) + 1)), "ports from 1 without gaps"
        assert all(len(f"{switch}-eth{port}") <= 15 for port in ports), "the kernel takes no longer names"
        towards_hosts = [port for port, (peer, _) in ports.items() if not topo.isSwitch(peer)]
        assert towards_hosts == list(range(1, len(towards_hosts) + 1)), "hosts on the lowest ports"
        for port, (peer, peer_port) in ports.items():
            assert topo.ports[peer][peer_port] == (switch, port)
    if not isinstance(topo, IncastTopo):  # Mininet gives s1 the number 1 by its name
        dpids = [topo.nodeInfo(switch)["dpid"] for switch in topo.switches()]
        assert len(set(dpids)) == len(dpids)
        assert all(re.fullmatch("0000[0-9a-f]{12}", dpid) and int(dpid, 16) for dpid in dpids)
        # Mininet gives addresses in natural order of names; so hN has 10.x.y.z of number N.
        assert topo.hosts() == [f"h{number}" for number in range(1, len(topo.hosts()) + 1)]
    for host in topo.hosts():
        assert list(topo.ports[host]) == [0], "each host has one interface, eth0"


@pytest.mark.parametrize(
    "topo", [topo for topo in SMALL if not isinstance(topo, IncastTopo)], ids=lambda topo: type(topo).__name__
)
def test_only_switches_without_loops_are_standalone(topo):
    links = [link for link in topo.links() if all(topo.isSwitch(node) for node in link)]
    modes = {topo.nodeInfo(switch)["failMode"] for switch in topo.switches()}
    loops = len(links) >= len(topo.switches())  # a connected graph with more edges than a tree has
    assert not (loops and "standalone" in modes)
    assert modes == ({"standalone"} if isinstance(topo, DumbbellTopo) else {"secure"})


def test_behind_a_top_of_rack_switch_only_its_own_port_is_shallow():
    topo = TorTopo(n=3, rate=50, buffer=30_000)
    assert neighbours(topo, "tor") == {1: ("h1", 0), 2: ("h2", 0), 3: ("h3", 0), 4: ("s1", 1)}
    assert neighbours(topo, "s1") == {1: ("tor", 4), 2: ("r", 0)}
    assert queues(topo) == {("tor", 4): (50, 30_000)}
    assert topo.nodeInfo("tor")["cls"] is PlainSwitch and "cls" not in topo.nodeInfo("s1")
    shape = plans.BehindTor(3)
    assert (shape.bottleneck, shape.receivers) == (("tor", "s1"), ["r"])
    assert shape.far_ports == {"s1": "s1-eth1"}
    assert plans.Incast(3).far_ports == {}


def test_several_receivers_behind_it_have_a_switch_each():
    topo = TorTopo(n=2, rate=50, buffer=30_000, right=2)
    assert neighbours(topo, "tor") == {1: ("h1", 0), 2: ("h2", 0), 3: ("rack", 3)}
    assert neighbours(topo, "rack") == {1: ("s1", 1), 2: ("s2", 1), 3: ("tor", 3)}
    assert neighbours(topo, "s2") == {1: ("rack", 2), 2: ("r2", 0)}
    assert queues(topo) == {("tor", 3): (50, 30_000)}
    shape = plans.BehindTor(2, right=2)
    assert (shape.bottleneck, shape.receiver, shape.receivers) == (("tor", "rack"), "r1", ["r1", "r2"])
    assert shape.far_ports == {"s1": "s1-eth1", "s2": "s2-eth1"}


def test_a_dumbbell_is_wired_as_drawn():
    topo = DumbbellTopo(n=3, rate=50, buffer=30_000, right=2)
    assert neighbours(topo, "left") == {1: ("h1", 0), 2: ("h2", 0), 3: ("h3", 0), 4: ("right", 3)}
    assert neighbours(topo, "right") == {1: ("h4", 0), 2: ("h5", 0), 3: ("left", 4)}
    assert queues(topo) == {("left", 4): (50, 30_000), ("right", 3): (50, 30_000)}
    assert [topo.nodeInfo(name)["dpid"] for name in ("left", "right")] == ["0" * 15 + "1", "0" * 15 + "2"]
    assert len(DumbbellTopo(n=3).hosts()) == 6


def test_a_leaf_spine_is_wired_as_drawn():
    topo = LeafSpineTopo(leaves=3, spines=2, hosts=4)
    assert sorted(topo.switches()) == ["leaf1", "leaf2", "leaf3", "spine1", "spine2"]
    assert neighbours(topo, "leaf2") == {
        1: ("h5", 0), 2: ("h6", 0), 3: ("h7", 0), 4: ("h8", 0), 5: ("spine1", 2), 6: ("spine2", 2),
    }  # fmt: skip
    assert neighbours(topo, "spine2") == {1: ("leaf1", 6), 2: ("leaf2", 6), 3: ("leaf3", 6)}
    assert queues(topo) == {}
    assert int(topo.nodeInfo("leaf3")["dpid"], 16) == 0x103
    assert int(topo.nodeInfo("spine2")["dpid"], 16) == 0x202


@pytest.mark.parametrize(
    ("options", "uplink"),
    [
        ({}, 4 * 100 / 2),
        ({"oversubscription": 1}, 200),
        ({"oversubscription": 4}, 50),
        ({"oversubscription": 0.5}, 400),
        ({"uplink": 70}, 70),
    ],
)
def test_the_uplinks_of_a_leaf_carry_what_its_hosts_receive_over_the_oversubscription(options, uplink):
    topo = LeafSpineTopo(leaves=3, spines=2, hosts=4, rate=100, buffer=60_000, **options)
    found = queues(topo)
    for leaf in ("leaf1", "leaf2", "leaf3"):
        assert [found[leaf, port] for port in range(1, 5)] == [(100, 60_000)] * 4
        assert [found[leaf, port] for port in (5, 6)] == [(uplink, 60_000)] * 2
    for spine in ("spine1", "spine2"):
        assert [found[spine, port] for port in (1, 2, 3)] == [(uplink, 60_000)] * 3
    assert len(found) == 3 * 6 + 2 * 3


def test_a_leaf_spine_with_one_narrow_port():
    topo = LeafSpineTopo(leaves=2, spines=2, hosts=2, rate=100, buffer=60_000, only="h3")
    assert queues(topo) == {("leaf2", 1): (100, 60_000)}
    topo = LeafSpineTopo(leaves=2, spines=1, hosts=2, rate=100, buffer=60_000, only="h3", uplink=500)
    uplinks = [("leaf1", 3), ("leaf2", 3), ("spine1", 1), ("spine1", 2)]
    assert queues(topo) == {("leaf2", 1): (100, 60_000), **dict.fromkeys(uplinks, (500, 60_000))}
    topo = LeafSpineTopo(leaves=2, spines=1, hosts=2, buffer=60_000, uplink=500)
    assert queues(topo) == dict.fromkeys(uplinks, (500, 60_000))


@pytest.mark.parametrize("k", [2, 4, 6, 8])
def test_a_fat_tree_has_the_numbers_of_the_paper(k):
    topo = FatTreeTopo(k=k)
    kinds = Counter(re.match("[a-z]+", name)[0] for name in topo.switches())
    assert kinds == {"edge": k * k // 2, "agg": k * k // 2, "core": k * k // 4}
    assert len(topo.hosts()) == k**3 // 4
    assert all(len(topo.ports[switch]) == k for switch in topo.switches())
    assert len(topo.links()) == 3 * k**3 // 4


def test_a_fat_tree_is_wired_as_drawn():
    topo = FatTreeTopo(k=4)
    assert neighbours(topo, "edge2_1") == {1: ("h5", 0), 2: ("h6", 0), 3: ("agg2_1", 1), 4: ("agg2_2", 1)}
    assert neighbours(topo, "edge2_2") == {1: ("h7", 0), 2: ("h8", 0), 3: ("agg2_1", 2), 4: ("agg2_2", 2)}
    assert {port: peer for port, (peer, _) in neighbours(topo, "agg2_1").items()} == {
        1: "edge2_1", 2: "edge2_2", 3: "core1", 4: "core2",
    }  # fmt: skip
    assert {port: peer for port, (peer, _) in neighbours(topo, "agg3_2").items()} == {
        1: "edge3_1", 2: "edge3_2", 3: "core3", 4: "core4",
    }  # fmt: skip
    assert neighbours(topo, "core4") == {pod: (f"agg{pod}_2", 4) for pod in (1, 2, 3, 4)}
    named = {"edge4_2": 0x10402, "agg1_2": 0x20102, "core3": 0x30003}
    assert {name: int(topo.nodeInfo(name)["dpid"], 16) for name in named} == named


def test_all_ports_of_a_fat_tree_are_alike():
    topo = FatTreeTopo(k=4, rate=100, buffer=60_000)
    assert set(queues(topo).values()) == {(100, 60_000)}
    assert len(queues(topo)) == 20 * 4
    found = queues(FatTreeTopo(k=4, rate=100, buffer=60_000, uplink=40))
    assert Counter(rate for rate, _ in found.values()) == {100: 16, 40: 64}
    found = queues(FatTreeTopo(k=4, rate=100, buffer=60_000, only="h13"))
    assert found == {("edge4_1", 1): (100, 60_000)}


@pytest.mark.parametrize(
    ("topology", "words"),
    [
        ("incast,0", "incast: n is 0, must be a whole number from 1 to 1000"),
        ("incast,many", "incast: n is 'many'"),
        ("dumbbell,0", "dumbbell: n is 0"),
        ("dumbbell,2,right=1.5", "dumbbell: right is 1.5, must be a whole number"),
        ("dumbbell,2,fast", "the rate of a shallow link is fast"),
        ("dumbbell,2,rate=0", "the rate of a shallow link is 0"),
        ("dumbbell,2,buffer=100", "must hold one frame"),
        ("tor,2,50,shaped=95", "tor: shaped is 95, must be from 0 to 1"),
        ("tor,2,50,shaped=95%", "tor: shaped is '95%'"),
        ("dumbbell,2,buffer=1e5", "the buffer of a shallow link is 100000.0 bytes"),
        ("leafspine,1", "leafspine: leaves is 1, must be a whole number from 2 to 64"),
        ("leafspine,2,0", "leafspine: spines is 0"),
        ("leafspine,2,2,0", "leafspine: hosts is 0"),
        ("leafspine,oversubscription=2", "oversubscription goes with rate and buffer"),
        ("leafspine,oversubscription=2,rate=9,buffer=9000,uplink=3", "oversubscription goes with"),
        ("leafspine,oversubscription=2,rate=9,buffer=9000,only=h1", "oversubscription goes with"),
        ("leafspine,oversubscription=0,rate=9,buffer=9000", "oversubscription is 0, must be more than 0"),
        ("leafspine,oversubscription=nan,rate=9,buffer=9000", "oversubscription is nan"),
        ("leafspine,oversubscription=3:1,rate=9,buffer=9000", "oversubscription is '3:1'"),
        ("leafspine,rate=fast,buffer=9000", "rate of a shallow link is fast"),
        ("leafspine,rate=100", "both rate"),
        ("leafspine,buffer=9000", "both rate"),
        ("leafspine,uplink=100", "both rate"),
        ("leafspine,uplink=-1,buffer=9000", "the rate of a shallow link is -1"),
        ("leafspine,rate=9,buffer=9000,only=h9", "only h9 is to have a shallow port, but there is no such"),
        ("leafspine,uplink=9,buffer=9000,only=h1", "only h1 is to have a shallow port: give its rate"),
        ("fattree,3", "fattree: k is 3, must be even"),
        ("fattree,0", "fattree: k is 0, must be a whole number from 2 to 16"),
        ("fattree,18", "fattree: k is 18"),
        ("fattree,4,100", "both rate"),
        ("fattree,4,100,60000,only=h17", "there is no such host"),
    ],
)
def test_wrong_arguments_are_named(topology, words):
    topos = custom(f"mininet_topos/{FILES[topology.split(',')[0]]}")["topos"]
    with pytest.raises(ValueError, match=re.escape(words)):
        buildTopo(topos, topology)


def test_a_misspelt_argument_is_not_overlooked():
    for name in ("dumbbell", "leafspine", "fattree"):
        with pytest.raises(TypeError, match="'buffers'"):
            buildTopo(custom(f"mininet_topos/{FILES[name]}")["topos"], f"{name},buffers=9000")


@pytest.mark.parametrize("name", FILES)
def test_mn_finds_all_its_tables_in_the_file(name):
    space = custom(f"mininet_topos/{FILES[name]}")
    assert set(space["topos"]) == {name}
    assert set(space["switches"]) == set(space["hosts"]) == {"fairq"}
    assert set(space["links"]) == {"shallow"}
    # mn replaces its own globals by what it finds.
    assert not {"TOPOS", "SWITCHES", "HOSTS", "LINKS", "CONTROLLERS", "TESTS"} & set(space)
    assert f"mininet_topos/{FILES[name]} --topo {name}" in space["__doc__"]


def test_mn_command_lines_in_the_pages_build_a_network():
    seen = set()
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")]:
        for line in re.findall(r"^mn (.*--custom .*)$", page.read_text(encoding="utf-8"), re.M):
            words = shlex.split(line)
            topology = words[words.index("--topo") + 1]
            assert buildTopo(custom(words[words.index("--custom") + 1])["topos"], topology).hosts()
            seen.add(topology.split(",")[0])
    assert seen == set(FILES)


# Senders and receivers


def switch_of(topo, host):
    return topo.ports[host][0][0]


def test_every_scenario_topology_has_its_file():
    assert set(scenario.TOPOLOGIES) == set(FILES)


def test_senders_of_a_dumbbell_are_on_the_left_switch():
    shape = plans.Dumbbell(4, 2)
    assert (shape.senders(3), shape.receiver) == (["h1", "h2", "h3"], "h5")
    with pytest.raises(ValueError, match="5 senders, but this topology has 1 to 4"):
        shape.senders(5)


@pytest.mark.parametrize(
    ("leaves", "senders", "hosts"), [(3, 16, 8), (3, 15, 8), (4, 7, 3), (2, 5, 5), (9, 2, 1)]
)
def test_senders_of_a_leaf_spine_are_on_the_other_leaves_in_turn(leaves, senders, hosts):
    shape = plans.LeafSpine.with_senders(leaves, 2, senders)
    assert shape.hosts == hosts
    topo = LeafSpineTopo(leaves=leaves, spines=2, hosts=hosts)
    chosen = shape.senders(senders)
    assert len(set(chosen)) == senders
    wanted = [f"leaf{number % (leaves - 1) + 1}" for number in range(senders)]
    assert [switch_of(topo, host) for host in chosen] == wanted
    assert topo.ports[shape.receiver][0] == (f"leaf{leaves}", 1)


@pytest.mark.parametrize("k", [2, 4, 6])
def test_senders_of_a_fat_tree_are_in_the_other_pods_in_turn(k):
    shape, topo = plans.FatTree(k), FatTreeTopo(k=k)
    max_senders = k**3 // 4 - k**2 // 4
    chosen = shape.senders(max_senders)
    assert len(set(chosen)) == max_senders
    pods = [int(re.match(r"edge(\d+)_", switch_of(topo, host))[1]) for host in chosen]
    assert pods == [number % (k - 1) + 1 for number in range(max_senders)]
    assert len({switch_of(topo, host) for host in chosen[: (k - 1) * k // 2]}) == (k - 1) * k // 2
    assert topo.ports[shape.receiver][0] == (f"edge{k}_1", 1)
    with pytest.raises(ValueError, match=f"this topology has 1 to {max_senders}"):
        shape.senders(max_senders + 1)
