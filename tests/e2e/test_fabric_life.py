"""Controllers that die, queued SYNs, many connections and several bottlenecks on a leaf-spine."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request

import pytest

from tests.support import hasty
from tests.support.fabric import carrier, network
from tests.support.kept import Kept
from tests.support.lab import SINK, SOURCE, end, near_target, received, until
from tests.support.traffic import wait_until_reachable

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]
# A lost segment is retransmitted after 0.2, 0.6, 1.4, 3, 6.2 and 12.6 s; on a busy machine a late one counts.
STALL = 12.6 + 0.4
SWITCHES = 3  # of a path between two leaves
CROWD = int(os.environ.get("FAIRQ_CONNECTIONS", "1000"))


def leaf_spine():
    from mininet_topos.leaf_spine import LeafSpineTopo

    return LeafSpineTopo(leaves=2, spines=2, hosts=4)


@pytest.fixture(scope="module")
def networks(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRQ", str(hasty.script(tmp_path_factory.mktemp("hasty") / "fairq", "fairq")))
        networks = Kept(lambda topology: network(tmp_path_factory.mktemp("life"), topology()))
        yield networks
        networks.close()


@pytest.fixture
def fabric(networks):
    net = networks.of(leaf_spine)
    yield net
    net.stack.close()
    net.end_controller()


class Bulk:
    """An endless transfer from one host to another."""

    def __init__(self, fabric, source, target, port=5001):
        self.fabric, self.target, self.port = fabric, target, port
        self.sink = fabric[target].popen(
            [sys.executable, "-c", SINK, str(port)], stdout=subprocess.PIPE, text=True
        )
        assert self.sink.stdout.readline() == "ready\n"
        self.source = fabric[source].popen(
            [sys.executable, "-c", SOURCE, fabric.address(target), str(port)], stderr=subprocess.PIPE
        )
        fabric.stack.callback(self.close)
        assert until(lambda: received(self.sink) > 200_000)
        # A leaf, a spine and a leaf: they become known one by one.
        self.flow = until(lambda: (flow := self.listed()) and len(switches(flow)) == SWITCHES and flow)
        assert self.flow, fabric.controller_says()

    def listed(self):
        """The transfer as the controller lists it."""
        flows = self.fabric.rest("flows", dst=self.fabric.address(self.target), state="established")
        return next((flow for flow in flows if flow["dport"] == self.port), None)

    def continues(self, seconds=STALL):
        """Whether data arrives within ``seconds``; the sender must not have given up."""
        before = received(self.sink)
        more = until(lambda: received(self.sink) > before, seconds, 0.02)
        assert self.source.poll() is None, self.source.stderr.read()
        return more

    def close(self):
        end(self.source)
        end(self.sink)


def interface(fabric, port):
    """The name of a port in the REST interface."""
    names = {(each["dpid"], each["port"]): each["name"] for each in fabric.rest("ports")}
    return names[tuple(port)]


def listed(fabric):
    """The number of connections in the controller's flow table."""
    url = f"http://127.0.0.1:{fabric.rest_port}/v1/flows?limit=1"
    with urllib.request.urlopen(url, timeout=20) as answer:
        return json.load(answer)["total"]


def switches(flow):
    """The switches of a path; their order is known only to the controller that has pinned it."""
    return {port[0] for port in flow["ports"]}


def port_at_leaf1(flow):
    return next(port for port in flow["ports"] if port[0] == f"{0x101:016x}")


def test_a_new_controller_takes_over_without_a_gap(fabric):
    fabric.start_controller()
    wait_until_reachable(fabric)
    bulk = Bulk(fabric, "h1", "h8")
    fabric.controller.end(signal.SIGKILL)
    assert bulk.continues()
    fabric.start_controller(wait=False)
    # Meanwhile it learns the network and takes over the installed rules.
    deadline = time.monotonic() + 30
    while not fabric.settled():
        assert bulk.continues() and time.monotonic() < deadline, fabric.controller_says()
    # Each agent reports the connection on its own, so that the switches of its path become known one by one.
    again = until(lambda: (flow := bulk.listed()) and switches(flow) == switches(bulk.flow) and flow)
    assert again and again["sport"] == bulk.flow["sport"]
    # Older than this controller; it is still moved to another path when its link fails.
    assert until(lambda: not fabric.pinned())
    failed = interface(fabric, port_at_leaf1(again))
    fabric.stack.callback(carrier, failed, True)
    carrier(failed, False)
    assert until(lambda: switches(bulk.listed() or again) != switches(again))
    assert bulk.continues()
    bulk.close()


def refused(fabric, source, target, port=9):
    """Whether a connection attempt is answered, by a refusal."""
    sock = fabric.socket(source)
    sock.settimeout(20)
    with sock:
        return sock.connect_ex((fabric.address(target), port)) == errno.ECONNREFUSED


def test_syns_are_forwarded_again_when_the_lease_of_a_dead_controller_expires(fabric):
    fabric.start_controller("[fairq_ryu]\nsyn = hold\n")
    wait_until_reachable(fabric)
    assert refused(fabric, "h1", "h8")
    assert until(lambda: sum("hard_timeout=3" in rule for rule in fabric.rules("leaf1", 0)) == 2)
    fabric.controller.end(signal.SIGKILL)
    # Lost while the rule is installed, and retransmitted after 1 and 3 s.
    assert refused(fabric, "h1", "h8")
    assert not [rule for rule in fabric.rules("leaf1", 0) if "hard_timeout" in rule]
    assert refused(fabric, "h1", "h8")


CLIENTS = """
import socket, sys, time
address, number, rest = sys.argv[1], int(sys.argv[2]), []
for n in range(number):
    sock = socket.socket()
    sock.settimeout(5)
    try:
        sock.connect((address, 6001))
        sock.sendall(b"x" * 500)
        if n % 10 == 0:
            rest.append(sock)  # open when the program is killed
        else:
            sock.recv(500)
            sock.close()
    except OSError:
        sock.close()
print("done", flush=True)
time.sleep(60)
"""
SERVER = """
import socket, threading
def serve(sock):
    try:
        while data := sock.recv(4096):
            sock.sendall(data)
    except OSError:
        pass
    sock.close()
server = socket.create_server(("0.0.0.0", 6001), backlog=1000)
print("ready", flush=True)
while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
"""


def test_no_table_keeps_entries_of_connections_that_were_killed_or_cut_off(fabric, tmp_path):
    program = hasty.script(tmp_path / "ryu-manager", "ryu-manager")
    fabric.start_controller("", "fixed", program=program)
    wait_until_reachable(fabric)
    servers = [fabric.run(f"h{n}", SERVER, stdout=subprocess.PIPE, text=True) for n in (5, 6, 7, 8)]
    for server in servers:
        assert server.stdout.readline() == "ready\n"
    pipe = {"stdout": subprocess.PIPE, "text": True}
    clients = [
        fabric.run(f"h{n}", CLIENTS, fabric.address(f"h{n + 4}"), CROWD // 4, **pipe) for n in (1, 2, 3, 4)
    ]
    assert until(lambda: listed(fabric) > 20)
    carrier("leaf1-eth5", False)
    time.sleep(1)
    carrier("leaf1-eth5", True)
    clients[0].kill()
    for client in clients[1:]:
        assert client.stdout.readline() == "done\n"
        client.kill()
    carrier("leaf1-eth6", False)  # the last segments of some connections are lost
    for server in servers:
        server.kill()
    time.sleep(1)
    carrier("leaf1-eth6", True)
    assert until(lambda: not listed(fabric), 30, 0.5), listed(fabric)
    free = lambda port: port["flows"] == 0 and port["pool_bytes"] is None  # noqa: E731
    assert until(lambda: all(map(free, fabric.rest("ports")))), fabric.rest("ports")
    assert until(lambda: not fabric.pinned(), step=0.5)
    left = {name: fabric.agent(name)["flows"] for name in fabric.switches}
    assert until(lambda: not any(fabric.agent(name)["flows"] for name in fabric.switches), 30, 0.5), left
    assert "Traceback" not in fabric.controller.text


@pytest.fixture
def narrow(networks, tmp_path):
    """A slow link from leaf1, and a slow port to one receiver."""
    from mininet_topos.leaf_spine import LeafSpineTopo

    networks.close()  # its bridges have the same names
    topo = LeafSpineTopo(leaves=2, spines=1, hosts=4, uplink=30, rate=10, buffer=60_000, only="h5")
    with network(tmp_path, topo) as made:
        yield made


def test_every_bottleneck_of_a_path_lowers_windows_for_its_own_queue(narrow):
    fabric = narrow
    fabric.start_controller()
    wait_until_reachable(fabric)
    # Two to the slow host, two to another: the uplink carries all four, the slow host's port two.
    bulks = [Bulk(fabric, f"h{n}", f"h{5 + n % 2}", 5001 + n) for n in (1, 2, 3, 4)]
    for place in (("leaf1", 5), ("leaf2", 1)):  # the uplink, and the slow port
        assert until(
            lambda place=place: (rule := fabric.agent_port(*place)["rule"]) and rule["kind"] == "law"
        )
        time.sleep(2)
        first = fabric.agent_port(*place)
        assert near_target(lambda place=place: fabric.agent_port(*place)["queue"], 60_000 * 0.25), place
        last = fabric.agent_port(*place)
        assert last["queue"]["drops"] == first["queue"]["drops"], place
        assert last["rewritten"] > first["rewritten"], place
    for bulk in bulks:
        assert bulk.continues()
        bulk.close()
