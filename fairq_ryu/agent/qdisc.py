"""Buffer, rate and backlog of a port, read from its queueing disciplines over netlink."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fairq_ryu.agent import rtnetlink
from fairq_ryu.agent.rtnetlink import ClassMessage, QdiscMessage, attributes
from fairq_ryu.agent.tx_queues import MAX_IFINDEX, MAX_QUEUES, device_of, queue_of

_ROOT = 0xFFFFFFFF
_CLSACT_PARENT = 0xFFFFFFF1
# linux/pkt_sched.h: attributes of options, and where a number is in a struct of them.
_TBF_PARMS, _TBF_RATE64 = 1, 4
_TBF_RATE_AT, _TBF_LIMIT_AT = 8, 24  # struct tc_tbf_qopt
_HTB_PARMS, _HTB_CEIL64 = 1, 7
_HTB_CEIL_AT = 20  # struct tc_htb_opt
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
    """Buffer and rate of interfaces of this network namespace. Interfaces that are gone are left out. Raises
    OSError, as all readings here.
    """
    wanted = set(ifindexes)
    if not wanted:
        return {}
    limits: dict[int, QueueLimits] = {}
    qdiscs: dict[int, list[Qdisc]] = {}
    for message in rtnetlink.qdiscs():
        if message.ifindex in wanted and message.parent != _CLSACT_PARENT:
            qdiscs.setdefault(message.ifindex, []).append(_qdisc(message))
    for ifindex, found in qdiscs.items():
        classes: list[HtbClass] = []
        if any(each.kind == "htb" for each in found):
            try:
                classes = _htb_classes(rtnetlink.classes(ifindex))
            except rtnetlink.Refused:
                continue  # it was deleted meanwhile
        judged = limits_of(found, classes)
        if judged is not None and judged.queues and ifindex > MAX_IFINDEX:
            reason = f"the interface index {ifindex} is too large for a port with several queues"
            judged = QueueLimits(judged.kind, 0, 0, reason, measured=False)
        if judged is not None:
            limits[ifindex] = judged
    return limits


def read_backlogs(known: Iterable[int]) -> dict[int, int]:
    """Bytes in the root qdiscs of interfaces of this network namespace, or in those of transmit queues, by
    their ids. Interfaces that are gone, or have no queue, are left out.
    """
    wanted = set(known)
    devices = {device_of(each) for each in wanted}
    found = [each for each in rtnetlink.qdiscs() if each.ifindex in devices]
    roots = {each.ifindex: each.handle >> 16 for each in found if each.parent == _ROOT}
    places = {(each.ifindex, each.parent): each.backlog for each in found}
    backlogs: dict[int, int] = {}
    for number in wanted:
        device, queue = device_of(number), queue_of(number)
        parent = _ROOT if queue is None else roots.get(device, 0) << 16 | (queue + 1)
        backlog = places.get((device, parent))
        if backlog is not None:
            backlogs[number] = backlog
    return backlogs


def explicit_roots(ifindexes: Iterable[int]) -> set[int]:
    """The interfaces whose root qdisc somebody has chosen: the kernel's own has no handle."""
    roots = {each.ifindex for each in rtnetlink.qdiscs() if each.parent == _ROOT and each.handle}
    return roots & set(ifindexes)


def has_filters(ifindex: int) -> bool:
    """Whether the interface's clsact qdisc has any filter. False if the interface has gone."""
    try:
        return rtnetlink.has_filters(ifindex)
    except rtnetlink.Refused:
        return False


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


def _qdisc(message: QdiscMessage) -> Qdisc:
    limit, rate = _limit(message.kind, message.options)
    return Qdisc(message.kind, message.handle, message.parent, limit, rate)


def _limit(kind: str, options: bytes) -> tuple[int, int]:
    """Limit and rate of a fifo or a tbf; 0: not told."""
    if kind in _FIFOS:
        return _number(options, 0) * (1 if kind == "bfifo" else _FRAME), 0
    if kind != "tbf":
        return 0, 0
    about = attributes(options)
    parms = about.get(_TBF_PARMS, b"")
    rate = _long(about.get(_TBF_RATE64, b"")) or _number(parms, _TBF_RATE_AT)
    return _number(parms, _TBF_LIMIT_AT), rate


def _htb_classes(messages: Iterable[ClassMessage]) -> list[HtbClass]:
    found = []
    for message in messages:
        about = attributes(message.options)
        parms = about.get(_HTB_PARMS, b"")
        if parms:
            ceil = _long(about.get(_HTB_CEIL64, b"")) or _number(parms, _HTB_CEIL_AT)
            found.append(HtbClass(message.handle, message.parent, ceil))
    return found


def _number(data: bytes, at: int) -> int:
    return int(struct.unpack_from("=I", data, at)[0]) if len(data) >= at + 4 else 0


def _long(data: bytes) -> int:
    """A rate from 2^32 bytes per second on has an attribute of its own."""
    return int(struct.unpack_from("=Q", data)[0]) if len(data) >= 8 else 0
