import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.experiments.workloads import incast as incasts
from fairq_ryu.experiments.workloads import rounds

BAD = 14.3  # one tick of the seven of 35 ms on two CPUs
shares = st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.01, 5.0, BAD, 100.0]), max_size=30)


def made(host, wanted):
    """The rounds that a run makes when ``host`` steals so much of each, and nothing after these."""
    stolen = []
    while len(stolen) < rounds.needed(stolen, wanted):
        stolen.append(host[len(stolen)] if len(stolen) < len(host) else 0.0)
    return stolen


def figures(wanted, number, disturbed, counted_disturbed):
    return {
        "wanted": wanted, "made": number, "disturbed": disturbed, "counted_disturbed": counted_disturbed,
    }  # fmt: skip


def test_an_undisturbed_run_makes_what_was_asked_for():
    stolen = made([], 5)
    assert stolen == [0.0] * 5
    assert rounds.counted(stolen, 5) == [0, 1, 2, 3, 4]
    assert rounds.figures(stolen, 5) == figures(5, 5, 0, 0)


def test_disturbed_rounds_are_made_again_and_left_out():
    stolen = made([0, BAD, 0, 100, 0], 5)
    assert rounds.counted(stolen, 5) == [0, 2, 4, 5, 6]
    assert rounds.figures(stolen, 5) == figures(5, 7, 2, 0)


def test_a_round_made_again_may_be_disturbed_itself():
    stolen = made([BAD, 0, BAD, BAD], 2)
    assert rounds.counted(stolen, 2) == [0, 1]
    assert rounds.figures(stolen, 2) == figures(2, 4, 3, 1)


def test_the_last_disturbed_round_is_made_again_too():
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
    said = rounds.figures(stolen, wanted)
    assert wanted <= len(stolen) <= 2 * wanted
    assert chosen == sorted(set(chosen)) and len(chosen) == wanted
    left_out = set(range(len(stolen))) - set(chosen)
    assert left_out <= set(rounds.disturbed(stolen))  # what is undisturbed always counts
    assert all(stolen[out] >= stolen[kept] for out in left_out for kept in chosen)
    assert said["disturbed"] - said["counted_disturbed"] == len(left_out) == said["made"] - wanted
    assert said["counted_disturbed"] == 0 or said["made"] == 2 * wanted


def report(number, retrans):
    return {
        "id": number, "fct_ns": 10**7 * (number + 1), "error": None, "data_segs_in": 8, "data_segs_out": 9,
        "total_retrans": retrans, "total_rto": None,
    }  # fmt: skip


def test_the_mice_of_chosen_rounds_are_summed_at_both_ends():
    both = [incasts.Round([report(n, 1) for n in ids], 5, 0.0) for ids in ([0, 1], [3, 2], [4, 5])]
    servers = [report(number, 10) for number in (5, 4, 3, 2, 0)]  # mouse 1 never reached its server
    mice = incasts.mice_of([both[0], both[2]], servers)
    assert mice is not None
    assert (mice["count"], mice["fct_list_ms"]) == (4, [10, 20, 50, 60])
    assert (mice["retransmissions"], mice["client_retransmissions"]) == (4 + 3 * 10, 4)
    assert mice["segments_dropped"] == 3 * (9 - 8)
    assert (mice["rto_timeouts"], mice["rto_source"]) == (10, "namespace")
    rest = incasts.mice_of([both[1]], servers)
    assert rest is not None
    assert (rest["count"], rest["fct_list_ms"], rest["rto_timeouts"]) == (2, [40, 30], 5)
    assert incasts.mice_of([], servers) is None


class Clock:
    """The machine and the hosts of a run: volleys without a network, on a host that steals by a list."""

    def __init__(self, host):
        self.host = list(host)
        self.volleys = []
        self.jiffies = self.stolen = self.timeouts = 0

    def volley(self, mice, _timeout):
        self.volleys.append([mouse["id"] for mouse in mice])
        self.timeouts += 7
        self.stolen += self.host.pop(0) if self.host else 0
        self.jiffies += 7
        return [{"id": mouse["id"]} for mouse in mice]

    def cpu_times(self):
        return self.jiffies, 0, self.stolen


@pytest.fixture
def incast(monkeypatch):
    def make(host, wanted):
        from fairq_ryu.experiments import scenario

        clock, said = Clock(host), []
        chosen = scenario.load(
            "incast", {"rounds": str(wanted), "senders": "2", "round_interval_s": "0", "seed": "1"}
        )
        made_incast = object.__new__(incasts.Incast)
        made_incast._scenario = chosen
        made_incast._random = random.Random(1)
        made_incast._progress = lambda step, part: said.append((step, part))
        made_incast._expected_s = 1.0
        made_incast._targets = [{}, {}]
        monkeypatch.setattr(made_incast, "_volley", clock.volley)
        monkeypatch.setattr(made_incast, "read_counters", lambda: {"rto_timeouts": clock.timeouts})
        monkeypatch.setattr(incasts.machine, "cpu_times", clock.cpu_times)
        return made_incast, clock, said

    return make


def test_a_run_goes_on_until_there_are_enough_undisturbed_rounds(incast):
    running, clock, said = incast([0, 1, 0, 2], 3)
    found = running._rounds()
    assert [round(each.stolen_percent) for each in found] == [0, 14, 0, 29, 0]
    assert [each.sender_timeouts for each in found] == [7] * 5
    # Every mouse has a number of its own, by which its round is known.
    assert [sorted(ids) for ids in clock.volleys] == [
        [4 * n, 4 * n + 1, 4 * n + 2, 4 * n + 3] for n in range(5)
    ]
    assert [step for step, _part in said] == [
        "round 1 of 3", "round 2 of 3", "round 3 of 3",
        "round 4, the host disturbed 1", "round 5, the host disturbed 2",
    ]  # fmt: skip
    assert all(0 <= part <= 1 for _step, part in said)


def test_a_run_ends_at_twice_the_rounds(incast):
    running, clock, _said = incast([3] * 100, 4)
    assert len(running._rounds()) == len(clock.volleys) == 8
