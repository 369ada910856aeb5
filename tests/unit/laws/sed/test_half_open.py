"""Half-open connections count up to a limit for each opener, and memory is bounded."""

from __future__ import annotations

import dataclasses

from fairq_ryu.laws.sed.half_open import FORGET_AFTER, HalfOpenLimiter
from fairq_ryu.model import FlowInfo, FlowKey, FlowProgress, PortKey
from tests.support.fakes import info

AGGREGATOR, ATTACKER = PortKey(1, 1), PortKey(2, 7)
KEY = FlowKey("10.0.0.2", "10.0.0.1", 80, 1000)


def key(number: int) -> FlowKey:
    return KEY._replace(dport=number)


def flow(number: int, opener: PortKey | None = AGGREGATOR) -> FlowInfo:
    return dataclasses.replace(info(key(number)), opener=opener)


def test_memory_is_bounded_whatever_the_addresses_are():
    """Without an ingress port, the source address is the opener, and an attacker can forge any number."""
    limiter = HalfOpenLimiter(4)
    counted = [
        limiter.started(info(KEY._replace(src=f"10.1.{n // 250}.{n % 250}")), 0.0) for n in range(10_000)
    ]
    assert sum(counted) == len(limiter) == 64 * 4
    assert not limiter.started(flow(1), FORGET_AFTER - 0.1)
    assert limiter.started(flow(1), FORGET_AFTER)
    assert len(limiter) == 1
    assert len(limiter._by_opener) == 1


def test_a_flood_from_one_port_leaves_the_others_their_allowance():
    limiter = HalfOpenLimiter(256)
    assert sum(limiter.started(flow(n, ATTACKER), 0.0) for n in range(5000)) == 256
    assert all(limiter.started(flow(10_000 + n), 0.0) for n in range(256))


def test_answered_and_ended_flows_free_their_allowance():
    limiter = HalfOpenLimiter(2)
    assert [limiter.started(flow(n), 0.0) for n in range(3)] == [True, True, False]
    assert not limiter.started(flow(0), 0.0)  # again
    limiter.remove(key(2))  # did not count
    limiter.progressed({key(0): FlowProgress(0, 0, 0.0, False)}, 0.1)
    assert not limiter.started(flow(3), 0.1)
    limiter.progressed({key(0): FlowProgress(0, 0, 0.001, True)}, 0.1)
    assert limiter.started(flow(3), 0.1)
    limiter.remove(key(1))
    assert limiter.started(flow(4), 0.1)
    assert FORGET_AFTER == 10.0
