"""Frames at the interfaces of hosts, with their VLAN tags: sent and received as they are."""

import contextlib
import ctypes
import os
import select
import socket
import struct
import time

_LIBC = ctypes.CDLL(None, use_errno=True)
_NEW_NETWORK = 0x40000000  # CLONE_NEWNET
_SOL_PACKET, _AUXDATA, _VLAN_VALID = 263, 8, 1 << 4
_ALL = 0x0003  # ETH_P_ALL
_AUX = struct.Struct("=IIIHHHH")
ETH_TYPE = 0x88B6  # IEEE 802, local experimental
GROUP = "ff:ff:ff:ff:ff:ff"
_MARK = slice(14, 22)  # the kernel has taken the tag out of a frame that has one


@contextlib.contextmanager
def inside(pid):
    """This thread is in the network namespace of a process; sockets made now stay there."""
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    try:
        assert _LIBC.setns(there, _NEW_NETWORK) == 0, os.strerror(ctypes.get_errno())
        yield
    finally:
        _LIBC.setns(before, _NEW_NETWORK)
        os.close(there)
        os.close(before)


class Wires:
    """One packet socket for each of ``ends``: name -> (process in its namespace or None, interface)."""

    def __init__(self, ends):
        self._sockets = {}
        self._marks = 0
        for name, (pid, interface) in ends.items():
            with inside(pid) if pid is not None else contextlib.nullcontext():
                made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL))
                made.bind((interface, 0))
            made.setblocking(False)
            made.setsockopt(_SOL_PACKET, _AUXDATA, 1)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
            self._sockets[name] = made

    def close(self):
        for each in self._sockets.values():
            each.close()

    def send(self, source, tag=None, target=GROUP, mac=None):
        """Send a frame with a tag (TCI) or without; returns its mark."""
        self._marks += 1
        number = list(self._sockets).index(source) + 1
        mac = bytes.fromhex((mac or f"02:00:00:00:99:{number:02x}").replace(":", ""))
        mark = struct.pack("!I4s", self._marks, os.urandom(4))
        tags = b"" if tag is None else struct.pack("!HH", 0x8100, tag)
        head = bytes.fromhex(target.replace(":", "")) + mac + tags + struct.pack("!H", ETH_TYPE)
        self._sockets[source].send((head + mark).ljust(60, b"\0"))
        return mark

    def received(self, mark, quiet=0.25):
        """Who has received a frame: name -> the VLAN tags (None: without) of all copies."""
        return self.all_received([mark], quiet)[mark]

    def all_received(self, marks, quiet=0.25, most=2.0):
        """The same for several frames, by their marks. Returns when no copy has come for ``quiet`` seconds,
        or after ``most``.
        """
        found = {mark: {} for mark in marks}
        names = {made: name for name, made in self._sockets.items()}
        end = time.monotonic() + most
        while (left := end - time.monotonic()) > 0:
            ready, _, _ = select.select(list(names), [], [], min(quiet, left))
            if not ready:
                break
            for made in ready:
                with contextlib.suppress(BlockingIOError):
                    while True:
                        data, control, _, address = made.recvmsg(2048, 256)
                        tag = _tag(control)
                        mark = data[_MARK]
                        if address[2] != socket.PACKET_OUTGOING and mark in found:
                            found[mark].setdefault(names[made], []).append(tag)
        return found

    def reach(self, source, tag=None, **what):
        """Send a frame, and who has received it."""
        return self.received(self.send(source, tag, **what))


def _tag(control):
    for level, kind, data in control:
        if level == _SOL_PACKET and kind == _AUXDATA:
            status, *_, tci, _ = _AUX.unpack_from(data)
            return tci & 0xFFF if status & _VLAN_VALID else None
    return None
