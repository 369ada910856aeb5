"""The delay line between a host and its switch port: frames are delayed by the round-trip time, in order,
without loss.
"""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.root

ROOT = Path(__file__).resolve().parent.parent.parent
RTT_MS = 20
FRAMES = 3000

NET = """
import signal, sys
from pathlib import Path
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet_topos.incast import IncastTopo
from mininet_topos.switch import FairQSwitch

setLogLevel("error")
topo = IncastTopo(n=1, rate=100, buffer=1_000_000, rtt=float(sys.argv[1]))
topo.line.log = Path(sys.argv[2])
topo.nodeInfo("s1").update(agent=False)
net = Mininet(topo=topo, controller=None, switch=FairQSwitch, build=False)
net.build()
net.start()
print(net["h1"].pid, net["r"].pid, topo.line._process.pid, net["h1"].IP(), net["r"].IP(), flush=True)
sys.stdin.read()
net.stop()
"""
# The shortest of 20 handshakes, in ms, before a transfer.
CLIENT = """
import socket, sys, time
address, usual, took = (sys.argv[1], 5001), float(sys.argv[2]), []
# A busy machine delays many of them.
while len(took) < 20 or min(took) >= usual and len(took) < 1000:
    with socket.socket() as sock:
        began = time.monotonic()
        sock.connect(address)
        took.append(time.monotonic() - began)
with socket.socket() as sock:
    sock.connect(address)
    sock.sendall(bytes(3_000_000))
    sock.shutdown(socket.SHUT_WR)
    assert sock.recv(1) == b"x"
    print(min(took) * 1000)
"""
SERVER = """
import socket
with socket.create_server(("", 5001), backlog=64) as listener:
    print("ready", flush=True)
    while True:
        sock = listener.accept()[0]
        count = 0
        while data := sock.recv(1 << 20):
            count += len(data)
        if count:
            sock.sendall(b"x")
            break
"""
# Numbered datagrams to the delayed host.
TAKER = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    sock.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)
    sock.bind(("", 5002))
    sock.settimeout(10)
    print("ready", flush=True)
    print([int(sock.recv(100)) for _ in range(int(sys.argv[1]))] == list(range(int(sys.argv[1]))))
"""
GIVER = """
import socket, sys, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    for number in range(int(sys.argv[2])):
        sock.sendto(str(number).encode(), (sys.argv[1], 5002))
        if number % 20 == 19:
            time.sleep(0.002)
"""


def inside(pid, program, *arguments):
    command = ["mnexec", "-a", pid, sys.executable, "-c", program, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def finished(process):
    out = process.communicate(timeout=30)[0]
    assert process.returncode == 0
    return out


@pytest.fixture
def network(tmp_path):
    """The running network, ended with the test; and the pids and addresses of h1 and r, and of the line."""
    net = subprocess.Popen(
        [sys.executable, "-c", NET, str(RTT_MS), str(tmp_path / "line.log")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    try:
        words = net.stdout.readline().split()
        subprocess.run(["ovs-ofctl", "-O", "OpenFlow13", "add-flow", "s1", "actions=NORMAL"], check=True)
        yield net, *words
    finally:
        if net.poll() is None:
            net.communicate("", timeout=30)
        subprocess.run(["ovs-vsctl", "--if-exists", "del-br", "s1"], check=True)


def test_a_round_trip_takes_the_configured_delay_without_loss_or_reordering(network, tmp_path):
    net, h1, r, line, h1_ip, r_ip = network
    server = inside(r, SERVER)
    assert server.stdout.readline() == "ready\n"
    handshake = finished(inside(h1, CLIENT, r_ip, str(2 * RTT_MS / 1000)))
    finished(server)
    assert RTT_MS <= float(handshake) < 2 * RTT_MS
    # Not TCP's retransmissions: a sender without a processor for a while sends again without a loss.
    taker = inside(h1, TAKER, str(FRAMES))
    assert taker.stdout.readline() == "ready\n"
    finished(inside(r, GIVER, h1_ip, str(FRAMES)))
    assert finished(taker) == "True\n"
    net.communicate("", timeout=30)
    frames, lost = map(int, re.findall(r"(\d+) (?:frames|lost)", (tmp_path / "line.log").read_text()))
    assert frames > FRAMES and lost == 0
    assert not Path(f"/proc/{line}").exists()
    assert not [name for name in os.listdir("/sys/class/net") if name.startswith("s1-eth")]


TWO = """
import signal, sys
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet_topos.dumbbell import DumbbellTopo
from mininet_topos.switch import FairQSwitch

setLogLevel("error")
topo = DumbbellTopo(n=1, right=2, rate=100, buffer=1_000_000, right_rtts=(0, float(sys.argv[1])))
for switch in topo.switches():
    topo.nodeInfo(switch).update(agent=False)
net = Mininet(topo=topo, controller=None, switch=FairQSwitch, build=False)
net.build()
net.start()
print(net["h1"].pid, *(net[name].pid for name in ("h2", "h3")), flush=True)
sys.stdin.read()
net.stop()
"""


def test_a_receiver_can_have_a_round_trip_of_its_own():
    net = subprocess.Popen(
        [sys.executable, "-c", TWO, str(RTT_MS)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    try:
        h1, *receivers = net.stdout.readline().split()
        for switch in ("left", "right"):
            subprocess.run(
                ["ovs-ofctl", "-O", "OpenFlow13", "add-flow", switch, "actions=NORMAL"], check=True
            )
        took = []
        for number, receiver in enumerate(receivers, 2):
            server = inside(receiver, SERVER)
            assert server.stdout.readline() == "ready\n"
            took.append(float(finished(inside(h1, CLIENT, f"10.0.0.{number}", str(2 * RTT_MS / 1000)))))
            finished(server)
        near, far = took
        assert near < RTT_MS <= far < 2 * RTT_MS
    finally:
        if net.poll() is None:
            net.communicate("", timeout=30)
        for switch in ("left", "right"):
            subprocess.run(["ovs-vsctl", "--if-exists", "del-br", switch], check=True)


def test_the_delay_line_ends_with_its_parent(network):
    net, _h1, _r, line, *_ = network
    net.send_signal(signal.SIGKILL)
    net.wait()
    deadline = time.monotonic() + 10
    while Path(f"/proc/{line}").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not Path(f"/proc/{line}").exists()
