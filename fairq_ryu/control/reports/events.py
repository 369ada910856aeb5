"""The history of recent events: bounded, and no single port can displace the events of others. Pure.

Of repeated events of one place, the first is added at once. Those that follow within :attr:`gap` are counted
and added as one event at the end of the gap, so that a queue that flaps a hundred times a second makes two
events a second. Each kind has its own limit (``capacity``), and each place a share of it: a port that flaps
replaces its own old events, not the one that a switch has disconnected.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from heapq import merge
from itertools import islice
from typing import NamedTuple

from fairq_ryu.model import FlowKey, PortKey


class Kind(StrEnum):
    """Kinds of events."""

    CNG = "cng"
    NOM = "nom"
    INCAST = "incast"
    SHARE = "share"
    OTHERS = "others"
    RATE = "rate"
    LAW = "law"
    REPIN = "repin"
    LOSS = "loss"
    MISSED = "missed"
    MET = "met"
    UNSENT = "unsent"
    BRIDGE = "bridge"
    AGENT = "agent"
    POLICY = "policy"
    MODE = "mode"
    FAR = "far"


class Occurrence(NamedTuple):
    """What is reported: something has occurred ``times`` times, ``at`` a port or switch or to a flow."""

    kind: Kind
    message: str
    at: PortKey | int | None = None
    flow: FlowKey | None = None
    times: int = 1


class Event(NamedTuple):
    """An event that has occurred ``times`` times; the last time at ``time``, seconds of the history's clock.

    ``dpid``, ``port`` and ``flow`` are what it concerns; None: nothing in particular.
    """

    id: int
    time: float
    kind: Kind
    message: str
    dpid: int | None
    port: int | None
    flow: FlowKey | None
    times: int


Place = tuple[Kind, int | None, int | None]


@dataclass(slots=True)
class _Recent:
    """The last event of a place was added at ``added``; ``pending`` has what occurred there since."""

    added: float
    pending: Event | None = None


class History:
    """The last events: up to ``capacity`` of each kind, up to ``share`` of these of one place. ``gap`` in
    seconds.
    """

    def __init__(self, capacity: int = 500, share: int = 20, gap: float = 1.0) -> None:
        self.capacity = capacity
        self.share = share
        self.gap = gap
        self.last = 0
        """number of the last event; 0: there was none"""
        self.occurred: Counter[Kind] = Counter(dict.fromkeys(Kind, 0))
        """how often each kind of event has occurred, added or only counted"""
        self._kinds: dict[Kind, dict[int, Event]] = {kind: {} for kind in Kind}
        self._places: dict[Place, deque[int]] = {}
        self._recent: dict[Place, _Recent] = {}

    def __len__(self) -> int:
        return sum(map(len, self._kinds.values()))

    def add(self, now: float, occurrence: Occurrence) -> Event | None:
        """Add what has occurred. Returns the event, or None if it is only counted for now."""
        kind, message, at, flow, times = occurrence
        dpid, port = at if isinstance(at, PortKey) else (at, None)
        self.occurred[kind] += times
        place = kind, dpid, port
        recent = self._recent.get(place)
        if recent is None or (recent.pending is None and now - recent.added >= self.gap):
            self._recent[place] = _Recent(now)
            return self._keep(Event(0, now, kind, message, dpid, port, flow, times))
        if recent.pending is not None:
            times += recent.pending.times
        recent.pending = Event(0, now, kind, message, dpid, port, flow, times)
        return None

    def due(self, now: float) -> list[Event]:
        """Add events that were only counted, and whose gap is over. Returns them in the order of their last
        occurrence.
        """
        ready: list[Event] = []
        for place, recent in list(self._recent.items()):
            if now - recent.added < self.gap:
                continue
            if recent.pending is None:
                del self._recent[place]
            else:
                ready.append(recent.pending)
                self._recent[place] = _Recent(now)
        return [self._keep(event) for event in sorted(ready, key=lambda event: event.time)]

    def since(self, number: int = 0, kind: Kind | None = None, limit: int | None = None) -> list[Event]:
        """Events with a higher number than this, the oldest first; of more than ``limit``, the latest."""
        newest = self._newest() if kind is None else iter(reversed(self._kinds[kind].values()))
        found: list[Event] = []
        for event in newest if limit is None else islice(newest, limit):
            if event.id <= number:
                break
            found.append(event)
        return found[::-1]

    def _newest(self) -> Iterator[Event]:
        kinds = (reversed(events.values()) for events in self._kinds.values())
        return iter(merge(*kinds, key=lambda event: event.id, reverse=True))

    def _keep(self, event: Event) -> Event:
        self.last += 1
        event = event._replace(id=self.last)
        place = event.kind, event.dpid, event.port
        events = self._kinds[event.kind]
        own = self._places.setdefault(place, deque())
        events[event.id] = event
        own.append(event.id)
        if len(own) > self.share:
            del events[own.popleft()]
        if len(events) > self.capacity:
            self._forget(next(iter(events.values())))
        return event

    def _forget(self, event: Event) -> None:
        del self._kinds[event.kind][event.id]
        place = event.kind, event.dpid, event.port
        own = self._places[place]
        own.remove(event.id)
        if not own:
            del self._places[place]
