"""Relay in the switch: the pool has one of two sizes, and keeps it for a while."""

from __future__ import annotations

from fairq_ryu.laws.relay import RelayLaw

from tests.support.host_laws import FedPort, HostLaw, fq_law


def test_the_pool_follows_the_side_of_the_target_on_which_the_queue_is():
    law = HostLaw(fq_law(RelayLaw, target=31_250, hold_ns=0))
    port = FedPort(law)
    pools = [port.feed(queue) for queue in (0, 31_250, 31_251, 125_000, 0)]
    assert pools == [31_250, 100_000, 25_000, 25_000, 100_000]
    assert (law.window(10), law.window(40), law.window(100)) == (10_000, 2920, 1460)


def test_it_does_not_change_sooner_than_it_may():
    port = FedPort(HostLaw(fq_law(RelayLaw, interval_ns=1_000_000, hold_ns=3_000_000)))
    queues = (0, 0, 60_000, 60_000, 60_000, 60_000)
    assert [port.feed(queue) for queue in queues] == [31_250, 100_000, 100_000, 100_000, 25_000, 25_000]
