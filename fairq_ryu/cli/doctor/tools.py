"""Checks of programs, compilers and Python packages."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from fairq_ryu.cli.doctor import commands
from fairq_ryu.cli.doctor.check import Check, Status
from fairq_ryu.config import programs

MIN_PYTHON = (3, 11)


def check_python() -> Check:
    """The Python that runs this."""
    found = f"{platform.python_version()} at {sys.executable}"
    if sys.version_info[:2] < MIN_PYTHON:
        return Check("Python", "fail", f"{found}; 3.11 or newer is needed", "make setup")
    return Check("Python", "ok", found)


def check_tool(name: str, command: Sequence[str], package: str, needed: bool, use: str) -> Check:
    """One program: whether it is installed, and `command`, which prints its version, succeeds."""
    if commands.which(command[0]) is None:
        return Check(name, "fail" if needed else "warn", f"not installed; {use}", commands.install(package))
    output = commands.run(command)
    if output.code != 0:
        return Check(
            name, "fail" if needed else "warn", output.last_line, commands.install(f"--reinstall {package}")
        )
    # The line with the version, without the address that some builds print after it.
    lines = (output.text + output.errors).splitlines()
    line = next((line for line in lines if re.search(r"\d", line)), output.first_line)
    return Check(name, "ok", re.sub(r"\s*\(https?:[^)]*\)", "", line).strip())


def check_compilers() -> list[Check]:
    """The programs that compile and check the eBPF sources; they are not needed at run time."""
    own = Path(sys.executable).with_name("clang-format")
    checks = [
        check_tool("clang", ["clang", "--version"], "clang", False, "compiles the eBPF programs"),
        check_tool("llvm-strip", ["llvm-strip", "--version"], "llvm", False, "compiles the eBPF programs"),
    ]
    if own.exists() or commands.which("clang-format"):
        command = [str(own) if own.exists() else "clang-format", "--version"]
        checks.append(check_tool("clang-format", command, "clang-format", False, "make lint uses it"))
    else:
        checks.append(
            Check("clang-format", "warn", "not installed; only make lint uses it", "make setup-dev")
        )
    return checks


def check_programs() -> list[Check]:
    """All other programs that are started, and what does not work without the optional ones."""
    absent = [each for each in programs.known() if commands.which(each.name) is None]
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
            checks.append(Check(name, status, found, commands.install(" ".join(packages))))
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


def check_mininet() -> Check:
    """Mininet, which the distribution installs for its own Python."""
    if commands.which("mn") is None:
        return Check("Mininet", "fail", "not installed", commands.install("--no-install-recommends mininet"))
    if importlib.util.find_spec("mininet") is None:
        return Check(
            "Mininet", "fail", f"installed, but {sys.executable} does not see it", "make clean setup"
        )
    version = commands.run(["mn", "--version"])
    if version.code != 0:
        return Check(
            "Mininet",
            "fail",
            f"mn does not start: {version.last_line}",
            commands.install("--reinstall mininet"),
        )
    return Check("Mininet", "ok", version.last_line)


def check_ryu() -> Check:
    """Ryu's OpenFlow 1.3 parser and its app manager, imported in a separate process."""
    modules = "ryu.ofproto.ofproto_v1_3_parser, ryu.base.app_manager"
    output = commands.run([sys.executable, "-c", f"import {modules}"], timeout=30)
    if output.code != 0:
        return Check("Ryu", "fail", f"does not import: {output.last_line}", "make setup")
    for name in "c65ryu", "ryu":
        try:
            return Check("Ryu", "ok", f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return Check("Ryu", "warn", "imports, but its version is unknown", "make setup")
