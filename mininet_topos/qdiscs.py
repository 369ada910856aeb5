"""The qdisc of a shallow port in place of a FIFO, and that of hosts. Does without Mininet."""

from __future__ import annotations

from typing import NamedTuple

WIRE = "netem delay 1us limit 100000"
"""What a host's interface needs so that its packets leave the host as with a network card: netem takes a
packet from its socket before it delays it."""


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
