"""The packets on the links between switches, captured by one tcpdump on all of them."""

import signal
import struct
import subprocess
import time
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from tests.support.lab import until

FIN, SYN, RST, ACK = 1, 2, 4, 16
TCP, UDP = 6, 17
_RECORD = struct.Struct("<IIII")
_SLL2 = struct.Struct("!HHIHBB8s")
_LINUX_SLL2 = 276
_SNAP = 128
_BLOCK = 1.2  # the kernel delivers captured packets after a second at the latest


class Packet(NamedTuple):
    """A packet as it came out of a link. ``link`` is the pair of names of its ends, ``into`` the nearer one.

    ``flow`` is (source, source port, target, target port) of IPv4 TCP and UDP, otherwise None.
    """

    time: float
    link: tuple
    into: str
    kind: int
    flow: tuple | None = None
    protocol: int = 0
    flags: int = 0
    seq: int = 0
    payload: int = 0


class Capture:
    """The packets that leave these links (pairs of interface names) from now until `stop`.

    Each packet is there once for every link that it passes. Discovery frames are omitted.
    """

    def __init__(self, path, links, expression=""):
        self.path = Path(path)
        self._log = self.path.with_suffix(".log")
        self._ends = {
            int(Path(f"/sys/class/net/{name}/ifindex").read_text()): (tuple(link), name)
            for link in links
            for name in link
        }
        # Both ends are in this namespace; only packets that leave a link are captured.
        words = "inbound and not ether proto 0x88cc and ("
        words += " or ".join(f"ifindex {number}" for number in self._ends) + ")"
        if expression:
            words += f" and ({expression})"
        command = ["tcpdump", "-i", "any", "-y", "LINUX_SLL2", "-n", "-s", str(_SNAP), "-B", "65536", "-U"]
        with open(self._log, "w") as log:
            self._process = subprocess.Popen(
                [*command, "-Z", "root", "-w", str(self.path), words], stderr=log, stdin=subprocess.DEVNULL
            )
        self.packets = []
        assert until(lambda: "listening on" in self._log.read_text()), self._log.read_text()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Stop, and read the capture; no packet may have been missed."""
        if self._process.poll() is None:
            size = -1
            while size != (size := self.path.stat().st_size):
                time.sleep(_BLOCK)
            self._process.send_signal(signal.SIGINT)
            self._process.wait(20)
            log = self._log.read_text()
            assert "\n0 packets dropped by kernel" in log, log
            self.packets = list(self._read())
        return self.packets

    def _read(self):
        data = self.path.read_bytes()
        magic, *_, kind = struct.unpack_from("<IHHiIII", data)
        assert (magic, kind) == (0xA1B2C3D4, _LINUX_SLL2)
        at = 24
        while at + _RECORD.size <= len(data):
            seconds, micros, size, _ = _RECORD.unpack_from(data, at)
            at += _RECORD.size
            yield self._packet(seconds + micros / 1e6, data[at : at + size])
            at += size

    def _packet(self, at, data):
        kind, _, number, *_ = _SLL2.unpack_from(data)
        link, into = self._ends[number]
        start = _SLL2.size
        if kind != 0x0800 or len(data) < start + 28 or data[start + 9] not in (TCP, UDP):
            return Packet(at, link, into, kind)
        protocol, head = data[start + 9], (data[start] & 15) * 4
        (total,) = struct.unpack_from("!H", data, start + 2)
        source, target = (".".join(map(str, data[start + n : start + n + 4])) for n in (12, 16))
        sport, dport = struct.unpack_from("!HH", data, start + head)
        flow = (source, sport, target, dport)
        if protocol == UDP:
            return Packet(at, link, into, kind, flow, UDP, payload=total - head - 8)
        seq, _, offset, flags = struct.unpack_from("!IIBB", data, start + head + 4)
        return Packet(at, link, into, kind, flow, TCP, flags, seq, total - head - (offset >> 4) * 4)


def frames(pcap):
    """The frames of a capture file, as they are."""
    at = 24
    while at + _RECORD.size <= len(pcap):
        _, _, size, _ = _RECORD.unpack_from(pcap, at)
        at += _RECORD.size
        yield pcap[at : at + size]
        at += size


def reverse(flow):
    return flow[2:] + flow[:2]


def by_flow(packets):
    """The packets of each direction of each TCP or UDP flow, in order of time."""
    found = defaultdict(list)
    for packet in packets:
        if packet.flow is not None:
            found[packet.flow].append(packet)
    return found


def links_of(packets):
    return {packet.link for packet in packets}
