"""Delay from a step of the queue to the first lowered ACK: switch, agent, controller, policy and back.

TCP flows of low rate produce a steady sequence of ACKs; a burst of UDP into the same port raises the queue in
one step. The law runs in the controller: in the switch it does not count such flows, which do not use their
windows.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.lab import Lab, output, until

STEPS = 20
RATE, BUFFER, FLOWS = 50, 60000, 8

RECEIVE = """
import socket, sys
server = socket.create_server(("0.0.0.0", 5001)); print("ready", flush=True)
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); udp.bind(("0.0.0.0", 5002))
import select
peers = [server.accept()[0] for _ in range(int(sys.argv[1]))]
while True:
    for peer in select.select(peers, [], [])[0]:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        peer.recv(65536)
"""
TRICKLE = """
import socket, sys, time
peers = [socket.create_connection((sys.argv[1], 5001)) for _ in range(int(sys.argv[2]))]
for peer in peers: peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
while True:
    for peer in peers: peer.sendall(bytes(100))
    time.sleep(0.0005)
"""
# Records the windows of the ACKs that the sender receives, with the time.
WATCH = """
import json, socket, sys, time
sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800)); sock.bind((sys.argv[1], 0))
print("ready", flush=True)
end = time.monotonic() + float(sys.argv[2]); seen = []
sock.settimeout(0.5)
while time.monotonic() < end:
    try: data, (_, _, kind, *_) = sock.recvfrom(2048)
    except TimeoutError: continue
    if kind == 0 and data[23] == 6 and data[34:36] == (5001).to_bytes(2, "big"):
        flow, window = data[36:38], data[48:50]
        seen.append((time.monotonic(), int.from_bytes(flow, "big"), int.from_bytes(window, "big")))
print(json.dumps(seen), flush=True)
"""
BURST = """
import json, socket, sys, time
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); sock.connect((sys.argv[1], 5002)); times = []
for _ in range(int(sys.argv[2])):
    time.sleep(0.6); times.append(time.monotonic())
    for _ in range(28): sock.send(bytes(1400))
    for _ in range(50):  # keep the queue at that length for 50 ms: the port sends 4 packets per ms
        time.sleep(0.001)
        for _ in range(4): sock.send(bytes(1400))
print(json.dumps(times), flush=True)
"""


def main() -> None:
    """Print the figures, for the default number of readings and for an update at every reading."""
    for title, config in (
        ("controller, T = 2 ms, M = 8", "[fairq]\nwhere = controller\n"),
        ("controller, T = 2 ms, M = 1", "[fairq]\nwhere = controller\nincrements = 1\n"),
    ):
        delays = _delays(config)
        print(
            f"queue step to first lowered ACK, {title:28} median {statistics.median(delays):5.1f} ms, "
            f"90th percentile {sorted(delays)[len(delays) * 9 // 10]:5.1f} ms ({len(delays)} of {STEPS})"
        )


def _delays(config: str) -> list[float]:
    with tempfile.TemporaryDirectory() as directory:
        lab = Lab(Path(directory), rate=RATE, buffer=BUFFER, forward=False)
        try:
            manager = lab.controller("fairq", config)
            lab.agent(f"tcp:127.0.0.1:{manager.port}")
            manager.wait_for("agent of bridge 0000000000000001: connected")
            until(lambda: "priority=100,arp" in output("ovs-ofctl", "-O", "OpenFlow13", "dump-flows", "s1"))
            address = lab["r"].IP()
            python = [sys.executable, "-c"]
            sink = lab["r"].popen([*python, RECEIVE, str(FLOWS)], stdout=subprocess.PIPE, text=True)
            sink.stdout.readline()
            source = lab["h1"].popen([*python, TRICKLE, address, str(FLOWS)])
            time.sleep(2)
            watch = lab["h1"].popen(
                [*python, WATCH, "h1-eth0", str(STEPS * 0.7 + 2)], stdout=subprocess.PIPE, text=True
            )
            watch.stdout.readline()
            burst = lab["h2"].popen([*python, BURST, address, str(STEPS)], stdout=subprocess.PIPE, text=True)
            times = json.loads(burst.stdout.readline())
            seen = json.loads(watch.stdout.readline())
            for process in (source, sink, watch, burst):
                process.kill()
                process.wait()
        finally:
            lab.close()
    delays = []
    for began in times:
        before: dict[int, int] = {}
        for at, flow, window in seen:
            if began - 0.05 < at < began:
                before[flow] = min(window, before.get(flow, window))
        later = [entry for entry in seen if began <= entry[0] < began + 0.25]
        lowered = next((at for at, flow, window in later if window < before.get(flow, 0)), None)
        if lowered is not None:
            delays.append((lowered - began) * 1000)
    if not delays:
        raise SystemExit("bench: no window was lowered after a step of the queue")
    return delays
