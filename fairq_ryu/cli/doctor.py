"""`fairq doctor`: what this machine has and lacks for running fairq_ryu, each lack with its remedy.

It has to work where other things do not, so it imports the standard library only, changes nothing on the
machine, and turns every surprise into a failed check instead of a traceback.
"""

from __future__ import annotations

import ctypes
import errno
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from fairq_ryu.agent import peers
from fairq_ryu.config import programs

Status = Literal["ok", "warn", "fail"]

BTF_PATH = Path("/sys/kernel/btf/vmlinux")
BPF_DIR = Path(__file__).resolve().parents[1] / "agent" / "bpf"
PROC = Path("/proc")
SYS_MODULE = Path("/sys/module")
# What scripts/start-ovs.sh sets before it starts Open vSwitch.
ROOM_TO_SEND = 4 << 20
ROOM_TO_HEAR = 1 << 20
WMEM_DEFAULT = Path("/proc/sys/net/core/wmem_default")
RMEM_DEFAULT = Path("/proc/sys/net/core/rmem_default")
TUN_DEVICE = Path("/dev/net/tun")
CONTROLLER_ADDRESS = ("127.0.0.1", 6653)

MIN_PYTHON = (3, 11)
# The first kernel with the tracepoint qdisc_enqueue.
MIN_KERNEL = (5, 15)

# Half of the tools are in sbin, which is not on a plain user's PATH.
SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")

# Capability numbers of linux/capability.h.
NEEDED_CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}

# Program types of linux/bpf.h to ask for. The agent's tracing programs are of another type (26), which
# libbpf 1.1 wrongly finds missing on newer kernels; raw tracepoints take the same privileges.
NEEDED_PROGRAM_TYPES = {"tc classifier": 3, "raw tracepoint": 17}

# What an experiment's shallow port needs, tried on a veth pair. `unshare -n` gives it a network namespace
# that the kernel removes together with the process, so nothing can be left behind, however this ends.
SANDBOX_SCRIPT = """
try() {
    name=$1; shift
    if why=$("$@" 2>&1); then echo "$name=ok"; else echo "$name="$why; fi
}
try veth ip link add fqd0 type veth peer name fqd1
try up ip link set fqd0 up
try htb tc qdisc add dev fqd0 root handle 1: htb default 1
try class tc class add dev fqd0 parent 1: classid 1:1 htb rate 200mbit burst 3k cburst 3k
try bfifo tc qdisc add dev fqd0 parent 1:1 handle 10: bfifo limit 125000
try clsact tc qdisc add dev fqd0 clsact
try ethtool ethtool -K fqd0 tso off gso off gro off tx off
"""


@dataclass(frozen=True)
class Check:
    """The outcome of one check. `remedy` is one command or, with none to give, one step; empty when ok.

    `fail` means that fairq_ryu cannot run here, `warn` that something optional is missing or odd.
    """

    name: str
    status: Status
    found: str
    remedy: str = ""


@dataclass(frozen=True)
class Output:
    """What a command gave: `code` is its exit status, 127 if it is not there and 124 if it took too long."""

    code: int
    text: str

    @property
    def first_line(self) -> str:
        """The first line that is not blank, or nothing."""
        return next((line.strip() for line in self.text.splitlines() if line.strip()), "")

    @property
    def last_line(self) -> str:
        """The last line that is not blank, or nothing: where programs put their error."""
        return next((line.strip() for line in reversed(self.text.splitlines()) if line.strip()), "")


def search_path() -> str:
    """PATH with the sbin directories behind it."""
    return os.pathsep.join([os.environ.get("PATH", ""), *SBIN])


def which(command: str) -> str | None:
    """The full path of a command, looked for in the sbin directories too."""
    return shutil.which(command, path=search_path())


def run(command: Sequence[str], timeout: float = 10.0) -> Output:
    """Run a command (`timeout` in seconds); its stdout and stderr together. Raises nothing."""
    try:
        done = subprocess.run(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PATH": search_path(), "LC_ALL": "C"},
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Output(124, f"{command[0]} did not finish within {timeout:g} s")
    except OSError as error:
        return Output(127, f"{command[0]}: {error.strerror or error}")
    return Output(done.returncode, done.stdout.decode(errors="replace"))


def install(package: str) -> str:
    """The remedy for a missing Debian package."""
    return f"apt-get install {package}"


def as_root() -> str:
    """The remedy for missing root: this command again, the right way."""
    return f"sudo {Path(sys.executable).with_name('fairq')} doctor"


# --- the kernel -------------------------------------------------------------------------------


def check_python() -> Check:
    """The Python this runs in."""
    found = f"{platform.python_version()} at {sys.executable}"
    if sys.version_info[:2] < MIN_PYTHON:
        return Check("Python", "fail", f"{found}; 3.11 or newer is needed", "make setup")
    return Check("Python", "ok", found)


def check_kernel() -> Check:
    """The kernel's version."""
    release = platform.release()
    version = re.match(r"(\d+)\.(\d+)", release)
    if platform.system() != "Linux" or version is None:
        return Check("kernel", "fail", f"{platform.system()} {release}", "run it on Linux 5.15 or newer")
    if (int(version[1]), int(version[2])) < MIN_KERNEL:
        return Check(
            "kernel", "fail", f"{release}; 5.15 is the oldest with the tracepoints", "apt-get dist-upgrade"
        )
    return Check("kernel", "ok", release)


def check_root() -> Check:
    """Root, with the capabilities that a container may have taken away."""
    if os.geteuid() != 0:
        return Check("root", "fail", f"running as uid {os.geteuid()}", as_root())
    effective = re.search(r"^CapEff:\s*([0-9a-fA-F]+)$", (PROC / "self/status").read_text(), re.MULTILINE)
    mask = int(effective[1], 16) if effective else 0
    lacking = [name for name, bit in NEEDED_CAPABILITIES.items() if not mask >> bit & 1]
    if lacking:
        return Check("root", "fail", f"root without {', '.join(lacking)}", "docker run --privileged ...")
    return Check("root", "ok", "yes, with " + " and ".join(NEEDED_CAPABILITIES))


def btf_strings(path: Path) -> bytes:
    """The string section of a BTF file: names with a zero byte before and after each.

    Raises OSError when it cannot be read and ValueError when it is not BTF.
    """
    data = path.read_bytes()
    for order in "<", ">":
        if len(data) >= 24:
            magic, _version, _flags, header, _type_at, _type_len, start, length = struct.unpack_from(
                order + "HBBIIIII", data
            )
            if magic == 0xEB9F:
                return data[header + start : header + start + length]
    raise ValueError(f"{path} is not BTF")


def check_btf() -> list[Check]:
    """The kernel's type information, and what the eBPF programs look up in it."""
    try:
        strings = btf_strings(BTF_PATH)
    except FileNotFoundError:
        remedy = "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y: apt-get install linux-image-amd64"
        return [Check("kernel BTF", "fail", f"no {BTF_PATH}", remedy)]
    except (OSError, ValueError) as error:
        return [Check("kernel BTF", "fail", str(error), f"sudo head -c 2 {BTF_PATH} | xxd")]
    checks = [Check("kernel BTF", "ok", f"{BTF_PATH}, {len(strings):,} bytes of names")]
    wanted = ["qdisc_enqueue", "qdisc_dequeue"]
    missing = [name for name in wanted if b"\0btf_trace_%s\0" % name.encode() not in strings]
    if missing:
        remedy = "boot a kernel of 5.15 or newer with CONFIG_TRACEPOINTS=y: apt-get install linux-image-amd64"
        checks.append(Check("tracepoints", "fail", f"none called {' or '.join(missing)}", remedy))
    else:
        checks.append(Check("tracepoints", "ok", " and ".join(wanted)))
    return checks


def check_libbpf() -> list[Check]:
    """The libbpf that the agent loads its programs with, and whether the kernel lets it."""
    library = None
    for soname in "libbpf.so.1", "libbpf.so.0":
        try:
            library = ctypes.CDLL(soname, use_errno=True)
            break
        except OSError:
            continue
    if library is None:
        return [Check("libbpf", "fail", "neither libbpf.so.1 nor libbpf.so.0", install("libbpf-dev"))]
    version = "version unknown (before 0.6)"
    if hasattr(library, "libbpf_version_string"):
        library.libbpf_version_string.restype = ctypes.c_char_p
        version = library.libbpf_version_string().decode()
    checks = [Check("libbpf", "ok", f"{soname}, {version}")]
    # Older libraries cannot be asked, and without root the answer is known.
    if hasattr(library, "libbpf_probe_bpf_prog_type") and os.geteuid() == 0:
        # The probe reports what the kernel refuses by printing it.
        library.libbpf_set_print(None)
        refused = [
            name
            for name, kind in NEEDED_PROGRAM_TYPES.items()
            if library.libbpf_probe_bpf_prog_type(kind, None) != 1
        ]
        if refused:
            found = f"the kernel does not load {' and '.join(refused)} programs"
            checks.append(Check("eBPF loading", "fail", found, "docker run --privileged ..."))
        else:
            checks.append(Check("eBPF loading", "ok", " and ".join(NEEDED_PROGRAM_TYPES) + " programs"))
    return checks


def check_bpf_objects() -> Check:
    """The compiled eBPF programs."""
    sources = sorted(BPF_DIR.glob("*.bpf.c"))
    objects = sorted(BPF_DIR.glob("*.bpf.o"))
    missing = [source.name for source in sources if source.with_suffix(".o") not in objects]
    if missing or not objects:
        return Check("eBPF objects", "fail", f"not compiled: {', '.join(missing) or BPF_DIR}", "make bpf")
    newest = max((path.stat().st_mtime for path in BPF_DIR.glob("*.[ch]")), default=0.0)
    if any(path.stat().st_mtime < newest for path in objects):
        return Check("eBPF objects", "warn", "older than their sources", "make bpf")
    return Check("eBPF objects", "ok", ", ".join(path.name for path in objects))


# --- tools ------------------------------------------------------------------------------------


def check_tool(name: str, command: Sequence[str], package: str, needed: bool, use: str) -> Check:
    """One program: there, and answering `command` (which asks for its version)."""
    if which(command[0]) is None:
        return Check(name, "fail" if needed else "warn", f"not installed; {use}", install(package))
    output = run(command)
    if output.code != 0:
        return Check(name, "fail" if needed else "warn", output.last_line, install(f"--reinstall {package}"))
    # The line with the version, without the address that some builds print behind it.
    line = next((line for line in output.text.splitlines() if re.search(r"\d", line)), output.first_line)
    return Check(name, "ok", re.sub(r"\s*\(https?:[^)]*\)", "", line).strip())


def check_compilers() -> list[Check]:
    """What compiling and checking the eBPF sources takes; running takes none of it."""
    own = Path(sys.executable).with_name("clang-format")
    checks = [
        check_tool("clang", ["clang", "--version"], "clang", False, "compiles the eBPF programs"),
        check_tool("llvm-strip", ["llvm-strip", "--version"], "llvm", False, "compiles the eBPF programs"),
    ]
    if own.exists() or which("clang-format"):
        command = [str(own) if own.exists() else "clang-format", "--version"]
        checks.append(check_tool("clang-format", command, "clang-format", False, "make lint uses it"))
    else:
        checks.append(
            Check("clang-format", "warn", "not installed; only make lint uses it", "make setup-dev")
        )
    return checks


def check_programs() -> list[Check]:
    """Every other program that is started, and what is lost without those that are optional."""
    absent = [each for each in programs.known() if which(each.name) is None]
    kinds: tuple[tuple[str, Status, tuple[programs.Purpose, ...]], ...] = (
        ("programs to run", "fail", ("run", "system")),
        ("programs to build", "warn", ("build",)),
    )
    checks = []
    for name, status, purposes in kinds:
        lacking = [each for each in absent if each.purpose in purposes]
        if lacking:
            found = "not installed: " + ", ".join(each.name for each in lacking)
            packages = sorted({each.package for each in lacking})
            checks.append(Check(name, status, found, install(" ".join(packages))))
    lost = "; ".join(f"without {each.name}: {each.use}" for each in absent if each.purpose == "optional")
    found = f"{len(programs.known()) - len(absent)} of {len(programs.known())}"
    checks.append(Check("programs", "ok", f"{found}; {lost}" if lost else found))
    return checks


def check_network_tools() -> list[Check]:
    """The programs that set up and observe hosts and ports."""
    return [
        check_tool("ip", ["ip", "-V"], "iproute2", True, "sets up hosts and ports"),
        check_tool("tc", ["tc", "-V"], "iproute2", True, "sets up shallow ports"),
        check_tool("ping", ["ping", "-V"], "iputils-ping", True, "Mininet and experiments use it"),
        check_tool("ethtool", ["ethtool", "--version"], "ethtool", True, "switches offloads off"),
    ]


def check_ports() -> list[Check]:
    """A shallow port and its offloads, tried for real in a network namespace of its own."""
    if os.geteuid() != 0:
        return [Check("qdiscs", "fail", "cannot be tried without root", as_root())]
    if which("unshare") is None:
        return [Check("qdiscs", "fail", "unshare is not installed", install("util-linux"))]
    output = run(["unshare", "-n", "--", "sh", "-c", SANDBOX_SCRIPT], timeout=20)
    results = dict(line.split("=", 1) for line in output.text.splitlines() if "=" in line)
    if results.get("veth", "") != "ok" or results.get("up") != "ok":
        why = results.get("veth", "") if results.get("veth") != "ok" else results.get("up", "")
        found = f"no veth pair in a network namespace: {why or output.last_line}"
        return [Check("qdiscs", "fail", found, "modprobe veth")]
    bad = {
        name: results.get(name, "no answer")
        for name in ("htb", "class", "bfifo", "clsact")
        if results.get(name) != "ok"
    }
    if bad:
        first = next(iter(bad))
        module = {"htb": "sch_htb", "class": "sch_htb", "bfifo": "sch_fifo", "clsact": "sch_ingress"}[first]
        found = "; ".join(f"{name}: {why.strip()}" for name, why in bad.items())
        checks = [Check("qdiscs", "fail", found, f"modprobe {module}")]
    else:
        checks = [Check("qdiscs", "ok", "htb, bfifo and clsact work")]
    offloads = results.get("ethtool", "no answer").strip()
    if offloads == "ok":
        checks.append(Check("port offloads", "ok", "tso, gso, gro and tx checksums can be switched off"))
    else:
        checks.append(Check("port offloads", "fail", offloads, install("ethtool")))
    return checks


def check_hosts() -> list[Check]:
    """Hosts behind bridges of the userspace datapath, by their veth pairs: do they finish their checksums?"""
    if os.geteuid() != 0 or which("ovs-vsctl") is None:
        return []
    asked = ["ovs-vsctl", "--timeout=5", "--bare", "--columns=name", "find", "Bridge", "datapath_type=netdev"]
    bridges = run(asked)
    checks = []
    for bridge in bridges.text.split() if bridges.code == 0 else []:
        names = run(["ovs-vsctl", "--timeout=5", "list-ifaces", bridge]).text.split()
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


# --- Open vSwitch, Mininet, Ryu ---------------------------------------------------------------


def kernel_datapath() -> str:
    """How Open vSwitch's kernel datapath can be had here; empty if it cannot."""
    if (SYS_MODULE / "openvswitch").exists():
        return "kernel"
    if which("modprobe") and run(["modprobe", "--dry-run", "--quiet", "openvswitch"]).code == 0:
        return "kernel (the module loads when needed)"
    # Built into the kernel it may show up nowhere else.
    if which("ovs-dpctl") and run(["ovs-dpctl", "--timeout=5", "dump-dps"]).code == 0:
        return "kernel"
    return ""


def check_ovs() -> list[Check]:
    """Open vSwitch: installed, running, and with which datapaths."""
    installed = check_tool(
        "Open vSwitch", ["ovs-vswitchd", "--version"], "openvswitch-switch", True, "the switch itself"
    )
    if installed.status != "ok":
        return [installed]
    checks = [installed]
    start = "scripts/start-ovs.sh"
    database = run(["ovs-vsctl", "--timeout=5", "--no-wait", "get", "Open_vSwitch", ".", "ovs_version"])
    daemon = run(["ovs-appctl", "--timeout=5", "-t", "ovs-vswitchd", "version"])
    if database.code != 0:
        if "ermission denied" in database.text:
            start = as_root()
        checks.append(
            Check("Open vSwitch runs", "fail", f"its database does not answer: {database.last_line}", start)
        )
    elif daemon.code != 0:
        checks.append(
            Check("Open vSwitch runs", "fail", f"ovs-vswitchd does not answer: {daemon.last_line}", start)
        )
    else:
        checks.append(Check("Open vSwitch runs", "ok", f"database and {daemon.first_line}"))
    # The userspace datapath makes its internal ports with tun devices.
    kinds = [
        kind for kind in (kernel_datapath(), "userspace (netdev)" if TUN_DEVICE.exists() else "") if kind
    ]
    if kinds:
        checks.append(Check("datapaths", "ok", " and ".join(kinds)))
    else:
        found = f"no kernel module openvswitch, and no {TUN_DEVICE} for the userspace one"
        checks.append(Check("datapaths", "fail", found, "modprobe openvswitch || modprobe tun"))
    return checks


def check_room_to_send() -> Check:
    """The userspace datapath sends for all ports through one socket; what that does not hold is lost where no
    queue counts it.
    """
    return _room("room to send", WMEM_DEFAULT, ROOM_TO_SEND, "restart Open vSwitch")


def check_room_to_hear() -> Check:
    """It hears each port through a socket of its own, and loses what comes by a link while it is busy."""
    return _room("room to hear", RMEM_DEFAULT, ROOM_TO_HEAR, "add the ports anew, or restart Open vSwitch")


def _room(name: str, path: Path, enough: int, then: str) -> Check:
    try:
        room = int(path.read_text())
    except (OSError, ValueError):
        return Check(name, "warn", f"cannot read {path}", as_root())
    if room < enough:
        remedy = f"sysctl -w net.core.{path.name}={enough}, then {then}"
        found = f"{room:,} bytes for a userspace switch, less than volleys take"
        return Check(name, "warn", found, remedy)
    return Check(name, "ok", f"{room:,} bytes for a userspace switch")


def check_mininet() -> Check:
    """Mininet, which the distribution installs for its own Python."""
    if which("mn") is None:
        return Check("Mininet", "fail", "not installed", install("--no-install-recommends mininet"))
    if importlib.util.find_spec("mininet") is None:
        return Check(
            "Mininet", "fail", f"installed, but {sys.executable} does not see it", "make clean setup"
        )
    version = run(["mn", "--version"])
    if version.code != 0:
        return Check(
            "Mininet", "fail", f"mn does not start: {version.last_line}", install("--reinstall mininet")
        )
    return Check("Mininet", "ok", version.last_line)


def check_ryu() -> Check:
    """Ryu's OpenFlow 1.3 parser and its app manager, imported in a process of their own."""
    modules = "ryu.ofproto.ofproto_v1_3_parser, ryu.base.app_manager"
    output = run([sys.executable, "-c", f"import {modules}"], timeout=30)
    if output.code != 0:
        return Check("Ryu", "fail", f"does not import: {output.last_line}", "make setup")
    for name in "c65ryu", "ryu":
        try:
            return Check("Ryu", "ok", f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return Check("Ryu", "warn", "imports, but its version is unknown", "make setup")


# --- hosts ------------------------------------------------------------------------------------


def check_congestion_control() -> Check:
    """The TCP congestion controls of this kernel; experiments name theirs, cubic unless told otherwise."""
    name = "congestion control"
    settings = PROC / "sys/net/ipv4"
    available = (settings / "tcp_available_congestion_control").read_text().split()
    default = (settings / "tcp_congestion_control").read_text().strip()
    found = f"{', '.join(available)}; {default} by default"
    if "cubic" not in available:
        return Check(name, "fail", f"no cubic: {found}", "modprobe tcp_cubic")
    return Check(name, "ok", found)


def check_controller_port() -> Check:
    """The controller's usual port: a warning at most, since it is rightly taken while a controller runs."""
    host, port = CONTROLLER_ADDRESS
    name = f"port {port}"
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: connections in TIME_WAIT do not make it busy.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return Check(name, "warn", f"{host}:{port} is in use", f"ss -ltnp 'sport = :{port}'")
    return Check(name, "ok", f"{host}:{port} is free")


# --- all of it --------------------------------------------------------------------------------

CHECKS: tuple[tuple[str, Callable[[], Check | Iterable[Check]]], ...] = (
    ("Python", check_python),
    ("kernel", check_kernel),
    ("root", check_root),
    ("kernel BTF", check_btf),
    ("libbpf", check_libbpf),
    ("eBPF objects", check_bpf_objects),
    ("compilers", check_compilers),
    ("Open vSwitch", check_ovs),
    ("room to send", check_room_to_send),
    ("room to hear", check_room_to_hear),
    ("Mininet", check_mininet),
    ("Ryu", check_ryu),
    ("network tools", check_network_tools),
    ("programs", check_programs),
    ("qdiscs", check_ports),
    ("hosts of bridges", check_hosts),
    ("congestion control", check_congestion_control),
    ("controller port", check_controller_port),
)


def run_checks() -> list[Check]:
    """Every check, in the order in which to mend things. Takes a few seconds; raises nothing."""
    checks: list[Check] = []
    for name, check in CHECKS:
        try:
            outcome = check()
        except Exception as error:  # a check that breaks must not hide the others
            outcome = Check(
                name, "fail", f"could not be checked: {error or type(error).__name__}", "make setup"
            )
        checks.extend([outcome] if isinstance(outcome, Check) else outcome)
    return checks


def print_plain(checks: Sequence[Check]) -> None:
    """The table without rich."""
    width = max((len(check.name) for check in checks), default=0)
    for check in checks:
        print(f"{check.status:<4}  {check.name:<{width}}  {check.found}")
        if check.remedy:
            print(f"{'':4}  {'':{width}}  -> {check.remedy}")


def print_table(checks: Sequence[Check]) -> None:
    """The table for people, on stdout."""
    try:
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        print_plain(checks)
        return
    colours = {"ok": "green", "warn": "yellow", "fail": "bold red"}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in "check", "", "found":
        table.add_column(heading, overflow="fold")
    for check in checks:
        # Text, not markup: what was found may hold square brackets.
        found = Text(check.found)
        if check.remedy:
            found.append(f"\n-> {check.remedy}", style=colours[check.status])
        table.add_row(Text(check.name), Text(check.status, style=colours[check.status]), found)
    Console().print(table)


def main(json_output: bool = False) -> int:
    """Check, print a table (or one JSON object) on stdout; 1 if fairq_ryu cannot run here, else 0."""
    checks = run_checks()
    failed = [check.name for check in checks if check.status == "fail"]
    if json_output:
        print(json.dumps({"ok": not failed, "checks": [asdict(check) for check in checks]}, indent=2))
        return 1 if failed else 0
    print_table(checks)
    if failed:
        advice = "Start with root." if "root" in failed else "`make setup` corrects most of it."
        print(f"fairq_ryu cannot run here: {', '.join(failed)}. {advice}")
        return 1
    print("fairq_ryu can run here.")
    return 0


if __name__ == "__main__":
    sys.exit(main("--json" in sys.argv[1:]))
