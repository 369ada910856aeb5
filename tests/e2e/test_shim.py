"""Hosts with shims on a real bridge: flows older than the agent, and what is killed in mid-flow."""

import hashlib
import json
import random
import signal
import subprocess
import sys

import pytest

from tests.support.lab import FAIRQ, end, fairq, output, received, until

pytestmark = pytest.mark.root
SIZE = 12_000_000
LONG = 5 * SIZE  # several starts of an agent
UNIFY = ("--unify", "7", "--unify-grace", "0")
# Slower than the link, so that what is killed is killed in mid-flow.
SENDER = """
import hashlib, random, socket, sys
peer = socket.create_connection((sys.argv[1], 5100), 10)
peer.settimeout(None)
chance = random.Random(1)
for _ in range(int(sys.argv[2]) // 60000):
    peer.sendall(chance.randbytes(60000))
peer.shutdown(socket.SHUT_WR)
print(peer.recv(64).decode(), flush=True)
"""
READER = """
import hashlib, os, socket
server = socket.create_server(("0.0.0.0", 5100))
print("ready", flush=True)
peer, _ = server.accept()
print("begun", flush=True)
digest, total = hashlib.sha256(), 0
while data := peer.recv(65536):
    digest.update(data)
    total += len(data)
    if total > 3000000:
        break
print("some", flush=True)
while data := peer.recv(65536):
    digest.update(data)
peer.sendall(digest.hexdigest().encode())
"""


def sent_digest(size=SIZE):
    chance = random.Random(1)
    return hashlib.sha256(b"".join(chance.randbytes(60_000) for _ in range(size // 60_000))).hexdigest()


def agent(lab, stub, told="reserved", unify=14):
    path = lab.tmp_path / "told.conf"
    unified = f"unify_scale = {unify}\nunify_grace = 0\n"
    path.write_text(f"[fairq_ryu]\nway = paths\n[agent]\ntold_scale = {told}\n{unified}")
    words = ("--bridge", "s1", "--controller", stub.target, "--config-file", str(path))
    program = lab.run("agent", FAIRQ, "agent", *words)
    program.wait_for("ready")
    return program


def shim(lab, name, *options):
    """A shim at the uplink of a host, and its output."""
    words = [FAIRQ, "shim", "--interface", f"{name}-eth0", *options]
    process = lab[name].popen(words, stderr=subprocess.PIPE, text=True)
    assert "ready" in process.stderr.readline()
    lab.stack.callback(end, process)
    return process


@pytest.mark.parametrize("with_shim", [True, False])
def test_a_flow_older_than_the_agent_is_governed_with_a_shim(lab, stub, with_shim):
    found = shim(lab, "r") if with_shim else None
    sink, _ = lab.bulk()
    assert until(lambda: received(sink) > 1_000_000)
    agent(lab, stub)
    stub.accept()
    assert stub.add({"in_port": lab.port}, 3072, hard_timeout=30) is None
    if found is None:
        assert until(lambda: lab.port_status()["unknown_scale"] > 200)
        port = lab.port_status()
        assert (port["rewritten"], port["scale_told"]) == (0, 0)
        return
    assert until(lambda: lab.port_status()["rewritten"] > 200)
    assert until(lambda: lab.port_status()["queue"]["bytes"] < 6000)
    port = lab.port_status()
    assert port["unknown_scale"] == 0 and port["scale_told"] == port["acks"]
    found.send_signal(signal.SIGTERM)
    assert found.wait(10) == 0
    assert "told " in found.stderr.read()
    assert until(lambda: lab.port_status()["unknown_scale"] > 100), "nothing of the shim is left"


def transfer(lab, size=SIZE):
    """A transfer of which some has come; its sender."""
    reader = lab["r"].popen([sys.executable, "-c", READER], stdout=subprocess.PIPE, text=True)
    lab.stack.callback(end, reader)
    assert reader.stdout.readline() == "ready\n"
    words = [sys.executable, "-c", SENDER, lab["r"].IP(), str(size)]
    sender = lab["h1"].popen(words, stdout=subprocess.PIPE, text=True)
    lab.stack.callback(end, sender)
    assert reader.stdout.readline() == "begun\n"
    assert reader.stdout.readline() == "some\n"
    return sender


def scales(stub):
    return {flow.wscale or 0 for flow in stub.flows() if 5100 in (flow.key.sport, flow.key.dport)}


@pytest.mark.parametrize("options", [(), UNIFY, ("--mode", "reserved3", *UNIFY)])
@pytest.mark.parametrize("killed", ["shim", "agent", "both"])
def test_what_is_killed_in_mid_flow_leaves_the_bytes_as_they_are(lab, stub, killed, options):
    shims = [shim(lab, name, *options) for name in ("r", "h1")]
    program = agent(lab, stub, "reserved3" if "reserved3" in options else "reserved")
    stub.accept()
    assert stub.add({"in_port": lab.port}, 20_000, hard_timeout=30) is None
    sender = transfer(lab)
    assert max(scales(stub)) == 7 if options else max(scales(stub)) > 7
    if killed != "agent":
        for each in shims:
            end(each)
    if killed != "shim":
        program.end(signal.SIGKILL)
    assert sender.wait(60) == 0
    assert sender.stdout.read().strip() == sent_digest()
    if killed != "shim":  # the next one takes its filters away
        stub.close()
        assert agent(lab, stub).end() == 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_one_scale_of_the_bridge_outlives_its_agent(lab, stub, number):
    """After SIGTERM, windows are read smaller than they are until the next agent is there."""
    program = agent(lab, stub, unify=7)
    stub.accept()
    sender = transfer(lab, LONG)
    assert max(scales(stub)) == 7
    program.end(number)
    stub.close()
    again = agent(lab, stub, unify=7)
    assert "took over" in again.text
    stub.accept()
    assert max(scales(stub)) == 7
    assert stub.add({"in_port": lab.port}, 20_000, hard_timeout=30) is None
    assert until(lambda: lab.port_status()["rewritten"] > 100)
    assert sender.wait(60) == 0
    assert sender.stdout.read().strip() == sent_digest(LONG)
    assert again.end() == 0


def test_it_refuses_in_words(lab):
    assert "no interface 'eth77' here" in fairq("shim", "--interface", "eth77").stderr
    assert "give --unify 7" in fairq("shim", "--interface", "lo", "--mode", "reserved3").stderr
    command = ["sysctl -qw net.ipv4.tcp_ecn=3", f"{FAIRQ} shim --interface h1-eth0"]
    try:
        text = lab["h1"].cmd(" && ".join(command))
    finally:
        lab["h1"].cmd("sysctl -qw net.ipv4.tcp_ecn=2")
    assert "AccECN" in text or "Invalid argument" in text  # kernels that do not know AccECN
    unprivileged = fairq("shim", "--interface", "lo", user=65534, group=65534, extra_groups=[])
    assert unprivileged.returncode != 0
    if "Permission denied" not in unprivileged.stderr:  # of the checkout
        assert "needs root" in unprivileged.stderr
    assert json.loads(output("ip", "-j", "link", "show", "lo"))
