"""The rules that every bridge has."""

from fairq_ryu.channel import flowmod
from fairq_ryu.openflow import pipeline


def test_rules_of_bridges_and_of_agents_have_the_same_cookie():
    assert pipeline.COOKIE_BASE == flowmod.WINDOW_RULE_COOKIE
