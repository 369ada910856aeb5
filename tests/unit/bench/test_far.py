"""The model of a port that no agent sees."""

from __future__ import annotations

import pytest

from bench.far import SHARE, Dctcp, Far, beside_others
from bench.laws import Network, volleys
from bench.packet_model import switch_law
from fairq_ryu.agent.law_table import parameters
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.far_queue import Why
from fairq_ryu.law_spec import LawSpec
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.laws.las import LasLaw

FAST = Network(1e9, 200, 125_000)


@pytest.mark.parametrize(
    "spec", [FairQLaw(base_rtt_us=200), LasLaw(base_rtt_us=200), FairQLaw(base_rtt_us=1000)]
)
def test_the_hidden_queue_is_short_and_the_link_is_busy(spec: LawSpec) -> None:
    law = switch_law(parameters(spec, QueueLimits("model", FAST.buffer, int(FAST.rate / 8 * SHARE))))
    found = volleys(FAST, Far(FAST.rate, FAST.round_trip * 1000, FAST.buffer, law))
    assert found.queue < 0.1 and found.goodput > 0.95
    assert (found.drops, found.unfinished) == (0, 0)


MIDDLE = Network(1e9, 500, 250_000)


def test_datagrams_for_others_leave_the_rest_to_us() -> None:
    found = beside_others(MIDDLE, FairQLaw(base_rtt_us=500), part=0.4, seconds=1)
    assert sum(found.goodput) + 0.4 > 0.95 and found.queue < 0.1
    assert found.drops == 0 and found.why == (Why.OTHERS,)


def test_two_receivers_behind_one_port_share_it() -> None:
    alone = beside_others(MIDDLE, FairQLaw(base_rtt_us=500), seconds=1)
    found = beside_others(MIDDLE, FairQLaw(base_rtt_us=500), receivers=2, seconds=1)
    assert sum(found.goodput) > 0.95 and min(found.goodput) > 0.25
    assert found.queue < 0.1 and found.found < 2 * alone.found + 0.1
    assert found.drops == 0


def test_dctcp_holds_the_queue_at_its_threshold() -> None:
    port = Dctcp(FAST.rate, FAST.round_trip * 1000, FAST.buffer, threshold=40_000)
    found = volleys(FAST, port)
    assert 0.5 * 40_000 < found.queue * FAST.buffer < 1.5 * 40_000
    assert found.goodput > 0.98
