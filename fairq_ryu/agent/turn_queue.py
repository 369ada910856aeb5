"""The connections that wait for their turns at one port: who is next, who has waited longest, and whose
window is closed.

Pure: time is an argument, in ns.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from fairq_ryu.agent.turn_room import FirstWindows

CAPACITY = 4096
"""Packets that may wait at a port."""
_NEVER = (1 << 64) - 1
# Of a tenant of weight 1; a multiple of many weights.
_TURN = 720_720
# Those that may be closed next are looked for this often.
_SORTED_NS = 5_000_000


class HeldPacket(NamedTuple):
    """A SYN or SYN-ACK that the eBPF program has handed to the agent. ``key`` identifies its flow and
    direction, ``connection`` both directions of that flow, ``sender`` the address that it comes from.
    ``tenant``: whose turns it takes at this port, with which ``weight``; without tenants all are of one.
    """

    port: int
    key: bytes
    connection: bytes
    sender: bytes
    frame: bytes
    held_ns: int
    tenant: int = 0
    weight: int = 1


@dataclass(slots=True)
class TurnCounts:
    """The packets of one port: those ``waiting`` now, with the connections whose windows are ``closed``, and
    those ``held`` ever; those that left, or whose windows were opened: ``released`` because there was room,
    ``late`` because they had waited too long, ``full`` because too many waited or too many handshakes were
    incomplete.
    """

    waiting: int = 0
    closed: int = 0
    held: int = 0
    released: int = 0
    late: int = 0
    full: int = 0


@dataclass(slots=True)
class Waiting:
    """A packet that waits, or its connection after it has left with a closed window."""

    frame: bytes
    connection: bytes
    sender: bytes
    held_ns: int
    since_ns: int
    """As if it had waited before for as long as the connection's other packet has."""
    place: tuple[int, int]
    """In the order in which packets of its tenant leave: deadline and number of arrival."""
    tenant: int = 0
    closed: bool = False
    """It has left, and the window of its sender is closed."""
    stays: bool = False
    """Its window cannot be closed: it waits as a packet."""


@dataclass(slots=True)
class PortTurns:
    """The packets that wait at a port; for each tenant a heap in the order in which they leave, and one for
    all by how long they have waited. Entries of packets that have left, or have another place now, stay there
    for a while.

    Tenants have turns in proportion to their weights: the next is of the one that has had least for its
    weight. One that begins to wait has no claim from the time before.
    """

    counts: TurnCounts = field(default_factory=TurnCounts)
    packets: dict[bytes, Waiting] = field(default_factory=dict)
    order: dict[int, list[tuple[tuple[int, int], bytes]]] = field(default_factory=dict)
    """Of tenants for which packets wait."""
    weights: dict[int, int] = field(default_factory=dict)
    had: dict[int, int] = field(default_factory=dict)
    """The turns of each tenant, each as ``_TURN`` over its weight."""
    level: int = 0
    """What the tenant whose turn was last had had before."""
    ages: list[tuple[int, int, bytes]] = field(default_factory=list)
    senders: Counter[bytes] = field(default_factory=Counter)
    last: list[bytes] = field(default_factory=list)
    """Packets that have waited for long, those that leave last at the end; some may have left."""
    sorted_ns: int = 0
    """When ``last`` was made."""
    closed_ages: list[tuple[int, int, bytes]] = field(default_factory=list)
    """As ``ages``, of closed windows."""
    leases: dict[bytes, int] = field(default_factory=dict)
    """Of closed windows: the end of the lease, in order of that."""
    reserved: dict[bytes, int] = field(default_factory=dict)
    """Of connections whose turn has come before their handshakes are complete: when that was."""
    unsent: dict[bytes, tuple[bytes, int]] = field(default_factory=dict)
    """Connections whose window updates could not be sent: the packet, and until when it is tried again."""
    first_windows: FirstWindows = field(default_factory=FirstWindows)
    turn_ns: int = 0
    close_ns: int = 0
    """When a packet had its turn last, and from when on windows may be closed."""
    crowded: bool = False
    """More flows share the port than have the whole minimum window, and for a long time."""
    told: bool = False
    """The program lets all packets of the port wait."""
    arrivals: int = 0

    def add(self, packet: HeldPacket, deadline_ns: int | None, waited_ns: int) -> None:
        """A packet waits. The other packet of its connection has waited so long before."""
        self.arrivals += 1
        place = _urgency(deadline_ns), self.arrivals
        since = packet.held_ns - waited_ns
        self.packets[packet.key] = Waiting(
            packet.frame,
            packet.connection,
            packet.sender,
            packet.held_ns,
            since,
            place,
            tenant=packet.tenant,
        )
        self.weights[packet.tenant] = packet.weight
        self.senders[packet.sender] += 1
        self._enter(packet.key)
        if len(self.ages) >= 2 * len(self.packets):
            self.ages = self._ages(key for key, each in self.packets.items() if not each.closed)
            heapq.heapify(self.ages)
        else:
            heapq.heappush(self.ages, (since, self.arrivals, packet.key))

    def remove(self, key: bytes) -> Waiting:
        """A packet leaves, or its window opens."""
        waiting = self.packets.pop(key)
        self.leases.pop(key, None)
        self.reserved.pop(key, None)
        self.senders[waiting.sender] -= 1
        if not self.senders[waiting.sender]:
            del self.senders[waiting.sender]
        return waiting

    def reorder(self, key: bytes, deadline_ns: int | None) -> None:
        """A packet that waits has this deadline now; None: it has none."""
        waiting = self.packets[key]
        place = _urgency(deadline_ns), waiting.place[1]
        if place != waiting.place and key not in self.reserved:
            waiting.place = place
            self._enter(key)

    def reserve(self, key: bytes, now_ns: int) -> None:
        """The packet whose turn it is keeps its room until its handshake is complete."""
        self.reserved[key] = now_ns

    def take_turn(self, key: bytes) -> None:
        """A packet has its turn, which counts for its tenant."""
        tenant = self.packets[key].tenant
        self.level = self.had[tenant]
        self.had[tenant] += _TURN // self.weights[tenant]

    def _enter(self, key: bytes) -> None:
        entered = self.packets[key]
        tenant = entered.tenant
        if self._first_of(tenant) is None:
            self.order[tenant] = []
            self.had[tenant] = max(self.had.get(tenant, 0), self.level)
        order = self.order[tenant]
        if len(order) >= 2 * len(self.packets):
            waiting = [(known, each) for known, each in self.packets.items() if each.tenant == tenant]
            order[:] = [(each.place, known) for known, each in waiting if known not in self.reserved]
            heapq.heapify(order)
        else:
            heapq.heappush(order, (entered.place, key))

    def first(self) -> bytes | None:
        """The packet that leaves next; None: none waits for its turn."""
        heads = [(tenant, self._first_of(tenant)) for tenant in list(self.order)]
        ready = [(self.had[tenant], self.packets[key].place, key) for tenant, key in heads if key is not None]
        return min(ready)[2] if ready else None

    def _first_of(self, tenant: int) -> bytes | None:
        order = self.order.get(tenant, [])
        while order:
            place, key = order[0]
            if key in self.packets and self.packets[key].place == place and key not in self.reserved:
                return key
            heapq.heappop(order)
        self.order.pop(tenant, None)
        return None

    def oldest(self) -> bytes | None:
        """The packet that has waited longest, without connections whose windows are closed; None: none."""
        return self._oldest(self.ages, False)

    def oldest_closed(self) -> bytes | None:
        """Of the connections whose windows are closed, the one that has waited longest; None: none."""
        return self._oldest(self.closed_ages, True)

    def _oldest(self, ages: list[tuple[int, int, bytes]], closed: bool) -> bytes | None:
        while ages:
            _, arrival, key = ages[0]
            found = self.packets.get(key)
            if found is not None and found.place[1] == arrival and found.closed == closed:
                return key
            heapq.heappop(ages)
        return None

    def close(self, key: bytes, until_ns: int) -> None:
        """The window of a packet's sender is closed until then."""
        waiting = self.packets[key]
        waiting.closed = True
        self.leases[key] = until_ns
        if len(self.closed_ages) >= 2 * len(self.leases):
            self.closed_ages = self._ages(self.leases)
            heapq.heapify(self.closed_ages)
        else:
            heapq.heappush(self.closed_ages, (waiting.since_ns, waiting.place[1], key))

    def _ages(self, keys: Iterable[bytes]) -> list[tuple[int, int, bytes]]:
        return [(self.packets[key].since_ns, self.packets[key].place[1], key) for key in keys]

    def last_of_the_old(self, before_ns: int, now_ns: int) -> bytes | None:
        """Of the packets that wait since then or longer, and whose windows may be closed, the one that leaves
        last; None: none is known. They are looked for now and then, because that takes long.
        """
        while True:
            while self.last:
                key = self.last.pop()
                if self._is_old(key, before_ns):
                    return key
            oldest = self.oldest()
            if (
                oldest is None
                or self.packets[oldest].since_ns > before_ns
                or now_ns < self.sorted_ns + _SORTED_NS
            ):
                return None
            self.sorted_ns = now_ns
            old = [key for key in self.packets if self._is_old(key, before_ns)]
            self.last = self._in_turn(old)

    def _in_turn(self, keys: Iterable[bytes]) -> list[bytes]:
        """Packets in the order in which they leave, if no others come."""
        had = dict(self.had)
        turns = []
        for key in sorted(keys, key=lambda key: self.packets[key].place):
            waiting = self.packets[key]
            turns.append((had[waiting.tenant], waiting.place, key))
            had[waiting.tenant] += _TURN // self.weights[waiting.tenant]
        return [key for _, _, key in sorted(turns)]

    def _is_old(self, key: bytes, before_ns: int) -> bool:
        found = self.packets.get(key)
        return found is not None and found.since_ns <= before_ns and not (found.closed or found.stays)


def _urgency(deadline_ns: int | None) -> int:
    return _NEVER if deadline_ns is None else deadline_ns
