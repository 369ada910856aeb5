"""How floods are made, and what is bounded under them. Each function is for one column of the table."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from fairq_ryu.fabric.flows.entries import HALF_OPEN_PER_PORT
from fairq_ryu.fabric.topology.hosts import HostTable
from fairq_ryu.packet import headers
from fairq_ryu.packet.addresses import packed
from fairq_ryu.rest.connections import CONNECTIONS
from fairq_ryu.rest.streams import MAX_STREAMS
from tests.faults.load import PORT
from tests.floods import frames
from tests.support.lab import output

if TYPE_CHECKING:
    from tests.floods.frames import End
    from tests.floods.site import FloodSite, Running, Senders

RATE = 20_000
FEW_FLOWS, MANY_FLOWS, FLOWS_RATE = 10_000, 100_000, 10_000
_OWN_RATE = 500
_FORGED_RATE, _ASKING_RATE = 10_000, 2_000
_RING = 100_000
_HOSTS = 40_000
_PEER_PORT, _NOBODYS_PORT = 80, 81
_BEHIND = 2_000  # frames of 0.2 s


# Floods of segments


def _syns(site: FloodSite, target: End, port: int, seconds: float) -> Senders:
    made = frames.segments(
        (site.attacker.mac, target.mac),
        (frames.strangers(_RING), target.number),
        (frames.ports(_RING), port),
        (np.arange(_RING), 0),
        headers.SYN,
        _RING,
    )
    return site.send(seconds, (made, RATE))


def syns_to_target(site: FloodSite, seconds: float) -> Running:
    return _syns(site, site.target, _PEER_PORT, seconds)


def syns_to_receiver(site: FloodSite, seconds: float) -> Running:
    return _syns(site, site.receiver, PORT, seconds)


def syns_are_bounded(site: FloodSite) -> Mapping[str, tuple[float, float]]:
    return {"connections with an unanswered SYN": (_total(site, "state=syn-seen"), 2 * HALF_OPEN_PER_PORT)}


def resets(site: FloodSite, seconds: float) -> Running:
    chance = np.random.default_rng(1)
    floods = []
    for flags in (headers.RST, headers.FIN | headers.ACK):
        numbers = chance.integers(0, 1 << 32, (2, _RING), dtype=np.uint32)
        made = frames.segments(
            (site.attacker.mac, site.target.mac),
            (frames.strangers(_RING), site.target.number),
            (frames.ports(_RING), _NOBODYS_PORT),
            (numbers[0], numbers[1]),
            flags,
            _RING,
        )
        floods.append((made, RATE))
        count = 1000
        own = [
            frame
            for address, port in site.flows
            for frame in frames.segments(
                (site.attacker.mac, site.receiver.mac),
                (int.from_bytes(packed(address)), site.receiver.number),
                (port, PORT),
                (numbers[0][:count], numbers[1][:count]),
                flags,
                count,
            )
        ]
        floods.append((own, _OWN_RATE))
    return site.send(seconds, *floods)


def nothing_is_added(site: FloodSite) -> Mapping[str, tuple[float, float]]:
    return {"connections that nobody has opened": (_total(site, f"port={_NOBODYS_PORT}"), 0)}


def many_flows(site: FloodSite, seconds: float) -> Running:
    number = int(min(MANY_FLOWS, FLOWS_RATE * seconds))
    there, back = site.attacker, site.target
    strange, ports = frames.strangers(number), frames.ports(number)
    numbers = np.arange(number, dtype=np.uint32) * 1000

    def to(flags: int, seq: int, ack: int, data: int = 0) -> list[bytes]:
        return frames.segments(
            (there.mac, back.mac),
            (strange, back.number),
            (ports, _PEER_PORT),
            (numbers + seq, numbers + ack if ack else 0),
            flags,
            number,
            data,
        )

    answers = frames.segments(
        (back.mac, there.mac),
        (back.number, strange),
        (_PEER_PORT, ports),
        (numbers + 500, numbers + 1),
        headers.SYN | headers.ACK,
        number,
    )
    data = frames.late(to(headers.ACK, 1, 501, 6), min(_BEHIND, number // 4))
    sent = frames.in_turn(to(headers.SYN, 0, 0), data)
    return site.send(seconds, (sent, 2 * FLOWS_RATE), back=(answers, FLOWS_RATE))


def flows_are_bounded(site: FloodSite) -> Mapping[str, tuple[float, float]]:
    return {"connections in the agent's map": (site.site.status()["flows"], FEW_FLOWS)}


# Others


def packet_ins(site: FloodSite, seconds: float) -> Running:
    forged = frames.from_anybody(site.target, _HOSTS)
    return site.send(seconds, (forged, _FORGED_RATE), (frames.questions(_HOSTS), _ASKING_RATE))


def hosts_are_bounded(site: FloodSite) -> Mapping[str, tuple[float, float]]:
    return {"hosts": (len(site.site.rest("hosts")["hosts"]), HostTable().capacity)}


class Readers:
    """Clients of the REST interface that never read."""

    def __init__(self, address: tuple[str, int], seconds: float) -> None:
        self.begin = time.monotonic()
        self._end, self._seconds = self.begin + seconds, seconds
        self._sockets: list[socket.socket] = []
        asks = b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        lists = b"".join(asks % path for path in (b"/v1/flows?limit=1000", b"/openapi.json", b"/v1/ports"))
        stream = b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"
        for number in range(2 * (CONNECTIONS + MAX_STREAMS)):
            self._ask(address, stream % b"/v1/live" if number < 2 * MAX_STREAMS else lists * 20)

    def _ask(self, address: tuple[str, int], what: bytes) -> None:
        made = socket.socket()
        self._sockets.append(made)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        made.settimeout(30)
        with contextlib.suppress(OSError):  # the server may close it
            made.connect(address)
            made.sendall(what)

    def wait(self) -> float:
        """See :class:`~tests.floods.site.Running`."""
        time.sleep(max(0.0, self._end - time.monotonic()))
        for each in self._sockets:
            each.close()
        return len(self._sockets) / self._seconds


def silent_readers(site: FloodSite, seconds: float) -> Running:
    return Readers(("127.0.0.1", site.site.rest_port), seconds)


def readers_are_bounded(site: FloodSite) -> Mapping[str, tuple[float, float]]:
    listing = output("ss", "-Htn", "state", "established", f"( sport = :{site.site.rest_port} )")
    return {"connections to the REST interface": (len(listing.splitlines()), CONNECTIONS)}


# What the controller has


def _total(site: FloodSite, which: str) -> int:
    return int(site.site.rest(f"flows?limit=1&{which}")["total"])
