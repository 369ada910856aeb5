"""A host as OpenStack makes it: a virtual machine at the integration bridge, patch ports, and a bridge with
the uplink. Data of the machine leaves by the uplink in VLAN 100. Its ACKs leave by the machine's port, whose
tag means something within the integration bridge only. A third bridge is the physical switch, with a host.
"""

import contextlib
import json
import signal
import subprocess
import sys
import urllib.request

import pytest

from fairq_ryu.agent import status
from fairq_ryu.experiments.free_ports import free_port
from mininet_topos.commands import has_kernel_datapath
from mininet_topos.patience import patient
from tests.support.lab import (
    BIN,
    FAIRQ,
    SINK,
    SOURCE,
    Process,
    agent_status,
    end,
    fairq,
    output,
    received,
    until,
)
from tests.support.ofp import StubController
from tests.support.traces import processes

pytestmark = pytest.mark.root
INNER, OUTER, FAR = BRIDGES = "fqint", "fqext", "fqfar"
VM, PEER = SPACES = "fqvm", "fqpeer"
DATAPATH = "system" if has_kernel_datapath() else "netdev"
TAP, UPLINK = "fqtap", "fqup"
ADDRESSES = {VM: "10.9.0.1", PEER: "10.9.0.2"}


def vsctl(line):
    output("ovs-vsctl", *line.split())


def link(name, far, space=None):
    """A veth pair; ``far`` is in a network namespace, with its address, or in this one."""
    output("ip", "link", "add", name, "type", "veth", "peer", "name", far)
    output("ip", "link", "set", name, "up")
    if space is None:
        output("ip", "link", "set", far, "up")
        return
    output("ip", "netns", "add", space)
    output("ip", "link", "set", far, "netns", space)
    output("ip", "-n", space, "address", "add", f"{ADDRESSES[space]}/24", "dev", far)
    output("ip", "-n", space, "link", "set", far, "up")
    if DATAPATH == "netdev":  # which does not complete checksums
        offloads = ["tso", "off", "gso", "off", "gro", "off", "tx", "off"]
        output("ip", "netns", "exec", space, "ethtool", "-K", far, *offloads)


def make_bridge(name, number):
    about = f"datapath_type={DATAPATH} other-config:datapath-id={number:016x}"
    vsctl(f"add-br {name} -- set bridge {name} {about}")


def make_host():
    for number, name in enumerate(BRIDGES, 0xF1):
        make_bridge(name, number)
    make_inner()
    vsctl(f"add-port {OUTER} fqxp -- set Interface fqxp type=patch options:peer=fqip")
    link(UPLINK, "fqwire")
    link("fqhost", "fqhosth", PEER)
    vsctl(f"add-port {OUTER} {UPLINK} -- add-port {FAR} fqwire -- add-port {FAR} fqhost tag=100")
    output("ovs-ofctl", "add-flow", OUTER, "in_port=fqxp,dl_vlan=1,actions=mod_vlan_vid:100,NORMAL")
    record = f"external_ids:fairq-bridge={OUTER}"
    vsctl(f"-- --id=@noop create QoS type=linux-noop {record} -- set port {UPLINK} qos=@noop")
    for line in (
        f"qdisc add dev {UPLINK} root handle 1: htb default 1",
        f"class add dev {UPLINK} parent 1: classid 1:1 htb rate 20mbit ceil 20mbit burst 3k cburst 3k",
        f"qdisc add dev {UPLINK} parent 1:1 handle 10: bfifo limit 60000",
    ):
        output("tc", *line.split())


def make_inner():
    """As Neutron's agent does."""
    vsctl(f"add-port {INNER} fqip -- set Interface fqip type=patch options:peer=fqxp")
    if TAP not in output("ip", "-brief", "link"):
        link(TAP, f"{TAP}h", VM)
    note = "other_config:network_type=vlan other_config:segmentation_id=100 other_config:tag=1"
    vsctl(f"add-port {INNER} {TAP} tag=1 -- set Port {TAP} {note}")
    output("ovs-ofctl", "add-flow", INNER, "in_port=fqip,dl_vlan=100,actions=mod_vlan_vid:1,NORMAL")


def remove_host():
    for name in BRIDGES:
        vsctl(f"--if-exists del-br {name}")
    words = ["--bare", "--columns=_uuid", "find", "QoS", f"external_ids:fairq-bridge={OUTER}"]
    for record in output("ovs-vsctl", *words).split():
        vsctl(f"destroy QoS {record}")
    for name in (TAP, UPLINK, "fqhost"):
        subprocess.run(["ip", "link", "del", name], capture_output=True, check=False)
    for name in SPACES:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


@pytest.fixture(scope="module")
def made():
    remove_host()
    try:
        make_host()
        yield
    finally:
        remove_host()


class Host:
    """The host, and what a test has started on it."""

    def __init__(self, folder):
        self.folder = folder
        self.stack = contextlib.ExitStack()

    def run(self, *argv):
        program = Process(self.folder / f"{len(list(self.folder.iterdir()))}.log", *argv)
        self.stack.callback(program.end)
        return program

    def agent(self, bridges, target="tcp:127.0.0.1:1"):
        agent = self.run(FAIRQ, "agent", "--bridge", bridges, "--controller", target)
        agent.wait_for("ready")
        return agent

    def bulk(self, port=5001):
        """The machine sends to the host outside without a limit; returns the receiving process."""
        command = [sys.executable, "-c", SINK, str(port)]
        sink = self._inside(PEER, *command, stdout=subprocess.PIPE, text=True)
        assert sink.stdout.readline() == "ready\n"
        self.source = self._inside(VM, sys.executable, "-c", SOURCE, ADDRESSES[PEER], str(port))
        return sink

    def _inside(self, space, *argv, **options):
        process = subprocess.Popen(["ip", "netns", "exec", space, *argv], **options)
        self.stack.callback(end, process)
        return process

    def sessions(self, stub):
        """Both bridges connect to one controller; the sessions of the inner and of the outer one."""
        other = StubController()
        other.listener.close()
        other.listener = stub.listener
        self.stack.callback(other.close)
        found = {each.accept().datapath_id & 0xFF: each for each in (stub, other)}
        return found[0xF1], found[0xF2]


@pytest.fixture
def host(made, tmp_path):
    found = Host(tmp_path)
    before = processes()
    yield found
    found.stack.close()
    for name in BRIDGES:
        status.flows_path(name).unlink(missing_ok=True)
    assert processes().keys() <= before.keys()
    assert filters() == []
    assert not [path for path in status.run_directory().glob("*") if path.stem in BRIDGES]


def filters():
    """Ports with filters of an agent, or with a qdisc for them."""
    return [
        name
        for name in (TAP, UPLINK, *BRIDGES)
        for point in ("egress", "ingress")
        if "fq_" in output("tc", "filter", "show", "dev", name, point)
        or "clsact" in output("tc", "qdisc", "show", "dev", name)
    ]


def port(bridge, name):
    return next(each for each in agent_status(bridge)["ports"] if each["name"] == name)


def test_windows_are_lowered_across_the_bridges(host, stub):
    agent = host.agent(f"{INNER}:{OUTER}", stub.target)
    inner, outer = host.sessions(stub)
    number = port(OUTER, UPLINK)["ofport"]
    assert outer.add({"in_port": number}, 20_000, pool=True, hard_timeout=600) is None
    sink = host.bulk()
    assert until(lambda: received(sink) > 500_000)
    end(host.source)
    sink.wait(patient(20))
    # The answer comes from what a thread has read.
    (data,) = until(outer.flows)
    (acks,) = until(inner.flows)
    assert data.key == acks.key.reversed and data.key.vlan == 100
    assert (data.port, acks.port) == (number, port(INNER, TAP)["ofport"])
    counted = port(OUTER, UPLINK)
    assert 10 < acks.rewritten == counted["rewritten"] <= counted["acks"]
    (rule,) = outer.rules()
    assert rule.packet_count == counted["acks"]
    assert counted["unknown_scale"] == 0 and counted["queue"]["drops"] == 0
    assert port(INNER, TAP)["acks"] == 0
    assert [port(*each)["no_acks"]["total"] for each in ((OUTER, UPLINK), (INNER, TAP))] == [0, 0]
    shown = fairq("doctor", "--bridge", OUTER).stdout
    assert f"bridge {OUTER}: 1 of 1 ports are governed\n" in shown and "patch ports" not in shown
    assert agent.end() == 0
    assert filters() == []


def test_with_an_agent_each_the_flows_are_counted_that_no_window_governs(host, stub):
    agents = [host.agent(name, stub.target) for name in (INNER, OUTER)]
    _, outer = host.sessions(stub)
    number = port(OUTER, UPLINK)["ofport"]
    assert outer.add({"in_port": number}, 20_000, pool=True, hard_timeout=600) is None
    sinks = [host.bulk(each) for each in (5001, 5002, 5003)]
    assert until(lambda: port(OUTER, UPLINK)["no_acks"]["total"] == 3)
    assert until(lambda: all(received(sink) > 500_000 for sink in sinks))
    counted = port(OUTER, UPLINK)
    assert (counted["no_acks"], counted["acks"]) == ({"now": 3, "total": 3}, 0)
    assert port(INNER, TAP)["no_acks"] == {"now": 0, "total": 0}
    words = "data seen, no ACKs: 3 flows"
    assert f"port {number}: {words} now, 3 since" in fairq("status", "--bridge", OUTER).stdout
    shown = fairq("doctor", "--bridge", OUTER).stdout
    assert f"    {words} since the agent started" in shown
    assert f"    fairq agent --bridge {OUTER}:{INNER}\n" in shown
    assert "1 of 1 ports are governed; 1 of these have flows without ACKs, which are not" in shown
    assert [f"fairq agent --bridge {a}:{b}" in agent.text for agent, (a, b) in
            zip(agents, [(INNER, OUTER), (OUTER, INNER)], strict=True)] == [True, True]  # fmt: skip


def test_bridges_that_no_patch_port_joins_are_refused(host):
    refused = fairq("agent", "--bridge", f"{OUTER}:{FAR}", "--bridge", INNER)
    assert refused.returncode == 2
    assert f"bridges {OUTER} and {FAR} are not joined by patch ports. Remedy: run an" in refused.stderr
    taken = host.agent(INNER)
    refused = fairq("agent", "--bridge", f"{OUTER}:{INNER}")
    assert refused.returncode == 2 and f"bridge {INNER} has an agent already" in refused.stderr
    assert taken.end() == 0


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
def test_what_an_agent_leaves_is_taken_over_on_all_bridges(host, stub, by):
    first = host.agent(f"{INNER}:{OUTER}", stub.target)
    host.sessions(stub)
    sink = host.bulk()
    assert until(lambda: received(sink) > 200_000)
    first.end(by)
    stub.close()
    host.agent(f"{OUTER}:{INNER}", stub.target)
    _, outer = host.sessions(stub)
    number = port(OUTER, UPLINK)["ofport"]
    assert outer.add({"in_port": number}, 20_000, pool=True, hard_timeout=600) is None
    assert until(lambda: port(OUTER, UPLINK)["rewritten"] > 10)
    assert port(OUTER, UPLINK)["unknown_scale"] == 0


def test_a_bridge_that_is_deleted_and_made_again(host, stub):
    agent = host.agent(f"{INNER}:{OUTER}", stub.target)
    _, outer = host.sessions(stub)
    vsctl(f"del-br {INNER}")
    assert until(lambda: agent_status(INNER)["ports"] == [])
    assert port(OUTER, UPLINK)["queue"]["limit"] == 60_000
    make_bridge(INNER, 0xF1)
    make_inner()
    assert until(lambda: [each["name"] for each in agent_status(INNER)["ports"]] == [TAP])
    assert outer.add({"in_port": port(OUTER, UPLINK)["ofport"]}, 20_000, pool=True, hard_timeout=600) is None
    sink = host.bulk()
    assert until(lambda: received(sink) > 200_000)
    assert port(OUTER, UPLINK)["rewritten"] > 10
    assert agent.end() == 0


def test_the_law_of_a_controller_that_has_only_agents(host):
    listens, rest = free_port(), free_port()
    path = host.folder / "ryu.conf"
    path.write_text("")
    manager = host.run(
        *(str(BIN / "ryu-manager"), "--config-file", str(path)),
        *("--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", str(listens)),
        *("--wsapi-host", "127.0.0.1", "--wsapi-port", str(rest), "fairq_ryu.apps.fairq"),
    )
    host.agent(f"{INNER}:{OUTER}", f"tcp:127.0.0.1:{listens}")
    for number in (0xF1, 0xF2):
        manager.wait_for(f"agent of bridge {number:016x}: connected")
    for each in (5001, 5002, 5003, 5004):
        host.bulk(each)
    assert until(lambda: port(OUTER, UPLINK)["rewritten"] > 100)

    def listed():
        with urllib.request.urlopen(f"http://127.0.0.1:{rest}/v1/flows", timeout=20) as answer:
            flows = json.load(answer)["flows"]
        # Of one that began before the agents copied SYNs nobody knows which end has opened it.
        return {each[end] for each in flows for end in ("sport", "dport")} & set(range(5001, 5005))

    assert until(lambda: len(listed()) == 4), listed()
    assert until(lambda: port(OUTER, UPLINK)["active_flows"] == 4)
    assert port(OUTER, UPLINK)["rule"]["law"]["kind"] == "fairq"
