"""How long the backlog of a queue is believed: the twin of ``bpf/lib/backlog.h``, which says why.

Queues are ``fq_queue`` and checks ``fq_queue_check`` structures of ``layout.h``; times are CLOCK_MONOTONIC
ns.
"""

from __future__ import annotations

from typing import Any

from fairq_ryu.agent import layout
from fairq_ryu.agent.qdisc import QueueLimits

_NS = 1_000_000_000
# Of a virtual queue, as in ``bpf/lib/virtual_queue.h``.
_MOST_VIRTUAL_NS = 8 * _NS
_SHIFT = int(layout.CONSTANTS["FQ_DRAIN_SHIFT"])
# Of a queue of unknown size or rate.
_UNKNOWN_NS = 1 * _NS


def drain_ns(limits: QueueLimits) -> int:
    """The time for which a backlog without events is believed: that in which the full queue drains, and a
    margin. At least the margin, on which the programs rely.
    """
    if not limits.limit or not limits.rate:
        return _UNKNOWN_NS
    return limits.limit * _NS // limits.rate + int(layout.CONSTANTS["FQ_MARGIN_NS"])


def _known(queue: Any, check: Any) -> tuple[int, int, int]:
    """The last known backlog, since when it is known, and the integral of the backlog up to then."""
    if check.event_ns == queue.last_ns:
        return check.backlog, check.ns, queue.byte_ns + check.byte_ns
    return queue.backlog, queue.last_ns, queue.byte_ns


def believed(queue: Any, check: Any, now_ns: int) -> tuple[int, int]:
    """The backlog of a queue, and its integral over time, byte ns, which wraps at 64 bits."""
    if queue.drain:
        return _drained(queue, now_ns)
    backlog, since, byte_ns = _known(queue, check)
    age = max(0, now_ns - since)
    byte_ns += min(age, check.drain_ns) * backlog
    return 0 if age > check.drain_ns else backlog, byte_ns % 2**64


def _drained(queue: Any, now_ns: int) -> tuple[int, int]:
    """The same of a virtual queue, which drains between its packets."""
    spent = max(0, now_ns - queue.last_ns)
    drained = queue.drain * min(spent, _MOST_VIRTUAL_NS) + queue.rest >> _SHIFT
    backlog = max(0, queue.backlog - drained) if spent < _MOST_VIRTUAL_NS else 0
    spent = min(spent, _MOST_VIRTUAL_NS)
    if not backlog:
        spent = min(spent, (queue.backlog << _SHIFT) // queue.drain)
    return backlog, (queue.byte_ns + (queue.backlog + backlog) * spent // 2) % 2**64


def is_silent(queue: Any, check: Any, now_ns: int) -> bool:
    """Whether the queue has had no event for longer than it needs to drain, although it had a backlog."""
    backlog, since, _ = _known(queue, check)
    if queue.drain:
        return False  # it is virtual, and drains without events
    return bool(backlog) and now_ns - since > check.drain_ns
