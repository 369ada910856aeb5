"""The qdisc of a shallow port in place of a FIFO. Does without Mininet."""

from __future__ import annotations

from typing import NamedTuple


class PortQdisc(NamedTuple):
    """The qdisc that holds the packets of a shallow port, in place of a FIFO."""

    arguments: str
    """its kind and options, as ``tc`` takes them"""
    shapes: bool = False
    """it sends at the port's rate by itself, without tbf"""
    fifo: int = 0
    """bytes of the FIFO below it, in place of its own; 0: its own"""

    def commands(self, device: str, parent: str) -> str:
        """What ``tc -batch`` makes it of, at ``parent``, a class or the root."""
        at = parent if parent == "root" else f"parent {parent}"
        made = f"qdisc add dev {device} {at} handle 10: {self.arguments}\n"
        return made + (f"qdisc add dev {device} parent 10:1 bfifo limit {self.fifo}\n" if self.fifo else "")
