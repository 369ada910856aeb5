"""ryu-manager, Open vSwitch, agent and real TCP together."""

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from fairq_ryu.experiments.free_ports import free_port
from tests.support.lab import BIN, TOKEN, Process, fairq, mn, near_target, received, until
from tests.support.traffic import answers

pytestmark = pytest.mark.root
MANAGER = str(BIN / "ryu-manager")


@pytest.fixture
def fabric(lab):
    """A bridge under our controller, its agent connected."""

    def start(app="fairq", config=""):
        lab.govern(app, config)
        return lab

    return start


def ping(lab, source, address, count, *options):
    """The numbers of the packets that were answered, until so many are or half a minute has passed, and
    whether one was answered twice.
    """
    words = ("ping", "-n", "-i", "0.1", "-w", "30", "-c", str(count), *options, address)
    answer = lab[source].cmd(*words)
    assert " packets transmitted" in answer, answer
    return answers(answer), "DUP" in answer


def reach(lab, source, target):
    """A frame can be lost while the controller learns both hosts, but none arrives twice."""
    found, twice = ping(lab, source, lab[target].IP(), 1)
    assert found and not twice


def has_link_local_address(host):
    """Whether the host may use one: it has found that nobody else has it."""
    shown = host.cmd("ip -6 -o addr show scope link")
    return "fe80" in shown and "tentative" not in shown


def test_hosts_reach_each_other_and_no_frame_arrives_twice(fabric):
    lab = fabric()
    names = ["h1", "h2", "r"]
    for source in names:
        for target in names:
            if source != target:
                reach(lab, source, target)
                assert ping(lab, source, lab[target].IP(), 3) == ([1, 2, 3], False)
    # IPv6 needs neighbour discovery, which is multicast; hosts use an address when they have found it unique.
    for name in ("h1", "r"):
        assert until(lambda name=name: has_link_local_address(lab[name]))
    address = lab["r"].cmd("ip -6 -o addr show scope link").split()[3].split("/")[0]
    interface = lab["h1"].defaultIntf().name
    assert ping(lab, "h1", f"{address}%{interface}", 3, "-6") == ([1, 2, 3], False)
    assert " refused a" not in lab.manager.text


def test_arp_is_answered_by_the_controller_once_the_host_is_known(fabric):
    lab = fabric()
    reach(lab, "h1", "r")
    reach(lab, "h2", "h1")
    lab["h2"].cmd("ip neigh flush all")
    # Hosts that know each other ask for confirmation by unicast.
    tcpdump = ["tcpdump", "-l", "-n", "-i", "r-eth0", "arp and ether broadcast"]
    capture = lab["r"].popen(tcpdump, stderr=subprocess.STDOUT)
    assert b"listening" in capture.stdout.readline() + capture.stdout.readline()
    assert ping(lab, "h2", lab["h1"].IP(), 1) == ([1], False)
    time.sleep(0.5)
    capture.send_signal(signal.SIGINT)
    assert lab["h1"].IP().encode() not in capture.communicate(timeout=20)[0]


def test_a_port_with_a_queue_has_windows_and_others_have_none(fabric):
    lab = fabric("fairq")
    lab.bulk()
    rule = until(lambda: lab.port_status()["rule"])
    assert rule and rule["kind"] == "law"
    assert until(lambda: lab.port_status()["rewritten"] > 1000)
    assert near_target(lambda: lab.port_status()["queue"], 60000 * 0.25)
    for port in lab.status()["ports"]:
        if port["ofport"] != lab.port:
            assert port["rule"] is None  # those ports have no queue to govern


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_after_a_restart_of_the_agent_its_flows_are_at_the_target_again(fabric, number):
    """In order, or dead: no handshake is seen again, and within 3 s all eight are governed as before."""
    lab = fabric("fairq")
    sinks = [lab.bulk(sender, 5001 + place)[0] for place, sender in enumerate(["h1", "h2"] * 4)]
    target = 60_000 * 0.25
    assert near_target(lambda: lab.port_status()["queue"], target)
    lab.agent_process.end(number)
    again = lab.agent(f"tcp:127.0.0.1:{lab.manager.port}")
    assert "took over 8 flows from" in again.text
    before = [received(sink) for sink in sinks]
    assert near_target(lambda: lab.port_status()["queue"], target, seconds=3)
    port = lab.port_status()
    assert (port["handshakes"], port["unknown_scale"]) == (0, 0)
    flows = json.loads(fairq("show", "flows", "--json", "--url", lab.manager.url).stdout)["flows"]
    assert sum(flow["state"] == "established" for flow in flows) == 8
    assert all(received(sink) > first for sink, first in zip(sinks, before, strict=True))


def test_the_policy_of_a_running_controller_can_be_changed(fabric):
    lab = fabric("fairq", "[fairq_ryu]\nlease = 20\n")  # windows that are not removed would stay installed
    lab.bulk()
    assert until(lambda: lab.port_status()["rewritten"] > 1000)

    def change(wanted, token=TOKEN):
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        url, body = f"{lab.manager.url}/v1/policy", json.dumps(wanted).encode()
        request = urllib.request.Request(url, body, headers, method="PATCH")
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    assert change({"policy": "droptail"}, "not-the-token-at-all") == 401
    assert change({"policy": "sed", "parameters": {"threshold": 15}}) == 422
    assert lab.port_status()["rule"]["kind"] == "law"
    assert change({"policy": "droptail"}) == 200
    assert until(lambda: lab.status()["rules"] == 0, 15)  # well before the lease ends
    rewritten = lab.port_status()["rewritten"]
    time.sleep(0.5)
    assert lab.port_status()["rewritten"] == rewritten
    assert change({"policy": "fairq", "parameters": {"alpha": 0.5}}) == 200
    assert until(lambda: lab.port_status()["rewritten"] > rewritten + 1000)
    events = json.loads(fairq("show", "events", "--json", "--url", lab.manager.url).stdout)["events"]
    kinds = [event["kind"] for event in events]
    assert kinds.count("policy") >= 1 and {"bridge", "agent"} <= set(kinds)
    assert (
        "now policy droptail" in lab.manager.text and "now policy fairq with alpha = 0.5" in lab.manager.text
    )


def test_droptail_sets_nothing(fabric):
    lab = fabric("droptail")
    sink, _ = lab.bulk()
    assert until(lambda: received(sink) > 5_000_000)
    status = lab.port_status()
    assert status["rule"] is None and status["rewritten"] == 0 and status["acks"] == 0


def test_when_the_controller_dies_traffic_continues_and_windows_expire(fabric):
    lab = fabric()
    sink, _ = lab.bulk()
    assert until(lambda: lab.port_status()["rewritten"] > 1000)
    lab.manager.end(signal.SIGKILL)
    assert until(lambda: lab.status()["rules"] == 0)
    before, rewritten = received(sink), lab.port_status()["rewritten"]
    assert until(lambda: received(sink) > before + 3_000_000, 30)
    assert lab.port_status()["rewritten"] == rewritten
    again = lab.controller("fairq", port=lab.manager.port)
    again.wait_for("agent of bridge 0000000000000001: connected")
    # The flow is older than this controller, which learns it from the agent's records.
    assert until(lambda: lab.port_status()["rule"] is not None)


def test_retransmitted_and_refused_connections_leave_no_trace(fabric):
    lab = fabric("fixed")
    target = lab["r"].IP()
    for _ in range(3):
        lab["h1"].cmd(sys.executable, "-c", f"'import socket; socket.socket().connect_ex((\"{target}\", 9))'")
    assert until(lambda: lab.status()["rules"] == 0)


def listens(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_mn_with_the_custom_file_and_a_remote_controller(nothing_left, tmp_path):
    port = free_port()
    manager = Process(
        tmp_path / "log",
        MANAGER,
        "--ofp-listen-host",
        "127.0.0.1",
        "--ofp-tcp-listen-port",
        str(port),
        "--wsapi-port",
        "0",
        "fairq_ryu.apps.fairq",
    )
    try:
        # `mn` runs its ping test as soon as its switches are up, whether a controller is connected or not.
        assert until(lambda: listens(port))
        # `mn` in the system's Python, as its users run it; on a terminal, as it wants one.
        main, terminal = pty.openpty()
        done = mn(
            *("--custom", "mininet_topos/incast.py", "--topo", "incast,4", "--switch", "fairq"),
            *("--controller", f"remote,port={port}", "--test", "pingall"),
            stdin=terminal,
            timeout=90,
            env={**os.environ, "FAIRQ": str(BIN / "fairq")},
        )
        os.close(main)
        os.close(terminal)
        assert "0% dropped (20/20 received)" in done.stdout + done.stderr
        assert "agent of bridge 0000000000000001: connected" in manager.text
    finally:
        manager.end()
