"""The capabilities of the agent's process: it needs four of root's, and works without the others."""

from __future__ import annotations

import re
from pathlib import Path

from fairq_ryu.errors import UserError

STATUS = Path("/proc/self/status")
# Numbers of linux/capability.h.
NEEDED = {
    "CAP_NET_ADMIN": 12,  # qdiscs and filters at ports
    "CAP_NET_RAW": 13,  # frames that are sent out of ports
    "CAP_PERFMON": 38,  # programs at tracepoints
    "CAP_BPF": 39,  # maps and programs
}
# It includes the two that Linux 5.8 has split from it.
_SYS_ADMIN = 21
_INCLUDED = {"CAP_PERFMON", "CAP_BPF"}


def missing() -> list[str]:
    """The capabilities that this process needs and lacks."""
    effective = re.search(r"^CapEff:\s*([0-9a-fA-F]+)$", STATUS.read_text(encoding="utf-8"), re.MULTILINE)
    mask = int(effective[1], 16) if effective else 0
    held = {name for name, bit in NEEDED.items() if mask >> bit & 1}
    if mask >> _SYS_ADMIN & 1:
        held |= _INCLUDED
    return [name for name in NEEDED if name not in held]


def check() -> None:
    """Raise :class:`UserError` if this process lacks a capability that the agent needs."""
    lacking = missing()
    if lacking:
        raise UserError(
            f"the agent needs root, or {', '.join(lacking)}, to load eBPF and attach it to ports",
            "run it with sudo",
        )
