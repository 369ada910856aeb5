"""The laws of simulated ports: those of the policies, set for the network."""

from __future__ import annotations

import pytest

from fairq_ryu.config.loader import Config
from fairq_ryu.errors import UserError
from fairq_ryu.experiments.simulator.laws import Laws, laws_of
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.laws.mark import MarkLaw


def test_droptail_has_none():
    for name in ("droptail", "droptail-rto5", "droptail-dctcp"):
        assert laws_of(name, Config(), 25, 0.3) == Laws(None, None)


def test_the_round_trip_of_a_law_is_that_of_the_network_unless_it_is_set():
    assert laws_of("fairq", Config(), 1000, 0.2).window == FairQLaw(base_rtt_us=200)
    own = Config().changed("fairq", {"base_rtt": 0.005})
    assert laws_of("fairq", own, 1000, 0.2).window == FairQLaw(base_rtt_us=5000)


def test_marks_begin_at_half_of_what_is_under_way_and_not_below_the_default():
    assert laws_of("mark-dctcp", Config(), 25, 0.3).queue == MarkLaw(mark_bytes=20 * 1514)
    way = 10_000 * 125 * 0.1 / 1514
    assert 80 < way < 84
    assert laws_of("mark-dctcp", Config(), 10_000, 0.1).queue == MarkLaw(mark_bytes=42 * 1514)
    own = Config().changed("mark", {"threshold": 65})
    assert laws_of("mark-dctcp", own, 10_000, 0.1).queue == MarkLaw(mark_bytes=65 * 1514)


@pytest.mark.parametrize("name", ["las", "iqm", "fairswitch", "acdc", "red", "codel", "afq", "afcd"])
def test_every_law_that_runs_in_the_switch_alone_is_simulated(name: str):
    found = laws_of(name, Config(), 1000, 0.2)
    assert (found.window is None) != (found.queue is None)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("fairq-paper", "runs in the controller"),
        ("sed", "runs in the controller"),
        ("sfb", "has bins"),
        ("fq_codel", "is of the kernel"),
        ("kernel-dctcp", "is of the kernel"),
        ("droptail-bbr", "is of the kernel"),
        ("tenants", "stands on another policy"),
    ],
)
def test_what_is_not_simulated_is_refused_by_name(name: str, why: str):
    with pytest.raises(UserError, match=f"{name}' is not simulated: .*{why}"):
        laws_of(name, Config(), 1000, 0.2)


def test_turns_are_refused():
    with pytest.raises(UserError, match="take turns"):
        laws_of("fairq", Config().changed("fairq", {"turns": "on"}), 1000, 0.2)


def test_an_unknown_policy_is_refused():
    with pytest.raises(UserError, match="there is no policy 'fairqq'"):
        laws_of("fairqq", Config(), 1000, 0.2)
