"""A far queue: that of a port of the switch above, by which data arrives here. Nobody here can see it.

It is described by the rate at which that switch sends to a port of ours, and by its buffer there. The agent
keeps a virtual queue of what arrives (``agent/bpf/lib/virtual_queue.h``), and shows it as one more port.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

FAR = 1 << 16
"""Added to the OpenFlow number of a port, it makes that of its far queue. Open vSwitch numbers no port so
high."""
SHARE = 0.98
"""Of the rate, for the virtual queue."""
BUFFER_S = 0.005
"""The buffer that a switch is taken to have for a port, as the time in which it drains, seconds."""
LEAST_BUFFER, MOST_BUFFER = 1538, 1 << 30
"""Bounds of the buffer, bytes: an Ethernet frame with all that it takes on the wire; TCP's largest window."""
LEAST_RATE, MOST_RATE = 125_000, 100_000_000_000
"""Bounds of the rate, bytes per second."""
LEAST_SHARE = 0.1
_SUFFIX = "@far"
# OpenFlow has room for 15 bytes and a zero. The number of a network card is at the beginning of a name, that
# of its port at the end.
_HEAD_BYTES, _TAIL_BYTES = 6, 5


@dataclass(frozen=True, slots=True)
class FarQueue:
    """The far queue of the interface ``port``. All rates are in bytes per second, all sizes in bytes.
    ``rate`` 0: that of the link, or else the one that is found; ``buffer`` 0: what drains within
    :data:`BUFFER_S`, within the bounds. While nothing is known of the queue that it stands for, the virtual
    queue drains at the rate times ``share``, so that it grows first. ``leased``: the rate while a controller
    leases it another one; 0: it does not.

    ``link`` in the methods is the speed of the port, or of the line that was found; 0: not known.
    """

    port: str
    rate: int = 0
    buffer: int = 0
    share: float = SHARE
    leased: int = 0

    def line(self, link: int) -> int:
        """The rate at which data arrives at most; 0: nobody knows it. A leased part of an uplink may be more
        than a machine's link: then the queue in the switch above stands before that.
        """
        if self.leased:
            return min(self.leased, link) if link else self.leased
        return self.rate or link

    def limits(self, link: int) -> tuple[int, int]:
        """The bytes that the virtual queue holds, and its rate. (0, 0) if nobody knows a rate."""
        rate = self.line(link)
        return self._buffer(rate), int(rate * self.share)

    def stands_for(self, link: int) -> int:
        """Bytes that take as long at the rate in force as the buffer takes at the rate without a lease: a
        lease does not change the queue in the switch above, and a delay there is compared with this.
        """
        line, rate = self.line(link), self.rate or link
        if not self.leased or not rate:
            return self._buffer(line)
        return max(1, min(self._buffer(rate) * line // rate, MOST_BUFFER))

    def _buffer(self, rate: int) -> int:
        drained = min(max(int(rate * BUFFER_S), LEAST_BUFFER), MOST_BUFFER) if rate else 0
        return self.buffer or drained

    def wrong(self) -> str | None:
        """What is out of its bounds; None: all is within."""
        if self.rate and not LEAST_RATE <= self.rate <= MOST_RATE:
            return f"{self.port}: rate {self.rate} bytes/s"
        if self.buffer and not LEAST_BUFFER <= self.buffer <= MOST_BUFFER:
            return f"{self.port}: buffer {self.buffer} bytes"
        if not LEAST_SHARE <= self.share <= 1:
            return f"{self.port}: share {self.share:g}"
        return None


class Why(IntEnum):
    """What the rate of a virtual queue is (``FQ_HIDDEN_...`` in ``layout.h``).

    UNKNOWN: none, because nobody knows the rate of the line yet. BLIND: the share, and no round trips show
    what stands. SHARE: the share. RAISED: more, because hardly anything stands. FULL: the share or less,
    because something stands, and all that the line carries comes here. OTHERS: what other traffic leaves.
    """

    UNKNOWN = 0
    BLIND = 1
    SHARE = 2
    RAISED = 3
    FULL = 4
    OTHERS = 5


def is_far(number: int) -> bool:
    """Whether a number of OpenFlow is that of a far queue."""
    return FAR <= number < 2 * FAR


def room(limit: int) -> int:
    """The bytes for which a law may count on a far queue's buffer of ``limit`` bytes: an eighth less. Into
    the queue above goes more than what is counted here, such as answers to handshakes, and what is on its way
    while windows shrink.
    """
    return limit - limit // 8


def far_name(port: str) -> str:
    """The name of a far queue: that of its port with a suffix. Of a name of more than 11 bytes it has the
    first 6 and the last 5: OpenFlow has no room for more.
    """
    name = port.encode()
    if len(name) > _HEAD_BYTES + _TAIL_BYTES:
        name = name[:_HEAD_BYTES] + name[-_TAIL_BYTES:]
    return name.decode("utf-8", "ignore") + _SUFFIX
