"""The main promise, measured: FairQ against DropTail in one run on one topology.

The bounds are looser than what is promised for an undisturbed machine (docs/policies/fairq.md), and a
run that the host disturbed is repeated, at most twice: taking CPU away can only make FairQ look worse.
What must never happen is asserted of whatever run is the last.
"""

import json

import pytest

from tests.support.lab import fairq

pytestmark = [pytest.mark.root, pytest.mark.timeout(400)]
BUFFER = 125000
ATTEMPTS = 3
STOLEN_PERCENT = 2.0


def disturbed(result):
    """Did the host take CPU time away, or had the machine none left?"""
    return any(
        policy["cpu"]["stolen_percent"] > STOLEN_PERCENT or policy["cpu"]["idle_percent"] < 5
        for policy in result["policies"]
    )


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    for _ in range(ATTEMPTS):
        out = tmp_path_factory.mktemp("incast")
        answer = fairq(
            *f"run incast --policy droptail,fairq --out {out} --set rounds=12".split(), timeout=120
        )
        assert answer.returncode == 0, answer.stderr
        print(answer.stdout)
        found = json.loads((out / "result.json").read_text())
        if not disturbed(found):
            break
    return found


@pytest.fixture(scope="module")
def policies(result):
    return {policy["policy"]: policy for policy in result["policies"]}


def test_every_mouse_arrives(policies):
    for policy in policies.values():
        assert policy["mice"]["count"] == 12 * 32 and policy["mice"]["unfinished"] == 0


def test_mice_no_longer_wait_for_timeouts(policies, result):
    droptail, fair = policies["droptail"]["mice"], policies["fairq"]["mice"]
    assert droptail["rto_timeouts"] >= 50  # or there was no collapse to mend
    share = 0.05 if disturbed(result) else 0.01
    assert fair["rto_timeouts"] <= droptail["rto_timeouts"] * share
    assert fair["segments_dropped"] <= droptail["segments_dropped"] * share


def test_mice_are_soon_there_and_all_alike(policies, result):
    droptail, fair = policies["droptail"]["mice"]["fct_ms"], policies["fairq"]["mice"]["fct_ms"]
    times = 3 if disturbed(result) else 10
    assert fair["p99"] * times < droptail["p99"]
    assert fair["sd"] * times < droptail["sd"]


def test_elephants_pay_little_and_share_fairly(policies):
    droptail, fair = policies["droptail"]["elephants"], policies["fairq"]["elephants"]
    assert fair["goodput_sum_mbit"] > 0.9 * droptail["goodput_sum_mbit"]
    assert fair["jain"] >= droptail["jain"] - 0.01


def test_the_queue_is_near_its_target(policies):
    target = BUFFER / 4
    for phase in ("alone", "rounds"):
        assert target / 2 < policies["fairq"]["queue"][phase]["mean_bytes"] < target * 2


def test_only_fairq_lowers_windows(policies):
    assert policies["droptail"]["queue"]["rounds"]["acks_rewritten"] == 0
    assert policies["fairq"]["queue"]["rounds"]["acks_rewritten"] > 10000
