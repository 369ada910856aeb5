"""A bridge whose rules belong to others: its agent governs it, and no rule is touched.

The rules are a pipeline of three tables with two VLANs, as other controllers make it: ports are access ports,
frames get a tag where they come in and lose it where they leave. h1, h2 and r are in one VLAN, h3 in the
other.
"""

import json
import re
import signal
import subprocess
import urllib.request

import pytest

from tests.support.fixtures import leaving_nothing
from tests.support.lab import Lab, output, received, until
from tests.support.traffic import answers

pytestmark = [pytest.mark.root, pytest.mark.timeout(180)]
VLANS = {"h1": 10, "h2": 10, "h3": 20, "r": 10}
DPID = "0000000000000001"
COOKIE = 0x5ADC15C0
# Another controller: it does not answer, and while a bridge has one, Open vSwitch keeps its rules when it
# gets a second.
OTHER = "tcp:127.0.0.1:1"


def pipeline(lab):
    """The rules, as ovs-ofctl reads them."""
    ports = {name: number for number, name in enumerate(VLANS, 1)}
    start = f"cookie={COOKIE:#x},table="
    for name, vlan in VLANS.items():
        mac, port = lab[name].MAC(), ports[name]
        yield (
            f"{start}0,priority=100,in_port={port},vlan_tci=0x0000/0x1fff,"
            f"actions=push_vlan:0x8100,set_field:{0x1000 | vlan}->vlan_vid,goto_table:1"
        )
        yield f"{start}1,priority=100,dl_vlan={vlan},dl_dst={mac},actions=goto_table:2"
        yield f"{start}2,priority=100,dl_vlan={vlan},dl_dst={mac},actions=pop_vlan,output:{port}"
    for vlan in sorted(set(VLANS.values())):
        members = ",".join(f"output:{ports[name]}" for name in VLANS if VLANS[name] == vlan)
        yield f"{start}1,priority=50,dl_vlan={vlan},actions=pop_vlan,{members}"
    for table in (0, 1, 2):
        yield f"{start}{table},priority=0,actions=drop"


def rules(*options):
    """All rules of the bridge; without ``--no-stats`` with their counters, but not their ages."""
    found = output("ovs-ofctl", "-O", "OpenFlow13", *options, "dump-flows", "s1").splitlines()
    return sorted(re.sub(r"duration=[^,]*, ", "", line) for line in found if "actions=" in line)


def meters():
    return output("ovs-ofctl", "-O", "OpenFlow13", "dump-meters", "s1").splitlines()[1:]


class Site:
    """The lab, with the rules installed, a controller and the agent."""

    def __init__(self, lab):
        self.lab = lab
        output("ovs-vsctl", "set-fail-mode", "s1", "secure", "--", "set-controller", "s1", OTHER)
        output("ovs-vsctl", "remove", "bridge", "s1", "other_config", "dp-desc")
        for name in VLANS:  # hosts send nothing by themselves
            lab[name].cmd("sysctl -w net.ipv6.conf.all.disable_ipv6=1")
        text = "\n".join(pipeline(lab)) + "\n"
        output("ovs-ofctl", "-O", "OpenFlow13", "del-flows", "s1")
        subprocess.run(
            ["ovs-ofctl", "-O", "OpenFlow13", "add-flows", "s1", "-"], input=text, text=True, check=True
        )
        self.rules, self.counted = rules("--no-stats"), rules()

    def start(self, port=None):
        self.manager = self.lab.controller(port=port, connect=False)

    def rest(self, what):
        with urllib.request.urlopen(f"{self.manager.url}/v1/{what}", timeout=20) as answer:
            return json.load(answer)

    def switch(self):
        (row,) = self.rest("switches")["switches"]
        return row

    def copies(self):
        """Copied segments that have reached the controller."""
        with urllib.request.urlopen(f"{self.manager.url}/metrics", timeout=20) as answer:
            found = re.search(r'^fairq_packet_ins_total\{kind="tcp"\} (\d+)', answer.read().decode(), re.M)
        return int(found[1])

    def flows_at_receiver(self):
        """The flows whose data leaves by the receiver's port, by the controller's flow table."""
        wanted = [DPID, self.lab.port]
        return {row["sport"] for row in self.rest("flows")["flows"] if wanted in row["ports"]}

    def ping(self, source, target, count, wait=1):
        """Until so many are answered, or for ``wait`` seconds."""
        return self.lab[source].popen(
            ["ping", "-n", "-i", "0.05", "-w", str(wait), "-c", str(count), self.lab[target].IP()],
            stdout=subprocess.PIPE,
            text=True,
        )


def answered(pinging):
    """The numbers of the packets that were answered."""
    return answers(pinging.communicate(timeout=60)[0])


@pytest.fixture
def site(tmp_path):
    with leaving_nothing():
        lab = Lab(tmp_path, senders=3, forward=False)
        try:
            yield Site(lab)
        finally:
            lab.close()


def test_a_bridge_of_others_is_governed_and_none_of_its_rules_is_touched(site):
    lab = site.lab
    site.start()
    agent = lab.agent(f"tcp:127.0.0.1:{site.manager.port}")
    assert until(lambda: site.rest("health")["agents"] == 1)

    # By the agent alone, and no frame has met a rule because of that.
    row = site.switch()
    assert (row["way"], row["connected"], row["agent"]) == ("windows", False, True)
    assert any("not connected" in limit for limit in row["limits"])
    assert {port["role"] for port in site.rest("ports")["ports"]} == {"unknown"}
    assert rules() == site.counted

    # An incast: its beginnings are known from copies, and windows are lowered.
    assert until(lambda: lab.status()["segment_copies"]["rules"] == 6)
    sinks = [lab.bulk(sender, port)[0] for sender, port in (("h1", 5001), ("h2", 5002))]
    assert until(lambda: len(site.flows_at_receiver()) == 2)
    assert until(lambda: site.copies() >= 4)
    assert until(lambda: lab.port_status()["rewritten"] > 1000)
    before = lab.port_status()["queue"]
    pings = site.ping("h1", "h2", 90, wait=30)

    # The controller dies, and another takes its place.
    site.manager.end(signal.SIGKILL)
    assert until(lambda: lab.status()["rules"] == 0)  # its leases have ended
    assert rules("--no-stats") == site.rules
    site.start(site.manager.port)
    assert until(lambda: site.rest("health")["agents"] == 1)
    assert until(lambda: lab.port_status()["rule"])
    assert all(received(sink) for sink in sinks)
    assert answered(pings) == [*range(1, 91)], "none was lost"
    assert lab.port_status()["queue"]["packets"] > before["packets"]

    # The VLANs are separate, as before.
    assert answered(site.ping("h3", "r", 2)) == []
    assert rules("--no-stats") == site.rules and meters() == []

    # The same bridge connects beside its other controller: its rules stay.
    targets = [OTHER, f"tcp:127.0.0.1:{site.manager.port}"]
    output("ovs-vsctl", "set-controller", "s1", *targets)
    assert until(lambda: site.switch()["connected"])
    row = site.switch()
    assert row["way"] == "normal" and any("rules of others" in limit for limit in row["limits"])
    assert rules("--no-stats") == site.rules and meters() == []
    assert {port["name"] for port in site.rest("ports")["ports"]} >= {"s1-eth1", "s1-eth4"}
    assert agent.process.poll() is None


def test_a_bridge_without_rules_forwards_and_asks_for_paths_in_words(lab):
    """Open vSwitch removes all rules when it gets its first controller."""
    output("ovs-vsctl", "set-fail-mode", "s1", "secure")
    output("ovs-vsctl", "remove", "bridge", "s1", "other_config", "dp-desc")
    manager = lab.manager = lab.controller()
    manager.wait_for(f"bridge {DPID}: connected, way normal")
    assert until(lambda: len(rules()) == 1)
    assert rules("--no-stats") == [" cookie=0xfa17800000000001, priority=0 actions=NORMAL"]
    assert lab["h1"].cmd(f"ping -n -c 1 -W 20 {lab['r'].IP()}; echo $?").splitlines()[-1].strip() == "0"
    output("ovs-vsctl", "set", "bridge", "s1", 'other_config:dp-desc="rack 7, fairq_ryu: paths"')
    manager.wait_for(f"bridge {DPID}: connected, way paths", 10)
    assert until(lab.has_settled)
    assert len(rules()) > 8
    output("ovs-vsctl", "remove", "bridge", "s1", "other_config", "dp-desc")
    manager.wait_for("its description asks for way normal now, was paths", 10)
    assert until(lambda: len(rules()) == 1)
    assert lab["h1"].cmd(f"ping -n -c 1 -W 20 {lab['r'].IP()}; echo $?").splitlines()[-1].strip() == "0"
