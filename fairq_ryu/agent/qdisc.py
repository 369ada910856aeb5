"""Buffer, rate and backlog of a port, read from its queueing disciplines over netlink."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from fairq_ryu.agent.tx_queues import MAX_IFINDEX, MAX_QUEUES, device_of, queue_of

_ROOT = 0xFFFFFFFF
_FILTER_PARENTS = (0xFFFFFFF2, 0xFFFFFFF3)  # clsact: ingress, egress
_CLSACT_PARENT = 0xFFFFFFF1
T = TypeVar("T")
# A pfifo is limited in packets; this is the size of a full Ethernet frame, bytes.
_FRAME = 1514
_FIFOS = ("bfifo", "pfifo")
# Kinds whose backlog is not that of one queue, or cannot be read, and why.
_SEVERAL = "has several queues"
_UNMEASURED = {
    "pfifo_fast": "counts its packets for each processor, so its backlog cannot be read",
    **dict.fromkeys(("cbq", "drr", "ets", "hfsc", "multiq", "prio", "qfq", "taprio"), _SEVERAL),
}
# Kinds with a qdisc for each transmit queue of the device.
_PER_QUEUE = ("mq", "mqprio")


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """The limits of a port's queue: ``limit`` in bytes, ``rate`` in bytes per second (0: not known), and the
    kind of its root qdisc (``noqueue``: it has no queue, so it never fills). ``reason``: why the limit is not
    known; empty if it is. ``measured``: whether what is read as backlog is that of one queue; if not, a limit
    from elsewhere would not help. ``leaf``: the only class of htb, if it needs a bfifo. ``queues``: number of
    transmit queues that have these limits each, in place of one queue for all; 0: it is one for all.
    """

    kind: str
    limit: int
    rate: int
    reason: str = ""
    measured: bool = True
    leaf: str = ""
    queues: int = 0


NO_LIMITS = QueueLimits("", 0, 0)
FAR_KIND = "far"
"""In place of the kind of a qdisc: the queue is in the switch above."""


class Qdisc(NamedTuple):
    """A qdisc. ``limit`` in bytes and ``rate`` in bytes per second, 0: it has none."""

    kind: str
    handle: int
    parent: int
    limit: int = 0
    rate: int = 0


class HtbClass(NamedTuple):
    """A class of htb. ``ceil``: bytes per second."""

    handle: int
    parent: int
    ceil: int


def read_queue_limits(ifindexes: Iterable[int]) -> dict[int, QueueLimits]:
    """Buffer and rate of interfaces of this network namespace. Interfaces that are gone are left out."""
    wanted = set(ifindexes)
    if not wanted:
        return {}
    return _in_thread(lambda: _read_limits(wanted))


def read_backlogs(known: Iterable[int]) -> dict[int, int]:
    """Bytes in the root qdiscs of interfaces of this network namespace, or in those of transmit queues, by
    their ids. Interfaces that are gone, or have no queue, are left out.
    """
    wanted = set(known)
    return _in_thread(lambda: _read_backlogs(wanted))


def explicit_roots(ifindexes: Iterable[int]) -> set[int]:
    """The interfaces whose root qdisc somebody has chosen: the kernel's own has no handle."""
    wanted = set(ifindexes)
    return _in_thread(lambda: _explicit_roots(wanted))


def has_filters(ifindex: int) -> bool:
    """Whether the interface's clsact qdisc has any filter. False if the interface has gone. Raises OSError if
    there is no file descriptor to ask with.
    """
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


def _explicit_roots(wanted: set[int]) -> set[int]:
    with IPRoute() as ipr:
        roots = [each for each in ipr.get_qdiscs() if each["parent"] == _ROOT and each["handle"]]
        return {int(each["index"]) for each in roots} & wanted


def _read_limits(wanted: set[int]) -> dict[int, QueueLimits]:
    limits: dict[int, QueueLimits] = {}
    with IPRoute() as ipr:
        qdiscs: dict[int, list[Any]] = {}
        for message in ipr.get_qdiscs():
            if message["index"] in wanted and message["parent"] != _CLSACT_PARENT:
                qdiscs.setdefault(message["index"], []).append(message)
        for ifindex, found in qdiscs.items():
            qdiscs_here = [_qdisc(each) for each in found]
            classes: list[HtbClass] = []
            if any(each.kind == "htb" for each in qdiscs_here):
                try:
                    classes = _htb_classes(ipr.get_classes(index=ifindex))
                except NetlinkError:
                    continue  # it was deleted meanwhile
            judged = limits_of(qdiscs_here, classes)
            if judged is not None and judged.queues and ifindex > MAX_IFINDEX:
                reason = f"the interface index {ifindex} is too large for a port with several queues"
                judged = QueueLimits(judged.kind, 0, 0, reason, measured=False)
            if judged is not None:
                limits[ifindex] = judged
    return limits


def limits_of(qdiscs: Sequence[Qdisc], classes: Sequence[HtbClass]) -> QueueLimits | None:
    """The limits of an interface with these qdiscs, and these classes if its root is htb; None: it has no
    root. They are known only if all packets wait in one queue, or in one for each transmit queue of the
    device, whose length is known in bytes.
    """
    root = next((each for each in qdiscs if each.parent == _ROOT), None)
    if root is None:
        return None
    if root.kind in _PER_QUEUE:
        return _limits_per_queue(root, qdiscs, classes)
    return _limits_under(root, qdiscs, classes)


def _limits_per_queue(root: Qdisc, qdiscs: Sequence[Qdisc], classes: Sequence[HtbClass]) -> QueueLimits:
    """The limits of the smallest and slowest transmit queue, if those of all are known."""
    kind, found = root.kind, []
    for child in sorted(_children(root, qdiscs), key=lambda each: each.parent):
        limits = _limits_under(child, qdiscs, classes)
        if not limits.limit:
            reason = f"transmit queue {(child.parent & 0xFFFF) - 1}: {limits.reason}"
            return QueueLimits(kind, 0, 0, f"{kind} has a queue for each transmit queue; {reason}", False)
        found.append(limits)
    if not 0 < len(found) <= MAX_QUEUES:
        return QueueLimits(kind, 0, 0, f"{kind} has {len(found)} transmit queues", measured=False)
    limit, rate = min(each.limit for each in found), min(each.rate for each in found)
    return QueueLimits(kind, limit, rate, queues=len(found))


def _children(qdisc: Qdisc, qdiscs: Sequence[Qdisc]) -> list[Qdisc]:
    return [each for each in qdiscs if each.parent >> 16 == qdisc.handle >> 16 and each.parent != _ROOT]


def _limits_under(qdisc: Qdisc, qdiscs: Sequence[Qdisc], classes: Sequence[HtbClass]) -> QueueLimits:
    """The limits of the queue of which a qdisc is the root."""
    kind = qdisc.kind
    if kind == "noqueue":
        return QueueLimits(kind, 0, 0, "it has no queue")
    if kind in _UNMEASURED:
        return QueueLimits(kind, 0, 0, f"{kind} {_UNMEASURED[kind]}", measured=False)
    if kind == "htb":
        return _htb_limits(qdiscs, [each for each in classes if each.handle >> 16 == qdisc.handle >> 16])
    limit, rate = _fifo_limits(qdisc, qdiscs)
    return QueueLimits(kind, limit, rate, "" if limit else f"{kind} {_NO_BYTES}")


_NO_BYTES = "does not say how many bytes it holds"


def _htb_limits(qdiscs: Sequence[Qdisc], classes: Sequence[HtbClass]) -> QueueLimits:
    """``classes``: of that htb."""
    inner = {each.parent for each in classes}
    leaves = [each for each in classes if each.handle not in inner]
    if len(leaves) != 1:
        rate = max((each.ceil for each in classes if each.parent == _ROOT), default=0)
        if not leaves:
            return QueueLimits("htb", 0, rate, "htb has no class")
        reason = f"htb has {len(leaves)} leaf classes, each with a queue of its own"
        return QueueLimits("htb", 0, rate, reason, measured=False)
    (leaf,) = leaves
    rate = _ceil(leaf, classes)
    below, name = next((each for each in qdiscs if each.parent == leaf.handle), None), _handle(leaf.handle)
    if below is None:
        return QueueLimits("htb", 0, rate, f"class {name} of htb has no bfifo or pfifo", leaf=name)
    limit, own_rate = _fifo_limits(below, qdiscs)
    if not limit:
        return QueueLimits("htb", 0, rate, f"{below.kind} in class {name} of htb {_NO_BYTES}", leaf=name)
    return QueueLimits("htb", limit, min(rate, own_rate) if own_rate else rate)


def _ceil(leaf: HtbClass, classes: Sequence[HtbClass]) -> int:
    """What a class sends at most: no more than any class above it."""
    by_handle = {each.handle: each for each in classes}
    rate, above = leaf.ceil, by_handle.get(leaf.parent)
    for _ in classes:
        if above is None:
            break
        rate, above = min(rate, above.ceil), by_handle.get(above.parent)
    return rate


def _fifo_limits(qdisc: Qdisc, qdiscs: Sequence[Qdisc]) -> tuple[int, int]:
    """Limit and rate of a bfifo, a pfifo, or a tbf, whose child has the packets if it has one that is shown;
    of others 0.
    """
    if qdisc.kind in _FIFOS:
        return qdisc.limit, 0
    if qdisc.kind != "tbf":
        return 0, 0
    children = _children(qdisc, qdiscs)
    if not children:
        return qdisc.limit, qdisc.rate
    return (children[0].limit if children[0].kind in _FIFOS else 0), qdisc.rate


def _handle(number: int) -> str:
    """As tc writes it."""
    return f"{number >> 16:x}:{number & 0xFFFF:x}"


def _qdisc(message: Any) -> Qdisc:
    kind = str(message.get_attr("TCA_KIND"))
    rate = _tbf_rate(message) if kind == "tbf" else 0
    return Qdisc(kind, int(message["handle"]), int(message["parent"]), _limit(message), rate)


def _read_backlogs(wanted: set[int]) -> dict[int, int]:
    backlogs: dict[int, int] = {}
    devices = {device_of(each) for each in wanted}
    with IPRoute() as ipr:
        found = [each for each in ipr.get_qdiscs() if each["index"] in devices]
    roots = {each["index"]: each["handle"] >> 16 for each in found if each["parent"] == _ROOT}
    places = {(each["index"], each["parent"]): _backlog(each) for each in found}
    for known in wanted:
        device, queue = device_of(known), queue_of(known)
        parent = _ROOT if queue is None else roots.get(device, 0) << 16 | (queue + 1)
        backlog = places.get((device, parent))
        if backlog is not None:
            backlogs[known] = backlog
    return backlogs


def _backlog(message: Any) -> int | None:
    stats = message.get_attr("TCA_STATS2")
    queue = stats.get_attr("TCA_STATS_QUEUE") if stats is not None else None
    return None if queue is None else int(queue["backlog"])


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


def _htb_classes(messages: Iterable[Any]) -> list[HtbClass]:
    found = []
    for message in messages:
        options = message.get_attr("TCA_OPTIONS")
        parms = options.get_attr("TCA_HTB_PARMS") if options else None
        if parms:
            ceil = int(options.get_attr("TCA_HTB_CEIL64") or parms["ceil"])
            found.append(HtbClass(int(message["handle"]), int(message["parent"]), ceil))
    return found
