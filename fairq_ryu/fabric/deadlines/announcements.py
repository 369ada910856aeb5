"""What is known of flows before they are measured: announcements of applications, and configured services.

Pure. An announcement names a direction of a connection (``src`` sends the data) with its size, its deadline
or both. With a source port it is for that one flow. Without, it is for as many flows as its ``count`` says
that start within its ``ttl``; one that runs already and started no longer ago than that comes first. A flow
has one announcement at a time: one of an application that names the source port goes before one that does
not, and that goes before a service.

Deadlines count from the start of the flow. All times are seconds of one clock that does not go back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

from fairq_ryu.fabric.deadlines.request import Request
from fairq_ryu.model import Announcement, FlowKey


class Full(ValueError):
    """There are as many announcements as there may be."""


class Service(Protocol):
    """A service that the configuration names: one direction of the connections to it."""

    @property
    def to_server(self) -> bool: ...

    def covers(self, flow: FlowKey) -> bool:
        """Is this direction of a connection, by its addresses and ports, the service's data?"""

    def announcement(self, start: float) -> Announcement:
        """What holds for a flow that started at ``start``."""


@dataclass(slots=True)
class Entry:
    """An announcement that was made. ``left``: so many flows may still take it, until ``expires``;
    ``flows``: those that have it and run.
    """

    id: int
    request: Request
    expires: float
    left: int
    flows: dict[FlowKey, None] = field(default_factory=dict)

    def waits(self, now: float) -> bool:
        """May a flow still take it?"""
        return self.left > 0 and now < self.expires


class AnnouncementChange(NamedTuple):
    """What holds for a flow now (None: nothing): to be told to the laws of its ports."""

    flow: FlowKey
    announcement: Announcement | None


class _Running(NamedTuple):
    opener: FlowKey | None
    started: float


# All of a flow; or all but the source port.
_Where = tuple[str, str, int | None, int]
K = TypeVar("K")
V = TypeVar("V")


class Announcements:
    """All announcements, and the flows that they are for.

    ``services`` as the configuration has them, of which the first that fits holds; ``capacity``: so many
    announcements of applications at most.
    """

    def __init__(self, services: Iterable[Service] = (), capacity: int = 10_000) -> None:
        self._services = tuple(services)
        self._capacity = capacity
        self._last_id = 0
        self._entries: dict[int, Entry] = {}
        self._running: dict[FlowKey, _Running] = {}
        self._of: dict[FlowKey, Entry] = {}
        # Entries that flows may take; and flows that run without one, by all but their source port.
        self._waiting: dict[_Where, dict[int, Entry]] = {}
        self._bare: dict[_Where, dict[FlowKey, None]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def made(self) -> int:
        """The number of announcements that were ever taken."""
        return self._last_id

    # Flows

    def flow_started(
        self, flow: FlowKey, opener: FlowKey | None, started: float, now: float
    ) -> Announcement | None:
        """A direction is known, and runs since ``started``; returns what holds for it.

        ``opener`` is the direction of the connection's first SYN (None: not known). Called again for a flow
        that runs, it changes nothing.
        """
        if flow not in self._running:
            self._running[flow] = _Running(opener, started)
            entry = self._take(flow, now)
            if entry is not None:
                self._bind(entry, flow)
            else:
                self._bare.setdefault(_anyhow(flow), {})[flow] = None
        return self.of(flow)

    def flow_ended(self, flow: FlowKey) -> None:
        """A direction is over; an announcement that only it had is over, too."""
        if self._running.pop(flow, None) is None:
            return
        entry = self._of.pop(flow, None)
        if entry is None:
            _remove(self._bare, _anyhow(flow), flow)
            return
        del entry.flows[flow]
        if not entry.left and not entry.flows:
            self._discard(entry)

    def of(self, flow: FlowKey) -> Announcement | None:
        """What holds for a flow that runs: its announcement, or its service, or nothing."""
        running = self._running.get(flow)
        return None if running is None else self._said(flow, running, self._of.get(flow))

    def asked(self, flow: FlowKey) -> bool:
        """Is what holds for a flow from an application, and not from the configuration?"""
        return flow in self._of

    def expected(self, flow: FlowKey, opener: FlowKey, now: float) -> Announcement | None:
        """What will hold for a direction if its connection, which ``opener`` opens, starts now."""
        return self._said(flow, _Running(opener, now), self._take(flow, now))

    def _said(self, flow: FlowKey, running: _Running, entry: Entry | None) -> Announcement | None:
        if entry is not None:
            size, deadline = entry.request.size, entry.request.deadline
            return Announcement(size, None if deadline is None else running.started + deadline)
        for service in self._services:
            # A client's port may happen to be a service's.
            wrong_way = running.opener is not None and service.to_server != (flow == running.opener)
            if service.covers(flow) and not wrong_way:
                return service.announcement(running.started)
        return None

    def _take(self, flow: FlowKey, now: float) -> Entry | None:
        """The entry for a flow that has just started: with its source port, or the oldest without."""
        for where in (_exactly(flow), _anyhow(flow)):
            for entry in self._waiting.get(where, {}).values():
                if entry.waits(now):
                    return entry
        return None

    # Applications

    def add(self, wanted: Request, now: float) -> tuple[Entry, list[AnnouncementChange]]:
        """An application announces a flow. Returns the entry, and what changes for flows that run.

        With a source port it replaces what was said of that flow before. Raises :class:`Full`.
        """
        where = _where_of(wanted)
        replaced = [] if wanted.sport is None else list(self._waiting.get(where, {}).values())
        if len(self._entries) >= self._capacity and not replaced:
            self.expire(now)
        if len(self._entries) >= self._capacity and not replaced:
            raise Full(f"there are {self._capacity} announcements already: wait, or withdraw some")
        for each in replaced:
            self._discard(each)
        self._last_id += 1
        entry = Entry(self._last_id, wanted, now + wanted.ttl, wanted.count)
        self._entries[entry.id] = entry
        self._waiting.setdefault(where, {})[entry.id] = entry
        flow = self._running_for(wanted, now)
        if flow is None:
            return entry, []
        old = self._of.pop(flow, None)
        if old is not None:
            del old.flows[flow]
            if not old.left and not old.flows:
                self._discard(old)
        self._bind(entry, flow)
        return entry, [AnnouncementChange(flow, self.of(flow))]

    def _running_for(self, wanted: Request, now: float) -> FlowKey | None:
        """The flow that runs and is meant: the one of that source port, or the last that has started
        without an announcement.
        """
        if wanted.sport is not None:
            flow = FlowKey(wanted.src, wanted.dst, wanted.sport, wanted.dport)
            return flow if flow in self._running else None
        bare = self._bare.get(_where_of(wanted), {})
        recent = [flow for flow in bare if now - self._running[flow].started <= wanted.ttl]
        return max(recent, key=lambda flow: self._running[flow].started, default=None)

    def withdraw(self, number: int, now: float) -> list[AnnouncementChange]:
        """Take an announcement back. Returns what changes for flows that have it; KeyError if there is no
        such.
        """
        self.expire(now)
        entry = self._entries[number]
        flows = list(entry.flows)
        self._discard(entry)
        for flow in flows:
            del self._of[flow]
            self._bare.setdefault(_anyhow(flow), {})[flow] = None
        return [AnnouncementChange(flow, self.of(flow)) for flow in flows]

    def listed(self, now: float) -> list[Entry]:
        """All announcements of applications, the oldest first."""
        self.expire(now)
        return list(self._entries.values())

    def get(self, number: int, now: float) -> Entry:
        """One announcement. KeyError if there is no such."""
        self.expire(now)
        return self._entries[number]

    def expire(self, now: float) -> None:
        """Forget what no flow has taken in time. A flow keeps what it has."""
        for entry in [each for each in self._entries.values() if not each.waits(now)]:
            entry.left = 0
            _remove(self._waiting, _where_of(entry.request), entry.id)
            if not entry.flows:
                self._discard(entry)

    def _bind(self, entry: Entry, flow: FlowKey) -> None:
        entry.left -= 1
        entry.flows[flow] = None
        self._of[flow] = entry
        _remove(self._bare, _anyhow(flow), flow)
        if not entry.left:
            _remove(self._waiting, _where_of(entry.request), entry.id)

    def _discard(self, entry: Entry) -> None:
        self._entries.pop(entry.id, None)
        _remove(self._waiting, _where_of(entry.request), entry.id)


def _exactly(flow: FlowKey) -> _Where:
    return flow.src, flow.dst, flow.sport, flow.dport


def _anyhow(flow: FlowKey) -> _Where:
    return flow.src, flow.dst, None, flow.dport


def _where_of(wanted: Request) -> _Where:
    return wanted.src, wanted.dst, wanted.sport, wanted.dport


def _remove(table: dict[_Where, dict[K, V]], where: _Where, key: K) -> None:
    """Take a key out of a table of tables, if it is there, and leave no empty ones."""
    inner = table.get(where)
    if inner is not None and key in inner:
        del inner[key]
        if not inner:
            del table[where]
