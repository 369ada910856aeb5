"""Ports as Open vSwitch's database has them: VLANs, a mirror, a bond, and two ports into one segment that is
not ours, made by a plain Linux bridge. Where frames arrive is compared with Open vSwitch's own forwarding.
"""

import contextlib
import json
import re
import subprocess
import urllib.request

import pytest

from tests.support.fixtures import leaving_nothing
from tests.support.lab import Lab, output, until
from tests.support.wires import Wires

pytestmark = pytest.mark.root
HOSTS = ["h1", "h2", "h3", "h4", "h5", "r"]
SEGMENT = "fqseg"  # the Linux bridge
UPLINKS = ("fqup1", "fqup2")
FAR = "fqfar"  # another bridge
MACS = ("02:00:00:00:aa:01", "02:00:00:00:aa:02")  # of hosts there
MAC = "02:00:00:00:77:01"
VLANS = {
    1: ["tag=10"],
    2: ["tag=20"],
    3: ["trunks=10,20"],
    4: ["tag=10"],
    5: ["vlan_mode=native-untagged", "tag=10", "trunks=20"],
}
# Who sends with which tag.
SENT = [
    *(("h1", tag) for tag in (None, 10, 20, 0)),
    ("h2", None),
    *(("h3", tag) for tag in (None, 10, 20, 30)),
    *(("h5", tag) for tag in (None, 10, 20)),
    *(("r", tag) for tag in (None, 10, 20, 30)),
]


class Ports(Lab):
    """Hosts h1 to h5 and r at ports 1 to 6 of s1, agent and controller, and a foreign segment beside them."""

    def __init__(self, folder):
        super().__init__(folder, senders=5, forward=False)
        self.wires = Wires({name: (self[name].pid, f"{name}-eth0") for name in HOSTS})
        self.stack.callback(self.wires.close)

    def set_ports(self, settings):
        """Set columns of ports, and no others of :data:`VLANS`."""
        words = []
        for number in VLANS:
            name = f"s1-eth{number}"
            words += ["--", "clear", "Port", name, "tag", "--", "clear", "Port", name, "trunks"]
            words += ["--", "clear", "Port", name, "vlan_mode"]
            for setting in settings.get(number, ()):
                words += ["--", "set", "Port", name, setting]
        output("ovs-vsctl", *words)

    def rest(self, what):
        with urllib.request.urlopen(f"{self.manager.url}/v1/{what}", timeout=20) as answer:
            return json.load(answer)[what]

    def matrix(self):
        """Who receives each of :data:`SENT`, and with which tags."""
        marks = {self.wires.send(source, tag): (source, tag) for source, tag in SENT}
        return {marks[mark]: found for mark, found in self.wires.all_received(marks).items()}

    def rules(self, words):
        shown = output("ovs-ofctl", "-O", "OpenFlow13", "dump-flows", "s1")
        return [line for line in shown.splitlines() if re.search(words, line)]


@contextlib.contextmanager
def segment(lab, *ports):
    """A Linux bridge with a veth pair for each of ``ports``."""
    output("ip", "link", "add", SEGMENT, "type", "bridge")
    try:
        for name in ports:
            output("ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}b")
            output("ip", "link", "set", f"{name}b", "master", SEGMENT)
            for each in (name, f"{name}b"):
                output("ip", "link", "set", each, "up")
        # So that it also sees unicast frames.
        output("ip", "link", "set", SEGMENT, "up", "promisc", "on")
        yield
    finally:
        for name in ports:
            output("ovs-vsctl", "--if-exists", "del-port", "s1", name)
            output("ip", "link", "del", name)
        output("ip", "link", "del", SEGMENT)


@pytest.fixture(scope="module")
def lab(machine, tmp_path_factory):
    if machine:
        pytest.fail(f"this test needs {machine}", pytrace=False)
    with leaving_nothing():
        made = Ports(tmp_path_factory.mktemp("ports"))
        try:
            made.set_ports(VLANS)
            output("ovs-ofctl", "-O", "OpenFlow13", "add-flow", "s1", "actions=NORMAL")
            made.normal = made.matrix()
            made.govern()
            yield made
        finally:
            made.close()


def reaches(lab, source, target):
    answer = lab[source].cmd("ping", "-n", "-c", "1", "-W", "1", lab[target].IP())
    return " 1 received" in answer and "DUP" not in answer


def test_vlans_are_those_of_open_vswitchs_own_forwarding(lab):
    assert lab.normal["h1", None] == {"h3": [10], "h4": [None], "h5": [None], "r": [10]}
    assert until(lambda: lab.matrix() == lab.normal)  # the rules for floods come last


def test_access_ports_of_two_vlans_do_not_reach_each_other(lab):
    assert until(lambda: reaches(lab, "h1", "h4"))
    assert not reaches(lab, "h1", "h2") and not reaches(lab, "h2", "h4")
    rows = {(row["vlan"], row["addresses"][0]) for row in lab.rest("hosts") if row["addresses"]}
    assert {(10, lab["h1"].IP()), (10, lab["h4"].IP()), (20, lab["h2"].IP())} <= rows


def test_the_same_address_in_two_vlans_is_two_hosts(lab):
    """One behind an access port of VLAN 10, one behind an access port of VLAN 20."""
    for source in ("h1", "h2"):
        lab.wires.reach(source, mac=MAC)
    assert until(lambda: {row["vlan"] for row in lab.rest("hosts") if row["mac"] == MAC} == {10, 20})
    assert until(lambda: lab.wires.reach("h3", 10, target=MAC) == {"h1": [None]})
    assert until(lambda: lab.wires.reach("h3", 20, target=MAC) == {"h2": [None]})
    assert lab.wires.reach("r", 30, target=MAC) == {}


def test_a_connection_in_a_vlan_has_windows(lab):
    """Its data leaves by one access port, its ACKs by another; both are in VLAN 10."""
    output("ovs-vsctl", "set", "Port", "s1-eth6", "tag=10")
    try:
        assert until(lambda: reaches(lab, "h1", "r"))
        sink, source = lab.bulk("h1")
        assert until(lambda: lab.port_status()["rewritten"] > 100), lab.port_status()
        assert until(lambda: [row for row in lab.rest("flows") if row["vlan"] == 10])
        assert {row["vlan"] for row in lab.rest("flows")} == {10}
        # Frames that are under way when the port leaves the VLAN would be learned in it again.
        for process in (source, sink):
            process.kill()
            process.wait()
        assert until(lambda: "established" not in {row["state"] for row in lab.rest("flows")})
    finally:
        output("ovs-vsctl", "clear", "Port", "s1-eth6", "tag")


@pytest.fixture
def plain(lab):
    """The same lab, all of whose ports are plain trunks."""
    lab.set_ports({})
    assert until(lambda: not lab.rules("priority=(149|150|151)")), lab.rules("priority=(149|150|151)")
    return lab


def test_without_vlans_the_rules_are_those_of_a_network_without_them(lab):
    """Although h4 sends all the time, so that the last frames of its former VLAN come after the change."""
    lab.set_ports(VLANS)
    assert until(lambda: lab.rules("priority=151"))
    sender = lab["h4"].popen(["ping", "-n", "-q", "-b", "-i", "0.002", "10.255.255.255"])
    try:
        assert until(lambda: [row for row in lab.rest("hosts") if row["vlan"] == 10])
        lab.set_ports({})
        assert until(lambda: not lab.rules("vlan")), lab.rules("vlan")
    finally:
        sender.kill()
        sender.wait()
    assert until(lambda: reaches(lab, "h1", "h2"))


def test_nothing_but_its_copies_is_sent_to_the_output_of_a_mirror(plain):
    lab = plain
    output(
        *("ovs-vsctl", "--", "--id=@out", "get", "Port", "s1-eth5"),
        *("--", "--id=@m", "create", "Mirror", "name=fq", "select_all=true", "output-port=@out"),
        *("--", "set", "Bridge", "s1", "mirrors=@m"),
    )
    try:
        assert until(lambda: lab.rules("priority=149,.*in_port=.?s1-eth5|priority=149,.*in_port=5"))
        everybody = {name: [None] for name in ("h2", "h3", "h4", "h5", "r")}
        assert until(lambda: lab.wires.reach("h1") == everybody)
        assert lab.wires.reach("h5") == {}
    finally:
        output("ovs-vsctl", "clear", "Bridge", "s1", "mirrors")
    assert until(lambda: lab.wires.reach("h5"))


ONCE = {name: [None] for name in ["h2", "h3", "h4", "h5", "r", "segment"]}
"""A broadcast of h1 reaches every other host once, and the foreign segment once."""


def broadcast(lab, wires):
    """Whom a broadcast of h1 reaches, and how often."""
    mark = lab.wires.send("h1")
    return {**lab.wires.received(mark), **wires.received(mark)}


def assert_once(lab, wires):
    """It is so soon, and stays so."""
    found = {}
    seen = until(lambda: found.update(last=broadcast(lab, wires)) or found["last"] == ONCE)
    assert seen, (found["last"], lab.rules("priority=149"), lab.manager.text)
    assert broadcast(lab, wires) == ONCE


def same_segment(log):
    """Whether a port is not used because another one leads to its segment."""
    return log.count("leads to the same segment") > log.count("is used again")


def assert_nothing_goes_round():
    """A loop passes more in a tenth of a second; without one there are probes, and what the test sends."""
    shown = output("ip", "-j", "-s", "link", "show", "master", SEGMENT)
    passed = [each["stats64"]["tx"]["packets"] for each in json.loads(shown)]
    assert len(passed) == 2 and sum(passed) < 1000, passed


UNUSED = "priority=149,.*in_port=.?(fqup|[7-9]|1[0-9])"


@pytest.mark.parametrize("bond", [True, False], ids=["a bond", "two uplinks"])
def test_two_ports_into_one_segment_are_used_as_one(plain, bond):
    lab = plain
    said = len(lab.manager.text)
    with segment(lab, *UPLINKS), contextlib.closing(Wires({"segment": (None, SEGMENT)})) as wires:
        if bond:
            output("ovs-vsctl", "add-bond", "s1", "fqbond", *UPLINKS, "bond_mode=active-backup")
        else:
            output("ovs-vsctl", "add-port", "s1", "fqup1", "--", "add-port", "s1", "fqup2")
        try:
            # Hosts there do not wait: a frame that leaves by the one end comes in by the other port only.
            with contextlib.closing(Wires({name: (None, name) for name in UPLINKS})) as ends:
                assert until(lambda: [ends.send(name) for name in UPLINKS] and lab.rules(UNUSED))
            assert until(lab.has_settled)
            assert_nothing_goes_round()
            assert_once(lab, wires)
            # A frame from the segment reaches every host once; and its host is found there.
            mark = wires.send("segment", mac="02:00:00:00:88:01")
            assert lab.wires.received(mark) == {name: [None] for name in HOSTS}
            assert until(lambda: [row for row in lab.rest("hosts") if row["mac"] == "02:00:00:00:88:01"])

            def only_there():
                mark = lab.wires.send("h1", target="02:00:00:00:88:01")
                return wires.received(mark) == {"segment": [None]} and lab.wires.received(mark) == {}

            assert until(only_there)
            watched = {port["name"] for port in lab.status()["ports"]}
            assert set(UPLINKS) <= watched  # the queues of both are governed
            # The members of a bond are one port, not two that lead to the same segment; they may be taken for
            # that until the agent's message about the bond comes.
            assert until(lambda: same_segment(lab.manager.text[said:]) is not bond)
            if not bond:
                output("ip", "link", "set", "fqup1", "down")
                assert_once(lab, wires)
        finally:
            output("ovs-vsctl", "--if-exists", "del-port", "s1", "fqbond")


def test_a_second_uplink_that_comes_later_makes_no_loop(plain):
    """Frames are flooded to the first one, and come in by the second."""
    lab = plain
    with segment(lab, *UPLINKS), contextlib.closing(Wires({"segment": (None, SEGMENT)})) as wires:
        output("ovs-vsctl", "add-port", "s1", "fqup1")
        assert_once(lab, wires)
        output("ovs-vsctl", "add-port", "s1", "fqup2")
        # Nothing is flooded from there; or, on a busy machine, it is blocked already.
        assert until(lambda: lab.rules("priority=19,") or lab.rules(UNUSED)), lab.manager.text
        for _ in range(20):
            lab.wires.send("h1")
        assert until(lambda: lab.rules(UNUSED)), lab.manager.text
        assert_once(lab, wires)
        assert_nothing_goes_round()


@contextlib.contextmanager
def far_bridge(pairs):
    """A bridge of its own, with a LACP bond of the second ends of ``pairs`` of veths."""
    try:
        for one, other in pairs:
            output("ip", "link", "add", one, "type", "veth", "peer", "name", other)
            for each in (one, other):
                output("ip", "link", "set", each, "up")
        datapath = ["--", "set", "bridge", FAR, "datapath_type=netdev"]
        output("ovs-vsctl", "add-br", FAR, *datapath, "--", *bond(FAR, [other for _, other in pairs]))
        output("ip", "link", "set", FAR, "up")
        yield
    finally:
        output("ovs-vsctl", "--if-exists", "del-br", FAR)
        for one, _ in pairs:
            subprocess.run(["ip", "link", "del", one], check=False)


def bond(bridge, members):
    """The words of ovs-vsctl that add it."""
    settings = ["bond_mode=balance-tcp", "lacp=active", "other_config:lacp-time=fast"]
    return ["add-bond", bridge, f"{bridge}-bond", *members, *settings]


def test_all_members_of_a_bond_with_lacp_are_used_and_are_one_port(plain):
    lab, pairs = plain, [("fqla1", "fqlb1"), ("fqla2", "fqlb2")]
    members = [one for one, _ in pairs]
    with far_bridge(pairs):
        output("ovs-vsctl", *bond("s1", members))
        try:
            ends = {"far": (None, FAR), **{other: (None, other) for _, other in pairs}}
            with contextlib.closing(Wires(ends)) as wires:
                ask = ["ovs-vsctl", "get", "Interface"]
                assert until(
                    lambda: all(output(*ask, each, "lacp_current") == "true\n" for each in members), 10
                )

                def sent_by_each(most):
                    """By each member a frame comes in that all hosts get once; nothing goes back. It takes
                    ``most`` seconds, because LACP is never quiet.
                    """
                    marks = [wires.send(other, mac=mac) for (_, other), mac in zip(pairs, MACS, strict=True)]
                    received = list(lab.wires.all_received(marks, 1.0, most).values())
                    back = wires.all_received(marks, 0).values()
                    return received == [{name: [None] for name in HOSTS}] * 2 and not any(back)

                assert until(lambda: sent_by_each(2.0)), lab.rules("table=0")
                assert sent_by_each(6.0)
                assert until(lambda: {*MACS} <= {row["mac"] for row in lab.rest("hosts")})
                assert until(lambda: wires.received(lab.wires.send("h1")).get("far") == [None])
                output("ip", "link", "set", members[0], "down")
                assert until(lambda: wires.received(lab.wires.send("h1")).get("far") == [None])
        finally:
            output("ovs-vsctl", "--if-exists", "del-port", "s1", "s1-bond")
