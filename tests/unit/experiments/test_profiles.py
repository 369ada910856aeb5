"""What the hosts of a scenario are like."""

import pytest

from fairq_ryu.errors import UserError
from fairq_ryu.experiments import profiles, scenario
from fairq_ryu.experiments.baselines import BASELINES
from fairq_ryu.experiments.hostcc.hosts import HostTcp


def test_modern_hosts_are_as_the_kernel_is():
    chosen = scenario.load("incast")
    assert (chosen.hosts, chosen.cc, chosen.rto_min_ms, chosen.host_rate_mbit) == ("modern", "cubic", 0, 0)


def test_a_profile_changes_what_is_left_out_and_nothing_that_is_given():
    chosen = scenario.load("incast", {"hosts": "period"})
    assert (chosen.cc, chosen.rto_min_ms) == ("reno", profiles.tick_ms())
    plain = scenario.load("incast").settings
    assert {name for name, value in chosen.settings.items() if value != plain[name]} == {
        "hosts",
        "cc",
        "rto_min_ms",
    }
    own = scenario.load("incast", {"hosts": "period", "cc": "cubic", "rto_min_ms": "0"})
    assert (own.cc, own.rto_min_ms) == ("cubic", 0)
    # As the result has it, whatever the kernel that reads it.
    assert scenario.build(chosen.settings) == chosen
    assert BASELINES["droptail-rto5"].applied(chosen).rto_min_ms == 5


def test_the_least_timeout_is_a_tick_of_this_kernel():
    rates = [100, 250, 300, 1000]
    assert any(profiles.tick_ms() == pytest.approx(1000 / hz, abs=0.01) for hz in rates)


@pytest.mark.parametrize("profile", profiles.PROFILES)
def test_hosts_get_what_their_profile_has(profile, monkeypatch):
    class Host:
        name, pid = "h1", 1

        def __init__(self):
            self.calls = []

        def __getattr__(self, method):
            return lambda *values, **named: self.calls.append((method, *values, *named.values()))

    monkeypatch.setattr("fairq_ryu.experiments.hostcc.hosts.in_use", lambda _pid: tcp.cc)
    tcp, host = HostTcp(scenario.load("incast", {"hosts": profile})), Host()
    monkeypatch.setattr(tcp._controls, "name_of", lambda name: name)
    monkeypatch.setattr(tcp._controls, "join", lambda *_arguments: None)
    tcp.configure([host])
    period = [("setQuickAcks", True), ("setTailLossProbe", False)]
    assert [each for each in host.calls if each in period] == (period if profile == "period" else [])
    rto = [value for name, *values in host.calls if name == "setRtoMin" for value in values]
    assert rto == [profiles.tick_ms() if profile == "period" else 0]


def test_an_unknown_profile_is_refused():
    with pytest.raises(UserError, match="hosts is 'perriod', which is unknown"):
        scenario.load("incast", {"hosts": "perriod"})
