"""Checks of the kernel, its eBPF, and the privileges to use them."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import struct
from pathlib import Path

from fairq_ryu.cli.doctor import commands, trial
from fairq_ryu.cli.doctor.check import Check

BTF_PATH = Path("/sys/kernel/btf/vmlinux")
BPF_DIR = Path(__file__).resolve().parents[2] / "agent" / "bpf"
LAWS_DIR = Path(__file__).resolve().parents[2] / "laws"
HOST_BPF_DIR = Path(__file__).resolve().parents[2] / "experiments" / "hostcc" / "bpf"
PROC = Path("/proc")
# The oldest kernel that fairq_ryu is run on; whether another one can is found by `trial.check_programs`.
OLDEST_RUN = (6, 1)
# Capability numbers of linux/capability.h.
NEEDED_CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}


def check_kernel() -> Check:
    """The kernel's version."""
    release = platform.release()
    version = re.match(r"(\d+)\.(\d+)", release)
    if platform.system() != "Linux" or version is None:
        return Check("kernel", "fail", f"{platform.system()} {release}", "run it on Linux")
    if (int(version[1]), int(version[2])) < OLDEST_RUN:
        oldest = ".".join(map(str, OLDEST_RUN))
        found = f"{release}; {oldest} is the oldest on which fairq_ryu has been run"
        return Check("kernel", "warn", found, "use a newer kernel if one of the checks below fails")
    return Check("kernel", "ok", release)


def check_root() -> Check:
    """Root, with the capabilities that a container may lack."""
    if os.geteuid() != 0:
        return Check("root", "fail", f"running as uid {os.geteuid()}", commands.as_root())
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
    """The kernel's type information, and the tracepoints that the eBPF programs look up in it."""
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
        remedy = "boot a kernel with CONFIG_TRACEPOINTS=y: apt-get install linux-image-amd64"
        checks.append(Check("tracepoints", "fail", f"none called {' or '.join(missing)}", remedy))
    else:
        checks.append(Check("tracepoints", "ok", " and ".join(wanted)))
    return checks


def check_host_controls() -> Check:
    """The TCP congestion controls that `fairq run` loads: the kernel registers them by links, since 6.4."""
    name = "host TCP"
    objects = sorted(HOST_BPF_DIR.glob("*.bpf.c"))
    names = ", ".join(path.name.removesuffix(".bpf.c") for path in objects)
    lost = f"experiments have no {names} unless the kernel has its own"
    try:
        strings = btf_strings(BTF_PATH)
    except (OSError, ValueError):
        return Check(name, "warn", f"no kernel BTF: {lost}", "boot a kernel with CONFIG_DEBUG_INFO_BTF=y")
    types = ("bpf_struct_ops_tcp_congestion_ops", "bpf_struct_ops_link")
    missing = [each for each in types if b"\0%s\0" % each.encode() not in strings]
    if missing:
        remedy = "boot a kernel of 6.4 or newer with CONFIG_BPF_JIT=y"
        return Check(name, "warn", f"the kernel has no {' and no '.join(missing)}: {lost}", remedy)
    absent = [path.name for path in objects if not path.with_suffix(".o").exists()]
    if absent:
        return Check(name, "warn", f"not compiled: {', '.join(absent)}; {lost}", "make bpf")
    if os.geteuid() != 0:
        return Check(name, "warn", "cannot be tried without root", commands.as_root())
    faults = trial.run("fairq_ryu.experiments.hostcc.trial")
    refused = [f"{each}: {fault}" for each, fault in faults.items() if fault]
    if refused:
        found = (
            f"the kernel refuses {'; '.join(refused)}; experiments have its own instead, where it has them"
        )
        return Check(name, "warn", found, "boot another kernel")
    return Check(name, "ok", f"{names} load for experiments")


def check_libbpf() -> Check:
    """The libbpf with which the agent loads its programs."""
    library = None
    for soname in "libbpf.so.1", "libbpf.so.0":
        try:
            library = ctypes.CDLL(soname, use_errno=True)
            break
        except OSError:
            continue
    if library is None:
        return Check("libbpf", "fail", "neither libbpf.so.1 nor libbpf.so.0", commands.install("libbpf-dev"))
    version = "version unknown (before 0.6)"
    if hasattr(library, "libbpf_version_string"):
        library.libbpf_version_string.restype = ctypes.c_char_p
        version = library.libbpf_version_string().decode()
    return Check("libbpf", "ok", f"{soname}, {version}")


def in_checkout() -> bool:
    """Whether this runs from a checkout. An installed package has no eBPF sources."""
    return any(BPF_DIR.glob("*.bpf.c"))


def check_bpf_objects() -> Check:
    """The compiled eBPF programs."""
    sources = sorted(BPF_DIR.glob("*.bpf.c"))
    objects = sorted(BPF_DIR.glob("*.bpf.o"))
    missing = [source.name for source in sources if source.with_suffix(".o") not in objects]
    if missing or not objects:
        return Check("eBPF objects", "fail", f"not compiled: {', '.join(missing) or BPF_DIR}", "make bpf")
    if not sources:  # an installed package has the objects only, and dates in any order
        return Check("eBPF objects", "ok", ", ".join(path.name for path in objects))
    headers = [path for folder in (BPF_DIR, LAWS_DIR) for path in folder.rglob("*.[ch]")]
    newest = max((path.stat().st_mtime for path in headers), default=0.0)
    if any(path.stat().st_mtime < newest for path in objects):
        return Check("eBPF objects", "warn", "older than their sources", "make bpf")
    return Check("eBPF objects", "ok", ", ".join(path.name for path in objects))
