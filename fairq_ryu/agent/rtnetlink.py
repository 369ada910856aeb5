"""Traffic control as the kernel tells it over netlink: qdiscs and classes, the qdisc of an interface that
carries filters at ingress and egress, the filters there, and which interfaces change. Each question takes
some microseconds.

Each has a socket of its own, so nothing is left of one that has failed, and none waits for another's answer.
Not by pyroute2: that needs an event loop, and so a thread, for each socket. For four ports a reading of all
qdiscs takes a tenth of its processor time here, and ten a second do not make the process grow.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

# linux/rtnetlink.h, linux/netlink.h, linux/pkt_sched.h, linux/pkt_cls.h
_NEW_QDISC = 36
_QDISC_MESSAGES = (_NEW_QDISC, 37)  # RTM_NEWQDISC, RTM_DELQDISC
_GET_QDISC, _NEW_CLASS, _GET_CLASS, _NEW_FILTER, _GET_FILTER = 38, 40, 42, 44, 46
_FILTER_MESSAGES = (_NEW_FILTER, 45)
_ERROR, _DONE = 2, 3
_REQUEST, _ACK, _ECHO, _DUMP = 1, 4, 8, 0x300
_GROUP_TC = 1 << 3
_QDISC_PARENT, _INGRESS_PARENT, _EGRESS_PARENT = 0xFFFFFFF1, 0xFFFFFFF2, 0xFFFFFFF3
_KIND, _OPTIONS, _STATS2, _CHAIN = 1, 2, 7, 11
_STATS_QUEUE = 3
_BPF_NAME = 7
_HEAD = struct.Struct("=IHHII")
_TCMSG = struct.Struct("=B3xiIII")
_ATTRIBUTE = struct.Struct("=HH")
_CODE = struct.Struct("=i")
_QUEUE = struct.Struct("=II")  # its length in packets, and in bytes
_BUFFER = 1 << 20
# The kernel answers at once, or not at all; seconds.
_PATIENCE = 5.0
# The sequence number of the questions of this process. The kernel tells those who listen that a qdisc was
# asked for as if it had changed, with the number of the question.
_OWN = int.from_bytes(os.urandom(4), "little") | 1


class Refused(OSError):
    """The kernel refuses a question: what it is about has gone."""


class AttachedFilter(NamedTuple):
    """A tc filter. ``name``: of its eBPF program, "" for other kinds."""

    priority: int
    kind: str
    name: str = ""


class QdiscMessage(NamedTuple):
    """A qdisc. ``options``: as its kind has them; ``backlog``: bytes in it, None: not told."""

    ifindex: int
    handle: int
    parent: int
    kind: str
    options: bytes
    backlog: int | None


class ClassMessage(NamedTuple):
    """A class of a qdisc. ``options``: as the kind of its qdisc has them."""

    handle: int
    parent: int
    options: bytes


def qdiscs() -> list[QdiscMessage]:
    """The qdiscs of all interfaces of this network namespace, but for those that the kernel does not show.
    Raises OSError.
    """
    # All: the kernel would tell those who listen that a single one was asked for as if it had changed.
    found = []
    for kind, body in _asked_for_all(_GET_QDISC, 0, 0):
        if kind == _NEW_QDISC:
            _, ifindex, handle, parent, _ = _TCMSG.unpack_from(body)
            about = attributes(body[_TCMSG.size :])
            name, options = _text(about.get(_KIND, b"")), about.get(_OPTIONS, b"")
            found.append(QdiscMessage(ifindex, handle, parent, name, options, _backlog(about)))
    return found


def classes(ifindex: int) -> list[ClassMessage]:
    """The classes of the qdiscs of an interface. Raises OSError."""
    found = []
    for kind, body in _asked_for_all(_GET_CLASS, ifindex, 0):
        if kind == _NEW_CLASS:
            _, _, handle, parent, _ = _TCMSG.unpack_from(body)
            found.append(ClassMessage(handle, parent, attributes(body[_TCMSG.size :]).get(_OPTIONS, b"")))
    return found


def has_filters(ifindex: int) -> bool:
    """Whether any filter is at ingress or egress of an interface. Raises OSError."""
    return any(
        kind == _NEW_FILTER
        for parent in (_INGRESS_PARENT, _EGRESS_PARENT)
        for kind, _ in _asked_for_all(_GET_FILTER, ifindex, parent)
    )


def _backlog(about: Mapping[int, bytes]) -> int | None:
    queue = attributes(about.get(_STATS2, b"")).get(_STATS_QUEUE, b"")
    return _QUEUE.unpack_from(queue)[1] if len(queue) >= _QUEUE.size else None


def filter_qdisc(ifindex: int) -> str:
    """The kind of the qdisc to which filters at ingress are attached: ``clsact``, which carries filters at
    egress as well, or ``ingress``; "": the interface has none, or has gone.
    """
    # Without NLM_F_ECHO the reply goes to listeners only.
    for kind, body in _asked(_GET_QDISC, _REQUEST | _ACK | _ECHO, ifindex, _QDISC_PARENT):
        if kind in _QDISC_MESSAGES:
            return _text(attributes(body[_TCMSG.size :]).get(_KIND, b""))
    return ""


def ingress_filters(ifindex: int) -> list[AttachedFilter]:
    """The filters at ingress of an interface, in the order in which they run."""
    return _filters(ifindex, _INGRESS_PARENT)


def egress_filters(ifindex: int) -> list[AttachedFilter]:
    """The filters at egress of an interface with clsact, in the order in which they run."""
    return _filters(ifindex, _EGRESS_PARENT)


def _filters(ifindex: int, parent: int) -> list[AttachedFilter]:
    found: dict[int, AttachedFilter] = {}
    for kind, body in _asked(_GET_FILTER, _REQUEST | _DUMP, ifindex, parent):
        if kind != _NEW_FILTER:
            continue
        priority = _TCMSG.unpack_from(body)[4] >> 16
        about = attributes(body[_TCMSG.size :])
        if any(about.get(_CHAIN, b"")):
            continue  # it runs only if a filter of chain 0 jumps there
        name = _text(attributes(about.get(_OPTIONS, b"")).get(_BPF_NAME, b""))
        of_kind = _text(about.get(_KIND, b""))
        if priority not in found or name:
            found[priority] = AttachedFilter(priority, of_kind, name if of_kind == "bpf" else "")
    return [found[priority] for priority in sorted(found)]


class TcChanges:
    """The interfaces of this network namespace whose qdiscs or filters change. The questions of this process
    are no changes.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
        )
        self._socket.bind((0, _GROUP_TC))

    def take(self) -> set[int] | None:
        """Those that have changed since the last call; None: any may have, because there were too many."""
        changed: set[int] = set()
        lost = False
        while True:
            try:
                data = self._socket.recv(_BUFFER)
            except BlockingIOError:
                return None if lost else changed
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                lost = True
                continue
            for kind, number, body in _messages(data):
                if number == _OWN or len(body) < _TCMSG.size:
                    continue
                if kind in (*_QDISC_MESSAGES, *_FILTER_MESSAGES):
                    changed.add(_TCMSG.unpack_from(body)[1])

    def close(self) -> None:
        """Follow no longer."""
        self._socket.close()


def _asked(kind: int, flags: int, ifindex: int, parent: int) -> Iterator[tuple[int, bytes]]:
    """The messages of the answer to one request. An error ends it, as if there were no more."""
    with _channel() as channel, suppress(OSError):
        yield from _answer(channel, kind, flags, ifindex, parent)


def _asked_for_all(kind: int, ifindex: int, parent: int) -> Iterator[tuple[int, bytes]]:
    """The messages of the answer to a request for all there are. Raises OSError if it is not complete."""
    with _channel() as channel:
        yield from _answer(channel, kind, _REQUEST | _DUMP, ifindex, parent)


def _channel() -> socket.socket:
    made = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC)
    made.settimeout(_PATIENCE)
    return made


def _answer(
    channel: socket.socket, kind: int, flags: int, ifindex: int, parent: int
) -> Iterator[tuple[int, bytes]]:
    body = _TCMSG.pack(socket.AF_UNSPEC, ifindex, 0, parent, 0)
    channel.send(_HEAD.pack(_HEAD.size + len(body), kind, flags, _OWN, 0) + body)
    while True:
        for each, _, answer in _messages(channel.recv(_BUFFER)):
            if each in (_ERROR, _DONE):
                code = -_CODE.unpack_from(answer)[0] if len(answer) >= _CODE.size else 0
                if code:
                    raise Refused(code, os.strerror(code))
                return
            yield each, answer


def _messages(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Type, sequence number and body of each message."""
    at = 0
    while at + _HEAD.size <= len(data):
        length, kind, _, number, _ = _HEAD.unpack_from(data, at)
        if length < _HEAD.size:
            return
        yield kind, number, data[at + _HEAD.size : at + length]
        at += length + 3 & ~3


def attributes(data: bytes) -> dict[int, bytes]:
    """The attributes in an answer, or in an attribute of one, by number."""
    found: dict[int, bytes] = {}
    at = 0
    while at + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < _ATTRIBUTE.size:
            break
        found[kind & 0x3FFF] = data[at + _ATTRIBUTE.size : at + length]
        at += length + 3 & ~3
    return found


def _text(raw: bytes) -> str:
    return raw.rstrip(b"\0").decode(errors="replace")
