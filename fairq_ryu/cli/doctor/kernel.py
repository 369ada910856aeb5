"""Checks of the kernel, its eBPF, and the privileges to use them."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import struct
from pathlib import Path

from fairq_ryu.cli.doctor import commands
from fairq_ryu.cli.doctor.check import Check

BTF_PATH = Path("/sys/kernel/btf/vmlinux")
BPF_DIR = Path(__file__).resolve().parents[2] / "agent" / "bpf"
HOST_BPF_DIR = Path(__file__).resolve().parents[2] / "experiments" / "hostcc" / "bpf"
PROC = Path("/proc")
# The first kernel with the tracepoint qdisc_enqueue.
MIN_KERNEL = (5, 15)
# Capability numbers of linux/capability.h.
NEEDED_CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}
# Program types of linux/bpf.h to ask for. The agent's tracing programs are of another type (26), which
# libbpf 1.1 wrongly finds missing on newer kernels; raw tracepoints take the same privileges.
NEEDED_PROGRAM_TYPES = {"tc classifier": 3, "raw tracepoint": 17}


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
        remedy = "boot a kernel of 5.15 or newer with CONFIG_TRACEPOINTS=y: apt-get install linux-image-amd64"
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
    return Check(name, "ok", f"{names} can be loaded for experiments")


def check_libbpf() -> list[Check]:
    """The libbpf with which the agent loads its programs, and whether the kernel accepts them."""
    library = None
    for soname in "libbpf.so.1", "libbpf.so.0":
        try:
            library = ctypes.CDLL(soname, use_errno=True)
            break
        except OSError:
            continue
    if library is None:
        return [
            Check("libbpf", "fail", "neither libbpf.so.1 nor libbpf.so.0", commands.install("libbpf-dev"))
        ]
    version = "version unknown (before 0.6)"
    if hasattr(library, "libbpf_version_string"):
        library.libbpf_version_string.restype = ctypes.c_char_p
        version = library.libbpf_version_string().decode()
    checks = [Check("libbpf", "ok", f"{soname}, {version}")]
    # Older libraries have no probe, and without root it always fails.
    if hasattr(library, "libbpf_probe_bpf_prog_type") and os.geteuid() == 0:
        # The probe would print what the kernel refuses.
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
    newest = max((path.stat().st_mtime for path in BPF_DIR.rglob("*.[ch]")), default=0.0)
    if any(path.stat().st_mtime < newest for path in objects):
        return Check("eBPF objects", "warn", "older than their sources", "make bpf")
    return Check("eBPF objects", "ok", ", ".join(path.name for path in objects))
