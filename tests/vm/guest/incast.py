"""In a virtual machine: one incast by hand on Open vSwitch's kernel datapath, with offloads as they are.

A bridge of the kernel's datapath, hosts in network namespaces, an agent and a controller, started as README
says; mice in volleys beside elephants through a port of 10 Mbit/s. It ends with 0 if windows were lowered, no
checksum was wrong, and every flow ended with all its bytes.
"""

import contextlib
import hashlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from mininet_topos.commands import has_kernel_datapath
from mininet_topos.patience import patient
from tests.support.lab import BIN, FAIRQ, Process, agent_status, output, until

BRIDGE, RECEIVER, PORT = "fqvm", "fqvm-r", 5001
SENDERS, MICE, ELEPHANTS, VOLLEYS = 8, 2, 4, 3
MOUSE_BYTES = 11_520
RATE, BUFFER = "10mbit", 125_000
HOSTS = [f"fqvm-{number}" for number in range(1, SENDERS + 1)]


def serve():
    """The receiver: answers each connection with the digest of what came."""
    server = socket.create_server(("0.0.0.0", PORT), backlog=256)
    print("listening", flush=True)

    def answer(peer):
        digest = hashlib.sha256()
        with peer:
            while data := peer.recv(1 << 16):
                digest.update(data)
            peer.sendall(digest.digest())

    while True:
        peer, _ = server.accept()
        threading.Thread(target=answer, args=(peer,), daemon=True).start()


def send(address, begin, until_, volleys):
    """A sender: its volleys, and an elephant from ``begin`` to ``until_`` if that is not 0. Prints a line a
    flow: its kind, seconds, and whether all its bytes came.
    """

    def flow(kind, start, end):
        time.sleep(max(0.0, start - time.monotonic()))
        digest, begun = hashlib.sha256(), time.monotonic()
        with socket.create_connection((address, PORT), patient(60)) as peer:
            # What an elephant still has to send at its end goes at the rate of small windows and the round
            # trips of an emulated processor: the kernel's own choice of 4 MB has taken minutes.
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
            if end:
                block = os.urandom(1 << 16)
                while time.monotonic() < end:
                    peer.sendall(block)
                    digest.update(block)
            else:
                block = os.urandom(MOUSE_BYTES)
                peer.sendall(block)
                digest.update(block)
            peer.shutdown(socket.SHUT_WR)
            said = b"".join(iter(lambda: peer.recv(64), b""))
        print(kind, time.monotonic() - begun, said == digest.digest(), flush=True)

    flows = [("elephant", begin, until_)] if until_ else []
    flows += [("mouse", start, 0.0) for start in volleys for _ in range(MICE)]
    threads = [threading.Thread(target=flow, args=each) for each in flows]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def build(stack):
    """The bridge and its hosts."""
    stack.callback(subprocess.run, ["ovs-vsctl", "--if-exists", "del-br", BRIDGE], check=False)
    output("ovs-vsctl", "add-br", BRIDGE)
    assert has_kernel_datapath(), "the kernel has no datapath of Open vSwitch"
    for number, host in enumerate([*HOSTS, RECEIVER], start=1):
        output("ip", "netns", "add", host)
        stack.callback(subprocess.run, ["ip", "netns", "del", host], check=False)
        output("ip", "link", "add", f"{host}p", "type", "veth", "peer", "name", "eth0", "netns", host)
        output("ip", "-n", host, "address", "add", f"10.9.0.{number}/24", "dev", "eth0")
        output("ip", "-n", host, "link", "set", "eth0", "up")
        output("ip", "link", "set", f"{host}p", "up")
        output("ovs-vsctl", "add-port", BRIDGE, f"{host}p")
    offloads = output("ip", "netns", "exec", HOSTS[0], "ethtool", "-k", "eth0")
    for name in ("tcp-segmentation-offload", "generic-segmentation-offload", "tx-checksumming"):
        assert f"{name}: on" in offloads, f"{name} is off"
    port = f"{RECEIVER}p"
    shaper = ("rate", RATE, "burst", "3k", "cburst", "3k")
    output("tc", "qdisc", "replace", "dev", port, "root", "handle", "1:", "htb", "default", "1")
    output("tc", "class", "add", "dev", port, "parent", "1:", "classid", "1:1", "htb", *shaper)
    output("tc", "qdisc", "add", "dev", port, "parent", "1:1", "bfifo", "limit", str(BUFFER))


def govern(stack, directory):
    """The controller and the agent, as README starts them."""
    (directory / "fairq.conf").touch()
    config = ("--config-file", str(directory / "fairq.conf"))
    manager = Process(
        directory / "ryu.log", str(BIN / "ryu-manager"), "--ofp-listen-host", "127.0.0.1", *config,
        "fairq_ryu.apps.fairq",
    )  # fmt: skip
    stack.callback(manager.end)
    agent = Process(
        directory / "agent.log",
        FAIRQ,
        "agent",
        "--bridge",
        BRIDGE,
        "--controller",
        "tcp:127.0.0.1:6653",
        *config,
    )
    stack.callback(agent.end)
    stack.push(lambda kind, *_: print(f"--- the agent's exit code: {agent.process.poll()}") if kind else None)
    agent.wait_for("ready", 120)
    manager.wait_for("connected", 120)
    assert until(lambda: port_status()["rule"] is not None, 120), agent.text


def show_logs(directory):
    """What agent and controller have said."""
    for log in sorted(directory.glob("*.log")):
        print(f"--- {log.name}", log.read_text(), sep="\n", flush=True)


def port_status():
    """The agent's view of the receiver's port."""
    return next(each for each in agent_status(BRIDGE)["ports"] if each["name"] == f"{RECEIVER}p")


def checksum_errors(host):
    """How many segments with a wrong checksum a host has received."""
    lines = output("ip", "netns", "exec", host, "cat", "/proc/net/snmp").splitlines()
    names, values = (each.split() for each in lines if each.startswith("Tcp:"))
    return int(values[names.index("InCsumErrors")])


def measure(stack):
    """The incast; its figures."""

    def inside(host, *argv):
        program = subprocess.Popen(
            ["ip", "netns", "exec", host, sys.executable, "-m", __spec__.name, *argv],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        stack.callback(program.wait)
        stack.callback(program.kill)
        return program

    server = inside(RECEIVER, "serve")
    assert server.stdout.readline() == "listening\n"
    start = time.monotonic() + 25  # programs of Python start slowly here
    volleys = [start + 4 + 5 * number for number in range(VOLLEYS)]
    end = volleys[-1] + 4
    senders = [
        inside(
            host, "send", f"10.9.0.{SENDERS + 1}", str(start), str(end if number < ELEPHANTS else 0),
            *map(str, volleys),
        )
        for number, host in enumerate(HOSTS)
    ]  # fmt: skip
    # A receiver without that offload finishes the checksums of its ACKs itself, and senders then check them;
    # with it, nobody does. So the first volley has the one, and the others the other.
    time.sleep(max(0.0, volleys[1] - 1 - time.monotonic()))
    output("ip", "netns", "exec", RECEIVER, "ethtool", "-K", "eth0", "tx", "off")
    said = [program.communicate(timeout=patient(60))[0] for program in senders]
    rows = [line.split() for text in said for line in text.splitlines()]
    port = port_status()
    return {
        "mice": sorted(float(row[1]) for row in rows if row[0] == "mouse"),
        "elephants": sum(row[0] == "elephant" for row in rows),
        "whole": sum(row[2] == "True" for row in rows),
        "rewritten": port["rewritten"],
        "checksum_errors": sum(checksum_errors(host) for host in [*HOSTS, RECEIVER]),
        "drops": int(
            re.search(
                r"bfifo.*?dropped (\d+)",
                output("tc", "-s", "qdisc", "show", "dev", f"{RECEIVER}p"),
                re.DOTALL,
            )[1]
        ),
    }


def main():
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        # The logs go with the directory, so a failure shows them.
        stack.push(lambda kind, *_: show_logs(Path(directory)) if kind else None)
        build(stack)
        govern(stack, Path(directory))
        found = measure(stack)
    mice, wanted = found["mice"], SENDERS * MICE * VOLLEYS
    print(json.dumps(found))
    assert len(mice) == wanted, f"{wanted - len(mice)} mice did not end"
    assert found["whole"] == wanted + ELEPHANTS, "bytes were lost or changed"
    assert found["rewritten"] > 0, "no window was lowered"
    assert found["checksum_errors"] == 0
    print(f"incast: {wanted} mice, slowest {mice[-1] * 1e3:.0f} ms; {found['rewritten']} ACKs lowered")


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    elif sys.argv[1:2] == ["send"]:
        first, last, *starts = map(float, sys.argv[3:])
        send(sys.argv[2], first, last, starts)
    else:
        main()
