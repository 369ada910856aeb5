"""Which policies and networks `fairq run` takes, and which app runs each policy."""

from importlib.metadata import EntryPoint

import pytest

from fairq_ryu.errors import UserError
from fairq_ryu.experiments import kernel_kinds, scenario
from fairq_ryu.experiments.baselines import BASELINES
from fairq_ryu.experiments.measure import machine
from fairq_ryu.experiments.variants import Variant

GROUP = "fairq_ryu.policies"


def plain(*names):
    return [Variant(name, name) for name in names]


@pytest.fixture
def installed(monkeypatch):
    def install(*points, apps):
        found = [EntryPoint(name, value, GROUP) for name, value in points]
        monkeypatch.setattr(machine.importlib.metadata, "entry_points", lambda group: found)
        monkeypatch.setattr(machine, "_exists", lambda module: module in apps)

    return install


def test_our_own_have_apps_of_their_own(installed):
    points = [("fairq", "fairq_ryu.laws.fairq.policy:FairQ"), ("iqm", "fairq_ryu.laws.iqm.policy:Iqm")]
    installed(*points, apps={"fairq_ryu.apps.fairq", "fairq_ryu.apps.droptail"})
    qdiscs = {name for name, each in BASELINES.items() if each.qdisc is not None}
    kinds = "bbr clamp ctrl-cubic ctrl-reno dctcp iw2 iw4 rto5 shared x16 x2 x4"
    hosts = {f"droptail-{name}" for name in kinds.split()}
    assert qdiscs and machine.known_policies() == [
        *sorted({"droptail", "fairq", "fairq-shaped95", "fairq-shaped98"} | hosts | qdiscs),
        "bare",
    ]
    assert machine.app_of("fairq") == "fairq_ryu.apps.fairq"


def test_a_name_with_a_hyphen_has_a_module_without(installed):
    installed(("iqm-paper", "fairq_ryu.laws.iqm_paper.policy:IqmPaper"), apps={"fairq_ryu.apps.iqm_paper"})
    assert machine.app_of("iqm-paper") == "fairq_ryu.apps.iqm_paper"


def test_those_of_other_packages_run_in_the_app_for_any(installed):
    points = [("buffershare", "buffershare:BufferShare"), ("controller", "theirs:Law")]
    apps = {"fairq_ryu.apps.policy", "fairq_ryu.apps.controller"}
    installed(*points, apps=apps)
    assert machine.known_policies() == ["buffershare", "controller", "bare"]
    assert machine.app_of("buffershare") == machine.app_of("controller") == machine.GENERIC_APP
    installed(*points, apps=apps - {"fairq_ryu.apps.policy"})
    assert machine.known_policies() == ["bare"]


def test_one_of_ours_without_an_app_runs_in_the_app_for_any(installed):
    installed(("relay", "fairq_ryu.laws.relay.policy:Relay"), apps={"fairq_ryu.apps.policy"})
    assert machine.app_of("relay") == machine.GENERIC_APP


def test_a_name_of_ours_stays_ours(installed):
    ours, theirs = ("fairq", "fairq_ryu.laws.fairq.policy:FairQ"), ("fairq", "theirs:FairQ")
    for points in ((ours, theirs), (theirs, ours)):
        installed(*points, apps={"fairq_ryu.apps.fairq", "fairq_ryu.apps.policy"})
        assert machine.app_of("fairq") == "fairq_ryu.apps.fairq"


@pytest.mark.parametrize(
    ("name", "overrides", "loops"),
    [
        ("incast", {}, False),
        ("incast-dumbbell", {}, False),
        ("incast-leafspine", {}, True),
        ("incast-leafspine", {"spines": "1"}, False),
        ("incast-fattree", {}, True),
        ("incast-fattree", {"k": "2", "senders": "1"}, False),
    ],
)
def test_a_bare_network_with_loops_is_refused(name, overrides, loops):
    chosen = scenario.load(name, overrides)
    machine.check_loops(chosen, plain("droptail"))
    if loops:
        with pytest.raises(UserError, match="'bare' cannot run on topology"):
            machine.check_loops(chosen, plain("droptail", "bare"))
    else:
        machine.check_loops(chosen, plain("bare"))


def refusal(policies, config=None):
    with pytest.raises(UserError) as caught:
        machine.check_qdiscs(scenario.load("incast"), plain(*policies), config)
    return str(caught.value).splitlines()


def test_a_qdisc_that_the_kernel_lacks_is_refused_before_anything_starts(monkeypatch):
    reasons = {kind: kernel_kinds.missing(kind) for kind in ("fq_codel", "red")}
    asked = []

    def refused(wanted):
        asked.append(wanted)
        return {name: reasons[each.split()[0]] for name, each in wanted.items() if each.split()[0] in reasons}

    monkeypatch.setattr(machine.kernel_kinds, "refused", refused)
    monkeypatch.setattr(machine, "has_kernel_datapath", lambda: False)
    assert refusal(["droptail", "fq_codel", "kernel-red", "cake"]) == [
        "policy 'fq_codel' cannot run: the kernel has no fq_codel (module sch_fq_codel). "
        "Remedy: boot a kernel with CONFIG_NET_SCH_FQ_CODEL, or leave it out",
        "policy 'kernel-red' cannot run: the kernel has no red (module sch_red). "
        "Remedy: boot a kernel with CONFIG_NET_SCH_RED, or leave it out",
    ]
    # With the options that they will have: 25 Mbit/s and 125,000 bytes.
    assert [each["cake"] for each in asked] == ["cake bandwidth 25000000bit memlimit 188928"]
    machine.check_qdiscs(scenario.load("incast"), plain("droptail", "red"), None)
    assert len(asked) == 1


def test_on_the_kernel_datapath_packets_must_leave_their_hosts(monkeypatch):
    """Otherwise TCP Small Queues tells each sender of the queue."""
    asked = []

    def refused(wanted):
        asked.append(wanted)
        return dict.fromkeys(wanted, "tc refuses it")

    monkeypatch.setattr(machine.kernel_kinds, "refused", refused)
    monkeypatch.setattr(machine, "has_kernel_datapath", lambda: False)
    machine.check_qdiscs(scenario.load("incast"), plain("droptail"), None)
    assert asked == []
    monkeypatch.setattr(machine, "has_kernel_datapath", lambda: True)
    (line,) = refusal(["droptail"])
    assert "the kernel has no netem (module sch_netem)" in line
    assert [each.split()[0] for (each,) in (wanted.values() for wanted in asked)] == ["netem"]


def test_a_qdisc_of_the_kernel_needs_the_kernel_datapath(monkeypatch):
    monkeypatch.setattr(machine.kernel_kinds, "refused", lambda _wanted: {})
    monkeypatch.setattr(machine, "has_kernel_datapath", lambda: False)
    (line,) = refusal(["pie"])
    assert line.startswith("policy 'pie' needs Open vSwitch's kernel datapath")
    monkeypatch.setattr(machine, "has_kernel_datapath", lambda: True)
    machine.check_qdiscs(scenario.load("incast"), plain("pie"), None)


def test_where_no_namespace_can_be_made_that_is_said(monkeypatch):
    def refused(_wanted):
        raise OSError("Operation not permitted")

    monkeypatch.setattr(machine.kernel_kinds, "refused", refused)
    (line,) = refusal(["pie"])
    assert line.startswith("no network namespace can be made: Operation not permitted")
