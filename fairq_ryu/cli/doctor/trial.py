"""Checks that load the very eBPF programs, in a process and a network namespace that end with the check."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from fairq_ryu.cli.doctor import commands
from fairq_ryu.cli.doctor.check import Check

_ROOT = Path(__file__).resolve().parents[3]
# The verifier takes a second, and on an emulated processor half a minute.
_SECONDS = 300.0
# What the agent uses on demand, as fairq_ryu.agent.trial names it, and what does not work without it.
LOST = {
    "drops": "dropped packets are not reported, so RSED recovers none",
    "queue laws": "laws that judge packets do not run; windows are lowered all the same",
    "turns": "new connections do not take turns; windows are lowered all the same",
    "transmit queues": "ports with several transmit queues are not governed",
    "ingress qdiscs": "ports that are policed, or offloaded by hw-offload, are not governed",
    "internal ports": "data that this machine itself receives through a bridge is not governed",
    "far queues": "queues in the switch above are not governed",
    "taildrop": "experiments on the userspace datapath lose packets in batches at a full queue",
    "scale shim": "fairq shim does not run here",
}

# Of what kernels that are in the table lack, too.
_REMEDIES = {"ingress qdiscs": "boot Linux 6.6 or newer, or let such ports be policed elsewhere"}


def run(module: str) -> dict[str, str]:
    """What ``main`` of a module finds: by what it tried, the fault. If it cannot run, nothing works."""
    code = f"import sys; sys.path.insert(0, sys.argv[1]); import {module} as trial; trial.main()"
    command = ["unshare", "--net", "--", sys.executable, "-c", code, str(_ROOT)]
    output = commands.run(command, timeout=_SECONDS)
    if output.code != 0:
        return {"programs": f"they cannot be tried: {output.last_line or f'exit code {output.code}'}"}
    found: dict[str, str] = json.loads(output.last_line)
    return found


def check_programs() -> list[Check]:
    """The agent's programs: the kernel's verifier, their places at ports, and a window that they lower."""
    name = "eBPF programs"
    if os.geteuid() != 0:
        return [Check(name, "fail", "cannot be tried without root", commands.as_root())]
    faults = run("fairq_ryu.agent.trial")
    advice = "run the kernel of a machine in README's table; if this is one, report it with this text"
    for core in "programs", "packets":
        if fault := faults[core]:
            remedy = "docker run --privileged ..." if "Operation not permitted" in fault else advice
            return [Check(name, "fail", fault, remedy)]
    good = [each for each in LOST if not faults[each]]
    found = "a window was lowered in an ACK through a veth pair; loaded too: " + ", ".join(good)
    lacks = [
        Check(f"without {each}", "warn", f"{lost} ({faults[each]})", _REMEDIES.get(each, advice))
        for each, lost in LOST.items()
        if faults[each]
    ]
    return [Check(name, "ok", found), *lacks]
