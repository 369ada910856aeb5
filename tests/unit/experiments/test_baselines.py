"""Baselines: a policy and the settings that make it a rival."""

import pytest

from fairq_ryu.experiments import baselines, scenario


@pytest.mark.parametrize(
    ("name", "policy", "control", "rto_min_ms"),
    [
        ("droptail-rto5", "droptail", "cubic", 5.0),
        ("droptail-dctcp", "droptail", "dctcp", 0.0),
        ("mark-dctcp", "mark", "dctcp", 0.0),
        ("mark-d2tcp", "mark", "d2tcp", 0.0),
    ],
)
def test_a_baseline_changes_the_hosts_and_nothing_else(name, policy, control, rto_min_ms):
    chosen = scenario.load("incast", {"sender_cc": '["reno", "cubic"]'})
    baseline = baselines.of(name)
    assert baseline.policy == policy
    applied = baseline.applied(chosen)
    assert (applied.cc, applied.rto_min_ms) == (control, rto_min_ms)
    # The controls of single senders would replace that of all hosts.
    assert applied.sender_cc == (() if control != "cubic" else chosen.sender_cc)
    changed = {key for key, value in applied.settings.items() if value != chosen.settings[key]}
    assert changed == set(baseline.settings)


def test_every_other_name_is_a_policy_without_changed_settings():
    chosen = scenario.load("incast")
    baseline = baselines.of("fairq")
    assert baseline.policy == "fairq" and baseline.applied(chosen) == chosen
