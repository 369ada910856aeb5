"""Which bridges a controller claims: each decides for itself, from what the database says. Pure.

Theory of operation
-------------------

All controllers see the same rows and follow the same rules, so they agree on who is to claim a bridge; a
controller claims only for itself. Where two disagree for a moment because one sees the rows later, the
database accepts one claim: a claim names the generation that it replaces.

*Who is alive.* A controller increases its ``beat`` in the database. Silence is counted in one's own beats: a
controller is dead when its beat has not changed during the last :data:`MISSES` beats of one's own that the
database has confirmed. No clocks are compared, so none needs to be right; and when the database stops,
everybody's beats stop, and nobody is dead. After a pause of one's own, or of the database, counting starts
anew, but once only until the other beats again: where every beat is late because the database is slow, one
that is silent is dead all the same, after twice as many beats at most.

*Who may own.* Of the living controllers, those with the most connections to the bridge and its agent.

*Who owns.* The owner stays while it is alive and may own, or has as many connections as any other to each
bridge that it owns. Otherwise the controller with the least load gets the bridge. One that never had an owner
waits for :data:`MISSES` beats, in which it connects to the others.

*Units.* Bridges that must have one owner are a unit and move together (:class:`Together`): all that are
connected, unless they are governed by windows alone, because paths and loops need one view of all links; and
all that are reached at all, where an uplink is divided among them. A bridge that has joined a unit does not
move it: a stranger can connect to one controller only. The owner claims it if it reaches it.

*Rows.* Generations never come again: a bridge without a row gets a later one than all whose rows were
removed, because it may be one of them. An owner of before may still believe in the row, and its switch knows
it. The number of rows is limited (:data:`MOST_BRIDGES`).

*Balance.* When nothing has changed for :data:`SETTLE` seconds and loads are not even, the controller with the
least load takes one unit from the one with the most, if that makes the larger of both loads smaller. So
bridges move back one at a time, and stop moving. A load that its owner has not counted yet is taken to be
that of the others, on average.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from fairq_ryu.cluster.view import TO_BRIDGE, Bridge, Claim, View

MISSES = 6
"""Own beats without a beat of another until that one is dead."""
SETTLE = 3.0
"""Seconds without a change of owners or controllers before a unit moves for balance."""
LATEST = 1 << 62
"""A switch that reports this generation, or a later one, is not believed: owners never change so often. The
database has integers for many more.
"""
MOST_BRIDGES = 8192
"""Rows of bridges. When there are so many, a bridge without one is not claimed: whoever reaches the port for
switches can make up as many dpids as there are. Controllers that claim at the same moment may add a few more.
"""
# Own beats before the first claim: controllers that start together see each other by then.
_FIRST = 2
# Loads are even if the least is smaller than the largest by no more than this part of it.
_EVEN = 0.1

Unit = tuple[int, ...]


class Together(Enum):
    """Which bridges have one owner for all of them."""

    NONE = "none"
    CONNECTED = "those that connect themselves"
    ALL = "all, also those of which only the agent connects"


class _Since(NamedTuple):
    """Own beats are counted from ``beat``; ``anew``: already once more, after a pause."""

    beat: int
    anew: bool = False

    def after_pause(self, beat: int) -> _Since:
        return self if self.anew else _Since(beat, True)


@dataclass(slots=True)
class Ownership:
    """The claims of one controller. ``pause``: seconds without a confirmed beat of its own after which it
    starts counting anew.
    """

    me: str
    together: Together
    pause: float
    _first: int | None = field(default=None, init=False)
    _beat: int = field(default=0, init=False)
    _beat_at: float = field(default=0.0, init=False)
    _heard: dict[str, tuple[int, _Since]] = field(default_factory=dict, init=False)  # its beat
    _unfit: dict[Unit, _Since] = field(default_factory=dict, init=False)
    _reached: dict[int, int] = field(default_factory=dict, init=False)  # since which of our beats
    _unreached: dict[int, int] = field(default_factory=dict, init=False)  # those with rows; likewise
    _beyond: frozenset[int] = field(default=frozenset(), init=False)
    _ahead: dict[int, int] = field(default_factory=dict, init=False)
    _owners: Mapping[int, tuple[str, int]] = field(default_factory=dict, init=False)
    _live: frozenset[str] = field(default=frozenset(), init=False)
    _changed_at: float = field(default=0.0, init=False)

    @property
    def live(self) -> frozenset[str]:
        """The controllers that were alive when this was last planned."""
        return self._live

    @property
    def beyond(self) -> frozenset[int]:
        """The bridges that were not claimed because there are too many rows."""
        return self._beyond

    def ahead(self, dpid: int, generation: int) -> bool:
        """A switch has seen a later generation than the database, which may have been made anew: the next
        claim is later still. Returns whether this is believed.
        """
        if generation >= LATEST:
            return False
        self._ahead[dpid] = max(generation, self._ahead.get(dpid, 0))
        return True

    def gone(self, dpid: int) -> None:
        """There is no connection to a bridge or its agent any more. The next one says what it has seen."""
        self._ahead.pop(dpid, None)

    def silent(self, beats: int) -> list[str]:
        """The controllers that have been silent for so many own beats."""
        return [name for name, (_, since) in self._heard.items() if self._beat - since.beat >= beats]

    def unreached(self, beats: int) -> list[int]:
        """The bridges with rows that no living controller has reached for so many own beats."""
        return sorted(dpid for dpid, since in self._unreached.items() if self._beat - since >= beats)

    def plan(self, view: View, now: float) -> list[Claim]:
        """What to claim now. ``now`` is in seconds of a clock of this controller's own."""
        if self.me not in view.members:
            self._first = None
            return []
        self._count(view, now)
        self._note_changes(view, now)
        self._note_reach(view)
        if self._first is None or self._beat - self._first < _FIRST:
            return []
        claims = self._due(view)
        if claims is None:
            return []
        if not claims and now - self._changed_at >= SETTLE:
            claims = self._balancing(view)
        return [self._claim(view, dpid) for dpid in claims]

    def _count(self, view: View, now: float) -> None:
        """Count beats; find out who is alive."""
        beat = view.members[self.me].beat
        if self._first is None or beat < self._beat:
            self._first = self._beat = beat
            self._beat_at = now
            self._heard.clear()
            self._unfit.clear()
            self._reached.clear()
            self._unreached.clear()
        if beat != self._beat:
            if now - self._beat_at > self.pause:
                heard = self._heard.items()
                self._heard = {name: (last, since.after_pause(beat)) for name, (last, since) in heard}
                self._unfit = {unit: since.after_pause(beat) for unit, since in self._unfit.items()}
            self._beat, self._beat_at = beat, now
        for name in self._heard.keys() - view.members.keys():
            del self._heard[name]
        for name, member in view.members.items():
            if name not in self._heard or self._heard[name][0] != member.beat:
                self._heard[name] = member.beat, _Since(beat)
        silent = self.silent(MISSES)
        live = frozenset(view.members.keys() - set(silent) | {self.me})
        if live != self._live:
            self._live, self._changed_at = live, now

    def _note_changes(self, view: View, now: float) -> None:
        owners = {dpid: (row.owner, row.generation) for dpid, row in view.bridges.items()}
        if owners != self._owners:
            self._owners, self._changed_at = owners, now

    def _note_reach(self, view: View) -> None:
        reached = {dpid for name in self._live for dpid in view.members[name].reach}
        self._reached = {dpid: self._reached.get(dpid, self._beat) for dpid in reached}
        unreached = view.bridges.keys() - reached
        self._unreached = {dpid: self._unreached.get(dpid, self._beat) for dpid in unreached}
        # Those that were there first go first: a stranger can choose any dpid.
        new = sorted(reached - view.bridges.keys(), key=lambda dpid: (self._reached[dpid], dpid))
        self._beyond = frozenset(new[max(0, MOST_BRIDGES - len(view.bridges)) :])

    def _units(self, view: View) -> list[Unit]:
        reached = self._reached.keys() - self._beyond
        if self.together is Together.NONE:
            return [(dpid,) for dpid in sorted(reached)]
        if self.together is Together.ALL:
            return [tuple(sorted(reached))] if reached else []
        links = [view.members[name].reach.items() for name in self._live]
        connected = reached & {dpid for each in links for dpid, link in each if link & TO_BRIDGE}
        alone = [(dpid,) for dpid in sorted(reached - connected)]
        return ([tuple(sorted(connected))] if connected else []) + alone

    def _due(self, view: View) -> list[int] | None:
        """The bridges that this controller must claim because they lack an owner. None: others must claim
        some, and this one has to wait for them before it moves any for balance.
        """
        loads = dict.fromkeys(self._live, 0)
        orphans: list[tuple[Unit, list[str]]] = []
        mine: list[int] = []
        waits = False
        units = self._units(view)
        # A unit that comes back may have its owner before all others have heard of it.
        self._unfit = {unit: since for unit, since in self._unfit.items() if unit in units}
        for unit in units:
            able = self._able(view, unit)
            owner = self._owner(view, unit)
            if owner is not None and not self._is_unfit(view, unit, owner, able):
                loads[owner] += _load(view, unit)
                reach = view.members[owner].reach
                strays = [dpid for dpid in unit if _owner_of(view, dpid) != owner and dpid in reach]
                mine += strays if owner == self.me else []
                waits = waits or bool(strays)
            else:
                orphans.append((unit, able))
        for unit, able in orphans:
            waits = True
            if not any(dpid in view.bridges or self._is_reached(dpid) for dpid in unit):
                continue
            heir = min(able, key=lambda name: (loads[name], name))
            loads[heir] += _load(view, unit)
            if heir == self.me:
                mine += [dpid for dpid in unit if dpid in view.members[self.me].reach]
        mine += [dpid for dpid in self._overtaken(view) if dpid not in mine]
        return mine if mine or not waits else None

    def _is_reached(self, dpid: int) -> bool:
        """Whether a bridge has been connected for so long that all controllers may have it."""
        return self._beat - self._reached[dpid] >= MISSES

    def _overtaken(self, view: View) -> list[int]:
        """Our bridges whose switches know a later generation."""
        owned = view.owned(self.me)
        return [dpid for dpid, least in self._ahead.items() if owned.get(dpid, least + 1) <= least]

    def _able(self, view: View, unit: Unit) -> list[str]:
        """The living controllers with the most connections to a unit."""
        scores = {
            name: sum(view.members[name].reach.get(dpid, 0).bit_count() for dpid in unit)
            for name in self._live
        }
        most = max(scores.values())
        return sorted(name for name, score in scores.items() if score == most)

    def _owner(self, view: View, unit: Unit) -> str | None:
        """The living owner of a unit: of most of it, if it has several."""
        owners = [_owner_of(view, dpid) for dpid in unit]
        living = sorted({owner for owner in owners if owner in self._live})
        return max(living, key=owners.count, default=None)

    def _is_unfit(self, view: View, unit: Unit, owner: str, able: list[str]) -> bool:
        """Whether others have had more connections than the owner for so long that it is replaced."""
        own = (dpid for dpid in unit if _owner_of(view, dpid) == owner)
        if owner in able or all(owner in self._able(view, (dpid,)) for dpid in own):
            self._unfit.pop(unit, None)
            return False
        return self._beat - self._unfit.setdefault(unit, _Since(self._beat)).beat >= MISSES

    def _balancing(self, view: View) -> list[int]:
        """The unit that this controller takes for balance."""
        loads, owned = dict.fromkeys(self._live, 0), dict[str, list[Unit]]()
        for unit in self._units(view):
            owner = self._owner(view, unit)
            if owner is not None:
                loads[owner] += _load(view, unit)
                owned.setdefault(owner, []).append(unit)
        least = min(loads, key=lambda name: (loads[name], name))
        most = max(loads, key=lambda name: (loads[name], name))
        if least != self.me or most == least:
            return []
        high, low = loads[most], loads[least]
        after = {
            unit: max(high - _load(view, unit), low + _load(view, unit))
            for unit in owned.get(most, [])
            if self.me in self._able(view, unit)
        }
        best = min(after, key=lambda unit: (after[unit], unit), default=None)
        return [] if best is None or after[best] >= high or low >= (1 - _EVEN) * high else list(best)

    def _claim(self, view: View, dpid: int) -> Claim:
        row: Bridge | None = view.bridges.get(dpid)
        before = None if row is None else row.generation
        latest = view.removed if before is None else before
        return Claim(dpid, before, max(latest, self._ahead.get(dpid, 0)) + 1)


def _owner_of(view: View, dpid: int) -> str:
    row = view.bridges.get(dpid)
    return "" if row is None else row.owner


def _load(view: View, unit: Unit) -> int:
    known = {dpid: view.bridges[dpid].load for dpid in unit if dpid in view.bridges}
    if all(known.get(dpid) for dpid in unit):
        return sum(known.values())
    counted = [row.load for row in view.bridges.values() if row.load]
    usual = max(1, round(sum(counted) / len(counted))) if counted else 1
    return sum(known.get(dpid) or usual for dpid in unit)
