"""Buffer, rate and backlog of a port, read from its queueing disciplines over netlink."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

_ROOT = 0xFFFFFFFF
_MULTIQUEUE = ("mq", "mqprio", "multiq")
_FILTER_PARENTS = (0xFFFFFFF2, 0xFFFFFFF3)  # clsact: ingress, egress
_CLSACT_PARENT = 0xFFFFFFF1
T = TypeVar("T")
# A pfifo is limited in packets; this is the size of a full Ethernet frame, bytes.
_FRAME = 1514


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """The limits of a port's queue: ``limit`` in bytes, ``rate`` in bytes per second (0: not known), and the
    kind of its root qdisc (``noqueue``: it has no queue, so it never fills).
    """

    kind: str
    limit: int
    rate: int


NO_LIMITS = QueueLimits("", 0, 0)


def read_queue_limits(ifindexes: Iterable[int]) -> dict[int, QueueLimits]:
    """Buffer and rate of interfaces of this network namespace. Interfaces that are gone are left out."""
    wanted = set(ifindexes)
    if not wanted:
        return {}
    return _in_thread(lambda: _read_limits(wanted))


def read_backlogs(ifindexes: Iterable[int]) -> dict[int, int]:
    """Bytes in the root qdiscs of interfaces of this network namespace. Interfaces that are gone, or have no
    queue, are left out.
    """
    wanted = set(ifindexes)
    return _in_thread(lambda: _read_backlogs(wanted))


def has_filters(ifindex: int) -> bool:
    """Whether the interface's clsact qdisc has any filter. False if the interface has gone."""
    return _in_thread(lambda: _has_filters(ifindex))


def _in_thread(job: Callable[[], T]) -> T:
    """pyroute2 runs an event loop of its own, which cannot be in a thread that runs one already."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(job).result()


def _has_filters(ifindex: int) -> bool:
    with IPRoute() as ipr:
        try:
            return any(list(ipr.get_filters(index=ifindex, parent=parent)) for parent in _FILTER_PARENTS)
        except NetlinkError:
            return False


def _read_limits(wanted: set[int]) -> dict[int, QueueLimits]:
    limits: dict[int, QueueLimits] = {}
    with IPRoute() as ipr:
        qdiscs: dict[int, list[Any]] = {}
        for message in ipr.get_qdiscs():
            if message["index"] in wanted and message["parent"] != _CLSACT_PARENT:
                qdiscs.setdefault(message["index"], []).append(message)
        for ifindex, found in qdiscs.items():
            root = next((q for q in found if q["parent"] == _ROOT), None)
            if root is None:
                continue
            kind = str(root.get_attr("TCA_KIND"))
            if kind in _MULTIQUEUE:
                # Its queues are its children's, which the tracepoints count separately: no sum is right.
                limits[ifindex] = QueueLimits(kind, 0, 0)
                continue
            limit = sum(_limit(q) for q in found)
            rate = _tbf_rate(root) if kind == "tbf" else 0
            if kind == "htb":
                try:
                    rate = _htb_rate(ipr.get_classes(index=ifindex))
                except NetlinkError:
                    continue  # it was deleted meanwhile
            limits[ifindex] = QueueLimits(kind, limit, rate)
    return limits


def _read_backlogs(wanted: set[int]) -> dict[int, int]:
    backlogs: dict[int, int] = {}
    with IPRoute() as ipr:
        for message in ipr.get_qdiscs():
            if message["index"] in wanted and message["parent"] == _ROOT:
                stats = message.get_attr("TCA_STATS2")
                queue = stats.get_attr("TCA_STATS_QUEUE") if stats is not None else None
                if queue is not None:
                    backlogs[message["index"]] = int(queue["backlog"])
    return backlogs


def _raw(options: Any) -> bytes:
    """The bytes of options. pyroute2 returns those that it has no decoder for as hex text."""
    if isinstance(options, str):
        return bytes.fromhex(options.replace(":", ""))
    return bytes(options or b"")


def _limit(qdisc: Any) -> int:
    kind, options = qdisc.get_attr("TCA_KIND"), qdisc.get_attr("TCA_OPTIONS")
    if kind in ("bfifo", "pfifo"):
        raw = _raw(options)
        limit = int(struct.unpack_from("=I", raw)[0]) if len(raw) >= 4 else 0
        return limit if kind == "bfifo" else limit * _FRAME
    if kind == "tbf":
        parms = options.get_attr("TCA_TBF_PARMS") if options else None
        return int(parms["limit"]) if parms else 0
    return 0


def _tbf_rate(qdisc: Any) -> int:
    options = qdisc.get_attr("TCA_OPTIONS")
    parms = options.get_attr("TCA_TBF_PARMS") if options else None
    return int(parms["rate"]) if parms else 0


def _htb_rate(classes: Iterable[Any]) -> int:
    """The ceiling of the fastest root class: what the port sends at most, bytes per second."""
    rates = [0]
    for message in classes:
        options = message.get_attr("TCA_OPTIONS")
        parms = options.get_attr("TCA_HTB_PARMS") if options else None
        if parms and message["parent"] == _ROOT:
            wide = options.get_attr("TCA_HTB_CEIL64")
            rates.append(int(wide or parms["ceil"]))
    return max(rates)
