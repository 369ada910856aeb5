"""The setting ``hosts``: what the hosts of a scenario are like, as a profile of several settings.

``modern`` is this kernel as it is. ``period`` is nearer to the hosts of the papers (Linux 3.10 to 3.18, Reno,
timeouts shortened to a few milliseconds): the defaults below, and what `HostTcp` sets for it, quick ACKs by
route and no tail-loss probe.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

MODERN, PERIOD = "modern", "period"
PROFILES = (MODERN, PERIOD)
_TICK_CLOCK = 6
"""CLOCK_MONOTONIC_COARSE, which advances at each of the kernel's ticks."""


def tick_ms() -> float:
    """The time between two ticks of this kernel (1 / HZ), ms: TCP has no shorter timer."""
    return time.clock_getres(_TICK_CLOCK) * 1e3


def defaults(profile: object) -> Mapping[str, Any]:
    """The settings that a profile gives another value if they are left out."""
    return {"cc": "reno", "rto_min_ms": tick_ms()} if profile == PERIOD else {}
