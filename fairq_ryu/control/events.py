"""What has happened lately: a bounded history that no single port can flush. Pure.

Of what happens again and again at one place, the first is told at once. What follows within :attr:`gap` is
counted, and told as one event when the gap is over, so that a queue that flaps a hundred times a second makes
two events a second. Each kind has its own room, and each place a part of it: a port that flaps pushes out its
own old events, and not that a switch has gone.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from heapq import merge
from itertools import islice
from typing import NamedTuple

from fairq_ryu.model import FlowKey


class Kind(StrEnum):
    """What kind of thing has happened."""

    CNG = "cng"
    NOM = "nom"
    INCAST = "incast"
    REPIN = "repin"
    LOSS = "loss"
    MISSED = "missed"
    MET = "met"
    UNSENT = "unsent"
    BRIDGE = "bridge"
    AGENT = "agent"
    POLICY = "policy"


class Event(NamedTuple):
    """Something that has happened ``times`` times; the last time at ``time``, seconds of the history's clock.

    ``dpid``, ``port`` and ``flow`` say what it is about; None: nothing in particular.
    """

    id: int
    time: float
    kind: Kind
    message: str
    dpid: int | None = None
    port: int | None = None
    flow: FlowKey | None = None
    times: int = 1


Place = tuple[Kind, int | None, int | None]


@dataclass(slots=True)
class _Recent:
    """What was told of a place at ``told``, and what has happened there since."""

    told: float
    held: Event | None = None


class History:
    """The last events: ``room`` of each kind, ``share`` of these of one place. ``gap`` in seconds."""

    def __init__(self, room: int = 500, share: int = 20, gap: float = 1.0) -> None:
        self.room = room
        self.share = share
        self.gap = gap
        self.last = 0
        """number of the last event; 0: there was none"""
        self.happened: Counter[Kind] = Counter(dict.fromkeys(Kind, 0))
        """how often each kind of thing has happened, told or not"""
        self._kinds: dict[Kind, dict[int, Event]] = {kind: {} for kind in Kind}
        self._places: dict[Place, deque[int]] = {}
        self._recent: dict[Place, _Recent] = {}

    def __len__(self) -> int:
        return sum(map(len, self._kinds.values()))

    def add(
        self,
        now: float,
        kind: Kind,
        message: str,
        dpid: int | None = None,
        port: int | None = None,
        flow: FlowKey | None = None,
        times: int = 1,
    ) -> Event | None:
        """Something has happened. Returns the event, or None if it is only counted for now."""
        self.happened[kind] += times
        place = kind, dpid, port
        recent = self._recent.get(place)
        if recent is None or (recent.held is None and now - recent.told >= self.gap):
            self._recent[place] = _Recent(now)
            return self._keep(Event(0, now, kind, message, dpid, port, flow, times))
        if recent.held is not None:
            times += recent.held.times
        recent.held = Event(0, now, kind, message, dpid, port, flow, times)
        return None

    def due(self, now: float) -> list[Event]:
        """Events that were counted and are told now, in the order in which they happened last."""
        ready: list[Event] = []
        for place, recent in list(self._recent.items()):
            if now - recent.told < self.gap:
                continue
            if recent.held is None:
                del self._recent[place]
            else:
                ready.append(recent.held)
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
        if len(events) > self.room:
            self._forget(next(iter(events.values())))
        return event

    def _forget(self, event: Event) -> None:
        del self._kinds[event.kind][event.id]
        place = event.kind, event.dpid, event.port
        own = self._places[place]
        own.remove(event.id)
        if not own:
            del self._places[place]
