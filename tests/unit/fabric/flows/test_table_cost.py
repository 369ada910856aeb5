"""The cost of the flow table: it shares a processor with a loop that reads queues every 2 ms."""

from __future__ import annotations

import time

from fairq_ryu.model import FlowKey
from tests.support.flownet import ISN, KEY, OVER3, PEER_ISN, A, B, Net, record, segment


def client(number: int) -> FlowKey:
    return KEY._replace(src=f"10.1.{number >> 8}.{number & 255}")


def best(work, rounds: int = 5) -> float:
    """Seconds of the fastest round: the cost of the code without disturbance."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def test_the_cost_of_a_handshake_does_not_grow_with_the_table():
    def each(count: int) -> float:
        flows = [client(number) for number in range(count)]
        handshakes = [
            (segment(flow, "S", ISN), OVER3, segment(flow.reversed, "SA", PEER_ISN, ISN + 1), OVER3.reversed)
            for flow in flows
        ]

        def work() -> None:
            table = Net().table
            for syn, path, answer, back in handshakes:
                table.segment(syn, path.backward[-1], path, 0.0)
                table.segment(answer, back.backward[-1], back, 0.0)

        return best(work, 2) / count

    few, many = each(500), each(16_000)
    assert many < 3 * few


def test_the_cost_of_a_record_does_not_grow_with_the_table():
    def each(count: int) -> float:
        net = Net()
        flows = [client(number) for number in range(count)]
        seen = [record(flow, B) for flow in flows] + [record(flow.reversed, A) for flow in flows]
        net.table.reconcile(1, seen, 0.0)
        assert net.table.open == count
        return best(lambda: net.table.reconcile(1, seen, 1.0)) / count

    few, many = each(500), each(10_000)
    assert many < 10 * few
