"""The qdiscs of shallow ports and of hosts, as ``tc`` takes them. Does without Mininet."""

from __future__ import annotations

from typing import NamedTuple

WIRE = "netem delay 1us limit 100000"
"""What a host's interface needs so that its packets leave the host as with a network card: netem takes a
packet from its socket before it delays it."""


# A frame may be so much longer than the payload of Ethernet: its header and two VLAN tags, and some room.
_FRAME_ROOM = 40
# tbf takes `mtu` only with a peak rate. This one is too high to limit anything.
_PEAK = 100_000_000_000


def shaper(rate: float, mtu: int, limit: int, overhead: int = 0) -> str:
    """A qdisc that sends at ``rate`` Mbit/s, as ``tc`` takes it: it cuts packets that are longer than a frame
    with ``mtu`` bytes of payload before they wait. ``limit``: bytes of its own FIFO; ``overhead``: bytes of
    each frame that count beside its own.
    """
    bits = round(rate * 1e6)
    frame = mtu + _FRAME_ROOM
    # "mtu" is the longest packet that is not cut. A burst of two frames, because timers may be late.
    return (
        f"tbf rate {bits}bit burst {2 * frame} peakrate {max(_PEAK, 2 * bits)}bit mtu {frame} limit {limit}"
        f"{f' overhead {overhead}' if overhead else ''}"
    )


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
