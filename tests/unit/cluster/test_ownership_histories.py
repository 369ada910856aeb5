"""Histories with faults, checked as those of databases are: partitions, pauses, skewed clocks, restarts."""

from hypothesis import given, settings
from hypothesis import strategies as st

from fairq_ryu.cluster.ownership import MISSES, SETTLE
from fairq_ryu.cluster.view import View
from tests.support.cluster_model import BEAT, World

# The lease of windows by default, seconds.
LEASE = 2.0

who = st.integers(0, 3)
dpids = st.integers(1, 5)
faults = st.one_of(
    st.tuples(st.sampled_from(["isolate", "join", "pause", "resume", "kill", "start"]), who, st.just(0)),
    st.tuples(st.sampled_from(["cut", "mend"]), who, dpids),
    st.tuples(st.just("restart"), st.just(0), dpids),
    st.tuples(st.sampled_from(["stop database", "start database"]), st.just(0), st.just(0)),
    st.tuples(st.just("lag"), who, st.integers(0, 5)),
    st.tuples(st.sampled_from(["copy file", "older file", "empty file"]), st.just(0), st.just(0)),
)
histories = st.lists(st.tuples(faults, st.floats(0.05, 2.5)), max_size=25)


def happen(world, fault):
    kind, number, argument = fault
    controller = world.controllers[number % len(world.controllers)]
    dpid = 1 + argument % len(world.switches)
    if kind in ("isolate", "join"):
        controller.isolated = kind == "isolate"
    elif kind in ("pause", "resume"):
        controller.paused = kind == "pause"
    elif kind == "kill":
        controller.kill()
    elif kind == "start" and not controller.alive:
        controller.alive = True
        controller.born()
    elif kind == "cut":
        controller.cut.add(dpid)
        controller.disconnect(dpid)
    elif kind == "mend":
        controller.cut.discard(dpid)
    elif kind == "restart":
        for each in world.controllers:
            each.disconnect(dpid)
        world.switches[dpid].restart()
    elif kind.endswith("database"):
        world.up = kind.startswith("start")
    elif kind == "copy file":
        world.keep_copy()
    elif kind.endswith("file"):
        world.replace(world.copy if kind == "older file" else View())
    elif kind == "lag":
        controller.lag = argument


@settings(max_examples=150, deadline=None)
@given(histories, st.lists(st.floats(0.5, 2.0), min_size=1, max_size=4), st.integers(1, 5))
def test_every_history_keeps_the_invariants_and_ends_well(history, rates, switches):
    world = World(rates, switches)
    for fault, seconds in history:
        happen(world, fault)
        world.run(seconds)
        world.check()
    world.heal()
    # Every controller notices the dead after MISSES of the slowest beats; then one bridge after the other.
    world.run(10 + (switches + 2) * 2 * SETTLE)
    world.check()
    world.settled()


def test_a_dead_controller_is_replaced_within_a_lease():
    world = World([1.0, 1.0], 4)
    world.run(20)
    world.settled()
    dead, heir = world.controllers
    dead.kill()
    world.run(LEASE)
    assert {row.owner for row in world.bridges.values()} == {heir.id}
    assert all(switch.master is heir for switch in world.switches.values())
    assert (MISSES + 2) * BEAT < LEASE
    world.check()


def test_an_owner_that_wakes_up_is_refused_by_every_switch():
    world = World([1.0, 1.0], 4)
    world.run(20)
    sleeper, heir = world.controllers
    sleeper.paused = True
    world.run(5)
    had = {dpid: list(switch.rules) for dpid, switch in world.switches.items()}
    sleeper.paused, sleeper.isolated = False, True  # it believes what it saw last
    heir.paused = True
    assert sleeper.seen.owned(sleeper.id)
    world.run(5)
    assert {dpid: switch.rules for dpid, switch in world.switches.items()} == had


def test_a_database_that_stops_moves_nothing():
    world = World([1.0, 0.5, 2.0], 5)
    world.run(40)
    before = dict(world.bridges)
    world.up = False
    world.run(30)
    world.up = True
    world.run(10)
    assert world.bridges == before


def test_a_bridge_that_comes_back_after_its_row_was_removed_gets_a_later_generation():
    world = World([1.0, 1.0], 2)
    world.run(20)
    world.settled()
    before = dict(world.bridges)
    owner = next(each for each in world.controllers if each.id == before[1].owner)
    # The owner hears nothing any more, and goes on; the connections of all others to its switch are cut.
    owner.isolated = True
    for each in world.controllers:
        if each is not owner:
            each.cut.add(1)
    world.run(20)
    assert 1 not in world.bridges and world.removed == before[1].generation
    assert world.switches[1].master is owner
    for each in world.controllers:
        each.cut.clear()
    world.run(20)
    assert world.bridges[1].generation == before[1].generation + 1
    assert world.switches[1].master is not owner and world.switches[1].master is not None
    world.check()


def test_a_database_that_is_made_anew_gets_ahead_of_the_switches():
    """After a long time: the beats at which its bridges connected are not those of the new one."""
    world = World([1.0, 1.0], 4)
    for each in world.controllers:
        each.cut.update(world.switches)
    world.run(100)
    for each in world.controllers:
        each.cut.clear()
    world.run(10)
    for each in world.switches.values():
        each.generation = 57
    world.replace(View())
    world.run(LEASE + 3)
    world.settled()
    assert all(switch.generation == 58 for switch in world.switches.values())
    world.check()


def test_an_older_copy_of_the_database_gets_ahead_of_the_switches():
    world = World([1.0, 1.0], 4)
    world.run(20)
    world.keep_copy()
    before = {dpid: row.generation for dpid, row in world.bridges.items()}
    for _ in range(2):
        for each in world.controllers:
            each.paused = True
            world.run(20)
            each.paused = False
            world.run(30)
    again = [dpid for dpid, row in world.bridges.items() if row.owner == world.copy.bridges[dpid].owner]
    assert any(world.bridges[dpid].generation > before[dpid] for dpid in again), "it has the same owner"
    world.replace(world.copy)
    world.run(30)
    world.settled()
    world.check()
