from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.experiments.workloads.common import rounds

BAD = 14.3  # one tick of the seven of 35 ms on two CPUs
shares = st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.01, 5.0, BAD, 100.0]), max_size=30)


def made(host, wanted):
    """The rounds of a run when ``host`` steals this much of each, and nothing after these."""
    stolen = []
    while len(stolen) < rounds.needed(stolen, wanted):
        stolen.append(host[len(stolen)] if len(stolen) < len(host) else 0.0)
    return stolen


def figures(wanted, number, disturbed, counted_disturbed):
    return {
        "wanted": wanted, "made": number, "disturbed": disturbed, "counted_disturbed": counted_disturbed,
    }  # fmt: skip


def test_an_undisturbed_run_makes_the_wanted_rounds():
    stolen = made([], 5)
    assert stolen == [0.0] * 5
    assert rounds.counted(stolen, 5) == [0, 1, 2, 3, 4]
    assert rounds.figures(stolen, 5) == figures(5, 5, 0, 0)


def test_disturbed_rounds_are_repeated_and_left_out():
    stolen = made([0, BAD, 0, 100, 0], 5)
    assert rounds.counted(stolen, 5) == [0, 2, 4, 5, 6]
    assert rounds.figures(stolen, 5) == figures(5, 7, 2, 0)


def test_a_repeated_round_may_be_disturbed_itself():
    stolen = made([BAD, 0, BAD, BAD], 2)
    assert rounds.counted(stolen, 2) == [0, 1]
    assert rounds.figures(stolen, 2) == figures(2, 4, 3, 1)


def test_the_last_disturbed_round_is_repeated_too():
    assert rounds.counted(made([0, 0, BAD], 3), 3) == [0, 1, 3]


def test_the_last_round_allowed_can_still_complete_them():
    stolen = made([BAD, BAD, 0, 0], 2)
    assert rounds.counted(stolen, 2) == [2, 3]
    assert rounds.figures(stolen, 2) == figures(2, 4, 2, 0)


def test_where_all_are_disturbed_the_least_disturbed_count():
    stolen = made([30, 10, 20, 40, 10, 20], 3)
    assert rounds.counted(stolen, 3) == [1, 2, 4]  # of the two with 20 the earlier
    assert rounds.figures(stolen, 3) == figures(3, 6, 6, 3)


def test_one_round():
    assert rounds.counted(made([BAD], 1), 1) == [1]
    assert rounds.counted(made([BAD, 50], 1), 1) == [0]
    assert rounds.counted(made([BAD, BAD], 1), 1) == [0]
    assert rounds.figures(made([50, BAD], 1), 1) == figures(1, 2, 2, 1)


def test_a_hundredth_is_not_yet_disturbed():
    assert rounds.disturbed([0, 0.5, 1.0, 1.01, 2]) == [3, 4]


def test_fewer_rounds_than_wanted_all_count():
    assert rounds.counted([], 3) == []
    assert rounds.counted([0, BAD], 3) == [0, 1]


@given(shares, st.integers(1, 12))
def test_whatever_the_host_does(host, wanted):
    stolen = made(host, wanted)
    chosen = rounds.counted(stolen, wanted)
    found = rounds.figures(stolen, wanted)
    assert wanted <= len(stolen) <= 2 * wanted
    assert chosen == sorted(set(chosen)) and len(chosen) == wanted
    left_out = set(range(len(stolen))) - set(chosen)
    assert left_out <= set(rounds.disturbed(stolen))  # undisturbed rounds always count
    assert all(stolen[out] >= stolen[kept] for out in left_out for kept in chosen)
    assert found["disturbed"] - found["counted_disturbed"] == len(left_out) == found["made"] - wanted
    assert found["counted_disturbed"] == 0 or found["made"] == 2 * wanted
