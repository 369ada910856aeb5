"""Which ports believe the window scale that segments tell themselves, and how it is told.

The shim of a host (:mod:`fairq_ryu.agent.shim`) writes it there. ``bpf/lib/told_scale.h`` reads it where the
segment leaves the bridge, and takes it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import MappingProxyType

from fairq_ryu.agent import layout

MODES: Mapping[str, int] = MappingProxyType(
    {name: layout.CONSTANTS[f"FQ_TELL_{name.upper()}"] for name in ("reserved", "reserved3", "window12")}
)
"""How a scale is told: the numbers that the eBPF programs have for it."""


@dataclass(frozen=True, slots=True)
class ToldScales:
    """``mode``: one of :data:`MODES`, or "" where no port believes anything. ``ports``: patterns of the names
    of ports by which the segments leave.
    """

    mode: str = ""
    ports: tuple[str, ...] = ("*",)

    def of(self, names: Iterable[str]) -> int:
        """The number of the mode on a port or device with these names; 0: its segments stay as they are."""
        believed = any(fnmatchcase(name, pattern) for name in names for pattern in self.ports)
        return MODES[self.mode] if self.mode and believed else 0


NOT_TOLD = ToldScales()
"""No port believes anything."""
