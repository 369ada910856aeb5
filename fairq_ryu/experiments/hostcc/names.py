"""The congestion controls of the project, by their names in scenarios."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mininet_topos.controls import LINUX

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


@dataclass(frozen=True, slots=True)
class OwnControl:
    """A congestion control of the project."""

    registered: str
    """its name in the kernel: no kernel has a control of such a name, also if a module is loaded later"""
    kernels: str
    """the kernel's name of the same control, which is used where there is one; "" if no kernel has it"""
    ecn: bool
    """both ends of a connection need one of these, because the receiver echoes every mark"""
    coupled: bool = False
    """it couples the connections of a tenant"""


OWN = {
    "dctcp": OwnControl("fairq_dctcp", "dctcp", ecn=True),
    "d2tcp": OwnControl("fairq_d2tcp", "", ecn=True),
    "hstcp": OwnControl("fairq_hstcp", "highspeed", ecn=False),
    "ctrl_reno": OwnControl("ctrl_reno", "", ecn=False, coupled=True),
    "ctrl_cubic": OwnControl("ctrl_cubic", "", ecn=False, coupled=True),
}
PREFIX = "fairq_"
"""Before a name of `OWN`: the project's, also where the kernel has its own."""


def own(name: str) -> OwnControl | None:
    """The control of the project that a name of a scenario may mean, with `PREFIX` or without."""
    return OWN.get(name.removeprefix(PREFIX))


def kernels(name: str) -> str:
    """The name in the kernel of the control that is used for a name of a scenario where the kernel has it;
    "": the kernel has none.
    """
    if name.startswith(PREFIX):
        return ""
    return OWN[name].kernels if name in OWN else name


def known() -> list[str]:
    """All names: the project's, Linux's, and those of other modules that are loaded now."""
    there = AVAILABLE.read_text().split() if AVAILABLE.exists() else []
    ours = (each.registered for each in OWN.values())
    return list(dict.fromkeys((*OWN, *LINUX, *there, *ours)))


def needs_ecn(name: str) -> bool:
    """Whether both ends of a connection need such a control."""
    found = own(name)
    return found is not None and found.ecn


def coupled(name: str) -> bool:
    """Whether such a control couples the connections of a tenant."""
    found = own(name)
    return found is not None and found.coupled
