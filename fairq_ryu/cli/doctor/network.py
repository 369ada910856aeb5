"""Checks of ports, hosts and TCP."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

from fairq_ryu.agent import peers
from fairq_ryu.cli.doctor import commands, kernel
from fairq_ryu.cli.doctor.check import Check
from fairq_ryu.config import programs
from fairq_ryu.experiments import kernel_kinds

PROC = Path("/proc")
CONTROLLER_ADDRESS = ("127.0.0.1", 6653)
# What an experiment's shallow port needs, tried on a veth pair. `unshare -n` gives it a network namespace
# that the kernel removes together with the process, so nothing can be left behind, however this ends.
SANDBOX_SCRIPT = """
try() {
    name=$1; shift
    if why=$("$@" 2>&1); then echo "$name=ok"; else echo "$name="$why; fi
}
try veth ip link add fqd0 type veth peer name fqd1
try up ip link set fqd0 up
try tbf tc qdisc add dev fqd0 root handle 1: tbf rate 200mbit burst 3080 peakrate 100gbit mtu 1540 limit 9000
try bfifo tc qdisc add dev fqd0 parent 1:1 handle 10: bfifo limit 125000
try clsact tc qdisc add dev fqd0 clsact
try ethtool ethtool -K fqd0 tso off gso off gro off tx off
"""


def check_ports() -> list[Check]:
    """A shallow port and its offloads, tried in a separate network namespace."""
    if os.geteuid() != 0:
        return [Check("qdiscs", "fail", "cannot be tried without root", commands.as_root())]
    if commands.which("unshare") is None:
        return [Check("qdiscs", "fail", "unshare is not installed", commands.install("util-linux"))]
    output = commands.run(["unshare", "-n", "--", "sh", "-c", SANDBOX_SCRIPT], timeout=20)
    results = dict(line.split("=", 1) for line in output.text.splitlines() if "=" in line)
    if results.get("veth", "") != "ok" or results.get("up") != "ok":
        why = results.get("veth", "") if results.get("veth") != "ok" else results.get("up", "")
        found = f"no veth pair in a network namespace: {why or output.last_line}"
        return [Check("qdiscs", "fail", found, "modprobe veth")]
    bad = {
        name: results.get(name, "no answer")
        for name in ("tbf", "bfifo", "clsact")
        if results.get(name) != "ok"
    }
    if bad:
        first = next(iter(bad))
        module = {"tbf": "sch_tbf", "bfifo": "sch_fifo", "clsact": "sch_ingress"}[first]
        found = "; ".join(f"{name}: {why.strip()}" for name, why in bad.items())
        checks = [Check("qdiscs", "fail", found, f"modprobe {module}")]
    else:
        checks = [Check("qdiscs", "ok", "tbf, bfifo and clsact work")]
    offloads = results.get("ethtool", "no answer").strip()
    if offloads == "ok":
        checks.append(Check("port offloads", "ok", "tso, gso, gro and tx checksums can be switched off"))
    else:
        remedy = commands.install("ethtool")
        # An agent switches nothing off.
        checks.append(Check("port offloads", "fail" if kernel.in_checkout() else "warn", offloads, remedy))
    return checks


def check_namespaces() -> Check:
    """A host of Mininet: ``mnexec`` gives it a network namespace, and a mount namespace with its own /sys."""
    name = "namespaces"
    if os.geteuid() != 0:
        return Check(name, "fail", "cannot be tried without root", commands.as_root())
    output = commands.run(["mnexec", "-n", "true"])
    if output.code != 0:
        found = f"mnexec cannot make them for hosts: {output.last_line}"
        return Check(name, "fail", found, programs.WITHOUT_NAMESPACES)
    return Check(name, "ok", "mnexec makes them for hosts")


def check_hosts() -> list[Check]:
    """Hosts behind bridges of the userspace datapath, by their veth pairs: do they complete checksums?"""
    if os.geteuid() != 0 or commands.which("ovs-vsctl") is None:
        return []
    asked = ["ovs-vsctl", "--timeout=5", "--bare", "--columns=name", "find", "Bridge", "datapath_type=netdev"]
    bridges = commands.run(asked)
    checks = []
    for bridge in bridges.text.split() if bridges.code == 0 else []:
        names = commands.run(["ovs-vsctl", "--timeout=5", "list-ifaces", bridge]).text.split()
        indexes = {}
        for name in names:
            try:
                indexes[socket.if_nametoindex(name)] = name
            except OSError:
                continue  # no device of this host
        for index, peer in peers.unfinished(indexes).items():
            found = f"port {indexes[index]}: {peer.name} sends unfinished checksums: TCP hangs"
            checks.append(Check(f"bridge {bridge}", "warn", found, peer.remedy))
    return checks


def check_kernel_qdiscs() -> Check:
    """The qdiscs with which experiments compare, and which few kernels have all of."""
    name = "kernel qdiscs"
    if os.geteuid() != 0:
        return Check(name, "warn", "cannot be tried without root", commands.as_root())
    reasons = kernel_kinds.refused(kernel_kinds.LEAST)
    there = ", ".join(sorted(kernel_kinds.LEAST.keys() - reasons.keys())) or "none"
    if not reasons:
        return Check(name, "ok", f"{there}; experiments can compare with them")
    absent = ", ".join(f"{kind} (module sch_{kind})" for kind in sorted(reasons))
    found = f"{there}; experiments cannot compare with {absent}"
    return Check(name, "warn", found, "apt-get install linux-image-amd64, and boot it")


def check_congestion_control() -> Check:
    """The TCP congestion controls of this kernel; experiments choose one, cubic by default."""
    name = "congestion control"
    settings = PROC / "sys/net/ipv4"
    available = (settings / "tcp_available_congestion_control").read_text().split()
    default = (settings / "tcp_congestion_control").read_text().strip()
    found = f"{', '.join(available)}; {default} by default"
    if "cubic" not in available:
        return Check(name, "fail", f"no cubic: {found}", "modprobe tcp_cubic")
    return Check(name, "ok", found)


def check_controller_port() -> Check:
    """The controller's usual port: only a warning, because it is in use while a controller runs."""
    host, port = CONTROLLER_ADDRESS
    name = f"port {port}"
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: then connections in TIME_WAIT do not block it.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return Check(name, "warn", f"{host}:{port} is in use", f"ss -ltnp 'sport = :{port}'")
    return Check(name, "ok", f"{host}:{port} is free")
