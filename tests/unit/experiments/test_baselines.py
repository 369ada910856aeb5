"""Baselines: a policy and the settings that make it a rival."""

import pytest

from fairq_ryu.experiments import baselines, scenario


@pytest.mark.parametrize(
    ("name", "policy", "control", "rto_min_ms"),
    [
        ("droptail-rto5", "droptail", "cubic", 5.0),
        ("droptail-dctcp", "droptail", "dctcp", 0.0),
        ("droptail-ctrl-reno", "droptail", "ctrl_reno", 0.0),
        ("droptail-ctrl-cubic", "droptail", "ctrl_cubic", 0.0),
        ("mark-dctcp", "mark", "dctcp", 0.0),
        ("mark-d2tcp", "mark", "d2tcp", 0.0),
        ("kernel-dctcp", "mark", "dctcp", 0.0),
        ("ebpf-dctcp", "mark", "fairq_dctcp", 0.0),
        ("cake", "droptail", "cubic", 0.0),
        ("kernel-red", "droptail", "cubic", 0.0),
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


def test_the_qdiscs_of_the_kernel_have_names_of_their_own():
    """With the name of a policy of ours behind ``kernel-``, where we have one."""
    found = {name: each.qdisc.kind for name, each in baselines.BASELINES.items() if each.qdisc is not None}
    assert found == {
        **{kind: kind for kind in ("fq_codel", "cake", "fq", "pie")},
        **{f"kernel-{kind}": kind for kind in ("red", "codel", "sfb")},
    }


def test_only_the_kernel_s_dctcp_must_be_the_kernel_s():
    assert [name for name, each in baselines.BASELINES.items() if each.kernel_control] == ["kernel-dctcp"]
