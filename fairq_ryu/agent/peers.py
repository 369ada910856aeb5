"""Ports whose host sends TCP segments without their checksum: the far ends of veth pairs.

A veth leaves the checksum to the device that sends the packet to a wire (tx checksum offload). The userspace
datapath forwards packets as they are, with a wrong checksum: ping works, and TCP hangs. The far end is often
in another network namespace, a container's. rtnetlink reports its index and its namespace; its features can
only be read inside. Only the standard library is used, because ``fairq doctor`` imports this module.
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import os
import socket
import struct
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fairq_ryu.errors import quoted

_GETLINK, _GETNSID, _ERROR = 18, 90, 2
_REQUEST = 1
_IFLA_LINK, _IFLA_LINKINFO, _IFLA_LINK_NETNSID = 5, 18, 37
_INFO_KIND = 1
_NSID, _NSID_FD = 1, 3
_CLONE_NEWNET = 0x40000000
_SIOCETHTOOL, _SIOCGIFADDR = 0x8946, 0x8915
_GTXCSUM = 0x16
_GLOBAL_SCOPE = "00"
PROC = Path("/proc")
NAMED = Path("/run/netns")


@dataclass(frozen=True, slots=True)
class Peer:
    """The far end of a port: its interface, and the command prefix that enters its namespace ("": ours)."""

    name: str
    enter: str

    @property
    def remedy(self) -> str:
        """The command that switches its offloads off."""
        return f"{self.enter}ethtool -K {quoted(self.name)} tso off gso off gro off tx off"


def unfinished(ifindexes: Iterable[int]) -> dict[int, Peer]:
    """The ports (by ifindex) whose far end sends segments without checksums and has an address, so that a
    host uses it. Ports whose far end cannot be read are left out.
    """
    found: dict[int, Peer] = {}
    veths = {index: ends for index in ifindexes if (ends := _far_end(index)) is not None}
    if not veths:
        return found
    elsewhere = {nsid for _, nsid in veths.values() if nsid is not None}
    ways = dict(_namespaces(elsewhere))
    for index, (peer, nsid) in veths.items():
        if nsid is not None and nsid not in ways:
            continue
        path, enter = ("", "") if nsid is None else ways[nsid]
        name = _inside(path, peer)
        if name:
            found[index] = Peer(name, enter)
    return found


def _ask(kind: int, body: bytes) -> bytes:
    """The body of the reply to one rtnetlink request; empty if there is none."""
    header = struct.pack("=IHHII", 16 + len(body), kind, _REQUEST, 1, 0)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as channel:
            channel.settimeout(1.0)
            channel.send(header + body)
            answer = channel.recv(1 << 16)
    except OSError:
        return b""
    if len(answer) < 16 or struct.unpack_from("=H", answer, 4)[0] == _ERROR:
        return b""
    return answer[16:]


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        if length < 4 or at + length > len(data):
            return
        yield kind & 0x3FFF, data[at + 4 : at + length]
        at += (length + 3) & ~3


def _far_end(ifindex: int) -> tuple[int, int | None] | None:
    """The other end of a veth: its index, and the number of its namespace (None: it is ours). None if the
    interface is no veth.
    """
    link = dict(_attributes(_ask(_GETLINK, struct.pack("=BxHiII", 0, 0, ifindex, 0, 0))[16:]))
    about = dict(_attributes(link.get(_IFLA_LINKINFO, b"")))
    if about.get(_INFO_KIND, b"").rstrip(b"\0") != b"veth" or len(link.get(_IFLA_LINK, b"")) != 4:
        return None
    nsid = link.get(_IFLA_LINK_NETNSID)
    peer = struct.unpack("=i", link[_IFLA_LINK])[0]
    return peer, None if nsid is None else struct.unpack("=i", nsid)[0]


def _namespaces(wanted: set[int]) -> Iterator[tuple[int, tuple[str, str]]]:
    """For each of these namespaces that is found: its number, a file by which to enter it, and the command
    prefix for that.
    """
    missing, seen = set(wanted), set()
    for path, enter in _candidates():
        if not missing:
            return
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            about = os.fstat(fd)
            if (about.st_dev, about.st_ino) in seen:
                continue
            seen.add((about.st_dev, about.st_ino))
            answer = _ask(_GETNSID, struct.pack("=Bxxx", 0) + struct.pack("=HHI", 8, _NSID_FD, fd))
        finally:
            os.close(fd)
        number = dict(_attributes(answer[4:])).get(_NSID, b"")
        nsid = struct.unpack("=i", number)[0] if len(number) == 4 else -1
        if nsid in missing:
            missing.discard(nsid)
            yield nsid, (path, enter)


def _candidates() -> Iterator[tuple[str, str]]:
    if NAMED.is_dir():
        for path in sorted(NAMED.iterdir()):
            yield str(path), f"ip netns exec {quoted(path.name)} "
    for path in PROC.glob("[0-9]*"):
        yield f"{path}/ns/net", f"nsenter -t {path.name} -n "


def _inside(path: str, ifindex: int) -> str:
    """The name of an interface in a namespace ("": ours), if it has an address and leaves out checksums;
    otherwise "".
    """
    found: list[str] = []

    def look() -> None:
        # A thread can enter a namespace alone, and leaves it when it ends.
        if not path or _enter(path):
            found.extend(_look(ifindex))

    thread = threading.Thread(target=look, name="peer")
    thread.start()
    thread.join()
    return found[0] if found else ""


def _enter(path: str) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return bool(ctypes.CDLL(None, use_errno=True).setns(fd, _CLONE_NEWNET) == 0)
    finally:
        os.close(fd)


def _look(ifindex: int) -> list[str]:
    try:
        name = socket.if_indextoname(ifindex)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
            value = array.array("I", [_GTXCSUM, 0])
            request = struct.pack("16sP", name.encode(), value.buffer_info()[0])
            fcntl.ioctl(channel, _SIOCETHTOOL, request)
            return [name] if value[1] and _has_address(channel, name, ifindex) else []
    except OSError:
        return []


def _has_address(channel: socket.socket, name: str, ifindex: int) -> bool:
    """Whether an interface has an address that is not link-local. A port of another bridge has none, and its
    packets have checksums.
    """
    try:
        fcntl.ioctl(channel, _SIOCGIFADDR, struct.pack("16s16x", name.encode()))
        return True
    except OSError:
        pass
    try:
        lines = (PROC / "thread-self/net/if_inet6").read_text().splitlines()
    except OSError:
        return False
    fields = [line.split() for line in lines]
    return any(each[1:4:2] == [f"{ifindex:02x}", _GLOBAL_SCOPE] for each in fields if len(each) >= 4)
