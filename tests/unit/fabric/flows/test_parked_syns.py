"""Parked SYNs: the newest of each port, in bounded memory."""

from __future__ import annotations

import pytest

from fairq_ryu.fabric.flows import parked_syns
from fairq_ryu.fabric.flows.parked_syns import ParkedSyns
from tests.support.flownet import ISN, KEY, A, B, C, segment


def syn(number: int, **more):
    return segment(KEY._replace(sport=number), "S", ISN, **more)


@pytest.fixture
def parked(monkeypatch):
    monkeypatch.setattr(parked_syns, "MAX_PER_PORT", 3)
    monkeypatch.setattr(parked_syns, "MAX_PORTS", 2)
    return ParkedSyns()


def test_a_syn_is_taken_once_as_it_was(parked):
    sent = syn(1, mss=1400, wscale=7, payload=3)
    parked.park(sent, A, 0.0)
    assert parked.take(KEY._replace(sport=2)) is None
    assert parked.take(sent.key) == (sent, A, None, None)
    assert parked.take(sent.key) is None and len(parked) == 0


def test_the_newest_syns_of_each_port_are_kept(parked):
    for number in range(1, 6):
        parked.park(syn(number), A, 0.0)
    parked.park(syn(9), B, 0.0)
    parked.park(syn(10), C, 0.0)  # one port too many
    kept = [number for number in range(1, 11) if parked.take(syn(number).key)]
    assert kept == [3, 4, 5, 9]


def test_a_repeated_syn_is_the_newest(parked):
    for number in (1, 2, 3, 1, 4):
        parked.park(syn(number), A, 0.0)
    assert [number for number in range(1, 5) if parked.take(syn(number).key)] == [1, 3, 4]


def test_old_syns_are_removed(parked):
    for number, now in ((1, 1.0), (2, 2.0), (3, 3.0)):
        parked.park(syn(number), A, now)
    parked.expire(2.5)
    assert len(parked) == 1
    parked.expire(3.5)
    assert len(parked) == 0
    parked.park(syn(1), B, 4.0)
    parked.park(syn(2), C, 4.0)  # the place of the first port is free
    assert len(parked) == 2
