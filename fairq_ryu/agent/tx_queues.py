"""Ids of the transmit queues of devices with several: the twin of ``bpf/lib/tx_queue_id.h``.

Wherever the programs know a port by its interface index, they may know it by the id of one of its queues.
"""

from __future__ import annotations

from fairq_ryu.agent import layout

_MARK, _BITS = layout.CONSTANTS["FQ_TX_QUEUE"], layout.CONSTANTS["FQ_TX_QUEUE_BITS"]
MAX_QUEUES = 1 << _BITS
"""Transmit queues of a device that can have ids."""
MAX_IFINDEX = (_MARK >> _BITS) - 1
"""The largest index of a device whose queues can have ids."""


def tx_queue_id(ifindex: int, queue: int) -> int:
    """The id of a queue, the first of which has number 0."""
    return _MARK | ifindex << _BITS | queue


def device_of(known: int) -> int:
    """The interface index for the id of a queue, or for an interface index itself."""
    return (known & ~_MARK) >> _BITS if known & _MARK else known


def queue_of(known: int) -> int | None:
    """The number of a queue, by its id; None: it is the index of an interface."""
    return known & (MAX_QUEUES - 1) if known & _MARK else None
