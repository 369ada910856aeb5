"""The flow table with a simulated fabric: after any losses, delays and forged segments it counts exactly the
existing flows a few seconds after the last change.

Switches are simulated as agents: they keep the last port of each direction, flags of an end stay until the
next handshake, ended flows are removed after a while, and all flows are reported once a second, or their
changes in chunks.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

from fairq_ryu.agent.flow_changes import MARKS, FlowChanges
from fairq_ryu.agent.flow_changes import Seen as Part
from fairq_ryu.channel.flow_changes import LEAVE_OUT_MS
from fairq_ryu.fabric.flows.table import SeenFlow
from fairq_ryu.model import FlowKey, FlowPath, PortKey
from tests.support.flownet import KEY, OVER3, OVER4, Net, Placed, reconcile, segment

PATHS = [OVER3, OVER4]
SWITCHES = (1, 2, 3, 4)
POLL, CLOSED_FOR = 1.0, 2.0
CHANGES, CALM = 40.0, 8.0
# Seconds in which a switch that reports changes does not repeat a flow, and connections in a chunk.
REFRESH, CHUNK = 1.0, 3


@dataclass
class Seen:
    """A switch's record of a direction."""

    port: PortKey
    last: float
    closed: bool = False
    bytes: int = 0


@dataclass(eq=False)
class Talk:
    """The real state of a connection. ``path`` is None while it has none."""

    key: FlowKey
    path: FlowPath | None = None
    isn: int = 0
    ended: set[FlowKey] = field(default_factory=set)
    forged: bool = False
    since: float = 0.0
    paused_until: float = 0.0


class Fabric:
    """Two leaves and two spines with communicating hosts, and a controller's flow table."""

    def __init__(self, seed: int, loss: float, changes: bool = False, lasting: bool = False) -> None:
        self.lasting = lasting
        self.random = random.Random(seed)
        self.loss = loss
        self.net = Net(None)
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self.seen: dict[int, dict[FlowKey, Seen]] = {dpid: {} for dpid in SWITCHES}
        # The switches that report changes, the generation that the controller has of each, and those that are
        # asked for the next chunk.
        self.logs = {dpid: FlowChanges(1) for dpid in SWITCHES} if changes else {}
        self.generations = dict.fromkeys(SWITCHES, 0)
        self.asked: set[int] = set()
        self.last_copy = dict.fromkeys(SWITCHES, 0.0)
        self.answered: set[tuple[int, FlowKey]] = set()
        # Whether the controller knows the paths, or learns them from records.
        self.paths_known = bool(seed % 4)
        self.talks = [Talk(KEY._replace(sport=1000 + n), isn=self.random.getrandbits(32)) for n in range(8)]

    def after(self, delay: float, work: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + delay, next(self._order), work))

    def run(self) -> None:
        for dpid in SWITCHES:
            self.after(self.random.uniform(0, POLL), lambda dpid=dpid: self.poll(dpid))
        for talk in self.talks:
            self.after(self.random.uniform(0, 5), lambda talk=talk: self.open(talk))
            self.after(0.1, lambda talk=talk: self.talk(talk))
        self.after(5, self.expire)
        # What a switch does not repeat is certain only after a pass that began later.
        end = CHANGES + CALM + (4 * REFRESH if self.logs else 0)
        while self._events and self._events[0][0] < end:
            self.now, _, work = heapq.heappop(self._events)
            work()

    # Hosts

    def send(self, talk: Talk, key: FlowKey, flags: str, seq: int = 0, ack: int = 0, size: int = 0) -> None:
        """A segment passes its path; its copies may be lost or reordered."""
        assert talk.path is not None
        path = talk.path if key == talk.key else talk.path.reversed
        for port in path.forward:
            self.pass_switch(port, key, flags, size)
        if not set(flags) & set("SFR") or (self.random.random() < self.loss and not talk.forged):
            return
        copied = segment(key, flags, seq, ack, 1460, 7)
        known = path if self.paths_known else None
        # A switch's copies arrive in order; those of another may be faster.
        in_port = path.backward[-1]
        self.last_copy[in_port.dpid] = max(
            self.last_copy[in_port.dpid], self.now + self.random.uniform(0, 0.2)
        )
        self.after(
            self.last_copy[in_port.dpid] - self.now,
            lambda: self.replay(self.net.table.segment(copied, in_port, known, self.now)),
        )

    def pass_switch(self, port: PortKey, key: FlowKey, flags: str, size: int) -> None:
        here = self.seen[port.dpid]
        if key not in here and key.reversed not in here and not size and "S" not in flags:
            return
        entry = here.setdefault(key, Seen(port, self.now))
        entry.port, entry.last = port, self.now
        entry.bytes += size
        if "S" in flags and "A" in flags:
            for each in (entry, here.get(key.reversed)):
                if each is not None:
                    each.closed, each.bytes = False, 0
            self.answered.add((port.dpid, min(key, key.reversed)))
        if size:
            self.answered.add((port.dpid, min(key, key.reversed)))
        if "F" in flags:
            entry.closed = True
        if "R" in flags:
            for each in (entry, here.get(key.reversed)):
                if each is not None:
                    each.closed = True

    def open(self, talk: Talk) -> None:
        if self.now > CHANGES:
            return
        talk.path = self.random.choice(PATHS)
        talk.ended, talk.forged, talk.since = set(), False, self.now
        talk.isn = (talk.isn + self.random.randint(10**6, 10**8)) % 2**32
        self.send(talk, talk.key, "S", talk.isn)
        self.send(talk, talk.key.reversed, "SA", 77, (talk.isn + 1) % 2**32)
        self.send(talk, talk.key, "A", size=1460)
        self.after(self.random.uniform(0, 20), lambda: self.change(talk))

    def talk(self, talk: Talk) -> None:
        self.after(0.1, lambda: self.talk(talk))
        if talk.path is None or self.now < talk.paused_until:
            return
        for key in (talk.key, talk.key.reversed):
            self.send(talk, key, "A", size=0 if key in talk.ended else 1460)

    def change(self, talk: Talk) -> None:
        if self.now > CHANGES or talk.path is None:
            return
        what = self.random.choice(
            [self.fin, self.fin, self.reset, self.move, self.move, self.forge, self.pause]
        )
        what(talk)
        if talk.path is not None:
            self.after(self.random.uniform(0, 10), lambda: self.change(talk))

    def fin(self, talk: Talk) -> None:
        key = self.random.choice([talk.key, talk.key.reversed])
        if key not in talk.ended:
            self.send(talk, key, "FA", (talk.isn + 10) % 2**32 if key == talk.key else 88, 1)
            talk.ended.add(key)
        if len(talk.ended) == 2:
            self.over(talk)

    def reset(self, talk: Talk) -> None:
        self.send(talk, self.random.choice([talk.key, talk.key.reversed]), "R", (talk.isn + 10) % 2**32)
        self.over(talk)

    def over(self, talk: Talk) -> None:
        talk.path = None
        self.after(self.random.uniform(0.3, 6), lambda: self.open(talk))

    def move(self, talk: Talk) -> None:
        """Another path: the controller knows it at once, the switches a little later."""
        path = self.random.choice(PATHS)
        if talk.ended and not self.paths_known:
            # segments over another switch are then only acknowledgements, which cannot be distinguished
            return

        def done() -> None:
            if talk.path is not None:
                talk.path = path

        self.after(self.random.uniform(0, 0.5), done)
        if self.paths_known:
            self.replay(self.net.table.repath(talk.key, path, self.now))

    def forge(self, talk: Talk) -> None:
        if not talk.ended and self.now > max(talk.paused_until, talk.since + 3):
            talk.forged = True
            self.send(talk, talk.key, "R", self.random.getrandbits(32))

    def pause(self, talk: Talk) -> None:
        if not talk.forged:
            talk.paused_until = min(self.now + self.random.uniform(1, 15), CHANGES)

    # Switches and controller

    def poll(self, dpid: int) -> None:
        self.after(POLL, lambda: self.poll(dpid))
        here = self.seen[dpid]
        for key in list(here):
            both = [here[each] for each in (key, key.reversed) if each in here]
            if all(each.closed for each in both) and all(self.now - each.last > CLOSED_FOR for each in both):
                for each in (key, key.reversed):
                    here.pop(each, None)
                self.answered.discard((dpid, min(key, key.reversed)))
        if self.logs:
            self.read_flows(dpid)
            if dpid not in self.asked:
                self.ask(dpid)
            return
        records = [
            (key, entry.port, entry.closed, self.now - entry.last, entry.bytes)
            for key, entry in here.items()
            if (dpid, min(key, key.reversed)) in self.answered
        ]
        seen = [SeenFlow(key, port, closed, idle, size, 7, 1460) for key, port, closed, idle, size in records]
        self.after(
            self.random.uniform(0, 0.3),
            lambda: self.replay(reconcile(self.net.table, dpid, seen, self.now)),
        )

    def read_flows(self, dpid: int) -> None:
        """A switch that reports changes reads its flow map."""
        here, log = self.seen[dpid], self.logs[dpid]
        log.ask(int(REFRESH * 1e9), False, self.lasting)
        log.begin(int(self.now * 1e9))
        names = [
            n
            for n, talk in enumerate(self.talks)
            if (dpid, min(talk.key, talk.key.reversed)) in self.answered
        ]
        both = [[here.get(key) for key in (self.talks[n].key, self.talks[n].key.reversed)] for n in names]
        marks = np.zeros((len(names), MARKS), dtype=np.uint32)
        for row, entries in enumerate(both):
            for column, entry in enumerate(entries):
                if entry is not None:
                    marks[row, 2 * column : 2 * column + 2] = entry.port.port, entry.closed
        listed = [sum(1 << n for n, entry in enumerate(entries) if entry is not None) for entries in both]
        last = [max(entry.last for entry in entries if entry is not None) for entries in both]
        none = np.zeros(len(names), dtype=np.uint8)
        bits, ended = np.array(listed, dtype=np.uint8), none.astype(np.bool_)
        over = np.array([all(each is not None and each.closed for each in entries) for entries in both])
        last_ns = (np.array(last) * 1e9).astype(np.int64)
        log.observe(bytes(names), Part(marks, bits, none, ended, over.astype(np.bool_), last_ns))
        log.end()

    def ask(self, dpid: int) -> None:
        """The controller asks for a chunk of changes: it comes a little later."""
        self.asked.add(dpid)
        log, here = self.logs[dpid], self.seen[dpid]
        found = log.since(self.generations[dpid], CHUNK)
        keys = [(talk.key, talk.key.reversed) for talk in (self.talks[name[0]] for name in found.keys)]
        wanted = [each for each, listed in zip(keys, found.listed, strict=True) for each in each if listed]
        records = [
            SeenFlow(
                key, here[key].port, here[key].closed, self.now - here[key].last, here[key].bytes, 7, 1460
            )
            for key in wanted
            if key in here
        ]
        gone = [each[n] for each, bits in zip(keys, found.gone, strict=True) for n in (0, 1) if bits >> n & 1]
        as_of = (log.read_ns or 0) / 1e9 - (LEAVE_OUT_MS / 1000 if self.lasting else 0.0)

        def arrive() -> None:
            table = self.net.table
            if found.anew:
                table.list_anew(dpid, self.now)
            self.replay(table.changed(dpid, records, gone, self.now))
            self.generations[dpid] = found.generation
            if found.more:
                self.ask(dpid)
                return
            for events in table.changes_complete(dpid, as_of, REFRESH, self.now):
                self.replay(events)
            self.asked.discard(dpid)

        self.after(self.random.uniform(0, 0.1), arrive)

    def expire(self) -> None:
        self.after(5, self.expire)
        self.replay(self.net.table.expire(self.now))

    def replay(self, events) -> None:
        self.net.replay(events)

    @property
    def truth(self) -> Placed:
        return {
            (port, key)
            for talk in self.talks
            if talk.path is not None
            for key, hops in ((talk.key, talk.path.forward), (talk.key.reversed, talk.path.backward))
            if key not in talk.ended
            for port in hops
        }


# When every copy is lost, one run in a hundred ends with one connection too many: it was reset, its ports
# were reused at once, and it then sent its FIN, all between two reports of a switch.
@pytest.mark.parametrize(("changes", "lasting"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("loss", [0.0, 0.3, 1.0])
def test_the_table_is_right_after_the_last_change(loss, changes, lasting):
    # With every seed, the 40 of changes take a quarter of a minute.
    for seed in range(12, 20) if changes else range(40):
        fabric = Fabric(seed, loss, changes, lasting)
        fabric.run()
        assert fabric.net.counted == fabric.truth, f"seed {seed}"


def test_the_simulation_covers_many_changes():
    """The simulation proves nothing if no flow is left in the end, or no path has changed."""
    talks = []
    for seed in range(10):
        fabric = Fabric(seed, 0.3)
        fabric.run()
        talks += [(talk.path, len(talk.ended), talk.forged) for talk in fabric.talks]
    assert {path for path, _, _ in talks} == {None, OVER3, OVER4}
    assert {ended for path, ended, _ in talks if path} == {0, 1}
    assert {forged for path, _, forged in talks if path} == {True, False}
