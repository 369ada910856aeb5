"""Hosts behind veth pairs, as the kernel reports them, in a network namespace that ends with the test."""

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import json, os, socket, subprocess, time
from fairq_ryu.agent.peers import unfinished

def sh(line):
    subprocess.run(line.split(), check=True, stdout=subprocess.DEVNULL)

def found():
    ports = unfinished(index for index, _ in socket.if_nameindex())
    return {socket.if_indextoname(index): peer.remedy for index, peer in ports.items()}

found_hosts = []
sh("ip link add p1 type veth peer name h1")
sh("ip link add p2 type veth peer name h2")
host = subprocess.Popen(["unshare", "-n", "sleep", "60"])
try:
    own = os.readlink("/proc/self/ns/net")
    while os.readlink(f"/proc/{host.pid}/ns/net") == own:
        time.sleep(0.01)
    sh(f"ip link set h2 netns {host.pid}")
    inside = f"nsenter -t {host.pid} -n "
    found_hosts.append(found())  # no address: they are not used
    sh("ip addr add 10.1.0.1/24 dev h1")
    sh(inside + "ip addr add 10.2.0.1/24 dev h2")
    both = found()
    found_hosts.append({port: remedy.replace(str(host.pid), "PID") for port, remedy in both.items()})
    for remedy in both.values():
        sh(remedy)
    found_hosts.append(found())
finally:
    host.kill()
    host.wait()
print(json.dumps(found_hosts))
"""


def test_hosts_here_and_in_another_namespace_until_their_remedy_is_run():
    done = subprocess.run(
        ["unshare", "-n", sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    off = "tso off gso off gro off tx off"
    assert json.loads(done.stdout) == [
        {},
        {"p1": f"ethtool -K h1 {off}", "p2": f"nsenter -t PID -n ethtool -K h2 {off}"},
        {},
    ]
