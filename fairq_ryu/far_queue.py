"""A far queue: that of a port of the switch above, by which data arrives here. Nobody here can see it.

It is described by the rate at which that switch sends to a port of ours, and by its buffer there. The agent
keeps a virtual queue of what arrives (``agent/bpf/lib/virtual_queue.h``), and shows it as one more port.
"""

from __future__ import annotations

from dataclasses import dataclass

FAR = 1 << 16
"""Added to the OpenFlow number of a port, it makes that of its far queue. Open vSwitch numbers no port so
high."""
SHARE = 0.98
"""Of the rate, for the virtual queue."""
BUFFER_S = 0.005
"""The buffer that a switch is taken to have for a port, as the time in which it drains, seconds."""
_SUFFIX = "@far"
# Of OpenFlow, with a zero at the end.
_NAME_BYTES = 15


@dataclass(frozen=True, slots=True)
class FarQueue:
    """The far queue of the interface ``port``. ``rate`` in bytes per second (0: that of the link), ``buffer``
    in bytes (0: what drains within :data:`BUFFER_S`). The virtual queue drains at the rate times ``share``,
    so that it grows before the queue that it stands for.
    """

    port: str
    rate: int = 0
    buffer: int = 0
    share: float = SHARE

    def limits(self, link: int) -> tuple[int, int]:
        """Bytes that the virtual queue holds, and its rate in bytes per second. ``link``: the speed of the
        port in bits per second. (0, 0) if neither says a rate.
        """
        rate = self.rate or link // 8
        return (self.buffer or int(rate * BUFFER_S)), int(rate * self.share)


def is_far(number: int) -> bool:
    """Whether a number of OpenFlow is that of a far queue."""
    return FAR <= number < 2 * FAR


def far_name(port: str) -> str:
    """The name of a far queue: that of its port with a suffix, cut to what OpenFlow has room for."""
    return port.encode()[: _NAME_BYTES - len(_SUFFIX)].decode("utf-8", "ignore") + _SUFFIX
