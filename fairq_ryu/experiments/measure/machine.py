"""Checks the machine before an experiment starts, and records its properties in the result."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fairq_ryu import __version__
from fairq_ryu.config import loader, programs
from fairq_ryu.errors import UserError, all_of
from fairq_ryu.experiments import kernel_kinds
from fairq_ryu.experiments.baselines import BASELINES
from fairq_ryu.experiments.hostcc import controls
from fairq_ryu.experiments.settings import Scenario
from fairq_ryu.experiments.traffic.workers import REPOSITORY
from fairq_ryu.experiments.variants import Variant
from fairq_ryu.policies.base import app_of as own_app
from mininet_topos.commands import CommandError, has_kernel_datapath, run
from mininet_topos.patience import patient
from mininet_topos.qdiscs import WIRE

BARE = "bare"
"""The pseudo-policy without controller and agent, with one NORMAL rule: it shows the cost of the others."""
DROPTAIL = "droptail"
"""The policy that never installs windows, with controller and agent as with other policies."""

GENERIC_APP = "fairq_ryu.apps.policy"
"""The app that runs the policy of the configuration."""


def known_policies() -> list[str]:
    """Names accepted by ``--policy``: those with an entry point that an app can run, baselines, `BARE`."""
    apps = _apps()
    return [*sorted([*apps, *(name for name, each in BASELINES.items() if each.policy in apps)]), BARE]


def app_of(policy: str) -> str:
    """The app that ryu-manager loads for a known policy: its own, or `GENERIC_APP`."""
    return _apps()[policy]


def _apps() -> dict[str, str]:
    """The app of each policy. Policies of other packages have no app here, even if the names are equal."""
    found: dict[str, str] = {}
    for each in importlib.metadata.entry_points(group="fairq_ryu.policies"):
        ours = each.value.startswith("fairq_ryu.")
        app = own_app(each.name)
        if not (ours and _exists(app)):
            app = GENERIC_APP
        if _exists(app) and (ours or each.name not in found):
            found[each.name] = app
    if _exists(own_app(DROPTAIL)):
        found[DROPTAIL] = own_app(DROPTAIL)
    return found


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def check_loops(scenario: Scenario, variants: Sequence[Variant]) -> None:
    """``UserError`` for `BARE` on a network with loops, in which its switches would flood for ever."""
    if BARE in {each.base for each in variants} and scenario.plan.loops:
        raise UserError(
            f"policy {BARE!r} cannot run on topology {scenario.topology!r}: it has loops,"
            " and switches without a controller flood for ever",
            "choose another policy or topology",
        )


def check_controls(scenario: Scenario, variants: Sequence[Variant]) -> None:
    """``UserError`` when hosts cannot have the TCP congestion controls of the scenario and the baselines."""
    found = [each.baseline for each in variants]
    controls.check(
        {name for each in found for name in each.applied(scenario).controls},
        {name for each in found if each.kernel_control for name in each.applied(scenario).controls},
    )


def check_memory(scenario: Scenario, variants: Sequence[Variant]) -> None:
    """``UserError`` when ports are to share a memory and nothing here can do that."""
    shared = any(each.baseline.applied(scenario).shared_buffer for each in variants)
    if shared and (scenario.batch_loss or has_kernel_datapath()):
        raise UserError(
            "ports share a memory only with Open vSwitch's userspace datapath, and without batch_loss",
            "leave shared_buffer and droptail-shared out",
        )


def check_qdiscs(scenario: Scenario, variants: Sequence[Variant], config_file: Path | None) -> None:
    """``UserError`` when the machine cannot make the qdiscs of the kernel that some policies have, with all
    that are missing.
    """
    if has_kernel_datapath() and _refused({"hosts": WIRE}):
        raise UserError(
            "on Open vSwitch's kernel datapath, TCP of hosts in one machine feels the queues of switches,"
            f" as on no real network, and {kernel_kinds.missing('netem')}, which prevents it",
            "install the package with all modules of the kernel (linux-modules-extra-...)",
        )
    qdiscs = {each.name: found for each in variants if (found := each.baseline.qdisc) is not None}
    if not qdiscs:
        return
    config = loader.load([] if config_file is None else [config_file])
    wanted = {
        each.name: each.baseline.qdisc.at(
            scenario.rate_mbit, scenario.buffer_bytes, each.applied(config)
        ).arguments
        for each in variants
        if each.baseline.qdisc is not None
    }
    if reasons := _refused(wanted):
        option = {name: kernel_kinds.option(qdiscs[name].kind) for name in reasons}
        raise all_of(
            [
                UserError(
                    f"policy {name!r} cannot run: {reason}",
                    f"boot a kernel with {option[name]}, or leave it out",
                )
                for name, reason in reasons.items()
            ]
        )
    if not has_kernel_datapath():
        raise UserError(
            f"policy {next(iter(qdiscs))!r} needs Open vSwitch's kernel datapath: in user space, Open vSwitch"
            " loses other packets than those that a qdisc drops",
            "`modprobe openvswitch`, or leave it out",
        )


def _refused(wanted: Mapping[str, str]) -> dict[str, str]:
    """As :func:`kernel_kinds.refused`. Raises ``UserError`` where no network namespace can be made."""
    try:
        return kernel_kinds.refused(wanted)
    except OSError as error:
        raise UserError(f"no network namespace can be made: {error}", "run it as root") from None


def check_machine(switches: Sequence[str]) -> None:
    """``UserError`` when this machine cannot run a scenario now; ``switches``: bridges to be created."""
    if os.geteuid() != 0:
        raise UserError("network namespaces and Open vSwitch need root", "run it with sudo")
    try:
        patient(1.0)
    except ValueError as error:
        raise UserError(str(error), "correct or unset it") from None
    for program in programs.needed("run"):
        if shutil.which(program.name) is None:
            raise UserError(
                f"{program.name} is not installed", f"run `make setup`, or install {program.package}"
            )
    if importlib.util.find_spec("mininet") is None:
        raise UserError("this Python does not have Mininet", "run `make setup`, and use .venv/bin/fairq")
    try:
        run(["mnexec", "-n", "true"])
    except CommandError as error:
        raise UserError(
            f"network namespaces cannot be made here: {error}", programs.WITHOUT_NAMESPACES
        ) from None
    for question in (["ovs-vsctl", "--timeout=5", "show"], ["ovs-appctl", "--timeout=5", "version"]):
        try:
            run(question)
        except CommandError:
            raise UserError(
                "Open vSwitch is not running",
                "`systemctl start openvswitch-switch`, or without systemd"
                " `/usr/share/openvswitch/scripts/ovs-ctl start --system-id=random`",
            ) from None
    for name in switches:
        _check_free(name)


def _check_free(switch: str) -> None:
    """``UserError`` if the name is in use, unless it is of a bridge that a killed run has left behind (see
    `FairQSwitch`).
    """
    from mininet_topos.switch import SwitchError, refuse_foreign_bridge

    try:
        refuse_foreign_bridge(switch)
    except SwitchError as error:
        message, _, remedy = str(error).partition(": ")
        raise UserError(message, remedy) from None
    taken = [each.name for each in Path("/sys/class/net").iterdir() if each.name.startswith(f"{switch}-eth")]
    if taken:
        raise UserError(
            f"interface {sorted(taken)[0]} exists already",
            "end the Mininet that uses it, or remove it with `ip link del`",
        )


def check_directory(out: Path) -> None:
    """Create the directory for results. ``UserError`` when it cannot be created or written."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out) as file:
            file.write(bytes(1 << 20))  # no run needs less
            file.flush()
    except OSError as error:
        raise UserError(f"cannot write to {out}: {error.strerror}", "give another --out DIR") from None


def find_program(name: str) -> str:
    """A program of this project's environment. ``UserError`` when it is not installed."""
    for directory in (Path(sys.executable).parent, REPOSITORY / ".venv" / "bin"):
        if (directory / name).is_file():
            return str(directory / name)
    found = shutil.which(name)
    if found is None:
        raise UserError(f"{name} is not installed", "run `make setup`")
    return found


def metadata(
    scenario_name: str,
    overrides: dict[str, str],
    variants: Sequence[Variant],
    config_file: Path | None,
    config_files: Iterable[Path],
) -> dict[str, Any]:
    """The data needed to repeat the run and to compare it with others. ``config_file``: the user's;
    ``config_files``: all files with which controllers were started, without those of variants.
    """
    return {
        **origin(scenario_name, overrides, config_file, config_files),
        "variants": {each.name: each.written for each in variants if each.settings},
        "changed": {each.name: found for each in variants if (found := each.baseline.changes)},
        "open_vswitch": _first_line(["ovs-vsctl", "--version"]).split()[-1],
        "datapath": "kernel" if has_kernel_datapath() else "userspace",
        "mininet": _mininet_version(),
        "ryu": _package("c65ryu") or _package("ryu"),
    }


def origin(
    scenario_name: str, overrides: dict[str, str], config_file: Path | None, config_files: Iterable[Path]
) -> dict[str, Any]:
    """The part of :func:`metadata` that needs no network: sources, settings, system."""
    status, changes = _git("status", "--porcelain"), _git("diff", "HEAD")
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "project_version": __version__,
        "git_commit": commit(),
        "git_dirty": None if status is None else bool(status),
        "git_changes": hashlib.sha256(changes.encode()).hexdigest()[:12] if changes else "",
        "scenario_name": scenario_name,
        "overrides": overrides,
        "policy_config": config_file.read_text() if config_file else None,
        "settings": loader.load(config_files).as_dict(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "system": platform.freedesktop_os_release().get("PRETTY_NAME", platform.system()),
        "python": platform.python_version(),
    }


def cpu_times() -> tuple[int, int, int]:
    """Jiffies of all CPUs since the machine started: total, idle, and stolen by its host."""
    with open("/proc/stat", encoding="ascii") as file:
        times = [int(word) for word in file.readline().split()[1:9]]
    return sum(times), times[3] + times[4], times[7]


def cpu_shares(before: tuple[int, int, int], after: tuple[int, int, int]) -> dict[str, float]:
    """The shares of CPU time between two readings that were idle, and that the hypervisor took, percent.

    Without idle time, or with much stolen time, a run has measured the machine and not the network.
    """
    whole = max(1, after[0] - before[0])
    return {
        "idle_percent": 100 * (after[1] - before[1]) / whole,
        "stolen_percent": 100 * (after[2] - before[2]) / whole,
    }


def switch_ticks() -> dict[int, int]:
    """Clock ticks of processor time that each thread of ovs-vswitchd has used, by thread id; empty when it
    cannot be read.
    """
    directory = os.environ.get("OVS_RUNDIR", "/var/run/openvswitch")
    ticks: dict[int, int] = {}
    try:
        pid = int(Path(directory, "ovs-vswitchd.pid").read_text())
        for thread in Path(f"/proc/{pid}/task").iterdir():
            # The name, in brackets, may contain blanks.
            fields = (thread / "stat").read_text().rpartition(")")[2].split()
            ticks[int(thread.name)] = int(fields[11]) + int(fields[12])
    except (OSError, ValueError, IndexError):
        return {}
    return ticks


def switch_share(before: Mapping[int, int], after: Mapping[int, int], seconds: float) -> float | None:
    """The share of one processor, percent, that the busiest thread of ovs-vswitchd used between two readings
    of `switch_ticks`: in user space, the one that forwards. None when it is not known.
    """
    used = [ticks - before[thread] for thread, ticks in after.items() if thread in before]
    if not used or seconds <= 0:
        return None
    return 100 * max(used) / (os.sysconf("SC_CLK_TCK") * seconds)


def commit() -> str | None:
    """The project's commit; None outside a checkout."""
    return _git("rev-parse", "HEAD")


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(REPOSITORY), *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _first_line(argv: list[str]) -> str:
    try:
        return run(argv).splitlines()[0]
    except (CommandError, IndexError):
        return "unknown"


def _mininet_version() -> str:
    from mininet.net import VERSION

    return str(VERSION)


def _package(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
