"""DropTail: no windows at all. The baseline: the fabric watches and counts, TCP is left to itself."""

from __future__ import annotations

from typing import ClassVar

from fairq_ryu.model import PortKey
from fairq_ryu.policies.base import Parameters, PortLaw

_INTERVAL = 0.25


class DropTail:
    """The policy that has none."""

    name: ClassVar[str] = "droptail"

    def __init__(self, parameters: Parameters) -> None:
        self.interval = _INTERVAL
        self.parameters = ()

    def port_law(self, port: PortKey) -> PortLaw:
        """The law for one port: it answers nothing."""
        return PortLaw()
