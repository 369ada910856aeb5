"""The traffic of a simulated bridge: its connections, their flow records, and the copies of their segments.

Every port has one host. Data leaves by the port of its receiver, so a bridge of n ports has n groups of
flows: a few that last, and short ones that begin at a rate. Time is an argument, seconds.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from fairq_ryu.channel import flow_records
from fairq_ryu.channel.flow_records import FlowRecord
from fairq_ryu.model import FlowKey
from fairq_ryu.packet import addresses, build, tcp_options
from fairq_ryu.packet.headers import ACK, FIN, SYN, mac_bytes

MSS, WSCALE = 1460, 9
# Ports of clients begin behind it.
FIRST_PORT = 10_000
# Segments of 1,448 bytes (with timestamps) at 200 Mbit/s; every flow of a port gets its part of it.
PORT_BYTES = 24_000_000.0
_ACTIVE = flow_records.KNOWN | flow_records.ESTABLISHED
# How long the records of a closed connection stay, seconds: as in the agent.
_CLOSED_TIME = 2.0
RTT_US = 5000


class Copy(NamedTuple):
    """A segment that is copied to the controller: by the bridge at the ``port`` where it enters the network,
    or by the agent at the port by which it ``leaves``, because it has this ``flag``.
    """

    port: int
    frame: bytes
    leaves: int
    flag: int


@dataclass(slots=True)
class Connection:
    """``client`` and ``server`` are port numbers; data leaves by the server's port. ``sends``: it has data to
    send all the time, otherwise it is silent.
    """

    key: FlowKey
    client: int
    server: int
    began: float
    ends: float | None
    number: int
    sends: bool = True


@dataclass
class Flows:
    """The connections of a bridge of at least two ports.

    ``lasting`` connections with data to each port, from the beginning, of which a part of ``sending`` sends;
    ``rate`` more per second and port, each of which lasts ``seconds``.
    """

    bridge: int
    ports: int
    lasting: int
    rate: float
    seconds: float
    began: float
    sending: float = 1.0
    opened: int = 0
    _news: list[tuple[Connection, bool]] = field(default_factory=list)
    _open: dict[FlowKey, Connection] = field(default_factory=dict)
    _ends: list[tuple[float, int, FlowKey]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for port in range(1, self.ports + 1):
            for _ in range(self.lasting):
                self._connect(port, self.began, None)

    def _connect(self, server: int, now: float, seconds: float | None) -> Connection:
        self.opened += 1
        client = (server + self.opened % (self.ports - 1)) % self.ports + 1  # never the server itself
        key = FlowKey(
            self.address(client),
            self.address(server),
            FIRST_PORT + self.opened % 50_000,
            5000 + server % 1000,
        )
        ends = None if seconds is None else now + seconds
        sends = ends is not None or self.opened % 100 < 100 * self.sending
        made = Connection(key, client, server, now, ends, self.opened, sends)
        self._open[key] = made
        self._news.append((made, False))
        if ends is not None:
            heapq.heappush(self._ends, (ends, self.opened, key))
        return made

    def address(self, port: int) -> str:
        """The IP address of the host behind a port."""
        return f"10.{self.bridge}.{port >> 8}.{port & 255}"

    def mac(self, port: int) -> str:
        """Its MAC address."""
        return f"02:00:00:{self.bridge:02x}:{port >> 8:02x}:{port & 255:02x}"

    def announcements(self, ports: Iterable[int]) -> Iterator[Copy]:
        """A segment of the host behind each of these ports, from which the controller learns its address."""
        for port in ports:
            other = port % self.ports + 1
            key = FlowKey(self.address(port), self.address(other), 9, 9)
            yield self._copy(key, port, other, ACK, 1, 1)

    def advance(self, now: float) -> Iterator[Copy]:
        """The copies of the segments since the last call: SYN and SYN-ACK of connections that begin, FIN and
        FIN of those that end. The last ones are forgotten.
        """
        wanted = int((now - self.began) * self.rate * self.ports)
        lasting = self.lasting * self.ports
        while self.opened - lasting < wanted:
            server = (self.opened - lasting) % self.ports + 1
            made = self._connect(server, now, self.seconds)
            key, isn = made.key, made.number * 1000
            yield self._copy(key, made.client, server, SYN, isn, 0)
            yield self._copy(key.reversed, server, made.client, SYN | ACK, isn + 7, isn + 1)
        while self._ends and self._ends[0][0] <= now:
            due, number, key = heapq.heappop(self._ends)
            found = self._open.get(key)
            if found is None or found.number != number:
                continue
            if due == found.ends and now - due < _CLOSED_TIME:
                heapq.heappush(self._ends, (due + _CLOSED_TIME, number, key))
                self._news.append((found, True))
                client, server, isn = found.client, found.server, number * 1000
                size = self._bytes(found, due)
                yield self._copy(key, client, server, FIN | ACK, isn + 1 + size, isn + 8)
                yield self._copy(key.reversed, server, client, FIN | ACK, isn + 8, isn + 2 + size)
            else:
                del self._open[key]

    def _copy(self, key: FlowKey, source: int, target: int, flags: int, seq: int, ack: int) -> Copy:
        packed = addresses.packed(key.src), addresses.packed(key.dst)
        options = tcp_options.syn(MSS, WSCALE) if flags & SYN else b""
        tcp = build.tcp(
            b"".join(packed), (key.sport, key.dport), seq & 0xFFFFFFFF, ack & 0xFFFFFFFF, flags, 500, options
        )
        macs = mac_bytes(self.mac(source)), mac_bytes(self.mac(target))
        return Copy(source, build.tcp_frame(macs, packed, tcp), target, flags & (SYN | FIN))

    def _bytes(self, connection: Connection, now: float) -> int:
        last = now if connection.ends is None else min(now, connection.ends)
        return int((last - connection.began) * self.flow_rate) if connection.sends else 0

    def take_news(self) -> list[tuple[Connection, bool]]:
        """The connections that have begun or ended since the last call, and whether each has ended."""
        taken, self._news = self._news, []
        return taken

    @property
    def flow_rate(self) -> float:
        """The rate of a connection that sends, bytes per second."""
        return PORT_BYTES / (max(1.0, self.lasting * self.sending) + 1)

    @property
    def active(self) -> int:
        """The number of active flows by a port, on average."""
        return round(self.lasting * self.sending + self.rate * self.seconds)

    def records(self, now: float, ports: set[int]) -> Iterator[FlowRecord]:
        """The records of both directions of every connection that leave by ``ports``."""
        for each in self._open.values():
            ended = each.ends is not None and each.ends <= now
            flags = _ACTIVE | (flow_records.CLOSED if ended else 0)
            idle = int((now - each.ends) * 1000) if each.ends is not None and ended else 0
            size = self._bytes(each, now)
            data = size // 1448
            common = (flags, WSCALE, MSS, idle)
            if each.server in ports:
                yield FlowRecord(each.key, each.server, *common, size, data, 0, size, RTT_US)
            if each.client in ports:  # the ACKs, lowered
                yield FlowRecord(each.key.reversed, each.client, *common, 0, 0, data // 2, 0, RTT_US)
