"""Checks of Open vSwitch, its datapaths and its buffers."""

from __future__ import annotations

from pathlib import Path

from fairq_ryu.cli.doctor import commands
from fairq_ryu.cli.doctor.check import Check
from fairq_ryu.cli.doctor.tools import check_tool
from mininet_topos.commands import has_kernel_datapath

TUN_DEVICE = Path("/dev/net/tun")
# What scripts/start-ovs.sh sets before it starts Open vSwitch.
MIN_SEND_BUFFER = 4 << 20
MIN_RECEIVE_BUFFER = 1 << 20
WMEM_DEFAULT = Path("/proc/sys/net/core/wmem_default")
RMEM_DEFAULT = Path("/proc/sys/net/core/rmem_default")


def check_ovs() -> list[Check]:
    """Open vSwitch: whether it is installed and runs, and its datapaths."""
    installed = check_tool(
        "Open vSwitch", ["ovs-vswitchd", "--version"], "openvswitch-switch", True, "the switch itself"
    )
    if installed.status != "ok":
        return [installed]
    checks = [installed]
    start = "scripts/start-ovs.sh"
    database = commands.run(
        ["ovs-vsctl", "--timeout=5", "--no-wait", "get", "Open_vSwitch", ".", "ovs_version"]
    )
    daemon = commands.run(["ovs-appctl", "--timeout=5", "-t", "ovs-vswitchd", "version"])
    if database.code != 0:
        if "ermission denied" in database.last_line:
            start = commands.as_root()
        checks.append(
            Check("Open vSwitch runs", "fail", f"its database does not answer: {database.last_line}", start)
        )
    elif daemon.code != 0:
        checks.append(
            Check("Open vSwitch runs", "fail", f"ovs-vswitchd does not answer: {daemon.last_line}", start)
        )
    else:
        checks.append(Check("Open vSwitch runs", "ok", f"database and {daemon.first_line}"))
    checks.append(check_datapath())
    return checks


def check_datapath() -> Check:
    """Which datapath bridges have here. Mininet's switches and experiments take the kernel's where it is."""
    # The userspace datapath makes its internal ports with tun devices.
    userspace = "datapath_type=netdev" if TUN_DEVICE.exists() else ""
    # The kernel is asked, and loads the module if it can, as it does for a bridge.
    if has_kernel_datapath():
        found = "kernel" + (f"; a bridge with {userspace} has the userspace one" if userspace else "")
    elif userspace:
        found = f"userspace only: the kernel has no module openvswitch, so a bridge needs {userspace}"
    else:
        found = f"no kernel module openvswitch, and no {TUN_DEVICE} for the userspace one"
        return Check("datapath", "fail", found, "modprobe openvswitch || modprobe tun")
    return Check("datapath", "ok", found)


def check_send_buffer() -> Check:
    """The userspace datapath sends for all ports through one socket. Packets that do not fit into its buffer
    are lost, and no queue counts them.
    """
    return _buffer("send buffer", WMEM_DEFAULT, MIN_SEND_BUFFER, "restart Open vSwitch")


def check_receive_buffer() -> Check:
    """The userspace datapath receives from each port through a socket; a full buffer loses packets."""
    return _buffer(
        "receive buffer", RMEM_DEFAULT, MIN_RECEIVE_BUFFER, "add the ports anew, or restart Open vSwitch"
    )


def _buffer(name: str, path: Path, enough: int, then: str) -> Check:
    try:
        size = int(path.read_text())
    except (OSError, ValueError):
        return Check(name, "warn", f"cannot read {path}", commands.as_root())
    if size < enough:
        remedy = f"sysctl -w net.core.{path.name}={enough}, then {then}"
        found = f"{size:,} bytes for a userspace switch, less than volleys take"
        return Check(name, "warn", found, remedy)
    return Check(name, "ok", f"{size:,} bytes for a userspace switch")
