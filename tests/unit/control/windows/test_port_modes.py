"""The mode of a port by configuration: patterns, and what is not known yet."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fairq_ryu.config.loader import Config
from fairq_ryu.control.windows.disables import Scope
from fairq_ryu.control.windows.port_modes import PortModes
from fairq_ryu.model import PortKey, PortMode

ACT, OBSERVE, DISABLED = PortMode.ACT, PortMode.OBSERVE, PortMode.DISABLED
KEY = PortKey(0x1F, 3)


def modes(*patterns: tuple[str, PortMode], default: str = "act", **link: Any) -> PortModes:
    """The modes of a network whose bridge 1f has an agent."""
    about = {"known": True, "bridge": "rack7-a", "names": {3: "tap3"}} | link
    names = about.pop("names")
    about_ports = {"name": lambda number: names.get(number, "")}
    links: Any = {0x1F: SimpleNamespace(modes=SimpleNamespace(**about), **about_ports)}
    config = Config({("fairq_ryu", "mode"): default}, modes=patterns)
    return PortModes(config, links, lambda key: "fixed" if key == KEY else "fairq")


@pytest.mark.parametrize("default", ["act", "observe"])
def test_without_patterns(default):
    assert modes(default=default).of(KEY) == default
    assert modes(default=default).observes is (default == "observe")


@pytest.mark.parametrize(
    "pattern",
    ["tap3", "tap*", "*", "bridge:rack7*", "bridge:1f", "bridge:000000000000001f", "policy:fixed"],
)
def test_a_pattern_that_matches(pattern):
    found = modes((pattern, OBSERVE))
    assert found.of(KEY) is OBSERVE and found.observes


@pytest.mark.parametrize("pattern", ["tap4", "eth*", "bridge:rack8*", "bridge:1", "policy:fairq"])
def test_a_pattern_that_does_not_match(pattern):
    found = modes((pattern, OBSERVE))
    assert found.of(KEY) is ACT and found.observes


def test_the_first_match_counts():
    assert modes(("tap3", ACT), ("*", OBSERVE)).of(KEY) is ACT
    assert modes(("bridge:rack7*", OBSERVE), ("tap3", ACT), default="act").of(KEY) is OBSERVE


@pytest.mark.parametrize(
    ("pattern", "unknown"),
    [("tap4", {"names": {}}), ("eth*", {"names": {}}), ("bridge:rack8", {"bridge": ""})],
)
def test_what_is_not_known_yet_is_observed(pattern, unknown):
    assert modes((pattern, OBSERVE)).of(KEY) is ACT
    assert modes((pattern, OBSERVE), **unknown).of(KEY) is OBSERVE
    assert modes((pattern, ACT), ("*", OBSERVE), **unknown).of(KEY) is OBSERVE
    # Whatever the pattern says in the end: no port of this network is observed.
    assert modes((pattern, ACT), **unknown).of(KEY) is ACT


def test_a_bridge_is_known_by_its_dpid_before_it_has_named_itself():
    assert modes(("bridge:1f", ACT), default="observe", bridge="").of(KEY) is ACT


@pytest.mark.parametrize("known", [None, False])
def test_an_observed_port_of_an_agent_that_cannot_observe_has_no_rules(known):
    found = modes(default="observe", known=known)
    assert (found.of(KEY), found.in_force(KEY)) == (OBSERVE, DISABLED)
    assert modes(known=known).in_force(KEY) is ACT
    assert modes(default="observe").in_force(KEY) is OBSERVE
    assert modes(default="observe").in_force(PortKey(9, 1)) is DISABLED  # no agent at all


@pytest.mark.parametrize("default", ["act", "observe"])
def test_a_disable_comes_before_the_configuration(default):
    found = modes(default=default)
    found.disables.disable(Scope(0x1F, 3, "tap3"), 70.0)
    assert found.of(KEY) is found.in_force(KEY) is DISABLED
    assert found.disabled_for(KEY, 9.5) == 60.5 and found.disabled_for(PortKey(0x1F, 4), 9.5) is None
    assert found.of(PortKey(0x1F, 4)) == default
    found.disables.disable(Scope())
    assert found.disabled_for(KEY, 9.5) is None
