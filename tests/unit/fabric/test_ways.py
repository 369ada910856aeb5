"""The way of a bridge in words, whose rules it has, and what each way cannot do."""

from __future__ import annotations

import pytest

from fairq_ryu.fabric.ways import Asked, RuleCount, Way, in_words, limits
from mininet_topos import switch

ALL = Asked(hold=True, roles=True, unify=True)


@pytest.mark.parametrize(
    ("description", "way"),
    [
        ("fairq_ryu: paths", Way.PATHS),
        ("rack 7, fairq_ryu:normal", Way.NORMAL),
        ("s1 (fairq_ryu: windows)", Way.WINDOWS),
        ("fairq_ryu: pathsfinder", None),
        ("notfairq_ryu: paths", None),
        ("paths", None),
        ("fairq_ryu", None),
        ("None", None),  # of a bridge without one
        ("", None),
    ],
)
def test_a_description_asks_for_a_way_in_words(description, way):
    assert in_words(description) is way


def test_the_switch_of_mininet_asks_for_the_ways_that_there_are():
    assert {Way(way) for way in switch.WAYS} == set(Way)
    assert all(in_words(switch.description("s1", way)) == way for way in switch.WAYS)


@pytest.mark.parametrize(
    ("count", "others"),
    [
        (RuleCount(0, 0, 0), 0),
        (RuleCount(40, 40, 0), 0),
        (RuleCount(41, 40, 0), 1),
        (RuleCount(1, 0, 1), 0),
        (RuleCount(5, 0, 1), 4),
        (RuleCount(3, 4, 0), 0),  # counted while rules changed
    ],
)
def test_rules_of_others_are_those_that_are_not_ours(count, others):
    assert count.others == others


def test_paths_can_do_everything():
    assert limits(Way.PATHS, True, 7, ALL) == []


@pytest.mark.parametrize(
    ("way", "connected", "reason"),
    [
        (Way.WINDOWS, False, "the bridge is not connected to this controller"),
        (Way.WINDOWS, True, "this controller leaves the bridge alone"),
        (Way.NORMAL, True, "the bridge forwards by its own rules"),
    ],
)
def test_each_limit_has_the_reason(way, connected, reason):
    found = limits(way, connected, 0, ALL)
    assert all(line.endswith(f": {reason}") for line in found)
    wanted = ["paths are not pinned", "syn = hold", "role:host", "unify_scale"]
    assert all(any(word in line for line in found) for word in wanted)
    assert len(found) == len(wanted) + (way is Way.WINDOWS)


def test_only_what_the_configuration_asks_for_is_missing():
    assert len(limits(Way.NORMAL, True, 0, Asked())) == 1


def test_rules_of_others_are_a_limit_of_normal():
    assert "2 rules of others" in limits(Way.NORMAL, True, 2, Asked())[-1]
    assert "a rule of others" in limits(Way.NORMAL, True, 1, Asked())[-1]
