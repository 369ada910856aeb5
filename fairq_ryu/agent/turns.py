"""Turns: new connections wait, in order, until a port has room for one more first window.

Every flow has at least the minimum window of its law under way, so more flows than the buffer holds such
windows overflow it. On ports whose law has turns, the eBPF program then hands SYNs and SYN-ACKs to the
agent (``bpf/turns.bpf.c``), and they wait here:

    arrived() -> waits -> serve(): the port has room, or it has waited too long -> leaves
                       -> stop(): the port has no turns any more                -> leaves

Those with an announced deadline leave first, the earliest first; then the others in order of arrival. The
deadline may become known while the packet waits. A retransmitted packet takes the place of the one that
waits; one with another sequence number, which anybody may have sent, leaves at once. Bounded: at most
``capacity`` packets wait at a port, those of one sender's address in at most a quarter of these places. SYN
and SYN-ACK of a connection, at two ports, wait for at most ``longest_ns`` together, which is less than the
initial retransmission timeout of 1 s (RFC 6298). What exceeds these bounds leaves at once. So does everything
while too many handshakes that have had their turn are incomplete, because then most of them are forged.

Pure: time is an argument, in ns; ports are interface indices. :class:`Room` is the twin of
``bpf/laws/turns.h``.
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from fairq_ryu.agent.turn_deadlines import TurnDeadlines
from fairq_ryu.packet.parse import parse

CAPACITY = 4096
LONGEST_NS = 900_000_000
# Packets of all ports together that leave in one call of serve(): the agent has other work, too.
_MAX_RELEASES = 64
_HEADERS, _FEW = 66, 4
_NS_PER_S = 1_000_000_000
_NEVER = (1 << 64) - 1
# Incomplete handshakes are forgotten after this time, as in ``bpf/laws/opening.h``.
UNPROVEN_NS = 10 * _NS_PER_S
# One sender's address has at most this part of the places at a port.
_SHARES = 4


class Room(NamedTuple):
    """Whether a port has room for the first window of one more flow: ``fq_room`` of ``layout.h``, in bytes of
    the queue except ``flows``, ``half_open`` and ``allowance``.
    """

    limit: int
    backlog: int
    flows: int
    frame: int
    floor: int
    first: int
    expected: int
    half_open: int
    allowance: int

    @property
    def flooded(self) -> bool:
        """Whether so many handshakes are incomplete that nobody waits, as ``turns_flooded()``."""
        return self.half_open >= self.allowance

    @property
    def has_room(self) -> bool:
        """As ``turns_have_room()``: the same integers."""
        if self.flooded:
            return True
        if self.flows * self.frame + self.expected < _FEW * self.frame:
            return True
        return max(self.backlog + self.expected, self.flows * self.floor) + self.first <= self.limit


def frame_of(segment: int) -> int:
    """The bytes that a segment takes in the queue."""
    return segment + _HEADERS


def still_expected(expected: int, earlier: int, limit: int, age_ns: int, hold_ns: int) -> int:
    """The first windows, bytes, that may not have come yet: those ``expected`` in the last ``age_ns``, and
    those of the ``hold_ns`` before, ``earlier``; at most ``limit``. As ``turns_expected()``.
    """
    age_ns = max(age_ns, 0)
    if age_ns >= 2 * hold_ns:
        return 0
    return expected if age_ns >= hold_ns else min(expected + earlier, limit)


def half_open(begun: int, begun_ns: int, proven: int, now_ns: int) -> int:
    """Of the handshakes that have had their turn since ``begun_ns``, those that are not complete: as
    ``turns_half_open()``. ``proven`` were completed since then.
    """
    return 0 if now_ns - begun_ns >= UNPROVEN_NS else max(begun - max(proven, 0), 0)


class HeldPacket(NamedTuple):
    """A SYN or SYN-ACK that the eBPF program has handed to the agent. ``key`` identifies its flow and
    direction, ``connection`` both directions of that flow, ``sender`` the address that it comes from.
    """

    port: int
    key: bytes
    connection: bytes
    sender: bytes
    frame: bytes
    held_ns: int


@dataclass(slots=True)
class TurnCounts:
    """The packets of one port: those ``waiting`` now, and those ``held`` ever; those that left: ``released``
    because there was room, ``late`` because they had waited too long, ``full`` because too many waited or too
    many handshakes were incomplete.
    """

    waiting: int = 0
    held: int = 0
    released: int = 0
    late: int = 0
    full: int = 0


class TurnSink(Protocol):
    """The eBPF program, or a fake in the tests."""

    def room(self, port: int, now_ns: int) -> Room | None:
        """What decides whether a port has room; None: its law has ended."""

    def send(self, port: int, frame: bytes, waited_ns: int) -> None:
        """Let a packet leave by a port. One that cannot be sent is lost: its sender will retransmit it."""

    def set_waiting(self, port: int, waiting: int) -> None:
        """Let further packets of the port wait as well, because ``waiting`` wait; 0: only without room."""


@dataclass(slots=True)
class _Waiting:
    frame: bytes
    connection: bytes
    sender: bytes
    held_ns: int
    since_ns: int
    """As if it had waited before for as long as the connection's other packet has."""
    place: tuple[int, int]
    """In the order in which packets leave: deadline and number of arrival."""


@dataclass(slots=True)
class _Port:
    """The packets that wait at a port; a heap in the order in which they leave, and one by how long they have
    waited. Entries of packets that have left, or have another place now, stay there for a while.
    """

    counts: TurnCounts = field(default_factory=TurnCounts)
    packets: dict[bytes, _Waiting] = field(default_factory=dict)
    order: list[tuple[tuple[int, int], bytes]] = field(default_factory=list)
    ages: list[tuple[int, int, bytes]] = field(default_factory=list)
    senders: Counter[bytes] = field(default_factory=Counter)
    arrivals: int = 0

    def add(self, packet: HeldPacket, deadline_ns: int | None, waited_ns: int) -> None:
        """A packet waits. The other packet of its connection has waited so long before."""
        self.arrivals += 1
        place = _urgency(deadline_ns), self.arrivals
        since = packet.held_ns - waited_ns
        self.packets[packet.key] = _Waiting(
            packet.frame, packet.connection, packet.sender, packet.held_ns, since, place
        )
        self.senders[packet.sender] += 1
        self._enter(packet.key)
        if len(self.ages) >= 2 * len(self.packets):
            self.ages = [(each.since_ns, each.place[1], known) for known, each in self.packets.items()]
            heapq.heapify(self.ages)
        else:
            heapq.heappush(self.ages, (since, self.arrivals, packet.key))

    def remove(self, key: bytes) -> _Waiting:
        """A packet leaves."""
        waiting = self.packets.pop(key)
        self.senders[waiting.sender] -= 1
        if not self.senders[waiting.sender]:
            del self.senders[waiting.sender]
        return waiting

    def reorder(self, key: bytes, deadline_ns: int | None) -> None:
        """A packet that waits has this deadline now; None: it has none."""
        waiting = self.packets[key]
        place = _urgency(deadline_ns), waiting.place[1]
        if place != waiting.place:
            waiting.place = place
            self._enter(key)

    def _enter(self, key: bytes) -> None:
        if len(self.order) >= 2 * len(self.packets):
            self.order = [(each.place, known) for known, each in self.packets.items()]
            heapq.heapify(self.order)
        else:
            heapq.heappush(self.order, (self.packets[key].place, key))

    def first(self) -> bytes:
        """The packet that leaves next; there is one."""
        while True:
            place, key = self.order[0]
            if key in self.packets and self.packets[key].place == place:
                return key
            heapq.heappop(self.order)

    def oldest(self) -> bytes | None:
        """The packet that has waited longest; None: none waits."""
        while self.ages:
            _, arrival, key = self.ages[0]
            if key in self.packets and self.packets[key].place[1] == arrival:
                return key
            heapq.heappop(self.ages)
        return None


def _urgency(deadline_ns: int | None) -> int:
    return _NEVER if deadline_ns is None else deadline_ns


def _same_number(one: bytes, other: bytes) -> bool:
    """Whether two frames may be the same segment, sent twice."""
    numbers = [frame.tcp.seq for frame in (parse(one), parse(other)) if frame is not None and frame.tcp]
    return len(numbers) < 2 or numbers[0] == numbers[1]


class Turns:
    """The turns of the ports of a bridge."""

    def __init__(self, sink: TurnSink, capacity: int = CAPACITY, longest_ns: int = LONGEST_NS) -> None:
        self._sink, self._capacity, self._longest_ns = sink, capacity, longest_ns
        self._ports: dict[int, _Port] = {}
        self._deadlines = TurnDeadlines()
        # Where packets of a connection wait: port and key.
        self._places: dict[bytes, list[tuple[int, bytes]]] = {}
        # Of connections: which packet has waited, for how long, and when it left, in order of that.
        self._waited: dict[bytes, tuple[bytes, int, int]] = {}
        self._calls = 0

    # Ports

    @property
    def ports(self) -> tuple[int, ...]:
        """The ports whose new connections take turns."""
        return tuple(self._ports)

    def start(self, port: int) -> None:
        """New connections of a port take turns from now on."""
        self._ports.setdefault(port, _Port())

    def stop(self, port: int, now_ns: int) -> None:
        """They no longer do: all that wait leave."""
        state = self._ports.pop(port, None)
        if state is not None:
            for key in list(state.packets):
                self._leave(port, state, key, now_ns)

    def counts(self, port: int) -> TurnCounts:
        """The counts of a port."""
        state = self._ports.get(port)
        return TurnCounts() if state is None else state.counts

    # Packets

    @property
    def waiting(self) -> bool:
        """Whether any packet waits: then :meth:`serve` is to be called about every millisecond."""
        return any(state.packets for state in self._ports.values())

    @property
    def deadlines(self) -> int:
        """The number of deadlines that are stored."""
        return len(self._deadlines)

    def set_deadline(self, connection: bytes, deadline_ns: int | None, now_ns: int) -> None:
        """A connection has this deadline now (None: none any more). Its packets that wait get another place,
        and those that come later get theirs. An unknown connection may be one that begins.
        """
        self._deadlines.set(connection, deadline_ns, now_ns)
        for port, key in self._places.get(connection, ()):
            self._ports[port].reorder(key, deadline_ns)

    def arrived(self, packet: HeldPacket, now_ns: int) -> None:
        """The program has handed over a packet."""
        state = self._ports.get(packet.port)
        if state is None:
            self._sink.send(packet.port, packet.frame, now_ns - packet.held_ns)
            return
        known = state.packets.get(packet.key)
        if known is not None:
            if _same_number(known.frame, packet.frame):
                known.frame = packet.frame
            else:
                self._sink.send(packet.port, packet.frame, now_ns - packet.held_ns)
            return
        share = max(self._capacity // _SHARES, 1)
        if len(state.packets) >= self._capacity or state.senders[packet.sender] >= share:
            state.counts.full += 1
            self._sink.send(packet.port, packet.frame, now_ns - packet.held_ns)
            return
        other, waited, left_ns = self._waited.get(packet.connection, (packet.key, 0, 0))
        if other == packet.key or now_ns - left_ns >= _NS_PER_S:
            waited = 0  # of an earlier attempt
        state.add(packet, self._deadlines.get(packet.connection, now_ns), waited)
        self._places.setdefault(packet.connection, []).append((packet.port, packet.key))
        self._waits(packet.port, state)

    def serve(self, now_ns: int) -> None:
        """Let packets leave that have waited too long, and as many as their ports have room for."""
        ports = [(port, state) for port, state in self._ports.items() if state.packets]
        # Another port is first each time, so that none has to wait for all others.
        self._calls += 1
        first = self._calls % len(ports) if ports else 0
        left = _MAX_RELEASES
        for port, state in ports[first:] + ports[:first]:
            left -= self._serve(port, state, now_ns, left)

    def _serve(self, port: int, state: _Port, now_ns: int, most: int) -> int:
        """Returns how many have left, at most ``most``."""
        before = len(state.packets)
        for _ in range(most):
            oldest = state.oldest()
            if oldest is None:
                break
            if now_ns - state.packets[oldest].since_ns >= self._longest_ns:
                state.counts.late += 1
                self._leave(port, state, oldest, now_ns)
                continue
            # Each packet that leaves takes room: the next look finds less.
            room = self._sink.room(port, now_ns)
            if room is not None and not room.has_room:
                break
            if room is not None and room.flooded:
                state.counts.full += 1
            else:
                state.counts.released += 1
            self._leave(port, state, state.first(), now_ns)
        self._waits(port, state)
        return before - len(state.packets)

    def _leave(self, port: int, state: _Port, key: bytes, now_ns: int) -> None:
        waiting = state.remove(key)
        places = self._places[waiting.connection]
        places.remove((port, key))
        if not places:
            del self._places[waiting.connection]
        waited = now_ns - waiting.held_ns
        self._waited.pop(waiting.connection, None)
        self._waited[waiting.connection] = key, waited, now_ns
        while len(self._waited) > self._capacity or self._is_past(next(iter(self._waited)), now_ns):
            del self._waited[next(iter(self._waited))]
        self._sink.send(port, waiting.frame, waited)

    def _is_past(self, connection: bytes, now_ns: int) -> bool:
        return now_ns - self._waited[connection][2] >= _NS_PER_S

    def _waits(self, port: int, state: _Port) -> None:
        if bool(state.counts.waiting) != bool(state.packets):
            self._sink.set_waiting(port, len(state.packets))
        state.counts.waiting = len(state.packets)
