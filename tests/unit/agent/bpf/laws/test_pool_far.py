"""A pool that follows a virtual queue: the queue that nobody sees stays short, and the line is used."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import pytest

from fairq_ryu.agent import layout
from fairq_ryu.agent.law_table import parameters
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.far_queue import FarQueue
from fairq_ryu.law_spec import LawSpec
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.laws.las import LasLaw
from tests.support.host_laws import HostLaw, drain

NS = 10**9
# Of what arrives in a step: at 25 Gbit/s that is more than the target.
PARTS = 20
KINDS = [FairQLaw, LasLaw]


class Outcome(NamedTuple):
    """What a run has had: means of the hidden queue (bytes) and of the rate of arrivals, as a part of the
    line's; the longest hidden queue.
    """

    hidden: float
    rate: float
    longest: float


def run(
    host_queues: Any,
    kind: type[LawSpec],
    queue: FarQueue,
    rtt_us: int,
    flows: int,
    seconds: float = 1.0,
    known_us: int = 0,
) -> Outcome:
    """Flows that use their whole windows, of two segments at least: what they have under way beyond a round
    trip stands in the hidden queue. Steps of T. ``known_us``: the round trip that the law is told.
    """
    spec = kind(base_rtt_us=known_us or rtt_us)
    limit, rate = queue.limits(0)
    law, virtual = HostLaw(parameters(spec, QueueLimits("far", limit, rate))), layout.fq_queue()
    arrivals = layout.fq_arrivals()
    step = law.parameters.interval_ns
    held = queue.rate * rtt_us // 10**6
    hidden = carried = longest = 0.0
    steps = int(seconds * NS / step)
    now = NS
    for number in range(steps):
        window = max(law.state.granted or law.parameters.target, flows * 2 * 1460)
        stands = min(max(0, window - held), queue.buffer)
        arrived = min(queue.rate, window * 10**6 / rtt_us) * step / NS
        for _ in range(PARTS):
            now += step // PARTS
            part = ctypes.c_uint64(int(arrived / PARTS)), ctypes.c_uint32(1), ctypes.c_uint64(now)
            given = ctypes.c_uint64(drain(rate)), ctypes.c_uint32(limit), *part
            host_queues.host_virtual_arrival(ctypes.byref(virtual), *given)
            law.arrived(arrivals, int(arrived / PARTS))
        law.limited(window // flows, window // flows, (known_us or rtt_us) * 1000, now)
        law.load(arrivals, virtual.backlog, now)
        law.tick(now, arrivals.length_ns, virtual.backlog, flows)
        if number > steps // 4:
            hidden, carried, longest = hidden + stands, carried + arrived, max(longest, stands)
    counted = steps - steps // 4 - 1
    return Outcome(hidden / counted, carried * NS / (counted * step) / queue.rate, longest)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("mbit", "buffer", "rtt_us", "flows"),
    [
        (50, 125_000, 5_000, 4),
        (1_000, 500_000, 500, 8),
        (10_000, 1_000_000, 100, 8),
        (25_000, 2_000_000, 50, 16),
    ],
)
def test_the_hidden_queue_is_a_tenth_of_its_buffer_at_most_and_the_line_is_used(
    host_queues: Any, kind: type[LawSpec], mbit: int, buffer: int, rtt_us: int, flows: int
) -> None:
    found = run(host_queues, kind, FarQueue("eth0", mbit * 125_000, buffer), rtt_us, flows)
    assert found.hidden <= buffer / 10
    assert found.longest <= buffer / 4
    assert found.rate >= 0.97


@pytest.mark.parametrize("kind", KINDS)
def test_where_the_floors_alone_fill_the_line_it_is_full(host_queues: Any, kind: type[LawSpec]) -> None:
    """8 flows of two segments at 50 Mbit/s and 1 ms: 6,250 bytes are under way, the others stand."""
    found = run(host_queues, kind, FarQueue("eth0", 6_250_000, 125_000), 1_000, 8)
    assert found.rate == pytest.approx(1.0, abs=0.001)
    assert found.hidden <= max(8 * 2 * 1460 - 6_250, 2 * 12_500)


@pytest.mark.parametrize("kind", KINDS)
def test_a_round_trip_that_is_longer_than_is_known_is_found_out(
    host_queues: Any, kind: type[LawSpec]
) -> None:
    """As where packets wait for processors: 8 ms, of which the law knows 1."""
    queue = FarQueue("eth0", 6_250_000, 125_000)
    found = run(host_queues, kind, queue, 8_000, 4, seconds=4, known_us=1_000)
    assert found.rate >= 0.97
    assert found.hidden <= 12_500 and found.longest <= 125_000 / 4
