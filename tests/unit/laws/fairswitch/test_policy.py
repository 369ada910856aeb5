"""Which law FairSwitch asks for, by its settings."""

import pytest

from fairq_ryu.agent import layout
from fairq_ryu.config.loader import Config
from fairq_ryu.laws.fairswitch import FairSwitchLaw
from fairq_ryu.laws.fairswitch.policy import FairSwitch
from fairq_ryu.model import PortKey
from tests.support.host_laws import in_force

PORT = PortKey(1, 1)


@pytest.mark.parametrize(("settings", "increments"), [({}, 0), ({"law": "verilog"}, 0), ({"law": "text"}, 8)])
def test_the_law_is_that_of_the_code_or_of_the_text(settings, increments):
    spec = FairSwitch(Config().section("fairswitch") | settings).switch_law(PORT)
    assert spec == FairSwitchLaw(increments=increments)
    assert layout.own("fairswitch_law", in_force(spec)).increments == increments


@pytest.mark.parametrize("end", ["minimum", "maximum"])
def test_an_agent_accepts_the_bounds_of_every_setting(end):
    for setting in FairSwitch.settings:
        bound = getattr(setting, end)
        if bound is not None:
            values = {"law": "text", setting.name: bound}
            spec = FairSwitch(Config().section("fairswitch") | values).switch_law(PORT)
            assert spec.wrong() is None, setting.name
