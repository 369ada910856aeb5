"""Traffic control of an interface as the kernel tells it over netlink: the qdisc that carries filters at
ingress and egress, the filters there, and which interfaces change. Each question takes some microseconds.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

# linux/rtnetlink.h, linux/netlink.h, linux/pkt_sched.h, linux/pkt_cls.h
_QDISC_MESSAGES = (36, 37)  # RTM_NEWQDISC, RTM_DELQDISC
_GET_QDISC, _NEW_FILTER, _GET_FILTER = 38, 44, 46
_FILTER_MESSAGES = (_NEW_FILTER, 45)
_ERROR, _DONE = 2, 3
_REQUEST, _ACK, _ECHO, _DUMP = 1, 4, 8, 0x300
_GROUP_TC = 1 << 3
_QDISC_PARENT, _INGRESS_PARENT, _EGRESS_PARENT = 0xFFFFFFF1, 0xFFFFFFF2, 0xFFFFFFF3
_KIND, _OPTIONS, _CHAIN = 1, 2, 11
_BPF_NAME = 7
_HEAD = struct.Struct("=IHHII")
_TCMSG = struct.Struct("=B3xiIII")
_ATTRIBUTE = struct.Struct("=HH")
_BUFFER = 1 << 20
# The sequence number of the questions of this process. The kernel tells those who listen that a qdisc was
# asked for as if it had changed, with the number of the question.
_OWN = int.from_bytes(os.urandom(4), "little") | 1


class AttachedFilter(NamedTuple):
    """A tc filter. ``name``: of its eBPF program, "" for other kinds."""

    priority: int
    kind: str
    name: str = ""


def filter_qdisc(ifindex: int) -> str:
    """The kind of the qdisc to which filters at ingress are attached: ``clsact``, which carries filters at
    egress as well, or ``ingress``; "": the interface has none, or has gone.
    """
    # Without NLM_F_ECHO the reply goes to listeners only.
    for kind, body in _asked(_GET_QDISC, _REQUEST | _ACK | _ECHO, ifindex, _QDISC_PARENT):
        if kind in _QDISC_MESSAGES:
            return _text(_attributes(body[_TCMSG.size :]).get(_KIND, b""))
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
        attributes = _attributes(body[_TCMSG.size :])
        if any(attributes.get(_CHAIN, b"")):
            continue  # it runs only if a filter of chain 0 jumps there
        name = _text(_attributes(attributes.get(_OPTIONS, b"")).get(_BPF_NAME, b""))
        of_kind = _text(attributes.get(_KIND, b""))
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
    body = _TCMSG.pack(socket.AF_UNSPEC, ifindex, 0, parent, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC) as channel:
        channel.settimeout(5)
        with suppress(OSError):
            channel.send(_HEAD.pack(_HEAD.size + len(body), kind, flags, _OWN, 0) + body)
            while True:
                for each, _, answer in _messages(channel.recv(_BUFFER)):
                    if each in (_ERROR, _DONE):
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


def _attributes(data: bytes) -> dict[int, bytes]:
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
