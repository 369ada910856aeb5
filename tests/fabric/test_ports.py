"""Ports of a real bridge that are no plain network devices: its own, tunnels, patch ports, bonds."""

import contextlib
import json
import subprocess
import sys

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from tests.support.lab import SINK, SOURCE, end, fairq, output, received, until

pytestmark = pytest.mark.root
ADDRESS = "10.0.0.250/24"


def filters(interface, point="egress"):
    return output("tc", "filter", "show", "dev", interface, point)


def ports(lab):
    return {port["name"]: port["ofport"] for port in lab.status()["ports"]}


def from_the_machine(lab):
    """The machine itself sends to the receiver without a limit; returns the receiving process."""
    sink = lab["r"].popen([sys.executable, "-c", SINK, "5002"], stdout=subprocess.PIPE, text=True)
    lab.stack.callback(end, sink)
    assert sink.stdout.readline() == "ready\n"
    source = subprocess.Popen([sys.executable, "-c", SOURCE, lab["r"].IP(), "5002"])
    lab.stack.callback(end, source)
    return sink


def tool(*words):
    """Run a command that is one line, or the words before it and its line."""
    output(*words[:-1], *words[-1].split())


@contextlib.contextmanager
def device(*add):
    """A network device, removed at the end."""
    output("ip", "link", "add", *add)
    try:
        yield
    finally:
        output("ip", "link", "del", add[0])


def test_windows_of_the_machine_s_own_connections_are_lowered(lab, stub):
    """Data of the machine enters by the bridge's own port, and its ACKs leave by it: at tc ingress. Both
    ports are in a VLAN, whose frames have no tag there.
    """
    for port in ("s1", "s1-eth3"):
        output("ovs-vsctl", "set", "Port", port, "tag=10")
        lab.stack.callback(output, "ovs-vsctl", "clear", "Port", port, "tag")
    agent = lab.agent(stub.target)
    stub.accept()
    output("ip", "address", "add", ADDRESS, "dev", "s1")
    lab.stack.callback(output, "ip", "address", "flush", "dev", "s1")
    output("ip", "link", "set", "s1", "up")
    assert "fq_delivered" in filters("s1", "ingress") and "fq_" not in filters("s1")
    assert stub.add({"in_port": lab.port}, 20_000, pool=True, hard_timeout=60) is None
    sink = from_the_machine(lab)
    assert until(lambda: received(sink) > 500_000)
    (flow,) = [each for each in stub.flows() if each.key.dport == 5002]
    assert (flow.key.src, flow.port) == ("10.0.0.250", lab.port)
    assert lab.port_status()["rewritten"] > 10
    (own,) = lab.status()["windows_only"]
    assert own["names"] == ["s1"] and "hands packets to this machine" in own["reason"]
    assert agent.end() == 0
    assert "clsact" not in output("tc", "qdisc", "show", "dev", "s1")


def test_ports_that_share_a_device(lab, stub):
    """As all VXLAN ports of the kernel datapath do, and here one device with two names: none takes the place
    of the other, or the program with it.
    """
    with device("fqx", "type", "veth", "peer", "name", "fqxp"):
        output("ip", "link", "property", "add", "dev", "fqx", "altname", "fqy")
        lab.agent(stub.target)
        stub.accept()
        tunnel = ["type=vxlan", "options:remote_ip=203.0.113.1"]
        output("ovs-vsctl", "add-port", "s1", "vx1", "--", "set", "Interface", "vx1", *tunnel)
        output("ovs-vsctl", "add-port", "s1", "fqx", "--", "add-port", "s1", "fqy")
        assert until(lambda: len(lab.status()["windows_only"]) == 2)
        (shared,) = [each for each in lab.status()["windows_only"] if each["names"] != ["s1"]]
        assert shared["names"] == ["fqx", "fqy"]
        assert filters("fqx").count("fq_egress:[") == 1
        assert set(ports(lab)) == {"s1-eth1", "s1-eth2", "s1-eth3"}
        printed = " ".join(fairq("status", "--bridge", "s1").stdout.split())
        assert "windows only: fqx, fqy (they have one network device" in printed
        assert "not watched: vx1 (vxlan without a network device" in printed
        output("ovs-vsctl", "del-port", "s1", "fqy")
        assert until(lambda: "fqx" in ports(lab)), lab.status()
        assert filters("fqx").count("fq_egress:[") == 1
        number = ports(lab)["fqx"]
        while stub.wait_for(parser.OFPPortStatus).desc.port_no != number:
            pass
        assert stub.add({"in_port": number}, 5000, hard_timeout=30) is None
        output("ovs-vsctl", "del-port", "s1", "fqx", "--", "del-port", "s1", "vx1")
        assert until(lambda: not filters("fqx"))


def test_a_patch_port_is_no_port_and_flows_are_counted_once(lab, stub):
    """A connection of the machine from a second bridge behind a patch port: its data leaves by one port."""
    try:
        output("ovs-vsctl", "add-br", "fqtb", "--", "set", "bridge", "fqtb", "datapath_type=netdev")
        for here, there, bridge in [("fqp1", "fqp2", "s1"), ("fqp2", "fqp1", "fqtb")]:
            about = ["type=patch", f"options:peer={there}"]
            output("ovs-vsctl", "add-port", bridge, here, "--", "set", "Interface", here, *about)
        output("ip", "address", "add", ADDRESS, "dev", "fqtb")
        output("ip", "link", "set", "fqtb", "up")
        lab.agent(stub.target)
        stub.accept()
        names = [desc.name for desc in stub.ask(parser.OFPPortDescStatsRequest(stub.datapath)).body]
        assert names == [b"s1-eth1", b"s1-eth2", b"s1-eth3"]
        assert [each["name"] for each in lab.status()["unwatched"]] == ["fqp1"]
        sink = from_the_machine(lab)
        assert until(lambda: received(sink) > 200_000)
        found = [(each.key.src, each.port) for each in stub.flows() if 5002 in each.key[2:]]
        assert found == [("10.0.0.250", lab.port)]
    finally:
        output("ovs-vsctl", "--if-exists", "del-br", "fqtb")


def test_each_member_of_a_bond_is_governed(lab, stub):
    members = ("fqb1", "fqb2")
    with contextlib.ExitStack() as stack:
        for name in members:
            stack.enter_context(device(name, "type", "veth", "peer", "name", f"{name}p"))
        output("ovs-vsctl", "add-bond", "s1", "fqbond", *members, "bond_mode=balance-slb")
        stack.callback(output, "ovs-vsctl", "del-port", "s1", "fqbond")
        lab.agent(stub.target)
        stub.accept()
        for name in members:
            assert "fq_egress" in filters(name)
            assert stub.add({"in_port": ports(lab)[name]}, 5000, pool=True) is None
        assert stub.add({"in_port": ofp.OFPP_LOCAL}, 5000) == (ofp.OFPET_BAD_MATCH, ofp.OFPBMC_BAD_VALUE)
        assert {p["rule"]["kind"] for p in lab.status()["ports"] if p["name"] in members} == {"pool"}


def test_a_port_with_several_transmit_queues_is_governed(lab, stub):
    """mq is the root of most network cards; such a port had no windows."""
    host = "fqtns"
    with contextlib.ExitStack() as stack:
        output("ip", "netns", "add", host)
        stack.callback(output, "ip", "netns", "del", host)
        several = ["numtxqueues", "4", "numrxqueues", "4"]
        stack.enter_context(device("fqm", *several, "type", "veth", "peer", "name", "fqmh", *several))
        output("ip", "link", "set", "fqmh", "netns", host)
        inside = ["ip", "netns", "exec", host]
        output(*inside, "ip", "address", "add", "10.0.0.77/8", "dev", "fqmh")
        output(*inside, "ip", "link", "set", "fqmh", "up")
        tool(*inside, "ethtool -K fqmh tso off gso off gro off tx off")
        output("ip", "link", "set", "fqm", "up")
        record = ["--id=@noop", "create", "QoS", "type=linux-noop", "external_ids:fairq-bridge=s1"]
        output("ovs-vsctl", "add-port", "s1", "fqm", "--", *record, "--", "set", "Port", "fqm", "qos=@noop")
        stack.callback(output, "ovs-vsctl", "del-port", "s1", "fqm")
        tool("tc qdisc add dev fqm root handle 1: mq")
        for n in range(1, 5):
            tool(f"tc qdisc add dev fqm parent 1:{n} handle 1{n}: htb default 1")
            rate = "htb rate 20mbit burst 3k cburst 3k"
            tool(f"tc class add dev fqm parent 1{n}: classid 1{n}:1 {rate}")
            tool(f"tc qdisc add dev fqm parent 1{n}:1 bfifo limit 60000")
        lab.agent(stub.target)
        stub.accept()
        number = ports(lab)["fqm"]
        depth = stub.queues()[number]
        assert (depth.limit, depth.rate) == (60_000, 2_500_000)
        assert stub.add({"in_port": number}, 20_000, pool=True, hard_timeout=60) is None
        sink = subprocess.Popen(
            [*inside, sys.executable, "-c", SINK, "5001"], stdout=subprocess.PIPE, text=True
        )
        stack.callback(end, sink)
        assert sink.stdout.readline() == "ready\n"
        source = lab["h1"].popen([sys.executable, "-c", SOURCE, "10.0.0.77", "5001"])
        stack.callback(end, source)
        assert until(lambda: stub.queues()[number].byte_ns > 0)

        def multi_queue():
            return next(each for each in lab.status()["ports"] if each["name"] == "fqm")

        assert until(lambda: multi_queue()["rewritten"] > 10 and multi_queue()["acks"] > 200)
        assert until(lambda: multi_queue()["active_flows"] == 1)
        port = multi_queue()
        used = [each for each in port["tx_queues"] if each["packets"] > 100]
        assert len(port["tx_queues"]) == 4 and len(used) == 1, "a flow uses one queue"
        # The pool, and the headers of its segments; without windows the queue is full.
        assert 0 < stub.queues()[number].peak < 40_000
        (flow,) = [each for each in stub.flows() if each.key.dport == 5001]
        assert flow.port == number


def test_doctor_lists_every_port_and_its_commands_make_it_governed(own_lab):
    """Also a port whose classes are several queues: their limits were added up."""
    lab = own_lab
    output("tc", "qdisc", "del", "dev", "s1-eth3", "root")
    output("tc", "qdisc", "add", "dev", "s1-eth3", "root", "handle", "1:", "htb", "default", "1")
    for number in (1, 2):
        words = f"class add dev s1-eth3 parent 1: classid 1:{number} htb rate 50mbit"
        output("tc", *words.split())

    def doctor():
        made = json.loads(fairq("doctor", "--bridge", "s1", "--json").stdout)
        assert made["bridge"] == "s1" and made["agent"] is False
        return {each["names"][0]: each for each in made["ports"]}

    before = doctor()
    assert [before[name]["governed"] for name in ("s1-eth1", "s1-eth2", "s1-eth3")] == [False] * 3
    assert before["s1-eth1"]["reason"] == "it has no queue"
    assert "2 leaf classes" in before["s1-eth3"]["reason"]
    assert (before["s1"]["ofport"], before["s1"]["windows"]) == (None, True)
    text = fairq("doctor", "--bridge", "s1").stdout
    for name in ("s1-eth1", "s1-eth3"):
        for command in before[name]["commands"]:
            assert f"    {command}\n" in text
            program, *words = command.split()
            assert program in ("tc", "ovs-vsctl")
            output("tc", *words) if program == "tc" else output("ovs-vsctl", *words)
    after = doctor()
    assert [after[name]["governed"] for name in ("s1-eth1", "s1-eth2", "s1-eth3")] == [True, False, True]
    assert after["s1-eth1"]["commands"] == after["s1-eth3"]["commands"] == []
    # The record is ours: without it Open vSwitch would remove the queue the next time.
    output("ovs-vsctl", "set", "Interface", "s1-eth1", "external_ids:changed=yes")
    assert "bfifo" in output("tc", "qdisc", "show", "dev", "s1-eth1")
    answer = fairq("doctor", "--bridge", "no-such-bridge")
    assert answer.returncode == 2 and "there is no bridge no-such-bridge" in answer.stderr
    lab.agent()
    assert lab.port_status()["queue"]["limit"] == after["s1-eth3"]["limit"] > 0
