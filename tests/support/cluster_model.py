"""Controllers, a database and switches in one simulated time, for histories with faults.

The database is linearizable, as OVSDB is. Everything else may fail: a controller sees rows late or not at
all, stops and goes on, dies and comes back; its clock runs at a rate of its own; a switch forgets its
generation; a connection breaks; a transaction is carried out although its sender is told that it was not.
What was committed, and which rules a switch has accepted, is recorded, and :meth:`World.check` is the
checker.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fairq_ryu.cluster.ownership import Ownership
from fairq_ryu.cluster.view import TO_AGENT, Bridge, Claim, Member, View

STEP = 0.05
BEAT = 0.2
PAUSE = 0.6
# Beats after which the row of a bridge is removed that nobody reaches: soon, so that histories have it.
FORGET = 12


@dataclass
class Switch:
    """An agent, with the roles of OpenFlow."""

    dpid: int
    generation: int | None = None
    master: Controller | None = None
    rules: list[tuple[str, int, int | None]] = field(default_factory=list)  # owner, its and our generation
    life: int = 0
    lives: list[int] = field(default_factory=list)

    def role(self, who: Controller, generation: int) -> bool:
        """ROLE_REQUEST MASTER; whether it was accepted."""
        if self.generation is not None and generation < self.generation:
            return False
        self.generation, self.master = generation, who
        return True

    def rule(self, who: Controller, generation: int) -> None:
        if self.master is who:
            self.rules.append((who.id, generation, self.generation))
            self.lives.append(self.life)

    def restart(self) -> None:
        self.generation, self.master = None, None
        self.life += 1


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
    held: dict[int, int] = field(default_factory=dict)  # master of, by generation

    def __post_init__(self) -> None:
        self.born()

    def born(self) -> None:
        self.process += 1
        self.id = f"{self.name}/{self.process}"
        self.ownership = Ownership(self.id, True, PAUSE)
        self.clock = 1000.0 * self.process
        self.beat_at = self.clock
        self.seen = View()
        self.held = {}
        self.backlog: list[View] = []

    def kill(self) -> None:
        self.alive = False
        for switch in self.world.switches.values():
            if switch.master is self:
                switch.master = None
        self.held = {}

    def reach(self) -> dict[int, int]:
        return {dpid: TO_AGENT for dpid in self.world.switches if dpid not in self.cut}

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
        """Be the master of what is owned by what was seen last, and send rules there."""
        owned = self.seen.owned(self.id)
        for dpid in [dpid for dpid, generation in self.held.items() if owned.get(dpid) != generation]:
            del self.held[dpid]
        for dpid, generation in owned.items():
            switch = self.world.switches.get(dpid)
            if switch is None or dpid in self.cut:
                continue
            # One that is refused a rule insists. Only the generation keeps it out.
            if (dpid not in self.held or switch.master is not self) and switch.role(self, generation):
                self.held[dpid] = generation
            if dpid in self.held:
                switch.rule(self, generation)


class World:
    """The database is in here. ``rates``: how fast the controllers' clocks run."""

    def __init__(self, rates: list[float], switches: int) -> None:
        self.up = True
        self.members: dict[str, Member] = {}
        self.bridges: dict[int, Bridge] = {}
        self.removed = 0
        self.history: list[tuple[int, int, str]] = []
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
        return True

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
        owners: dict[tuple[int, int], str] = {}
        for dpid, generation, owner in self.history:
            assert generation > last.get(dpid, 0), "a generation was given twice"
            last[dpid], owners[dpid, generation] = generation, owner
        for switch in self.switches.values():
            before = (-1, 0)
            for (owner, generation, current), life in zip(switch.rules, switch.lives, strict=True):
                assert owners[switch.dpid, generation] == owner, "rules of one that never owned it"
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
