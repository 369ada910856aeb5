"""Shares of flows, and the fair share: Eq. 3 and 4 of the AFCD paper, worked out by hand."""

from __future__ import annotations

import pytest

from fairq_ryu.laws.afq import AfqLaw
from tests.support.host_queue_laws import HostQueueLaw, Packet, QueueLawParameters

FRAME = 1514
TARGET = 20 * FRAME


def afq(**changes: int) -> HostQueueLaw:
    settings = {"shadow_packets": 100, "sample_every": 1, "target_bytes": TARGET, "update_ns": 6_250_000}
    return HostQueueLaw(QueueLawParameters(AfqLaw.kind, 25_000_000, **(settings | changes)))


def send(law: HostQueueLaw, flow: int, packets: int = 1, now: int = 10**12, backlog: int = TARGET) -> None:
    for _ in range(packets):
        law.judge(Packet(now, backlog, backlog, FRAME, flow, (1 << 32) - 1))


def fair(samples: float) -> int:
    return int(samples * 65536)


def test_the_flow_table_has_the_last_samples_of_each_flow() -> None:
    law = afq()
    send(law, 1, 60)
    send(law, 2, 30)
    assert (law.table.samples[1], law.table.samples[2], law.state.flows, law.state.filled) == (60, 30, 2, 90)
    send(law, 3, 40)  # the oldest thirty are forgotten
    assert [law.table.samples[n] for n in (1, 2, 3)] == [30, 30, 40] and (
        law.state.flows,
        law.state.filled,
    ) == (3, 100)
    send(law, 2, 30)
    assert law.table.samples[1] == 0 and law.state.flows == 2


def test_every_tenth_packet_is_sampled() -> None:
    law = afq(sample_every=10)
    send(law, 1, 99)
    assert (law.table.samples[1], law.counts.sampled) == (9, 9)


def test_before_the_ring_is_full_the_samples_are_shared() -> None:
    """Eq. 4, with what has been sampled so far."""
    law = afq()
    send(law, 1, 30)
    assert law.state.fair_q16 == fair(30)
    send(law, 2, 10)
    assert law.state.fair_q16 == fair(20)


def full_of(flows: int, **changes: int) -> HostQueueLaw:
    law = afq(**changes)
    for number in range(100):
        send(law, number % flows)
    return law


def test_it_is_updated_at_intervals() -> None:
    """With 25 MB/s and 50 samples Eq. 1 would be unstable above 0.89 ms: 1514 * 50 / (2 * 1.7 * 25e6)."""
    law = full_of(2)
    step = 1514 * 50 * 10**9 // (34 * 2_500_000)
    assert law.state.update_at_ns - 10**12 == pytest.approx(step, abs=1)
    send(law, 1, now=10**12 + step - 2, backlog=0)
    assert law.state.fair_q16 == fair(50) and law.counts.updates == 0
    send(law, 1, now=10**12 + step + 2, backlog=TARGET - 10 * FRAME)
    assert law.state.fair_q16 == fair(50 + 18) and law.counts.updates == 1


def test_a_longer_interval_is_not_exceeded() -> None:
    assert full_of(2, update_ns=100_000).state.update_at_ns == 10**12 + 100_000


def test_the_share_follows_the_queue_by_the_formula() -> None:
    """Eq. 1 and 5 in real numbers: 1.7 (Q_old - Q_t) - 1.8 (Q - Q_t) in packets; from b / 8 n to b."""
    law, expected, old = full_of(4), 25.0, float(TARGET)
    for number in range(200):
        now, backlog = 10**12 + (number + 1) * 10_000_000, (20 + number * 13 % 40) * FRAME
        expected += (1.7 * (old - TARGET) - 1.8 * (backlog - TARGET)) / FRAME
        expected, old = min(max(expected, 100 / (8 * law.state.flows)), 100.0), float(backlog)
        send(law, number % 4, now=now, backlog=backlog)
        assert law.state.fair_q16 / 65536 == pytest.approx(expected, abs=0.01)
        expected = law.state.fair_q16 / 65536
