"""A controller among others: it says that it lives, claims bridges, and uses those that are its own.

One greenlet (:meth:`Owners.run`) talks to the database. What it learns there goes to the switches as roles
(:mod:`~fairq_ryu.control.ownership.roles`); what the switches confirm goes to the rooms below as switches
that have connected or disconnected.

Without the database a controller goes on with what it has: the switches, not the database, keep out an owner
whose time is over.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ryu.lib import hub

from fairq_ryu.channel import oxm
from fairq_ryu.cluster import database as rows
from fairq_ryu.cluster.database import Database
from fairq_ryu.cluster.ownership import MISSES, MOST_BRIDGES, Ownership, Together
from fairq_ryu.cluster.view import Member, Texts, View
from fairq_ryu.control.ownership.roles import Roles
from fairq_ryu.control.sender import Sender
from fairq_ryu.model import dpid_text

# What is written waits so long at most, seconds.
_TICK = 0.05
# So long is tried to store requests, seconds.
_STORING = 3.0
# After so many times as many beats as make a controller dead, its row is removed.
_FORGET = 60
# So is that of a bridge that nobody reaches, but later: an hour with a lease of two seconds; as early as that
# of a controller while more than half of the rows are taken that there may be. So many at once.
_FORGET_BRIDGE, _AT_ONCE = 3000, 100
# What is logged about a slow database, too many bridges, or a switch that is not believed, once in this many
# seconds.
_WARNING_INTERVAL = 60.0


def process_id(name: str) -> str:
    """An ``id`` for this process."""
    return f"{name}/{os.urandom(4).hex()}"


@dataclass(eq=False)
class Owners:
    """``member``: this controller, without beat and reach; ``agents_only``: bridges that connect themselves
    are left alone, whoever owns them; ``lease`` of windows, seconds: a dead controller is replaced within it.
    ``gained`` and ``lost`` are called with a switch, ``lost`` also with the reason; ``dropped`` with the dpid
    of a bridge that is another's from now on, ``requested`` with requests that are to be carried out;
    ``load``: that of a bridge.
    """

    database: Database
    member: Member
    together: Together
    agents_only: bool
    lease: float
    gained: Callable[[Any], None]
    lost: Callable[[Any, str], None]
    dropped: Callable[[int], None]
    load: Callable[[int], int]
    log: logging.Logger
    requested: Callable[[Texts], None] = lambda _: None
    view: View = field(default_factory=View, init=False)
    _beat_at: float = field(default=float("-inf"), init=False)
    _planned_at: float = field(default=float("-inf"), init=False)
    _warned_at: float = field(default=float("-inf"), init=False)
    _disbelieved_at: float = field(default=float("-inf"), init=False)
    _beyond_at: float = field(default=float("-inf"), init=False)
    _beating: bool = field(default=False, init=False)
    _claiming: int = field(default=0, init=False)  # transactions
    _singly: bool = field(default=False, init=False)
    _removing: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Nothing is known yet."""
        # An owner is dead after MISSES + 1 beats at most, and a controller may be busy for most of that; the
        # roles, queues and records take the rest of the lease.
        self.beat = 0.7 * self.lease / (MISSES + 1)
        self.ownership = Ownership(self.member.id, self.together, 3 * self.beat)
        self.roles = Roles(self.gained, self.lost, self._ahead)
        self._live: frozenset[str] = frozenset()
        self._owned: dict[int, int] = {}
        self._dropping: set[int] = set()  # they are not ours any more, and must still be dropped
        self._told: set[str] = set()

    # Switches

    def connected(self, datapath: Any) -> None:
        """The handshake of a switch is complete."""
        if self.agents_only and not oxm.is_agent(datapath.id):
            # A role would make a slave of another controller that governs the bridge.
            self.log.warning(
                "bridge %s: it is connected, and left alone (way = windows): its agent governs it without "
                "it. Take this controller out of its controllers",
                dpid_text(datapath.id),
            )
            return
        Sender.send(self.roles.connected(datapath))

    def disconnected(self, datapath: Any) -> None:
        """The connection of a switch has ended."""
        self.roles.disconnected(datapath)
        dpid = oxm.bridge_dpid(datapath.id)
        if not self.roles.reaches(dpid):
            self.ownership.gone(dpid)

    def role_reply(self, message: Any) -> None:
        """A switch has told our role."""
        Sender.send(self.roles.replied(message))

    def refused(self, message: Any) -> bool:
        """A switch has refused a message. Returns whether it was about roles."""
        answer = self.roles.refused(message)
        Sender.send(answer or [])
        return answer is not None

    def _ahead(self, dpid: int, generation: int) -> None:
        now = time.monotonic()
        if self.ownership.ahead(dpid, generation) or now - self._disbelieved_at < _WARNING_INTERVAL:
            return
        self._disbelieved_at = now
        self.log.warning(
            "bridge %s: it says that an owner had generation %d, which is not believed: the bridge is not "
            "governed (logged once a minute, of one bridge)",
            dpid_text(dpid),
            generation,
        )

    # The database

    def run(self) -> None:
        """The greenlet; it does not return."""
        while True:
            self._step(time.monotonic())
            self.database.wait(_TICK)

    def _step(self, now: float) -> None:
        changed = self.database.step()
        if changed:
            self.view = self.database.view()
            self._decided()
        requests = self.database.take_requests()
        if requests:
            self.requested(requests)
        self.database.work()
        self._note_slowness(now)
        if not self._beating and now - self._beat_at >= self.beat:
            me = self.member._replace(reach=self.roles.reach())
            counted = {dpid: self.load(dpid) for dpid in self._owned}
            self._beating, self._beat_at = True, now  # behind what may raise
            loads = {dpid: load for dpid, load in counted.items() if load}
            # Requests, however many, let neither a living controller look dead nor a dead one have bridges.
            self.database.write(rows.beat(me, loads), self._beaten, urgent=True)
        if changed or now - self._planned_at >= self.beat:
            self._planned_at = now
            self._claim(now)
        self._drop()

    def _drop(self) -> None:
        """Behind beats and claims: what is raised here is raised again at each step, until it is done."""
        for dpid in sorted(self._dropping):
            self.dropped(dpid)
            self._dropping.remove(dpid)

    def store(self, changes: Texts, expected: Texts) -> bool | None:
        """Store requests for all controllers, as :data:`~fairq_ryu.control.operations.requests.Store` says.
        Other greenlets run meanwhile.
        """
        over = hub.Event()
        found: list[bool] = []

        def done(stored: bool) -> None:
            found.append(stored)
            over.set()

        # With something expected, a second attempt would find the first one's values.
        seconds = 0.0 if expected else _STORING
        self.database.write(rows.put(changes, expected), done, seconds, within=_STORING)
        over.wait(2 * _STORING)
        if not found or (not found[0] and not (expected and self.database.connected)):
            return None
        return found[0]

    def _note_slowness(self, now: float) -> None:
        waited = now - self._beat_at
        if self._beating and waited > self.ownership.pause and now - self._warned_at >= _WARNING_INTERVAL:
            self._warned_at = now
            self.log.warning(
                "cluster: the database has not confirmed a beat for %.1f s: while it is so slow, a dead "
                "controller is replaced later than within a lease (logged once a minute)",
                waited,
            )

    def _beaten(self, _: bool) -> None:
        self._beating = False

    def _claim(self, now: float) -> None:
        claims = self.ownership.plan(self.view, now)
        self._note_live()
        self._note_beyond(now)
        self._remove_unreached()
        if not claims or self._claiming:
            return
        together = [[each] for each in claims] if self._singly else [claims]
        self._claiming, self._singly = len(together), False
        for each in together:
            self.database.write(rows.claim(each, self.member.id), self._claimed, urgent=True)

    def _claimed(self, _: bool) -> None:
        # What has become of it is in the rows. If the server has refused it, it will for ever, and all others
        # of the same transaction as well: the next time each bridge has one of its own.
        self._claiming -= 1
        self._singly = self._singly or self.database.refused

    def _decided(self) -> None:
        owned = self.view.owned(self.member.id)
        for dpid in owned.keys() - self._owned.keys():
            self.log.info("bridge %s: owned, generation %d", dpid_text(dpid), owned[dpid])
        for dpid in self._owned.keys() - owned.keys():
            row = self.view.bridges.get(dpid)
            by = "nobody" if row is None else self.name(row.owner)
            self.log.info("bridge %s: not owned any more, but by %s", dpid_text(dpid), by)
        self._dropping |= self._owned.keys() - owned.keys()
        self._owned = owned
        known = {dpid: row.generation for dpid, row in self.view.bridges.items()}
        Sender.send(self.roles.decided(owned, known))
        others = [each for each in self.view.members.values() if each.settings != self.member.settings]
        for other in others:
            if other.id not in self._told:
                self._told.add(other.id)
                self.log.warning(
                    "cluster: the settings of controller %s are not the same as here", other.name
                )

    def _note_live(self) -> None:
        live = self.ownership.live
        for each in sorted(live - self._live - {self.member.id}):
            self.log.info("cluster: controller %s is alive", self.name(each))
        for each in sorted(self._live - live):
            self.log.warning("cluster: controller %s has gone or is silent", self.name(each))
        self._live = live
        for each in self.ownership.silent(_FORGET * MISSES):
            if each in self.view.members:
                self.database.write(rows.leave(each, self.view.members[each].beat))

    def _note_beyond(self, now: float) -> None:
        beyond = self.ownership.beyond
        if beyond and now - self._beyond_at >= _WARNING_INTERVAL:
            self._beyond_at = now
            self.log.warning(
                "cluster: the database has %d bridges: %d more, such as %s, are not governed (logged once a "
                "minute)",
                len(self.view.bridges),
                len(beyond),
                dpid_text(min(beyond)),
            )

    def _remove_unreached(self) -> None:
        many = len(self.view.bridges) > MOST_BRIDGES // 2
        gone = self.ownership.unreached((_FORGET if many else _FORGET_BRIDGE) * MISSES)[:_AT_ONCE]
        if gone and not self._removing:
            self._removing = True
            generations = {dpid: self.view.bridges[dpid].generation for dpid in gone}
            self.database.write(rows.remove(generations), self._removed)

    def _removed(self, _: bool) -> None:
        self._removing = False

    # What people may read

    def others(self) -> list[tuple[str, str, bool]]:
        """The other controllers: name, address of their REST interface, and whether they are alive. One that
        was started anew is no other one than before.
        """
        me, live = self.member, self.ownership.live
        members = [each for each in self.view.members.values() if each.id != me.id]
        names = {me.name} | {each.name for each in members if each.id in live}
        return [
            (each.name, each.rest, each.id in live)
            for each in members
            if each.id in live or each.name not in names
        ]

    @property
    def is_known(self) -> bool:
        """Whether the database has been reached once: before that, nothing is governed."""
        return self.database.filled

    def cluster(self) -> dict[str, Any]:
        """Controllers and bridges: :class:`fairq_ryu.rest.schema.state.Cluster`."""
        live, bridges = self.ownership.live, self.view.bridges
        return {
            "controller": self.member.name,
            "database": self.database.connected,
            "controllers": [
                {
                    "name": each.name,
                    "rest": each.rest,
                    "alive": each.id in live,
                    "bridges": len(self.view.owned(each.id)),
                    "load": sum(bridges[dpid].load for dpid in self.view.owned(each.id)),
                }
                for _, each in sorted(self.view.members.items())
            ],
            "bridges": [
                {
                    "dpid": dpid_text(dpid),
                    "owner": self.name(row.owner),
                    "generation": row.generation,
                    "load": row.load,
                }
                for dpid, row in sorted(bridges.items())
            ],
        }

    @staticmethod
    def name(member: str) -> str:
        """The name of a controller, by its ``id``."""
        return member.partition("/")[0]
