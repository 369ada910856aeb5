"""What has changed in a flow map: what a controller that asks learns, and what it costs it."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest

from fairq_ryu.agent import flow_changes
from fairq_ryu.agent.flow_changes import MARKS, FlowChanges, Seen

SECOND = 1_000_000_000
BOTH = 3


@dataclass
class Flow:
    """A connection in the flow map."""

    mark: int = 1
    last: float = 0.0
    listed: int = BOTH
    ended: bool = False
    over: bool = False
    unscaled: int = 0


class Bench:
    """A flow map with connections that are named by a letter."""

    def __init__(self, refresh: float = 1.0) -> None:
        self.log = FlowChanges(1)
        self.flows: dict[str, Flow] = {}
        self.refresh = refresh
        self.again = False
        self.generation = 0
        self.known: dict[str, int] = {}

    def read(self, now: float, part: int = 2) -> None:
        """A pass."""
        self.log.ask(int(self.refresh * SECOND), self.again)
        self.log.begin(int(now * SECOND))
        names = list(self.flows)
        for start in range(0, len(names), part):
            some = names[start : start + part]
            rows = [self.flows[name] for name in some]
            marks = np.zeros((len(rows), MARKS), dtype=np.uint32)
            marks[:, -1] = [row.mark for row in rows]
            seen = Seen(
                marks,
                np.array([row.listed for row in rows], dtype=np.uint8),
                np.array([row.unscaled for row in rows], dtype=np.uint8),
                np.array([row.ended or row.over for row in rows]),
                np.array([row.over for row in rows]),
                np.array([row.last * SECOND for row in rows]).astype(np.int64),
            )
            self.log.observe("".join(some).encode(), seen)
        self.log.end()

    def ask(self, limit: int = 100) -> str:
        """The answer to a request: changed connections, in capitals if they are gone; ``!`` begins a new
        list, ``+`` ends one with more to come.
        """
        found = self.log.since(self.generation, limit)
        self.generation = found.generation
        if found.anew:
            self.known.clear()
        text = "!" if found.anew else ""
        for key, listed, gone in zip(found.keys, found.listed, found.gone, strict=True):
            name = key.decode()
            text += name if listed else name.upper()
            self.known[name] = listed
            assert not listed & gone
            if not listed:
                del self.known[name]
        return text + ("+" if found.more else "")


@pytest.fixture
def bench() -> Bench:
    made = Bench()
    made.flows = {name: Flow() for name in "abc"}
    made.read(0.0)
    return made


def test_a_new_controller_gets_all_connections_once(bench):
    assert bench.ask() == "!abc"
    bench.read(1.0)
    assert bench.ask() == ""


def test_without_connections_there_is_nothing_to_report():
    bench = Bench()
    assert bench.ask() == "!"
    bench.read(0.0)
    assert bench.ask() == "!"
    bench.flows["a"] = Flow()
    bench.read(1.0)
    assert [bench.ask(), bench.ask()] == ["!a", ""]


def test_a_change_is_reported_in_the_next_pass_however_soon(bench):
    bench.ask()
    bench.flows["b"].mark = 2
    bench.flows["d"] = Flow()
    bench.read(0.1)
    assert bench.ask() == "bd"
    bench.flows["a"].listed = 1
    bench.read(0.2)
    found = bench.log.since(bench.generation, 100)
    assert (found.keys, found.listed, found.gone) == ([b"a"], [1], [2])


def test_connections_that_are_gone_are_reported_and_may_come_again(bench):
    bench.ask()
    gone = bench.flows.pop("b")
    bench.flows["c"].listed = 0  # neither of its ports is the bridge's any more
    bench.read(1.0)
    assert bench.ask() == "BC"
    bench.flows["b"] = gone
    bench.read(2.0)
    assert bench.ask() == "b"


def test_a_new_controller_does_not_hear_of_connections_that_are_gone(bench):
    del bench.flows["b"]
    bench.read(1.0)
    assert bench.ask() == "!ac"


def test_a_connection_that_sends_is_reported_again_at_the_refresh_interval(bench):
    bench.refresh = 3.0
    bench.ask()
    bench.ask()
    told = []
    for now in range(1, 10):
        bench.flows["a"].last = now
        bench.read(now)
        told.append(bench.ask())
    assert told == ["", "", "a", "", "", "a", "", "", "a"]
    bench.read(20.0)
    assert bench.ask() == ""  # it is silent since its last report


def test_the_last_segment_of_a_connection_that_falls_silent_is_reported(bench):
    bench.refresh = 3.0
    bench.ask()
    bench.ask()
    bench.flows["a"].last = 1
    told = []
    for now in range(1, 8):
        bench.read(now)
        told.append(bench.ask())
    assert told == ["", "", "a", "", "", "", ""]


def test_the_shortest_interval_that_is_asked_for_is_in_force(bench):
    bench.log.ask(5 * SECOND, False)
    bench.log.ask(2 * SECOND, False)
    bench.log.ask(9 * SECOND, False)
    bench.log.begin(SECOND)
    assert bench.log.refresh_ns == 2 * SECOND
    bench.log.begin(2 * SECOND)  # nobody has asked: it stays
    assert bench.log.refresh_ns == 2 * SECOND
    bench.log.ask(4 * SECOND, False)
    bench.log.begin(3 * SECOND)
    assert bench.log.refresh_ns == 4 * SECOND


def test_ended_connections_are_reported_in_every_pass_if_that_is_wanted(bench):
    bench.ask()
    bench.flows["b"].ended = True
    bench.flows["b"].mark = 2
    told = []
    for now, again in enumerate((True, True, False, False), 1):
        bench.again = again
        bench.read(now)
        told.append(bench.ask())
    assert told == ["b", "b", "", ""]


def test_chunks_begin_with_what_changed_first_and_may_be_asked_for_again(bench):
    bench.flows["d"] = Flow()
    bench.read(1.0)
    assert bench.ask(limit=2) == "!ab+"
    lost = bench.generation
    assert bench.ask(limit=1) == "c+"
    bench.generation = lost
    assert bench.ask(limit=2) == "cd"


def test_what_nobody_has_taken_keeps_its_turn(bench):
    """Otherwise connections that send all the time would never be reported to a slow controller."""
    bench.refresh = 0.5
    order = ""
    for now in range(1, 8):
        for flow in bench.flows.values():
            flow.last = now
        bench.read(now)
        order += bench.ask(limit=1)
    assert order == "!a+b+c+a+b+c+a+"


def test_a_change_between_chunks_is_not_lost(bench):
    assert bench.ask(limit=2) == "!ab+"
    bench.flows["a"].mark = 9
    bench.read(1.0)
    assert bench.ask(limit=2) == "ca"


@pytest.mark.parametrize("generation", [1, 2, 10**6])
def test_a_controller_that_is_too_far_behind_begins_anew(bench, monkeypatch, generation):
    bench.generation = generation
    if generation < 10**6:
        del bench.flows["a"]
        bench.read(1.0)
        bench.read(1.0 + flow_changes.KEEP_NS / SECOND)
        bench.read(1.5 + flow_changes.KEEP_NS / SECOND)
    assert bench.ask() == "!" + "".join(bench.flows)


def churn(bench: Bench, first: float) -> None:
    """Connections come and go until removed ones are forgotten, beside those that are silent."""
    for number in range(3):
        bench.flows["x"] = Flow(mark=number, last=first)
        bench.read(first + number)
        del bench.flows["x"]
        bench.read(first + number + 0.5)
    for number in range(2):
        bench.read(first + 5 + number + flow_changes.KEEP_NS / SECOND)
    assert bench.log._forgotten > 3


def test_a_new_controller_gets_silent_connections_that_are_older_than_what_is_remembered(bench):
    """Each part of the list has generations before those of removed connections that are forgotten."""
    churn(bench, 1.0)
    assert [bench.ask(limit=1) for _ in range(4)] == ["!a+", "b+", "c", ""]
    assert bench.known == dict.fromkeys("abc", BOTH)


def test_a_list_begins_anew_when_what_has_gone_meanwhile_is_forgotten(bench):
    churn(bench, 1.0)
    assert bench.ask(limit=1) == "!a+"
    del bench.flows["a"]
    for now in 50.0, 51.0 + flow_changes.KEEP_NS / SECOND, 52.0 + flow_changes.KEEP_NS / SECOND:
        bench.read(now)
    assert [bench.ask(limit=1) for _ in range(2)] == ["!b+", "c"]
    assert bench.known == dict.fromkeys("bc", BOTH)


def test_the_lists_that_are_known_are_bounded(bench):
    churn(bench, 1.0)
    assert bench.ask(limit=1) == "!a+"
    old = bench.generation
    for _ in range(2 * flow_changes.LISTS):
        bench.generation = 0
        assert bench.ask(limit=1) == "!a+"
    assert len(bench.log._began_at) == flow_changes.LISTS
    bench.generation = old
    assert bench.ask(limit=1) == "!a+"


def test_removed_connections_are_bounded(monkeypatch):
    monkeypatch.setattr(flow_changes, "MIN_REMOVED", 3)
    bench = Bench()
    for now in range(50):
        bench.flows = {chr(33 + now): Flow()}
        bench.read(now / 10)
        bench.ask()
        assert len(bench.log._place) <= 5
    assert len(bench.log._keys) <= 6
    assert bench.known == {chr(33 + 49): BOTH}


def test_numbers_of_the_last_pass(bench):
    bench.flows = {
        "a": Flow(last=9.5),
        "b": Flow(last=2.0, listed=1, unscaled=1),
        "c": Flow(last=9.9, listed=2, unscaled=2),
        "d": Flow(listed=0),
    }
    bench.read(10.0)
    assert (bench.log.listed, bench.log.active, bench.log.unscaled) == (4, 3, 2)
    assert bench.log.read_ns == 10 * SECOND


def test_a_pass_that_fails_is_no_reading(bench):
    bench.ask()
    bench.log.begin(5 * SECOND)
    assert bench.log.read_ns == 0
    bench.read(6.0)
    assert bench.ask() == ""


def test_a_controller_knows_what_there_is_after_any_changes():
    """Chunks of any size, at any time, between passes or within one."""
    for seed in range(30):
        chance = random.Random(seed)
        bench = Bench(refresh=chance.choice([0.5, 2.0]))
        names = [chr(33 + n) for n in range(40)]
        for now in range(60):
            for name in chance.sample(names, 8):
                if name not in bench.flows or chance.random() < 0.5:
                    bench.flows[name] = Flow(chance.randrange(3), now, chance.randrange(4))
                else:
                    del bench.flows[name]
            bench.read(now)
            for _ in range(chance.randrange(3)):
                bench.ask(limit=chance.randrange(1, 12))
        while bench.ask(limit=3).endswith("+"):
            pass
        assert bench.known == {name: flow.listed for name, flow in bench.flows.items() if flow.listed}


def lasting(bench: Bench) -> Bench:
    """The same bench, whose controller asks for connections that last only."""
    plain = bench.log.ask
    bench.log.ask = lambda refresh, again: plain(refresh, again, True)
    bench.read(1.0)
    assert bench.ask() == "!abc"
    return bench


def test_a_new_connection_is_reported_when_two_passes_have_seen_it(bench):
    lasting(bench)
    bench.flows["d"] = Flow()
    bench.read(2.0)
    assert bench.ask() == ""
    bench.flows["e"] = Flow()
    bench.read(3.0)
    assert bench.ask() == "d"
    bench.read(4.0)
    assert bench.ask() == "e"
    assert bench.log.listed == 10


def test_a_connection_that_ends_soon_is_never_reported(bench):
    lasting(bench)
    bench.flows["d"], bench.flows["e"] = Flow(), Flow(over=True)
    bench.read(2.0)
    bench.flows["d"].over = True
    for now in (3.0, 4.0):
        bench.read(now)
    del bench.flows["d"], bench.flows["e"]
    bench.read(5.0)
    assert bench.ask() == ""
    bench.flows["a"].over, bench.flows["a"].mark = True, 2
    bench.read(6.0)
    assert bench.ask() == "a"  # it was listed


def test_a_download_whose_request_has_ended_lasts(bench):
    """Its client has sent FIN before any pass has seen it."""
    lasting(bench)
    bench.flows["d"] = Flow(ended=True)
    bench.read(2.0)
    assert bench.ask() == ""
    bench.read(3.0)
    assert bench.ask() == "d"


def test_one_that_sends_although_it_was_reset_lasts(bench):
    """The reset was forged."""
    lasting(bench)
    bench.flows["d"], bench.flows["e"] = Flow(over=True, last=1.9), Flow(over=True, last=1.9)
    bench.read(2.0)
    bench.flows["d"].last = 2.9
    bench.read(3.0)
    assert bench.ask() == "d"
    bench.flows["d"].last = 3.9
    bench.read(4.0)
    assert bench.ask() == "d"  # its refresh


def test_the_first_pass_leaves_nothing_out():
    """Nobody has asked for anything yet."""
    bench = Bench()
    bench.flows["a"] = Flow()
    bench.log.begin(0)
    assert not bench.log._leaves_out and not bench.log._lasting
    bench.log.end()
    bench.log.begin(SECOND)
    assert not bench.log._leaves_out


def test_one_that_begins_again_between_two_passes_has_lasted(bench):
    """The same addresses and ports: no pass has seen the end, and the next one reports what is there."""
    lasting(bench)
    bench.flows["d"] = Flow(mark=3)
    bench.read(2.0)
    bench.flows["d"] = Flow(mark=4)
    bench.read(3.0)
    assert bench.ask() == "d"


def test_nothing_is_left_out_of_a_pass_that_comes_late(bench):
    """Two passes could take longer than a controller believes copies alone."""
    lasting(bench)
    bench.flows["d"] = Flow()
    bench.read(2.6)
    assert bench.ask() == "d"


def test_all_connections_are_reported_if_one_controller_wants_them(bench):
    lasting(bench)
    FlowChanges.ask(bench.log, SECOND, False)
    bench.flows["d"] = Flow()
    bench.read(2.0)
    assert bench.ask() == "d"
    bench.flows["e"] = Flow()
    bench.read(3.0)
    assert bench.ask() == ""  # the other one has not asked again


def test_connections_of_one_pass_are_not_reported_again_in_one_pass_for_ever():
    """With a long interval. Each is reported again within the interval, and not before its half."""
    bench = Bench(refresh=30.0)
    names = "abcdefghijklmnopqrst"
    bench.flows = {name: Flow() for name in names}
    bench.read(0.0)
    bench.ask()
    told: dict[str, float] = {}
    by_pass: list[int] = []
    for now in range(1, 31):
        for each in bench.flows.values():
            each.last = now
        bench.read(float(now))
        found = bench.ask()
        by_pass.append(len(found))
        for name in found:
            told.setdefault(name, now)
    assert set(told) == set(names)
    assert min(told.values()) >= 0.9 * 15 and max(told.values()) <= 0.9 * 30
    assert max(by_pass) <= 3
