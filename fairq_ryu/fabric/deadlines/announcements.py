"""The announcements of applications and the configured services, and the flows to which they apply.

Pure. An announcement names a direction of a connection (``src`` sends the data) with its size, its deadline
or its priority. With a source port it is for that one flow. Without one it is for ``count`` flows that start
within its ``ttl``, first of all a running flow that started at most ``ttl`` ago. A flow has one
announcement at a time. Precedence: an application's announcement with source port, then one without, then a
service; of both kinds first one that names the flow's VLAN, then one that names none and is for flows of any.

Deadlines count from the start of the flow. All times are seconds of one monotonic clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

from fairq_ryu.fabric.deadlines.request import Request
from fairq_ryu.model import Announcement, FlowKey, new_tuple


class Full(ValueError):
    """The maximum number of announcements is reached."""


class ServiceRule(Protocol):
    """A service of the configuration: one direction of the connections to it."""

    @property
    def to_server(self) -> bool: ...

    def covers(self, flow: FlowKey) -> bool:
        """Whether this direction of a connection carries the service's data, by its addresses and ports."""

    def announcement(self, start: float) -> Announcement:
        """The announcement for a flow that started at ``start``."""


@dataclass(slots=True)
class Entry:
    """An accepted announcement. ``left``: the number of flows to which it can still be assigned, until
    ``expires``; ``flows``: the running flows to which it is assigned.
    """

    id: int
    request: Request
    expires: float
    left: int
    flows: dict[FlowKey, None] = field(default_factory=dict)

    def waits(self, now: float) -> bool:
        """Whether it can still be assigned to a flow."""
        return self.left > 0 and now < self.expires


class AnnouncementChange(NamedTuple):
    """The announcement of a flow has changed (None: it has none now); the laws of its ports need it."""

    flow: FlowKey
    announcement: Announcement | None


class _Running(NamedTuple):
    opener: FlowKey | None
    started: float


# Addresses and ports of a flow, with or without (None) its source port, and its VLAN (None: any).
_Where = tuple[str, str, int | None, int, int | None]
K = TypeVar("K")
V = TypeVar("V")


class Announcements:
    """All announcements, and the running flows.

    ``services``: those of the configuration; the first that covers a flow applies. ``capacity``: the maximum
    number of announcements of applications.
    """

    def __init__(self, services: Iterable[ServiceRule] = (), capacity: int = 10_000) -> None:
        self._services = tuple(services)
        self.capacity = capacity
        self._made = 0
        self._entries: dict[int, Entry] = {}
        self._running: dict[FlowKey, _Running] = {}
        self._of: dict[FlowKey, Entry] = {}
        # VLANs that running flows have had; entries that can still be assigned; and running flows without
        # one, by all but their source port and VLAN. The last index is made for the first announcement that
        # needs it (None before): most networks have none, and perhaps a hundred thousand flows.
        self._vlans: set[int] = set()
        self._waiting: dict[_Where, dict[int, Entry]] = {}
        self._bare: dict[_Where, dict[FlowKey, None]] | None = None
        self._indexed = False

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def made(self) -> int:
        """The number of announcements that were accepted so far."""
        return self._made

    # Flows

    def flow_started(
        self, flow: FlowKey, opener: FlowKey | None, started: float, now: float
    ) -> Announcement | None:
        """A direction of a connection runs since ``started``; returns its announcement.

        ``opener``: the direction of the connection's first SYN (None: not known). A second call for a running
        flow changes nothing.
        """
        if flow not in self._running:
            self._running[flow] = new_tuple(_Running, (opener, started))
            self._vlans.add(flow.vlan)
            entry = self._take(flow, now)
            if entry is not None:
                self._bind(entry, flow)
            else:
                self._without(flow)
        return self.of(flow) if self._of or self._services else None

    def _without(self, flow: FlowKey) -> None:
        """A running flow has no announcement."""
        if self._bare is not None:
            self._bare.setdefault(_anyhow(flow), {})[flow] = None

    def flow_ended(self, flow: FlowKey) -> None:
        """A direction has ended. An announcement without further flows is removed."""
        if self._running.pop(flow, None) is None:
            return
        entry = self._of.pop(flow, None)
        if entry is None:
            if self._bare is not None:
                _remove(self._bare, _anyhow(flow), flow)
            return
        del entry.flows[flow]
        if not entry.left and not entry.flows:
            self._discard(entry)

    def of(self, flow: FlowKey) -> Announcement | None:
        """The announcement of a running flow, by an application or a service; None without one."""
        running = self._running.get(flow)
        return None if running is None else self._resolve(flow, running, self._of.get(flow))

    def is_from_application(self, flow: FlowKey) -> bool:
        """Whether the announcement of a flow comes from an application, not from the configuration."""
        return flow in self._of

    @property
    def any_expected(self) -> bool:
        """Whether a flow that starts now may have an announcement."""
        return bool(self._waiting or self._services)

    def expected(self, flow: FlowKey, opener: FlowKey, now: float) -> Announcement | None:
        """The announcement that a direction will have if its connection, opened by ``opener``, starts now."""
        return self._resolve(flow, _Running(opener, now), self._take(flow, now))

    def _resolve(self, flow: FlowKey, running: _Running, entry: Entry | None) -> Announcement | None:
        if entry is not None:
            wanted = entry.request
            deadline = None if wanted.deadline is None else running.started + wanted.deadline
            return Announcement(wanted.size, deadline, wanted.priority)
        for service in self._services:
            # The port of a client may by chance be equal to the port of a service.
            wrong_way = running.opener is not None and service.to_server != (flow == running.opener)
            if service.covers(flow) and not wrong_way:
                return service.announcement(running.started)
        return None

    def _take(self, flow: FlowKey, now: float) -> Entry | None:
        """The entry for a flow that has just started: one with its source port, or the oldest without one."""
        if not self._waiting:
            return None
        wheres = (_exactly(flow, flow.vlan), _exactly(flow), _anyhow(flow, flow.vlan), _anyhow(flow))
        for where in wheres:
            for entry in self._waiting.get(where, {}).values():
                if entry.waits(now):
                    return entry
        return None

    # Applications

    def prepare(self, wanted: Request) -> Iterator[None]:
        """Make the index that :meth:`add` needs for such an announcement, flow by flow: flows may start and
        end meanwhile. What is left of it :meth:`add` does itself.
        """
        if wanted.sport is not None or self._indexed:
            return
        if self._bare is None:
            self._bare = {}
        for flow in list(self._running):
            if flow in self._running and flow not in self._of:
                self._without(flow)
            yield
        self._indexed = True

    def check_room(self, wanted: Request, now: float) -> list[Entry]:
        """Raise :class:`Full` if there is no room for an announcement. Returns those that it replaces."""
        replaced = [] if wanted.sport is None else list(self._waiting.get(_where_of(wanted), {}).values())
        if len(self._entries) >= self.capacity and not replaced:
            self.expire(now)
        if len(self._entries) >= self.capacity and not replaced:
            raise Full(f"there are {self.capacity} announcements already: wait, or withdraw some")
        return replaced

    def add(
        self, wanted: Request, now: float, number: int | None = None
    ) -> tuple[Entry, list[AnnouncementChange]]:
        """An application announces a flow. Returns the entry, and the changes for running flows. ``number``:
        that of the announcement, which must be new; None: the next.

        With a source port it replaces an earlier announcement of that flow, with the same VLAN or likewise
        without one. Raises :class:`Full`.
        """
        where = _where_of(wanted)
        for each in self.check_room(wanted, now):
            self._discard(each)
        self._made += 1
        entry = Entry(self._made if number is None else number, wanted, now + wanted.ttl, wanted.count)
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
        """The running flow of an announcement: the one with its source port, or the latest one without an
        announcement.
        """
        src, dst, sport, dport = wanted.src, wanted.dst, wanted.sport, wanted.dport
        if sport is not None:
            vlans = self._vlans if wanted.vlan is None else (wanted.vlan,)
            same = [
                flow for vlan in vlans if (flow := FlowKey(src, dst, sport, dport, vlan)) in self._running
            ]
            return max(same, key=lambda flow: self._running[flow].started, default=None)
        for _ in self.prepare(wanted):
            pass
        if self._bare is None:
            return None
        there = self._bare.get((src, dst, None, dport, None), {})
        bare = [flow for flow in there if wanted.vlan in (None, flow.vlan)]
        recent = [flow for flow in bare if now - self._running[flow].started <= wanted.ttl]
        return max(recent, key=lambda flow: self._running[flow].started, default=None)

    def withdraw(self, number: int, now: float) -> list[AnnouncementChange]:
        """Withdraw an announcement. Returns the changes for its flows. Raises KeyError if it does not
        exist.
        """
        self.expire(now)
        entry = self._entries[number]
        flows = list(entry.flows)
        self._discard(entry)
        for flow in flows:
            del self._of[flow]
            self._without(flow)
        return [AnnouncementChange(flow, self.of(flow)) for flow in flows]

    def listed(self, now: float) -> list[Entry]:
        """All announcements of applications, the oldest first."""
        self.expire(now)
        return list(self._entries.values())

    def get(self, number: int, now: float) -> Entry:
        """One announcement. Raises KeyError if it does not exist."""
        self.expire(now)
        return self._entries[number]

    def expire(self, now: float) -> None:
        """Remove announcements whose ttl has passed. Flows keep announcements that were assigned to them."""
        for entry in [each for each in self._entries.values() if not each.waits(now)]:
            entry.left = 0
            _remove(self._waiting, _where_of(entry.request), entry.id)
            if not entry.flows:
                self._discard(entry)

    def _bind(self, entry: Entry, flow: FlowKey) -> None:
        entry.left -= 1
        entry.flows[flow] = None
        self._of[flow] = entry
        if self._bare is not None:
            _remove(self._bare, _anyhow(flow), flow)
        if not entry.left:
            _remove(self._waiting, _where_of(entry.request), entry.id)

    def _discard(self, entry: Entry) -> None:
        self._entries.pop(entry.id, None)
        _remove(self._waiting, _where_of(entry.request), entry.id)


def _exactly(flow: FlowKey, vlan: int | None = None) -> _Where:
    return flow.src, flow.dst, flow.sport, flow.dport, vlan


def _anyhow(flow: FlowKey, vlan: int | None = None) -> _Where:
    return flow.src, flow.dst, None, flow.dport, vlan


def _where_of(wanted: Request) -> _Where:
    return wanted.src, wanted.dst, wanted.sport, wanted.dport, wanted.vlan


def _remove(table: dict[_Where, dict[K, V]], where: _Where, key: K) -> None:
    """Remove a key from a nested table, if it is in it, and remove the inner table if it is empty."""
    inner = table.get(where)
    if inner is not None and key in inner:
        del inner[key]
        if not inner:
            del table[where]
