"""The policy tenants is a layer: the law of another policy, by tenant."""

from __future__ import annotations

import dataclasses

import pytest

from fairq_ryu.config.loader import Config
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.laws.fairswitch import FairSwitchLaw
from fairq_ryu.laws.las import LasLaw
from fairq_ryu.laws.tenants.policy import Tenants
from fairq_ryu.model import PortKey
from fairq_ryu.policies.base import same
from fairq_ryu.policies.choice import make

PORT = PortKey(1, 2)


def made(**values):
    return make("tenants", Config({tuple(name.split("__")): value for name, value in values.items()}))


def test_the_law_is_that_of_the_policy_below_with_its_settings():
    assert made(fairq__alpha=0.1, fairq_ryu__turns="on").switch_law(PORT) == FairQLaw(
        target_ppm=100_000, turns=True, tenants=1
    )
    law = made(tenants__above="las", las__young_bytes=5000).switch_law(PORT)
    assert law == LasLaw(target_ppm=150_000, young_bytes=5000, tenants=1, turns=False)


def test_without_a_policy_below_it_takes_the_defaults():
    settings = {each.name: each.default for each in Tenants.settings}
    assert Tenants(settings).switch_law(PORT) == FairQLaw(tenants=1)


def test_it_changes_when_the_policy_below_does():
    assert same(made(), made())
    assert not same(made(), made(fairq__alpha=0.1))
    assert not same(made(), made(tenants__above="las"))
    assert not same(made(), made(tenants__ports="443:200"))


def test_priorities():
    found = made(tenants__ports="443:200 80:50", tenants__dscp="46:400").priorities
    assert (found.ports, found.dscp) == ({443: 200, 80: 50}, {46: 400})


@pytest.mark.parametrize("law", [FairQLaw(), LasLaw()])
def test_laws_with_a_pool_of_equal_parts_may_be_below(law):
    assert dataclasses.replace(law, tenants=1).wrong() is None


def test_others_are_refused():
    assert "no pool" in str(FairSwitchLaw(tenants=1).wrong())
    assert FairSwitchLaw().wrong() is None
