"""DropTail: no windows at all. The baseline: ports are watched and counted, and TCP is not influenced."""

from __future__ import annotations

from typing import ClassVar

from fairq_ryu.policies.base import Parameters

_INTERVAL = 0.25


class DropTail:
    """The policy without windows."""

    name: ClassVar[str] = "droptail"

    def __init__(self, parameters: Parameters) -> None:
        self.interval = _INTERVAL
        self.parameters = ()
