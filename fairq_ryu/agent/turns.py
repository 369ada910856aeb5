"""Turns: new connections wait, in order, until a port has room for one more first window.

Every flow has at least the minimum window of its law under way, so more flows than the buffer holds such
windows overflow it. On ports whose law has turns, the eBPF program then hands SYNs and SYN-ACKs to the
agent (``bpf/turns.bpf.c``), and they wait here:

    arrived() -> waits -> serve(): the port has room, or it has waited too long -> leaves
                       -> serve(): it has waited for long, turns go on     -> leaves, with a closed window
                            -> waits as a connection -> serve(): as above  -> its window opens
                       -> stop(): the port has no turns any more           -> leaves, or its window opens

Those with an announced deadline leave first, the earliest first; then the others in order of arrival. Where
the law shares by tenant, this is the order within a tenant, and tenants have turns by their weights. The
deadline may become known while the packet waits. A retransmitted packet takes the place of the one that
waits; one with another sequence number, which anybody may have sent, leaves at once. Bounded: at most
``capacity`` packets wait at a port, those of one sender's address in at most a quarter of these places. SYN
and SYN-ACK of a connection, at two ports, wait for at most ``longest_ns`` together, which is less than the
initial retransmission timeout of 1 s (RFC 6298). What exceeds these bounds leaves at once. So does everything
while too many handshakes that have had their turn are incomplete, because then most of them are forged.

A large volley takes longer than a handshake can wait. So handshakes that have waited for
:data:`CLOSE_AFTER_NS` are completed, a few at a time, while a rule of this agent closes the window of the
sender: it sends no data, and no retransmission timer runs, because nothing of it is under way. The connection
keeps its place in the order. When its turn comes, the rule is removed, and a window update in the receiver's
name starts the sender. The rule has a short lease, which is renewed, so that nothing stays closed when the
agent dies. Connections wait in this way for at most :data:`LONGEST_CLOSED_NS`, and only while others have
their turns: on a port that never has room, because of connections that stay, handshakes leave as they are
when they have waited for ``longest_ns``.

Pure: time is an argument, in ns; ports are interface indices.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from fairq_ryu.agent.turn_deadlines import TurnDeadlines
from fairq_ryu.agent.turn_queue import CAPACITY, HeldPacket, PortTurns, TurnCounts, Waiting
from fairq_ryu.agent.turn_room import Room
from fairq_ryu.packet.parse import parse

LONGEST_NS = 900_000_000
CLOSE_AFTER_NS = 500_000_000
"""A handshake that has waited for so long is completed with a closed window."""
LONGEST_CLOSED_NS = 5_000_000_000
"""A connection waits for at most so long, its handshake included."""
CLOSED_LEASE_NS = 1_000_000_000
"""For so long a window stays closed without the agent."""
# In one call of serve() this part of the handshakes of a port, and one, are completed with closed windows:
# nearly all until they have waited too long, but not all at once.
_CLOSES = 32
# So many packets at the head of the order are not completed before they have waited for the second time,
# because their turns come soon.
_NEXT, _NEXT_NS = 32, 700_000_000
# If nobody has had a turn for this time, flows that last fill the buffer, and none ends and makes room.
_CROWDED_NS = 200_000_000
# For this long a connection whose turn has come keeps its room while its handshake is not complete.
_RESERVED_NS = 200_000_000
# An update that cannot be sent is tried again for this time.
_UNSENT_NS = 100_000_000
# Turns go on if there was one within this time. If a window cannot be closed, the port tries again after it.
_GOES_ON_NS, _AGAIN_NS = 300_000_000, 100_000_000
# Packets of all ports together that leave in one call of serve(): the agent has other work, too.
_MAX_RELEASES = 64
_NS_PER_S = 1_000_000_000
# One sender's address has at most this part of the places at a port.
_SHARES = 4


class Closing(Enum):
    """What became of the wish to close a window: done; not for this connection, which may have sent already
    or has a rule of a controller; or not now, because there is no room for the rule.
    """

    DONE = 1
    NEVER = 2
    LATER = 3


class Opening(Enum):
    """What became of a window that was to be opened: its sender is told; the update could not be sent; or
    there is no sender, because the connection has ended or was never complete.
    """

    TOLD = 1
    UNSENT = 2
    GONE = 3


class TurnSink(Protocol):
    """The eBPF program, or a fake in the tests."""

    def room(self, port: int, now_ns: int) -> Room | None:
        """What decides whether a port has room; None: its law has ended."""

    def hold_ns(self, port: int) -> int:
        """For so long the first window of a connection is expected."""

    def whole_floor(self, port: int) -> int:
        """The minimum window of a flow while the buffer holds those of all flows, as in :class:`Room`; 0: it
        is a segment.
        """

    def send(self, port: int, frame: bytes, waited_ns: int, closed: bool = False) -> None:
        """Let a packet leave by a port. One that cannot be sent is lost: its sender will retransmit it.
        ``closed``: the window of its sender is closed.
        """

    def close_window(self, key: bytes, frame: bytes, until_ns: int) -> Closing:
        """Close the window of the sender of a packet until then."""

    def keep_closed(self, key: bytes, until_ns: int) -> bool:
        """A window that was closed stays so until then. Returns False if it is not closed any more, because
        a controller has a rule for the flow.
        """

    def is_open(self, key: bytes) -> bool:
        """Whether the handshake of a packet's connection is complete, as far as opening its window needs, or
        over.
        """

    def open_window(self, key: bytes, frame: bytes) -> Opening:
        """Open a window that is closed, and tell its sender; also once more."""

    def set_waiting(self, port: int, waiting: int) -> None:
        """Let further packets of the port wait as well, because ``waiting`` wait; 0: only without room."""


def _same_number(one: bytes, other: bytes) -> bool:
    """Whether two frames may be the same segment, sent twice."""
    numbers = [frame.tcp.seq for frame in (parse(one), parse(other)) if frame is not None and frame.tcp]
    return len(numbers) < 2 or numbers[0] == numbers[1]


class Turns:
    """The turns of the ports of a bridge."""

    def __init__(self, sink: TurnSink, capacity: int = CAPACITY, longest_ns: int = LONGEST_NS) -> None:
        self._sink, self._capacity, self._longest_ns = sink, capacity, longest_ns
        self._ports: dict[int, PortTurns] = {}
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
        self._ports.setdefault(port, PortTurns())

    def stop(self, port: int, now_ns: int) -> None:
        """They no longer do: all that wait leave."""
        state = self._ports.pop(port, None)
        if state is not None:
            for key in list(state.packets):
                self._let_go(port, state, key, None, now_ns)

    def counts(self, port: int) -> TurnCounts:
        """The counts of a port."""
        state = self._ports.get(port)
        return TurnCounts() if state is None else state.counts

    # Packets

    @property
    def waiting(self) -> bool:
        """Whether any packet waits: then :meth:`serve` is to be called about every millisecond."""
        return any(state.packets or state.told for state in self._ports.values())

    @property
    def deadlines(self) -> int:
        """The number of deadlines that are stored."""
        return len(self._deadlines)

    @property
    def closed(self) -> int:
        """The number of connections that wait with a closed window."""
        return sum(len(state.leases) for state in self._ports.values())

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
            if not known.closed and _same_number(known.frame, packet.frame):
                known.frame = packet.frame
            else:
                self._sink.send(packet.port, packet.frame, now_ns - packet.held_ns, known.closed)
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
        self._waits(packet.port, state, now_ns)

    def serve(self, now_ns: int) -> None:
        """Let packets leave that have waited too long, and as many as their ports have room for."""
        ports = [(port, state) for port, state in self._ports.items() if state.packets or state.told]
        # Another port is first each time, so that none has to wait for all others.
        self._calls += 1
        first = self._calls % len(ports) if ports else 0
        left = _MAX_RELEASES
        for port, state in ports[first:] + ports[:first]:
            left -= self._serve(port, state, now_ns, left)

    def _serve(self, port: int, state: PortTurns, now_ns: int, most: int) -> int:
        """Returns how many have left, at most ``most``."""
        done = self._let_go_late(port, state, now_ns, most)
        done += self._open_reserved(port, state, now_ns)
        while done < most and (key := state.first()) is not None:
            # Each packet that leaves takes room: the next look finds less.
            room = self._room(port, state, now_ns)
            if room is not None and not self._has_room(port, state, room, now_ns):
                done += self._close_windows(port, state, room, now_ns)
                break
            done += 1
            waiting = state.packets[key]
            state.take_turn(key)
            if room is not None and waiting.closed and not self._sink.is_open(key):
                state.reserve(key, now_ns)
                continue
            if room is not None and room.flooded:
                state.counts.full += 1
            else:
                state.counts.released += 1
                state.turn_ns = now_ns
            self._let_go(port, state, key, room, now_ns)
        self._renew(port, state, now_ns)
        self._waits(port, state, now_ns)
        return done

    def _room(self, port: int, state: PortTurns, now_ns: int) -> Room | None:
        room = self._sink.room(port, now_ns)
        if room is None:
            return None
        expected = state.first_windows.still_expected(self._sink.hold_ns(port), room.limit, now_ns)
        reserved = len(state.reserved)
        if not expected and not reserved:
            return room
        expected = min(room.expected + expected + reserved * room.first, room.limit)
        return room._replace(flows=room.flows + reserved, expected=expected)

    def _has_room(self, port: int, state: PortTurns, room: Room, now_ns: int) -> bool:
        """Whether a packet has its turn. Room for one segment of each flow is not enough while others end and
        make room: with a few flows more than the buffer holds minimum windows, each has a smaller one, so
        there seems to be room for still more, and it stays so.
        """
        floor = self._sink.whole_floor(port)
        few = room.flows * floor + room.first <= room.limit or room.is_empty
        if few:
            state.crowded = False
        elif now_ns - state.turn_ns >= _CROWDED_NS:
            state.crowded = True
        return room.has_room and (few or state.crowded or room.flooded)

    def _open_reserved(self, port: int, state: PortTurns, now_ns: int) -> int:
        """Open the windows of connections that have room reserved and are complete now, and send updates that
        could not be sent. Returns how many.
        """
        done = 0
        for key, (frame, until_ns) in list(state.unsent.items()):
            if self._sink.open_window(key, frame) is not Opening.UNSENT or now_ns >= until_ns:
                del state.unsent[key]
            done += 1
        for key, since_ns in list(state.reserved.items()):
            if now_ns - since_ns >= _RESERVED_NS or self._sink.is_open(key):
                state.counts.released += 1
                state.turn_ns = now_ns
                self._let_go(port, state, key, self._sink.room(port, now_ns), now_ns)
                done += 1
        return done

    def _let_go_late(self, port: int, state: PortTurns, now_ns: int, most: int) -> int:
        """Let go what has waited too long; of connections with closed windows one, because of the first
        windows that it sends. Returns how many.
        """
        done = 0
        while done < most:
            oldest = state.oldest()
            if oldest is None or now_ns - state.packets[oldest].since_ns < self._longest_ns:
                break
            self._leave(port, state, oldest, now_ns)
            done += 1
        closed = state.oldest_closed()
        if closed is not None:
            waited = now_ns - state.packets[closed].since_ns
            stuck = waited >= self._longest_ns and now_ns - state.turn_ns >= self._longest_ns
            if stuck or waited >= LONGEST_CLOSED_NS:
                self._let_go(port, state, closed, self._sink.room(port, now_ns), now_ns)
                done += 1
        state.counts.late += done
        return done

    def _close_windows(self, port: int, state: PortTurns, room: Room, now_ns: int) -> int:
        """Let handshakes that have waited for long be completed, with closed windows, and wait on as
        connections: first those whose turns come last. Returns how many.
        """
        done, free = 0, room.allowance // 2 - room.half_open
        as_packets = len(state.packets) - len(state.leases)
        if (oldest := state.oldest()) is None:
            return 0
        if now_ns - state.packets[oldest].since_ns < _NEXT_NS:
            free = min(free, as_packets - _NEXT)
        most = min(1 + as_packets // _CLOSES, free)
        while done < most and now_ns - state.turn_ns < _GOES_ON_NS and now_ns >= state.close_ns:
            key = state.last_of_the_old(now_ns - CLOSE_AFTER_NS, now_ns)
            if key is None:
                break
            done += 1
            waiting, until_ns = state.packets[key], now_ns + CLOSED_LEASE_NS
            # If a copy of it waits at another port, the rule would be that of both.
            copies = sum(place[1] == key for place in self._places[waiting.connection])
            answer = Closing.NEVER if copies > 1 else self._sink.close_window(key, waiting.frame, until_ns)
            if answer is Closing.LATER:
                state.close_ns = now_ns + _AGAIN_NS
                break
            if answer is Closing.NEVER:
                waiting.stays = True
                continue
            state.close(key, until_ns)
            waited = now_ns - waiting.held_ns
            self._note_wait(waiting.connection, key, waited, now_ns)
            self._sink.send(port, waiting.frame, waited, closed=True)
        return done

    def _renew(self, port: int, state: PortTurns, now_ns: int) -> None:
        """Renew the leases of closed windows, a few in each call."""
        for _ in range(_MAX_RELEASES):
            key = next(iter(state.leases), None)
            if key is None or state.leases[key] - now_ns > CLOSED_LEASE_NS // 2:
                break
            # Once a lease has ended, the sender may have begun.
            if state.leases[key] > now_ns and self._sink.keep_closed(key, now_ns + CLOSED_LEASE_NS):
                del state.leases[key]  # it is the last now
                state.leases[key] = now_ns + CLOSED_LEASE_NS
            else:
                state.counts.released += 1
                self._let_go(port, state, key, None, now_ns)

    def _let_go(self, port: int, state: PortTurns, key: bytes, room: Room | None, now_ns: int) -> None:
        """Let a packet leave, or open its sender's window."""
        if not state.packets[key].closed:
            self._leave(port, state, key, now_ns)
            return
        waiting = self._forget(port, state, key)
        opening = self._sink.open_window(key, waiting.frame)
        if opening is Opening.UNSENT:
            state.unsent[key] = waiting.frame, now_ns + _UNSENT_NS
        if opening is not Opening.GONE and room is not None:
            state.first_windows.add(room.first, self._sink.hold_ns(port), room.limit, now_ns)

    def _forget(self, port: int, state: PortTurns, key: bytes) -> Waiting:
        waiting = state.remove(key)
        places = self._places[waiting.connection]
        places.remove((port, key))
        if not places:
            del self._places[waiting.connection]
        return waiting

    def _leave(self, port: int, state: PortTurns, key: bytes, now_ns: int) -> None:
        waiting = self._forget(port, state, key)
        waited = now_ns - waiting.held_ns
        self._note_wait(waiting.connection, key, waited, now_ns)
        self._sink.send(port, waiting.frame, waited)

    def _note_wait(self, connection: bytes, key: bytes, waited: int, now_ns: int) -> None:
        """The other packet of a connection waits for a shorter time."""
        self._waited.pop(connection, None)
        self._waited[connection] = key, waited, now_ns
        while len(self._waited) > self._capacity or self._is_past(next(iter(self._waited)), now_ns):
            del self._waited[next(iter(self._waited))]

    def _is_past(self, connection: bytes, now_ns: int) -> bool:
        return now_ns - self._waited[connection][2] >= _NS_PER_S

    def _waits(self, port: int, state: PortTurns, now_ns: int) -> None:
        state.counts.waiting, state.counts.closed = len(state.packets), len(state.leases)
        # The program does not know the first windows of connections whose windows were opened.
        tell = bool(state.packets or state.unsent) or bool(
            state.first_windows.expected
            and state.first_windows.still_expected(self._sink.hold_ns(port), 1 << 32, now_ns)
        )
        if tell != state.told:
            state.told = tell
            if tell:
                state.turn_ns = now_ns  # until now nobody has waited
            self._sink.set_waiting(port, len(state.packets) or int(tell))
