"""The end of transfers: every flow is compared, and a long one has the time that its checksum needs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fairq_ryu.experiments.traffic.payload import checksum
from fairq_ryu.experiments.workloads.common import transfers

LONG = 100_000_000_000


class Generator:
    """A generator whose flows have their number as seed; it computes 100 MB/s of checksums."""

    def __init__(self, sent: dict[str, int]) -> None:
        self._sent = sent

    def send(self, cmd: str, **values: Any) -> None:
        assert cmd == "finish"

    def receive(self, re: str, timeout: float) -> dict[str, Any]:
        assert re == "finish"
        return {"sent": self._sent}

    def ask(self, cmd: str, timeout: float, *, bytes: dict[str, int]) -> dict[str, Any]:
        assert cmd == "checksum" and sum(bytes.values()) / 100e6 < timeout
        return {"crc": {i: 17 if size == LONG else checksum(int(i), size) for i, size in bytes.items()}}


def finish(sent: list[dict[str, int]], arrived: dict[str, tuple[int, int]]) -> list[bool]:
    """Whether each flow of these generators is intact."""
    found: list[bool] = []
    measurement: Any = SimpleNamespace(integrity=SimpleNamespace(flow=found.append))
    sink: Any = SimpleNamespace(ask=lambda cmd: {"flows": arrived} if cmd == "sums" else None)
    workers: Any = [Generator(each) for each in sent]
    transfers.finish_transfers(measurement, workers, sink)
    return found


@pytest.mark.parametrize(
    ("sent", "arrived", "intact"),
    [
        (1000, (1000, checksum(3, 1000)), True),
        (1000, (900, checksum(3, 900)), True),  # not all had arrived in time
        (1000, (1001, checksum(3, 1001)), False),  # more than was sent
        (1000, (1000, checksum(4, 1000)), False),  # the bytes of another flow
        (1000, None, True),  # nothing arrived
        (LONG, (LONG, 17), True),
    ],
)
def test_what_arrived_is_compared(sent: int, arrived: tuple[int, int] | None, intact: bool) -> None:
    assert finish([{"3": sent}], {} if arrived is None else {"3": arrived}) == [intact]


def test_a_flow_is_compared_with_what_arrived_at_its_sink() -> None:
    found: list[bool] = []
    measurement: Any = SimpleNamespace(integrity=SimpleNamespace(flow=found.append))
    sinks: list[Any] = [
        SimpleNamespace(
            ask=lambda _cmd, number=number, size=size: {"flows": {number: (size, checksum(1, size))}}
        )
        for number, size in (("1", 10), ("2", 20))
    ]
    workers: list[Any] = [Generator({"1": 10, "2": 20})]
    transfers.finish_transfers(measurement, workers, *sinks)
    assert found == [True, False]  # what sink 2 has are bytes of flow 1


def test_every_flow_of_every_generator_is_compared() -> None:
    good, bad = (10, checksum(1, 10)), (10, 0)
    arrived = {"1": good, "2": bad, "3": bad}
    assert finish([{"1": 10, "2": 10}, {"3": 10}], arrived) == [True, False, False]
    assert finish([], {}) == []


def test_many_long_flows_of_one_generator_have_a_limit_each() -> None:
    """Together they take 10,000 s."""
    number = {str(i): LONG for i in range(10)}
    assert all(finish([number], dict.fromkeys(number, (LONG, 17))))
