"""The main claim, measured: FairQ against DropTail in one run on one topology.

The assertions compare the two, on any machine; docs/policies/fairq.md has the figures. At this rate the
switch in user space has spare CPU time, and there are enough mice that some of DropTail's always wait for a
timeout.
"""

import json

import pytest

from tests.support.lab import ONE_SWITCH, fairq

pytestmark = [pytest.mark.root, pytest.mark.timeout(400)]
# A volley of DropTail has dozens of timeouts, one of FairQ has next to none; two have 64 mice.
ROUNDS = 2
BUFFER = 125000
SETTINGS = (
    *("rate_mbit=50", f"buffer_bytes={BUFFER}", f"rounds={ROUNDS}"),
    *("warmup_s=2", "elephants_only_s=1", "floor=no"),
)


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    out = tmp_path_factory.mktemp("incast")
    settings = [word for each in SETTINGS for word in ("--set", each)]
    config = out.parent / f"{out.name}.conf"
    config.write_text(ONE_SWITCH)
    command = f"run incast --policy droptail,fairq --out {out} --config-file {config}"
    answer = fairq(*command.split(), *settings, timeout=240)
    assert answer.returncode == 0, answer.stderr
    print(answer.stdout)
    return json.loads((out / "result.json").read_text())


@pytest.fixture(scope="module")
def policies(result):
    return {policy["policy"]: policy for policy in result["policies"]}


def test_every_mouse_arrives(policies):
    assert all(policy["mice"]["count"] >= ROUNDS * 32 for policy in policies.values())
    # Under DropTail one may lose its SYN again and again, until its time is over.
    assert policies["fairq"]["mice"]["unfinished"] == 0


def test_mice_no_longer_wait_for_timeouts(policies):
    droptail, fair = policies["droptail"]["mice"], policies["fairq"]["mice"]
    assert fair["rto_timeouts"] < droptail["rto_timeouts"]
    assert fair["segments_dropped"] < droptail["segments_dropped"]


def test_mice_complete_soon_and_with_little_variation(policies):
    droptail, fair = policies["droptail"]["mice"]["fct_ms"], policies["fairq"]["mice"]["fct_ms"]
    for figure in ("mean", "p99", "sd"):
        assert fair[figure] < droptail[figure]


def test_elephants_lose_little_goodput_and_share_fairly(policies):
    droptail, fair = policies["droptail"]["elephants"], policies["fairq"]["elephants"]
    # 0.98 of it is the aim (docs/policies/fairq.md); here the machine may have less time for one of the two.
    assert fair["goodput_sum_mbit"] > 0.75 * droptail["goodput_sum_mbit"]
    assert fair["jain"] >= droptail["jain"] - 0.05


def test_the_queue_is_near_its_target(policies):
    target = BUFFER / 4
    for phase in ("alone", "rounds"):
        droptail, fair = (policies[name]["queue"][phase]["mean_bytes"] for name in ("droptail", "fairq"))
        assert fair < min(target * 2, droptail)


def test_only_fairq_lowers_windows(policies):
    assert policies["droptail"]["queue"]["rounds"]["acks_rewritten"] == 0
    assert policies["fairq"]["queue"]["rounds"]["acks_rewritten"] > 1000
