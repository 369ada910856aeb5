"""Runs without a network: their seeds, and what is left of those that a signal ends."""

import pytest

from fairq_ryu.experiments import runner, scenario
from fairq_ryu.experiments.testbed import Interrupted

POLICIES = ("droptail", "fairq")


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Makes runs of which each takes no time and fails; the ``interrupted``-th one is ended by a signal."""
    made = []

    def made_by(repeat, interrupted=0):
        def run_policy(chosen, variant, *_more):
            made.append((variant.name, chosen.seed))
            if len(made) == interrupted:
                raise Interrupted
            return {"policy": variant.name, "failed": "no network"}

        monkeypatch.setattr(runner, "run_policy", run_policy)
        chosen = scenario.load("incast", {"floor": "no", "seed": "5"})
        return made, runner.run(chosen, runner.known_variants(POLICIES, None), tmp_path, None, repeat)

    return made_by


def test_each_repetition_has_a_seed_which_its_policies_share(run):
    made, _found = run(3)
    assert sorted(made) == [(policy, seed) for policy in POLICIES for seed in (5, 6, 7)]
    assert [seed for _policy, seed in made] == [5, 5, 6, 6, 7, 7]


def test_whole_repetitions_before_a_signal_are_kept(run):
    _made, found = run(3, interrupted=4)
    assert [each["policy"] for each in found[0]["policies"]] == list(POLICIES) and len(found) == 1


def test_a_signal_in_the_first_repetition_leaves_nothing(run):
    with pytest.raises(Interrupted):
        run(3, interrupted=2)
