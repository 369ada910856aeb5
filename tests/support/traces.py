"""Traces that tests could leave on the machine. Bridges, processes and records of others are ignored."""

import os
import subprocess
import tempfile
from pathlib import Path

from fairq_ryu.agent import status

# In the environment of every program that these tests start, and of those that these start.
MARK = "FAIRQ_TEST_RUN"


def mark_processes():
    """From now on `processes` finds what this process starts."""
    os.environ[MARK] = str(os.getpid())


def processes():
    """The command lines of all programs that this test run has started and that still run, by pid."""
    marked = f"{MARK}={os.environ[MARK]}".encode()
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if marked in (entry / "environ").read_bytes().split(b"\0"):
                words = (entry / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
                found[int(entry.name)] = b" ".join(words).decode(errors="replace")
        except OSError:
            continue  # it has ended meanwhile, or belongs to another user
    # An empty command line belongs to a process that has ended and was not waited for yet.
    return {pid: line for pid, line in found.items() if line}


def ebpf_programs():
    """The ids of the eBPF programs that this process has loaded.

    Those of an agent are kept by its process or by a filter on an interface: either would be found itself.
    """
    found = set()
    for entry in Path("/proc/self/fdinfo").iterdir():
        try:
            lines = entry.read_text().splitlines()
        except OSError:
            continue
        found |= {line.split()[1] for line in lines if line.startswith("prog_id:")}
    return found


def traces(switches):
    """The traces that tests with these switches could leave on the machine."""
    found = {f"interface {n}" for n in os.listdir("/sys/class/net") if n.rpartition("-eth")[0] in switches}
    found |= {f"bridge {name}" for name in _ovs("list-br").split() if name in switches}
    for record in _ovs("--bare", "--columns=external_ids", "list", "QoS").split():
        if record.rpartition("=")[2].strip('"') in switches:
            found.add(f"QoS {record}")
    # A browser is used by several tests, and starts and ends programs by itself.
    found |= {f"process {pid} {line}" for pid, line in processes().items() if "chrom" not in line}
    found |= {f"run file {path.name}" for path in status.run_directory().glob("*") if path.stem in switches}
    logs = Path(tempfile.gettempdir())
    found |= {f"log {path.name}" for name in switches for path in logs.glob(f"fairq-agent-{name}-*")}
    return found | {f"eBPF program {number}" for number in ebpf_programs()}


def _ovs(*words):
    return subprocess.run(["ovs-vsctl", *words], capture_output=True, text=True, check=True).stdout
