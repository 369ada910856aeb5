"""A flood of SYNs through one port: bounded entries, others unharmed, and no long work at once."""

from __future__ import annotations

import pytest

from fairq_ryu.fabric.flows import entries
from fairq_ryu.fabric.flows.table import SYN_TIMEOUT, FlowState, FlowTable
from tests.support.flownet import IDLE, ISN, KEY, LOCAL, PEER_ISN, A, B, C, Ports, segment

LIMIT = 50


def flood(number: int):
    return segment(KEY._replace(src=f"10.9.{number >> 8}.{number & 255}"), "S", ISN)


@pytest.fixture
def table(monkeypatch):
    """50 half-open connections through A, and 100 more SYNs."""
    monkeypatch.setattr(entries, "HALF_OPEN_PER_PORT", LIMIT)
    found = FlowTable(IDLE)
    for number in range(3 * LIMIT):
        found.segment(flood(number), A, None, 0.0)
    return found


def test_a_port_has_a_limited_number_of_half_open_connections(table):
    assert len(table) == LIMIT and table.parked == 2 * LIMIT
    assert table.states[FlowState.SYN_SEEN] == LIMIT


def test_a_parked_syn_becomes_a_connection_when_it_is_answered(table):
    syn = flood(2 * LIMIT)
    assert table.get(syn.key) is None
    ports = Ports()
    answer = segment(syn.key.reversed, "SA", PEER_ISN, ISN + 1)
    ports.replay(table.segment(answer, B, LOCAL.reversed, 0.1))
    connection = table.get(syn.key)
    assert connection is not None and connection.state is FlowState.ESTABLISHED
    assert (connection.forward, connection.opener) == (syn.key, A)
    assert ports.counted == {(B, syn.key), (A, syn.key.reversed)}
    assert table.parked == 2 * LIMIT - 1


def test_a_wrong_answer_does_not_open_it(table):
    syn = flood(2 * LIMIT)
    table.segment(segment(syn.key.reversed, "SA", PEER_ISN, ISN + 7), B, None, 0.1)
    assert table.get(syn.key) is None and table.parked == 2 * LIMIT


def test_other_ports_and_open_connections_are_not_affected(table):
    assert not table.parks(segment(KEY, "S", ISN), C)
    table.segment(segment(KEY, "S", ISN), C, None, 0.1)
    assert table.get(KEY) is not None
    # A SYN of a known connection is handled as ever.
    assert not table.parks(flood(0), A) and table.parks(flood(2 * LIMIT), A)
    assert not table.parks(segment(KEY.reversed, "SA", ISN, 1), A)


def test_answered_connections_make_room(table):
    for number in range(10):
        syn = flood(number)
        table.segment(segment(syn.key.reversed, "SA", PEER_ISN, ISN + 1), B, None, 0.1)
    assert not table.parks(flood(1000), A)
    for number in range(1000, 1020):
        table.segment(flood(number), A, None, 0.2)
    assert table.states[FlowState.SYN_SEEN] == LIMIT


def test_expired_connections_make_room_again(table):
    list(table.drop_expired(SYN_TIMEOUT + 1))
    assert len(table) == 0 and table.parked == 0
    assert not table.parks(flood(0), A)


def test_all_ports_together_have_a_limit(monkeypatch):
    monkeypatch.setattr(entries, "HALF_OPEN", LIMIT)
    table = FlowTable(IDLE)
    for number in range(LIMIT):
        table.segment(flood(number), A, None, 0.0)
    assert table.parks(flood(LIMIT), C)


def test_expiry_comes_in_slices(monkeypatch):
    monkeypatch.setattr(entries, "HALF_OPEN_PER_PORT", 1000)
    table = FlowTable(IDLE)
    for number in range(1000):
        table.segment(flood(number), A, None, 0.0)
    slices = [len(events) for events in table.drop_expired(SYN_TIMEOUT + 1)]
    assert sum(slices) == 1000 and max(slices) == 32 and len(table) == 0


def test_connections_that_end_between_two_slices_are_not_removed_twice():
    table = FlowTable(IDLE)
    for number in range(100):
        syn = flood(number)
        table.segment(syn, A, None, 0.0)
        table.segment(segment(syn.key.reversed, "SA", PEER_ISN, ISN + 1), B, None, 0.0)
    slices = table.drop_idle(2 * IDLE)
    next(slices)
    for number in range(90, 100):
        table.segment(segment(flood(number).key, "R", ISN + 1), A, None, IDLE)
    list(slices)
    assert len(table) == table.states[FlowState.CLOSED] == 10
