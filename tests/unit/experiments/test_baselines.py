"""Baselines: a policy and the settings that make it a rival."""

import pytest

from fairq_ryu.errors import UserError
from fairq_ryu.experiments import baselines, scenario, variants


@pytest.mark.parametrize(
    ("name", "policy", "control", "rto_min_ms"),
    [
        ("droptail-rto5", "droptail", "cubic", 5.0),
        ("droptail-dctcp", "droptail", "dctcp", 0.0),
        ("droptail-ctrl-reno", "droptail", "ctrl_reno", 0.0),
        ("droptail-ctrl-cubic", "droptail", "ctrl_cubic", 0.0),
        ("mark-dctcp", "mark", "dctcp", 0.0),
        ("mark-dctcp-rto5", "mark", "dctcp", 5.0),
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
    assert changed == (set(baseline.settings) or ({"cc", "sender_cc"} if baseline.coupled else set()))


def test_only_hosts_of_tenants_are_coupled():
    """The others are the background, which is the same under every policy."""
    chosen = scenario.load("two-receivers")
    applied = baselines.of("droptail-ctrl-reno").applied(chosen)
    assert (applied.cc, applied.sender_cc) == ("reno", ("ctrl_reno", "reno"))
    every = baselines.of("droptail-ctrl-reno").applied(scenario.load("tenants"))
    assert (every.cc, every.sender_cc) == ("ctrl_reno", ())


def test_every_other_name_is_a_policy_without_changed_settings():
    chosen = scenario.load("incast")
    baseline = baselines.of("fairq")
    assert baseline.policy == "fairq" and baseline.applied(chosen) == chosen


def test_the_qdiscs_of_the_kernel_have_names_of_their_own():
    """With the name of a policy of ours behind ``kernel-``, where we have one."""
    found = {name: each.qdisc.kind for name, each in baselines.BASELINES.items() if each.qdisc is not None}
    assert found == {
        **{kind: kind for kind in ("fq_codel", "cake", "fq", "pie")},
        **{f"{kind}-default": kind for kind in ("fq_codel", "cake", "fq", "pie")},
        **{f"kernel-{kind}": kind for kind in ("red", "codel", "sfb")},
    }


def test_controls_that_must_be_the_kernel_s():
    found = [name for name, each in baselines.BASELINES.items() if each.kernel_control]
    assert found == ["droptail-bbr", "kernel-dctcp"]


@pytest.mark.parametrize(
    ("name", "setting", "value"),
    [
        ("droptail-iw2", "initcwnd", 2),
        ("droptail-iw4", "initcwnd", 4),
        ("droptail-clamp", "receive_buffer", 6000),
        ("droptail-x2", "buffer_bytes", 250_000),
        ("droptail-x4", "buffer_bytes", 500_000),
        ("droptail-x16", "buffer_bytes", 2_000_000),
        ("droptail-shared", "buffer_bytes", 1_000_000),
        ("red-ecn", "ecn", True),
        ("codel-ecn", "ecn", True),
    ],
)
def test_what_an_operator_would_change_first(name, setting, value):
    chosen = scenario.load("incast")
    applied = baselines.of(name).applied(chosen).settings
    changed = {key: each for key, each in applied.items() if each != chosen.settings[key]}
    assert changed.pop("shared_buffer", False) == (name == "droptail-shared")
    assert changed == {setting: value}


@pytest.mark.parametrize("name", ["fairq-shaped95", "fairq-shaped98", "las-shaped95"])
def test_a_port_is_shaped_where_the_bottleneck_is_out_of_sight(name):
    chosen = scenario.load("incast-tor")
    applied = baselines.of(name).applied(chosen)
    assert baselines.of(name).policy == name.partition("-")[0]
    assert {key for key, value in applied.settings.items() if value != chosen.settings[key]} == {"shaped"}
    assert applied.shaped == int(name[-2:]) / 100
    with pytest.raises(UserError, match="topology incast has no setting shaped"):
        baselines.of(name).applied(scenario.load("incast"))


@pytest.mark.parametrize("name", ["red-ecn", "codel-ecn"])
def test_a_queue_marks_where_hosts_ask_for_it(name):
    assert variants.read([name], [name])[0].settings == {"ecn": True}
    assert variants.read([f"{name}[ecn=no]"], [name])[0].settings == {"ecn": False}


def test_rivals_are_told_from_laws_of_ours_without_loading_one(monkeypatch):
    monkeypatch.setattr("importlib.metadata.EntryPoint.load", lambda _entry: 1 / 0)
    ours = [
        "fairq",
        "fairq-paper",
        "las[young=4]",
        "sed",
        "rsed",
        "iqm",
        "tenants",
        "acdc",
        "afcd",
        "afq-paper",
    ]
    rivals = ["bare", "droptail", "fixed", "mark", "red[gentle=no]", "codel", "sfb", "droptail-ctrl-reno"]
    assert all(baselines.is_ours(name) for name in [*ours, "fairq-shaped95", "las-shaped95"])
    assert not any(baselines.is_ours(name) for name in [*rivals, "cake", "mark-d2tcp", "kernel-red", "other"])
