"""Who owns which bridge: single decisions. Histories with faults are in test_histories.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.cluster import ownership
from fairq_ryu.cluster.ownership import LATEST, MISSES, SETTLE, Ownership, Together
from fairq_ryu.cluster.view import TO_AGENT, TO_BRIDGE, Bridge, Claim, Member, View

BOTH = TO_BRIDGE | TO_AGENT


def member(name, beat=10, reach=()):
    return Member(
        name,
        name,
        beat=beat,
        reach=dict(reach) if isinstance(reach, dict) else dict.fromkeys(reach, TO_AGENT),
    )


def view(members, removed=0, **bridges):
    rows = {
        int(name[1:]): Bridge(owner, generation, load) for name, (owner, generation, load) in bridges.items()
    }
    return View({each.id: each for each in members}, rows, removed)


class Ownerships:
    """A controller that has been running for some beats, ``a``."""

    def __init__(self, together=Together.NONE):
        self.ownership = Ownership("a", together, 100.0)
        self.beat = 0
        self.now = 0.0

    def plan(self, others, mine=(), beats=1, moves=True, seconds=0.25, **bridges):
        """Let beats pass; the others beat as well if ``moves``. Returns the last plan."""
        found = []
        for _ in range(beats):
            self.beat += 1
            self.now += seconds
            there = [each._replace(beat=each.beat + self.beat * moves) for each in others]
            mine_now = member("a", self.beat, mine)
            found = self.ownership.plan(view([mine_now, *there], **bridges), self.now)
        return found


def test_a_controller_alone_claims_all_that_it_reaches():
    own = Ownerships()
    # Others may be starting, too, and its agents may be connecting to them.
    assert own.plan([], mine=(1, 2), beats=MISSES) == []
    assert own.plan([], mine=(1, 2)) == [Claim(1, None, 1), Claim(2, None, 1)]


def test_a_bridge_is_not_claimed_before_the_other_controllers_may_have_it():
    own = Ownerships()
    own.plan([], mine=(1,), beats=20, b1=("a", 1, 1))
    assert own.plan([], mine=(1, 2), beats=MISSES, b1=("a", 1, 1)) == []
    assert own.plan([], mine=(1, 2), b1=("a", 1, 1)) == [Claim(2, None, 1)]


def test_nothing_is_claimed_before_the_own_row_is_there():
    assert Ownership("a", Together.NONE, 1.0).plan(view([member("b", 5, (1,))]), 0.0) == []


def test_two_share_what_nobody_owns_and_each_claims_its_own():
    own = Ownerships()
    other = member("b", reach=(1, 2, 3, 4))
    own.plan([other], mine=(1, 2, 3, 4), beats=MISSES)
    claims = own.plan([other], mine=(1, 2, 3, 4))
    assert [each.dpid for each in claims] == [1, 3]


def test_a_bridge_that_only_another_reaches_is_not_claimed():
    own = Ownerships()
    assert own.plan([member("b", reach=(1,))], beats=5) == []


def test_the_owner_keeps_its_bridges_while_it_beats():
    own = Ownerships()
    assert own.plan([member("b", reach=(1,))], mine=(1,), beats=50, b1=("b", 7, 1)) == []


def test_a_silent_owner_is_dead_after_so_many_own_beats_and_not_before():
    own = Ownerships()
    other = member("b", reach=(1,))
    own.plan([other], mine=(1,), beats=5, b1=("b", 7, 1))
    assert own.plan([other._replace(beat=99)], mine=(1,), beats=MISSES, moves=False, b1=("b", 7, 1)) == []
    claims = own.plan([other._replace(beat=99)], mine=(1,), moves=False, b1=("b", 7, 1))
    assert claims == [Claim(1, 7, 8)]


def test_nobody_is_dead_while_the_database_confirms_nothing():
    own = Ownerships()
    other = member("b", reach=(1,))
    own.plan([other], mine=(1,), beats=5, b1=("b", 7, 1))
    rows = view([member("a", own.beat, (1,)), other._replace(beat=99)], b1=("b", 7, 1))
    for second in range(600):
        assert own.ownership.plan(rows, own.now + second) == []


def test_after_a_pause_of_its_own_counting_starts_anew():
    own = Ownerships()
    own.ownership.pause = 1.0
    other = member("b", reach=(1,))._replace(beat=99)
    own.plan([other], mine=(1,), beats=MISSES, moves=False, b1=("b", 7, 1))
    # Without the pause, the next beat would be the last.
    assert own.plan([other], mine=(1,), moves=False, seconds=5.0, b1=("b", 7, 1)) == []
    assert own.plan([other], mine=(1,), beats=MISSES - 1, moves=False, b1=("b", 7, 1)) == []
    assert own.plan([other], mine=(1,), moves=False, b1=("b", 7, 1)) == [Claim(1, 7, 8)]


def test_where_every_beat_is_late_a_silent_owner_is_dead_nevertheless():
    own = Ownerships()
    own.ownership.pause = 0.6
    other = member("b", reach=(1,))._replace(beat=99)
    late = {"mine": (1,), "moves": False, "seconds": 0.8, "b1": ("b", 7, 1)}
    # The second beat is late for the first time; from it on they count, however late they are.
    assert own.plan([other], beats=1 + MISSES, **late) == []
    assert own.plan([other], **late) == [Claim(1, 7, 8)]
    assert own.ownership.silent(60 * MISSES) == []
    own.plan([other], beats=59 * MISSES, **late)
    assert own.ownership.silent(60 * MISSES) == ["b"]


def test_where_every_beat_is_late_an_owner_without_the_switch_is_replaced_nevertheless():
    own = Ownerships()
    own.ownership.pause = 0.6
    late = {"mine": (1,), "seconds": 0.8, "b1": ("b", 7, 1)}
    # The third beat is the first with a plan, the fourth late for the first time.
    assert own.plan([member("b")], beats=3 + MISSES, **late) == []
    assert own.plan([member("b")], **late) == [Claim(1, 7, 8)]


@given(st.lists(st.floats(0.2, 10.0), min_size=2 * MISSES, max_size=2 * MISSES))
def test_a_silent_owner_is_dead_after_twice_as_many_beats_whatever_their_intervals(intervals):
    own = Ownerships()
    own.ownership.pause = 0.6
    other = member("b", reach=(1,))
    for seconds in (0.2, 0.8, 0.2):  # it beats, and counting began anew before
        own.plan([other], mine=(1,), seconds=seconds, b1=("b", 7, 1))
    other = other._replace(beat=99)
    own.plan([other], mine=(1,), moves=False, b1=("b", 7, 1))
    found = [
        own.plan([other], mine=(1,), moves=False, seconds=seconds, b1=("b", 7, 1)) for seconds in intervals
    ]
    assert found[-1] == [Claim(1, 7, 8)]
    assert not any(found[: MISSES - 1])


def test_an_owner_whose_process_has_no_row_is_dead_at_once():
    own = Ownerships()
    assert own.plan([], mine=(1,), beats=3, b1=("a/before", 7, 1)) == [Claim(1, 7, 8)]


def test_an_owner_that_has_lost_the_switch_is_replaced_but_not_at_once():
    own = Ownerships()
    lost = member("b")
    assert own.plan([lost], mine=(1,), beats=MISSES, b1=("b", 7, 1)) == []
    assert own.plan([lost], mine=(1,), beats=MISSES, b1=("b", 7, 1)) == [Claim(1, 7, 8)]


def test_a_switch_that_nobody_reaches_stays_where_it_is():
    own = Ownerships()
    assert own.plan([member("b")], beats=50, b1=("b", 7, 1)) == []


def test_more_connections_count_more():
    own = Ownerships()
    other = member("b", reach={1: BOTH})
    assert own.plan([other], mine={1: TO_AGENT}, beats=50) == []


@pytest.mark.parametrize(
    ("together", "mine"),
    ((Together.NONE, [1, 3]), (Together.CONNECTED, [1, 2]), (Together.ALL, [1, 2, 3, 4])),
)
def test_bridges_have_one_owner_where_they_are_together(together, mine):
    reach = {1: BOTH, 2: BOTH, 3: TO_AGENT, 4: TO_AGENT}
    own = Ownerships(together)
    other = member("b", reach=reach)
    own.plan([other], mine=reach, beats=MISSES)
    assert [each.dpid for each in own.plan([other], mine=reach)] == mine


def test_a_bridge_that_joins_a_unit_gets_its_owner():
    reach = {1: BOTH, 2: BOTH}
    own = Ownerships(Together.CONNECTED)
    other = member("b", reach=reach)
    assert own.plan([other], mine=reach, beats=9, b1=("b", 3, 100)) == []
    assert own.plan([other], mine=reach, b1=("a", 4, 100)) == [Claim(2, None, 1)]


@pytest.mark.parametrize("together", (Together.CONNECTED, Together.ALL))
def test_a_bridge_that_only_one_controller_reaches_moves_no_others_there(together):
    """A stranger may connect to one controller only, or leave out another."""
    rows, usual = {"b1": ("b", 3, 7), "b2": ("b", 3, 7)}, {1: BOTH, 2: BOTH}
    own = Ownerships(together)
    assert own.plan([member("b", reach=usual)], mine={**usual, 9: BOTH}, beats=50, **rows) == []
    own = Ownerships(together)
    other, mine = member("b", reach={**usual, 9: BOTH}), {"b1": ("a", 3, 7), "b2": ("a", 3, 7)}
    assert own.plan([other], mine=usual, beats=50, **mine) == []
    # It is claimed as soon as the owner reaches it.
    assert own.plan([other], mine={**usual, 9: TO_AGENT}, **mine) == [Claim(9, None, 1)]


@pytest.mark.parametrize("left", ({1: BOTH}, {1: BOTH, 2: TO_AGENT}))
def test_an_owner_that_has_lost_one_bridge_of_a_unit_is_replaced(left):
    rows, own = {"b1": ("b", 3, 7), "b2": ("b", 3, 7)}, Ownerships(Together.CONNECTED)
    lost, usual = member("b", reach=left), {1: BOTH, 2: BOTH}
    assert own.plan([lost], mine=usual, beats=MISSES, **rows) == []
    assert own.plan([lost], mine=usual, beats=MISSES, **rows) == [Claim(1, 3, 4), Claim(2, 3, 4)]


def test_an_heir_claims_what_it_reaches():
    rows, own = {"b1": ("gone", 3, 7), "b2": ("gone", 3, 7)}, Ownerships(Together.CONNECTED)
    other = member("b", reach={9: BOTH})
    assert own.plan([other], mine={1: BOTH, 2: BOTH}, beats=3, **rows) == [Claim(1, 3, 4), Claim(2, 3, 4)]


def test_one_bridge_moves_for_balance_and_not_before_all_is_quiet():
    rows = {"b1": ("b", 1, 5), "b2": ("b", 1, 5), "b3": ("b", 1, 5)}
    own = Ownerships()
    other = member("b", reach=(1, 2, 3))
    quiet = int(SETTLE / 0.25)
    assert own.plan([other], mine=(1, 2, 3), beats=quiet, **rows) == []
    assert own.plan([other], mine=(1, 2, 3), **rows) == [Claim(1, 1, 2)]
    rows["b1"] = ("a", 2, 5)
    assert own.plan([other], mine=(1, 2, 3), beats=100, **rows) == []  # two and one is even enough


def test_many_small_bridges_move_until_loads_are_even():
    rows = {f"b{dpid}": ("b" if dpid <= 25 else "a", 1, 210) for dpid in range(1, 31)}
    own, everything = Ownerships(), tuple(range(1, 31))
    other = member("b", reach=everything)
    for _ in range(100):
        claims = own.plan([other], mine=everything, seconds=1.0, **rows)
        rows |= {f"b{each.dpid}": ("a", each.generation, 210) for each in claims}
    assert [sum(owner == name for owner, *_ in rows.values()) for name in "ab"] == [15, 15]


def test_a_load_that_nobody_has_counted_is_the_usual_one():
    own = Ownerships()
    rows = {"b1": ("a", 1, 0), "b2": ("a", 1, 0), "b3": ("b", 1, 200)}
    other, everything = member("b", reach=(1, 2, 3, 4)), (1, 2, 3, 4)
    own.plan([other], mine=everything, beats=MISSES, **rows)
    assert own.plan([other], mine=everything, **rows) == []  # b has less


def test_loads_that_are_almost_even_stay():
    own = Ownerships()
    rows = {"b1": ("b", 1, 100), "b2": ("b", 1, 5), "b3": ("a", 1, 96)}
    assert own.plan([member("b", reach=(1, 2, 3))], mine=(1, 2, 3), beats=100, **rows) == []


def test_a_switch_that_knows_a_later_generation_is_claimed_with_one_later_still():
    own = Ownerships()
    own.plan([], mine=(1,), beats=3)
    own.ownership.ahead(1, 57)
    assert own.plan([], mine=(1,), b1=("a", 1, 1)) == [Claim(1, 1, 58)]
    assert own.plan([], mine=(1,), b1=("a", 58, 1)) == []


def test_a_bridge_that_no_living_controller_reaches_is_named_after_so_many_own_beats():
    own = Ownerships()
    rows = {"b1": ("b", 7, 1), "b2": ("b", 3, 1), "b3": ("b", 3, 1)}
    own.plan([member("b", reach=(2,))], mine=(3,), beats=20, **rows)
    assert own.ownership.unreached(20) == []
    own.plan([member("b", reach=(2,))], mine=(3,), **rows)
    assert own.ownership.unreached(20) == [1]
    own.plan([member("b", reach=(1, 2))], mine=(3,), **rows)  # it is back
    own.plan([], mine=(3,), beats=20, **rows)
    assert own.ownership.unreached(20) == []
    own.plan([], mine=(3,), **rows)
    assert own.ownership.unreached(20) == [1, 2]


@pytest.mark.parametrize("together", Together)
def test_a_bridge_without_a_row_is_not_claimed_when_there_are_too_many_rows(monkeypatch, together):
    monkeypatch.setattr(ownership, "MOST_BRIDGES", 3)
    own, rows = Ownerships(together), {"b5": ("a", 1, 1), "b6": ("gone", 1, 1)}
    own.plan([], mine=(5, 7), beats=MISSES, **rows)
    # 7 was there first, whatever the dpids of those that come later.
    own.plan([], mine=(5, 7, 2, 3), beats=MISSES + 1, b5=("a", 1, 1))
    claims = own.plan([], mine=(5, 7, 2, 3), **rows)
    assert [each.dpid for each in claims] == [7] and own.ownership.beyond == {2, 3}
    rows["b7"] = ("a", 1, 1)
    assert own.plan([], mine=(5, 7, 2, 3), beats=20, **rows) == []
    # Bridges that have rows go on as before.
    rows["b7"] = ("gone", 1, 1)
    assert own.plan([], mine=(5, 7, 2, 3), **rows) == [Claim(7, 1, 2)]
    assert [each.dpid for each in own.plan([], mine=(5, 7, 2, 3), b5=("a", 1, 1))] == [2, 7]


def test_too_many_bridges_are_in_the_way_of_no_balance(monkeypatch):
    monkeypatch.setattr(ownership, "MOST_BRIDGES", 3)
    own, rows = Ownerships(), {f"b{dpid}": ("b", 1, 5) for dpid in (1, 2, 3)}
    other = member("b", reach=(1, 2, 3))
    assert own.plan([other], mine=(1, 2, 3, 4), beats=50, **rows) == [Claim(1, 1, 2)]


def test_a_bridge_without_a_row_gets_a_later_generation_than_any_that_was_removed():
    own = Ownerships()
    own.plan([], mine=(1, 2), beats=MISSES, removed=40, b2=("a", 7, 1))
    assert own.plan([], mine=(1, 2), removed=40, b2=("a", 7, 1)) == [Claim(1, None, 41)]


def test_a_switch_that_has_gone_is_not_claimed_for_what_it_said():
    own = Ownerships()
    own.plan([], mine=(1,), beats=3, b1=("a", 1, 1))
    assert own.ownership.ahead(1, 57)
    own.ownership.gone(1)
    assert own.plan([], mine=(1,), b1=("a", 1, 1)) == []


def test_a_generation_that_no_owner_can_have_had_is_not_believed():
    own = Ownerships()
    own.plan([], mine=(1,), beats=3, b1=("a", 1, 1))
    assert not own.ownership.ahead(1, LATEST)
    assert own.plan([], mine=(1,), b1=("a", 1, 1)) == []
    assert own.ownership.ahead(1, LATEST - 1)
    assert own.plan([], mine=(1,), b1=("a", 1, 1)) == [Claim(1, 1, LATEST)]


loads = st.lists(st.integers(1, 50), min_size=1, max_size=12)


@given(loads, st.integers(1, 4), st.data())
def test_balancing_ends_and_the_larger_load_only_shrinks(weights, number, data):
    """Moves are carried out one after the other, whoever is to make them."""
    names = "abcd"[:number]
    everything = tuple(range(1, len(weights) + 1))
    rows = {f"b{i}": (data.draw(st.sampled_from(names)), 1, load) for i, load in enumerate(weights, 1)}
    most = max(_sums(rows, names))
    for _ in range(200):
        claims = [(name, claim) for name in names for claim in _settled_plan(name, names, everything, rows)]
        assert len(claims) <= 1
        if not claims:
            break
        name, claim = claims[0]
        rows[f"b{claim.dpid}"] = (name, claim.generation, rows[f"b{claim.dpid}"][2])
        assert max(_sums(rows, names)) <= most
        most = max(_sums(rows, names))
    else:
        raise AssertionError("bridges move for ever")


def _sums(rows, names):
    return [sum(load for owner, _, load in rows.values() if owner == name) for name in names]


def _settled_plan(me, names, everything, rows):
    ownership = Ownership(me, Together.NONE, 100.0)
    found = []
    for beat in range(1, 4):
        now = (beat - 1) * 2 * SETTLE
        found = ownership.plan(view([member(name, beat, everything) for name in names], **rows), now)
    return found


def test_a_database_made_anew_gets_all_bridges_again_however_long_they_were_reached():
    """Its own beats begin at 1 again, and all rows have gone."""
    own = Ownerships()
    own.plan([], mine=(1,), beats=100, b1=("a", 1, 1))
    own.plan([], mine=(1, 2), beats=300, b1=("a", 1, 1), b2=("a", 1, 1))
    own.beat = 0
    assert own.plan([], mine=(1, 2), beats=MISSES) == []
    assert own.plan([], mine=(1, 2)) == [Claim(1, None, 1), Claim(2, None, 1)]


def test_a_unit_that_had_gone_is_not_taken_from_its_owner_when_it_comes_back():
    """The end of an agent is seen at its owner first, and so may its return at another be."""
    own = Ownerships()
    owner = member("b", reach=(1,))
    own.plan([owner], mine=(1,), beats=20, b1=("b", 7, 1))
    own.plan([owner._replace(reach={})], mine=(1,), b1=("b", 7, 1))
    own.plan([owner._replace(reach={})], beats=3 * MISSES, b1=("b", 7, 1))
    assert own.plan([owner._replace(reach={})], mine=(1,), b1=("b", 7, 1)) == []
    assert own.plan([owner], mine=(1,), beats=20, b1=("b", 7, 1)) == []
