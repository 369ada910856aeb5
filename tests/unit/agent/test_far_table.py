"""Which far queues a bridge should have: the configuration, what controllers tell, and what they lease."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairq_ryu.agent.far_table import FarTable
from fairq_ryu.channel.far_queues import ERROR_FAR_QUEUE, FarQueueState, RateLease
from fairq_ryu.channel.refusal import OpenFlowError
from fairq_ryu.far_queue import FarQueue

S = 10**9
ETH0, ETH1 = FarQueue("eth0", 1_250_000, 100_000), FarQueue("eth1", 2_500_000)


def test_what_is_told_goes_before_the_configuration():
    table = FarTable([ETH0])
    assert table.queues == {"eth0": ETH0}
    other = FarQueue("eth0", 125_000)
    table.tell({"eth0": other, "eth1": ETH1})
    assert table.queues == {"eth0": other, "eth1": ETH1}
    table.tell({"eth0": None})
    assert table.queues == {}, "eth1 is not named any more, and eth0 is removed"
    table.tell({})
    assert table.queues == {"eth0": ETH0}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (FarQueue("eth1", rate=1), "eth1: rate 1 bytes/s"),
        (FarQueue("eth1", buffer=1), "eth1: buffer 1 bytes"),
        (FarQueue("eth1", share=0.0), "eth1: share 0"),
        (FarQueue("enp131s1f0np0"), "the far queues of enp131s0f0np0 and enp131s1f0np0 would both be"),
    ],
)
def test_a_wrong_one_is_refused_with_all_others(wrong, says):
    table = FarTable([FarQueue("enp131s0f0np0")])
    table.tell({"eth0": ETH0})
    with pytest.raises(OpenFlowError) as error:
        table.tell({"eth0": None, wrong.port: wrong})
    assert error.value.code == ERROR_FAR_QUEUE and str(error.value).startswith(says)
    assert table.told == {"eth0": ETH0} and "eth0" in table.queues


def test_a_leased_rate_ends_by_itself():
    table = FarTable([ETH0, ETH1])
    assert table.lease(RateLease(2, {"eth0": 125_000, "eth9": 125_000}), 5 * S)
    assert table.queues == {"eth0": replace(ETH0, leased=125_000), "eth1": ETH1}
    assert not table.lease(RateLease(2, {"eth0": 125_000}), 6 * S), "renewed: nothing has changed"
    assert not table.expire(8 * S - 1) and table.queues["eth0"].leased == 125_000
    assert table.expire(8 * S) and table.queues == {"eth0": ETH0, "eth1": ETH1}
    assert not table.expire(9 * S)


def test_a_lease_changes_the_rate_and_not_the_queue_in_the_switch_above():
    """The same delay is the same part of it, whatever the rate is."""
    own = FarQueue("eth0", 1_250_000, 100_000)
    assert own.stands_for(0) == 100_000
    leased = replace(own, leased=3_125_000)
    assert leased.limits(0) == (100_000, int(0.98 * 3_125_000)) and leased.stands_for(0) == 250_000
    assert replace(own, leased=312_500).stands_for(0) == 25_000
    assert replace(own, buffer=0, leased=2_500_000).stands_for(0) == 12_500
    assert FarQueue("eth0").stands_for(0) == 0
    assert FarQueue("eth0").stands_for(1_250_000) == 6_250
    assert FarQueue("eth0", buffer=20_000).stands_for(0) == 20_000


def test_a_lease_is_never_more_than_the_link_of_the_machine():
    """The queue in the switch above then stands before that link."""
    leased = FarQueue("eth0", 5_000_000, 50_000, leased=30_000_000)
    link = 10_000_000
    assert leased.line(link) == link and leased.limits(link) == (50_000, int(0.98 * link))
    assert leased.stands_for(link) == 100_000
    assert leased.line(0) == leased.line(40_000_000) == 30_000_000
    assert FarQueue("eth0", 30_000_000).line(link) == 30_000_000, "what is written counts"


def test_a_lease_replaces_the_one_before():
    table = FarTable([ETH0, ETH1])
    table.lease(RateLease(2, {"eth0": 125_000}), 0)
    assert table.lease(RateLease(2, {"eth1": 125_000}), 1)
    assert (table.queues["eth0"], table.queues["eth1"].leased) == (ETH0, 125_000)
    assert table.lease(RateLease(0, {"eth1": 250_000}), 2) and table.queues["eth1"] == ETH1
    with pytest.raises(OpenFlowError):
        table.lease(RateLease(2, {"eth0": 250_000, "eth1": 1}), 3)
    assert table.queues["eth0"] == ETH0


def test_the_states_say_where_a_far_queue_comes_from():
    table = FarTable([ETH0])
    table.tell({"eth1": ETH1, "eth2": FarQueue("eth2")})
    table.lease(RateLease(2, {"eth0": 125_000}), 0)
    assert table.states({"eth0": 4, "eth1": 5}) == [
        FarQueueState(ETH0, False, 4, 125_000),
        FarQueueState(ETH1, True, 5),
    ]
