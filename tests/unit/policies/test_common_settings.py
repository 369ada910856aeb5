"""Settings that several policies declare, and typed parameters."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from fairq_ryu.laws.fairq.policy import FairQ
from fairq_ryu.laws.fairswitch.policy import FairSwitch
from fairq_ryu.laws.iqm.policy import Iqm
from fairq_ryu.laws.las.policy import Las
from fairq_ryu.laws.sed.policy import Sed
from fairq_ryu.model import PortKey
from fairq_ryu.policies.common_settings import INITCWND, TURNS, typed_parameters


@dataclass(frozen=True)
class Sample:
    interval: float = 1.0
    count: int = 2
    fast: bool = False
    mode: str = "none"


def test_each_value_has_the_type_of_its_fields_default():
    made = typed_parameters(Sample, {"interval": 3, "count": 4, "fast": True, "mode": "both", "other": 5})
    assert made == Sample(3.0, 4, True, "both")
    assert type(made.interval) is float


def test_a_missing_setting_is_an_error():
    with pytest.raises(KeyError, match="count"):
        typed_parameters(Sample, {"interval": 3.0})


@pytest.mark.parametrize("policy", [FairQ, FairSwitch, Las])
def test_new_connections_take_turns_only_on_request(policy):
    assert TURNS in policy.settings
    values = {each.name: each.default for each in policy.settings}
    assert not policy(values).switch_law(PortKey(1, 1)).turns
    values["turns"] = "on"
    assert policy(values).switch_law(PortKey(1, 1)).turns


def test_policies_that_share_a_setting_declare_the_same_one():
    for policy in (Iqm, Sed):
        assert INITCWND in policy.settings
