"""The keys of the flow map are read again when flows were entered: at once, or in a thread."""

from __future__ import annotations

import threading
from concurrent.futures import wait

import pytest

from fairq_ryu.agent.libbpf import BpfError
from fairq_ryu.model import FlowKey
from tests.support.flow_rows import FlowRows

KEYS = [FlowKey("10.0.0.1", "10.0.0.2", 33000 + n, 80) for n in range(4)]
SECOND = 10**9


def ports(rows: FlowRows, created: int, now: float) -> set[int]:
    """The client ports of the flows that are known."""
    keys, _ = rows.map.known_rows(created, int(now * SECOND))
    return {int(each) for each in keys["lo_port"].byteswap()}


def test_keys_are_read_again_when_flows_were_entered_and_not_too_often():
    rows = FlowRows()
    assert ports(rows, 0, 1.0) == set()
    rows.put(KEYS[0], 2, 1)
    assert ports(rows, 0, 2.0) == set()  # none was entered
    assert ports(rows, 1, 3.0) == {33000}
    rows.put(KEYS[1], 2, 1)
    assert ports(rows, 2, 3.001) == {33000}
    assert ports(rows, 2, 4.0) == {33000, 33001}
    rows.remove(KEYS[0])
    assert ports(rows, 2, 5.0) == {33001}


def test_a_thread_reads_them_while_requests_are_answered(monkeypatch):
    rows = FlowRows()
    read, go = rows.flows.batches, threading.Event()

    def slowly() -> tuple[bytes, bytes]:
        assert go.wait(5)
        return read()

    monkeypatch.setattr(rows.flows, "batches", slowly)
    rows.map.read_in_thread()
    rows.put(KEYS[0], 2, 1)
    assert ports(rows, 1, 1.0) == ports(rows, 1, 2.0) == set()
    go.set()
    rows.map._reading.result(5)
    assert ports(rows, 1, 3.0) == {33000}
    assert rows.map._reading is None
    rows.put(KEYS[1], 2, 1)
    ports(rows, 2, 4.0)
    rows.map._reading.result(5)
    assert ports(rows, 2, 5.0) == {33000, 33001}


@pytest.mark.parametrize("threaded", [False, True])
def test_a_reading_that_fails_is_made_again(monkeypatch, threaded):
    """The kernel may have no memory for a moment."""
    rows = FlowRows()
    read, failed = rows.flows.batches, []

    def fails_once():
        if not failed:
            failed.append(True)
            raise BpfError("no memory")
        return read()

    monkeypatch.setattr(rows.flows, "batches", fails_once)
    rows.put(KEYS[0], 2, 1)
    if threaded:
        rows.map.read_in_thread()
        ports(rows, 1, 1.0)
        wait([rows.map._reading])
    with pytest.raises(BpfError):
        ports(rows, 1, 2.0)
    ports(rows, 1, 3.0)
    if threaded:
        wait([rows.map._reading])
    assert ports(rows, 1, 4.0) == {33000}
