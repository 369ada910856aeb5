"""The main claim, measured: FairQ against DropTail in one run on one topology.

The assertions compare the two, on any machine; docs/policies/fairq.md has the figures. At this rate the
switch in user space has spare CPU time, and there are enough mice that some of DropTail's always wait for a
timeout.
"""

import json

import pytest

from tests.support.lab import fairq

pytestmark = [pytest.mark.root, pytest.mark.timeout(400)]
# A volley of DropTail has dozens of timeouts, one of FairQ has next to none; two have 64 mice.
ROUNDS = 2
BUFFER = 125000
SETTINGS = (
    *("senders=8", "mice_per_sender=4", "rate_mbit=50", f"buffer_bytes={BUFFER}", f"rounds={ROUNDS}"),
    *("warmup_s=2", "elephants_only_s=1", "floor=no"),
)


class Runs:
    """Runs of the experiment, each with a seed of its own; made when they are asked for."""

    def __init__(self, folder):
        self._folder, self._made = folder, []

    def __getitem__(self, number):
        """The results of a run: policy -> figures."""
        while len(self._made) <= number:
            self._made.append(self._run(len(self._made) + 1))
        return self._made[number]

    def _run(self, seed):
        out = self._folder / str(seed)
        settings = [word for each in (*SETTINGS, f"seed={seed}") for word in ("--set", each)]
        command = f"run incast --policy droptail,fairq --out {out}"
        answer = fairq(*command.split(), *settings, timeout=240)
        assert answer.returncode == 0, answer.stderr
        print(answer.stdout)
        policies = json.loads((out / "result.json").read_text())["policies"]
        return {policy["policy"]: policy for policy in policies}

    def hold(self, relation):
        """Whether a relation of DropTail's figures and FairQ's holds, in the first run or in one of two more:
        something else may have had the machine while one of the two policies had its turn.
        """
        return any(relation(self[number]["droptail"], self[number]["fairq"]) for number in range(3))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return Runs(tmp_path_factory.mktemp("incast"))


def test_every_mouse_arrives(runs):
    assert all(policy["mice"]["count"] >= ROUNDS * 32 for policy in runs[0].values())
    # Under DropTail one may lose its SYN again and again, until its time is over.
    assert runs[0]["fairq"]["mice"]["unfinished"] == 0


@pytest.mark.parametrize("figure", ["rto_timeouts", "segments_dropped"])
def test_mice_no_longer_wait_for_timeouts(runs, figure):
    assert runs.hold(lambda droptail, fair: fair["mice"][figure] < droptail["mice"][figure])


@pytest.mark.parametrize("figure", ["mean", "p99", "sd"])
def test_mice_complete_soon_and_with_little_variation(runs, figure):
    assert runs.hold(
        lambda droptail, fair: fair["mice"]["fct_ms"][figure] < droptail["mice"]["fct_ms"][figure]
    )


def test_elephants_lose_little_goodput_and_share_fairly(runs):
    assert runs.hold(
        lambda droptail, fair: (
            fair["elephants"]["goodput_sum_mbit"] > 0.75 * droptail["elephants"]["goodput_sum_mbit"]
            and fair["elephants"]["jain"] >= droptail["elephants"]["jain"] - 0.05
        )
    )


@pytest.mark.parametrize("phase", ["alone", "rounds"])
def test_the_queue_is_near_its_target(runs, phase):
    def near(droptail, fair):
        mean, without = (each["queue"][phase]["mean_bytes"] for each in (fair, droptail))
        return mean < min(BUFFER / 4 * 2, without)

    assert runs.hold(near)


def test_only_fairq_lowers_windows(runs):
    rewritten = {name: policy["queue"]["rounds"]["acks_rewritten"] for name, policy in runs[0].items()}
    assert rewritten["droptail"] == 0 < rewritten["fairq"]
