"""Hosts that forge and flood frames, and a host that asks by ARP meanwhile."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import struct
import subprocess
import time

from fairq_ryu.packet import addresses, build, headers, parse
from tests.support.lab import ROOT

_LLDP = 0x88CC
_BROADCAST = b"\xff" * 6
_FLOOD = """
import sys
sys.path.insert(0, sys.argv[1])
from bench import flood
flood.main(sys.argv[2], *map(float, sys.argv[3:]))
"""


class Flood:
    """Frames that a host sends again and again, in a process of its own, from the time ``begin`` on."""

    def __init__(self, fabric, host, frames, rate, seconds, begin=0.0):
        interface = str(fabric[host].defaultIntf())
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = fabric.run(host, _FLOOD, ROOT, interface, rate, seconds, begin, **options)
        self._process.stdin.write("\n".join(frame.hex() for frame in frames))
        self._process.stdin.close()

    def running(self):
        return self._process.poll() is None

    def rate(self):
        """Frames per second that were sent."""
        found = json.loads(self._process.stdout.read())
        assert self._process.wait(30) == 0
        return found["sent"] / found["seconds"]


def segments(fabric, source, target, flags, count=2000, seed=1):
    """TCP segments of connections that do not exist, from addresses to which the target has no route."""
    chance = random.Random(seed)
    macs = headers.mac_bytes(fabric[source].MAC()), headers.mac_bytes(fabric[target].MAC())
    found = []
    for number in range(count):
        ends = bytes([192, 168, number >> 8, number & 255]), addresses.packed(fabric.address(target))
        ports = chance.randrange(1024, 65536), 80
        tcp = build.tcp(b"".join(ends), ports, chance.getrandbits(32), 0, flags, 512)
        found.append(build.tcp_frame(macs, ends, tcp))
    return found


def false_claims(fabric, liar, victims):
    """ARP frames that claim the addresses of others: their IP addresses, and their MAC addresses."""
    own, found = headers.mac_bytes(fabric[liar].MAC()), []
    for victim in victims:
        ip, mac = addresses.packed(fabric.address(victim)), headers.mac_bytes(fabric[victim].MAC())
        for operation, source, sender in (
            (headers.ARP_REQUEST, own, own),
            (headers.ARP_REPLY, own, own),
            (headers.ARP_REQUEST, mac, mac),
            (headers.ARP_REQUEST, mac, own),
        ):
            message = build.arp(operation, (sender, ip), (bytes(6), ip))
            found.append(build.ethernet(source, _BROADCAST, headers.ETH_ARP) + message)
    return found


class Taps:
    """Raw sockets in two hosts that carry the LLDP frames of their ports to each other, and forge some."""

    def __init__(self, fabric, *hosts):
        self.carried = 0
        self._stack = contextlib.ExitStack()
        self._sockets = []
        for host in hosts:
            with fabric.inside(host):
                made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_LLDP))
            made.bind((str(fabric[host].defaultIntf()), _LLDP))
            made.setblocking(False)
            self._sockets.append(self._stack.enter_context(made))

    def step(self):
        """Carry what has come, each frame once as it is and once with another sender."""
        for each, other in (self._sockets, self._sockets[::-1]):
            with contextlib.suppress(BlockingIOError):
                while True:
                    frame = each.recv(2048)
                    port = struct.unpack_from("!I", frame, 41)[0]
                    forged = frame[:41] + struct.pack("!I", port + 1) + frame[45:]
                    for data in (frame, forged):
                        with contextlib.suppress(OSError):
                            other.send(data)
                    self.carried += 1

    def close(self):
        self._stack.close()


class Asker:
    """A host that asks for the MAC address of another by broadcast ARP, one request at a time."""

    def __init__(self, fabric, host, target):
        with fabric.inside(host):
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(headers.ETH_ARP))
        self._socket.bind((str(fabric[host].defaultIntf()), headers.ETH_ARP))
        self._socket.setblocking(False)
        self._target = fabric.address(target)
        self.mac = fabric[target].MAC()
        sender = headers.mac_bytes(fabric[host].MAC()), addresses.packed(fabric.address(host))
        wanted = bytes(6), addresses.packed(self._target)
        self._request = build.arp_frame(headers.ARP_REQUEST, sender, wanted, _BROADCAST)
        self._asked_at = None
        self._last = self._sent_at = 0.0
        self.asked = 0
        self.answers = []  # (seconds, MAC address) of each

    def step(self, interval=0.1):
        """Ask again ``interval`` seconds after the last question if it is answered; repeat a request, which
        may be lost, after a second.
        """
        now = time.monotonic()
        with contextlib.suppress(BlockingIOError):
            while True:
                frame = parse.parse(self._socket.recv(2048))
                arp = None if frame is None else frame.arp
                answers = arp is not None and arp.operation == headers.ARP_REPLY
                if answers and arp.sender_ip == self._target and self._asked_at is not None:
                    self.answers.append((now - self._asked_at, arp.sender_mac))
                    self._asked_at = None
        due = self._asked_at is None and now >= self._last + interval
        if due:
            self._asked_at = self._last = now
            self.asked += 1
        if due or (self._asked_at is not None and now > self._sent_at + 1):
            self._sent_at = now
            self._socket.send(self._request)

    def close(self):
        self._socket.close()
