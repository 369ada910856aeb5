"""Which policies and networks `fairq run` takes, and which app runs each policy."""

from importlib.metadata import EntryPoint

import pytest

from fairq_ryu.errors import UserError
from fairq_ryu.experiments import scenario
from fairq_ryu.experiments.measure import machine

GROUP = "fairq_ryu.policies"


@pytest.fixture
def installed(monkeypatch):
    def install(*points, apps):
        found = [EntryPoint(name, value, GROUP) for name, value in points]
        monkeypatch.setattr(machine.importlib.metadata, "entry_points", lambda group: found)
        monkeypatch.setattr(machine, "_exists", lambda module: module in apps)

    return install


def test_our_own_have_apps_of_their_own(installed):
    points = [("fairq", "fairq_ryu.policies.fairq:FairQ"), ("iqm", "fairq_ryu.policies.iqm:Iqm")]
    installed(*points, apps={"fairq_ryu.apps.fairq", "fairq_ryu.apps.droptail"})
    assert machine.known_policies() == ["droptail", "droptail-dctcp", "droptail-rto5", "fairq", "bare"]
    assert machine.app_of("fairq") == "fairq_ryu.apps.fairq"


def test_those_of_other_packages_run_in_the_app_for_any(installed):
    points = [("buffershare", "buffershare:BufferShare"), ("controller", "theirs:Law")]
    apps = {"fairq_ryu.apps.policy", "fairq_ryu.apps.controller"}
    installed(*points, apps=apps)
    assert machine.known_policies() == ["buffershare", "controller", "bare"]
    assert machine.app_of("buffershare") == machine.app_of("controller") == machine.GENERIC_APP
    installed(*points, apps=apps - {"fairq_ryu.apps.policy"})
    assert machine.known_policies() == ["bare"]


def test_a_name_of_ours_stays_ours(installed):
    ours, theirs = ("fairq", "fairq_ryu.policies.fairq:FairQ"), ("fairq", "theirs:FairQ")
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
    machine.check_loops(chosen, ["droptail"])
    if loops:
        with pytest.raises(UserError, match="'bare' cannot run on topology"):
            machine.check_loops(chosen, ["droptail", "bare"])
    else:
        machine.check_loops(chosen, ["bare"])
