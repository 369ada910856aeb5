"""The cost of the flow table: it shares a processor with a loop that reads queues every 2 ms.

The bytecode instructions are counted, not the time: other processes change the time, through caches too.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from fairq_ryu.model import FlowKey
from tests.support.flownet import ISN, KEY, OVER3, PEER_ISN, A, B, Net, reconcile, record, segment

FEW, MANY = 100, 5_000


def client(number: int) -> FlowKey:
    return KEY._replace(src=f"10.1.{number >> 8}.{number & 255}")


def instructions(work: Callable[[], object]) -> int:
    """The bytecode instructions that a call takes, with those of all that it calls."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    gc.disable()  # others have callbacks for its runs
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
        gc.enable()
    return count


def test_instructions_are_counted_in_all_that_is_called() -> None:
    def scan(numbers: list[int]) -> int:
        return sum(number for number in numbers)

    ten, twenty, thirty = (instructions(lambda n=n: scan([0] * n)) for n in (10, 20, 30))
    assert 0 < thirty - twenty == twenty - ten


def test_the_cost_of_a_handshake_does_not_grow_with_the_table() -> None:
    def last(count: int) -> int:
        """Of ``count`` handshakes."""
        table = Net().table

        def handshake(number: int) -> None:
            flow = client(number)
            syn, answer = segment(flow, "S", ISN), segment(flow.reversed, "SA", PEER_ISN, ISN + 1)
            table.segment(syn, OVER3.backward[-1], OVER3, 0.0)
            table.segment(answer, OVER3.reversed.backward[-1], OVER3.reversed, 0.0)

        for number in range(count - 1):
            handshake(number)
        return instructions(lambda: handshake(count - 1))

    assert last(FEW) == last(MANY)


def test_the_cost_of_a_record_does_not_grow_with_the_table() -> None:
    def each(count: int) -> float:
        net = Net()
        flows = [client(number) for number in range(count)]
        seen = [record(flow, B) for flow in flows] + [record(flow.reversed, A) for flow in flows]
        reconcile(net.table, 1, seen, 0.0)
        assert net.table.open == count
        return instructions(lambda: reconcile(net.table, 1, seen, 1.0)) / count

    few, many = each(FEW), each(5 * FEW)
    assert many <= few
