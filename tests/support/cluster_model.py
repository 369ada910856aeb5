"""Controllers, a database and switches in one simulated time, for histories with faults.

The database is linearizable, as OVSDB is. Everything else may fail: a controller sees rows late or not at
all, stops and goes on, dies and comes back; its clock runs at a rate of its own; a switch forgets its
generation; a connection breaks; a transaction is carried out although its sender is told that it was not; the
file of the database is made anew, or is an older copy of itself. Between the rows and the switches are the
real :class:`Roles`. What was committed, and which rules a switch has accepted, is recorded, and
:meth:`World.check` is the checker.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel import oxm
from fairq_ryu.cluster.ownership import Ownership, Together
from fairq_ryu.cluster.view import Bridge, Claim, Member, View
from fairq_ryu.control.ownership.roles import Roles

STEP = 0.05
BEAT = 0.2
PAUSE = 0.6
_UNSET = 0xFFFF_FFFF_FFFF_FFFF
# Beats after which the row of a bridge is removed that nobody reaches: soon, so that histories have it.
FORGET = 12


@dataclass
class Switch:
    """An agent, with the roles of OpenFlow."""

    dpid: int
    generation: int | None = None
    master: Any = None
    rules: list[tuple[str, int, int | None]] = field(default_factory=list)  # owner, its and our generation
    life: int = 0
    lives: list[int] = field(default_factory=list)

    def role(self, who: Any, datapath: Any, role: int, generation: int) -> Any:
        """ROLE_REQUEST; the answer, or the error."""
        if role != ofp.OFPCR_ROLE_NOCHANGE:
            if self.generation is not None and generation < self.generation:
                return SimpleNamespace(
                    datapath=datapath, type=ofp.OFPET_ROLE_REQUEST_FAILED, code=ofp.OFPRRFC_STALE
                )
            self.generation = generation
            if role == ofp.OFPCR_ROLE_MASTER:
                self.master = who
            elif self.master is who:
                self.master = None
        has = ofp.OFPCR_ROLE_MASTER if self.master is who else ofp.OFPCR_ROLE_SLAVE
        known = _UNSET if self.generation is None else self.generation
        return SimpleNamespace(datapath=datapath, role=has, generation_id=known)

    def obeys(self, who: Any, generation: int) -> bool:
        """Whether a request for the role of the master is accepted."""
        return not hasattr(self.role(who, None, ofp.OFPCR_ROLE_MASTER, generation), "code")

    def rule(self, who: Any, generation: int, datapath: Any = None) -> Any:
        """A rule; None, or the error."""
        if self.master is not who:
            return SimpleNamespace(datapath=datapath, type=ofp.OFPET_BAD_REQUEST, code=ofp.OFPBRC_IS_SLAVE)
        self.rules.append((who.id, generation, self.generation))
        self.lives.append(self.life)
        return None

    def restart(self) -> None:
        self.generation, self.master = None, None
        self.life += 1

    def left(self, who: Any) -> None:
        """A connection has ended."""
        self.master = None if self.master is who else self.master


@dataclass(eq=False)
class Controller:
    world: World
    name: str
    rate: float = 1.0
    process: int = 0
    alive: bool = True
    paused: bool = False
    isolated: bool = False  # from the database
    cut: set[int] = field(default_factory=set)  # connections to switches that are down
    seen: View = field(default_factory=View)
    lag: int = 0
    connections: dict[int, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.born()

    def born(self) -> None:
        self.process += 1
        self.id = f"{self.name}/{self.process}"
        self.ownership = Ownership(self.id, Together.NONE, PAUSE)
        self.clock = 1000.0 * self.process
        self.beat_at = self.clock
        self.seen = View()
        self.roles = Roles(lambda _: None, lambda *_: None, self.ownership.ahead)
        self.connections = {}
        self.backlog: list[View] = []

    def kill(self) -> None:
        self.alive = False
        for switch in self.world.switches.values():
            switch.left(self)

    def reach(self) -> dict[int, int]:
        return self.roles.reach()

    def disconnect(self, dpid: int) -> None:
        """The connection to a switch has ended, if there is one."""
        datapath = self.connections.pop(dpid, None)
        if datapath is not None:
            self.roles.disconnected(datapath)
            self.ownership.gone(dpid)
            self.world.switches[dpid].left(self)

    def step(self) -> None:
        if not self.alive or self.paused:
            return
        self.clock += STEP * self.rate
        database = self.world
        if not self.isolated:
            self.backlog.append(database.view())
            if len(self.backlog) > self.lag:
                self.seen = self.backlog[len(self.backlog) - 1 - self.lag]
                del self.backlog[: len(self.backlog) - 1 - self.lag]
            if self.clock - self.beat_at >= BEAT and database.up:
                self.beat_at = self.clock
                database.beat(self)
        claims = self.ownership.plan(self.seen, self.clock)
        if claims and not self.isolated:
            database.commit(claims, self.id)
        if not self.isolated:
            rows = self.seen.bridges
            database.remove({dpid: rows[dpid].generation for dpid in self.ownership.unreached(FORGET)})
        self.serve()

    def serve(self) -> None:
        """Be the master of what is owned by what was seen last, and send rules there. Only the generation
        keeps out one that insists.
        """
        for dpid in self.cut & self.connections.keys():
            self.disconnect(dpid)
        for dpid in self.world.switches.keys() - self.cut - self.connections.keys():
            made = self.connections[dpid] = SimpleNamespace(id=oxm.agent_dpid(dpid), owned=False)
            self.deliver(dpid, self.roles.connected(made))
        owned = self.seen.owned(self.id)
        known = {dpid: row.generation for dpid, row in self.seen.bridges.items()}
        for datapath, message in self.roles.decided(owned, known):
            self.deliver(oxm.bridge_dpid(datapath.id), [(datapath, message)])
        for dpid, datapath in list(self.connections.items()):
            if datapath.owned:
                error = self.world.switches[dpid].rule(self, owned[dpid], datapath)
                if error is not None:
                    self.deliver(dpid, self.roles.refused(error) or [])

    def deliver(self, dpid: int, messages: Any) -> None:
        """Send requests of roles, and what their answers make necessary."""
        waiting = list(messages)
        while waiting:
            datapath, message = waiting.pop(0)
            answer = self.world.switches[dpid].role(self, datapath, message.role, message.generation_id)
            heard = self.roles.refused if hasattr(answer, "code") else self.roles.replied
            waiting += heard(answer) or []


class World:
    """The database is in here. ``rates``: how fast the controllers' clocks run."""

    def __init__(self, rates: list[float], switches: int) -> None:
        self.up = True
        self.members: dict[str, Member] = {}
        self.bridges: dict[int, Bridge] = {}
        self.removed = 0
        self.history: list[tuple[int, int, str]] = []
        self.owners: dict[tuple[int, int], set[str]] = {}
        self.copy = View()
        self.policy: dict[str, int] = {}
        self.switches = {dpid: Switch(dpid) for dpid in range(1, switches + 1)}
        names = "abcdefgh"
        self.controllers = [Controller(self, names[i], rate) for i, rate in enumerate(rates)]

    def view(self) -> View:
        return View(dict(self.members), dict(self.bridges), self.removed)

    def beat(self, who: Controller) -> None:
        row = self.members.get(who.id, Member(who.id, who.name))
        self.members[who.id] = row._replace(beat=row.beat + 1, reach=who.reach())

    def commit(self, claims: list[Claim], owner: str) -> bool:
        if not self.up:
            return False
        rows = self.bridges
        if any((rows[c.dpid].generation if c.dpid in rows else None) != c.before for c in claims):
            return False
        if any(c.dpid not in rows and c.generation <= self.removed for c in claims):
            return False
        for each in claims:
            self.bridges[each.dpid] = Bridge(owner, each.generation)
            self.history.append((each.dpid, each.generation, owner))
            self.owners.setdefault((each.dpid, each.generation), set()).add(owner)
        return True

    def keep_copy(self) -> None:
        """Copy the file of the database."""
        self.copy = self.view()

    def replace(self, view: View) -> None:
        """The database has another file: an older one, or an empty one. Generations are given again."""
        self.members, self.bridges = dict(view.members), dict(view.bridges)
        self.removed, self.history = view.removed, []

    def remove(self, bridges: dict[int, int]) -> None:
        for dpid, generation in bridges.items():
            row = self.bridges.get(dpid)
            if self.up and row is not None and row.generation == generation:
                del self.bridges[dpid]
                self.removed = max(self.removed, generation)

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds / STEP)):
            for each in self.controllers:
                each.step()

    def heal(self) -> None:
        self.up = True
        for each in self.controllers:
            each.paused = each.isolated = False
            each.cut.clear()
            if not each.alive:
                each.alive = True
                each.born()

    def check(self) -> None:
        """The invariants, on all that has happened."""
        last: dict[int, int] = {}
        for dpid, generation, _ in self.history:
            assert generation > last.get(dpid, 0), "a generation was given twice"
            last[dpid] = generation
        for switch in self.switches.values():
            before = (-1, 0)
            for (owner, generation, current), life in zip(switch.rules, switch.lives, strict=True):
                assert owner in self.owners[switch.dpid, generation], "rules of one that never owned it"
                assert generation == current, "a rule of another generation than the switch's"
                assert (life, generation) >= before, "a rule of an earlier owner after one of a later"
                before = life, generation

    def settled(self) -> None:
        """Every switch has one master, the living owner, and loads are even."""
        counts = dict.fromkeys((each.id for each in self.controllers if each.alive), 0)
        for dpid, switch in self.switches.items():
            row = self.bridges[dpid]
            assert switch.master is not None and switch.master.id == row.owner
            assert switch.generation == row.generation
            counts[row.owner] += 1
        assert max(counts.values()) - min(counts.values()) <= 1 + 0.1 * max(counts.values())
