"""Ids of transmit queues."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.agent.tx_queues import MAX_IFINDEX, MAX_QUEUES, device_of, queue_of, tx_queue_id


@given(st.integers(1, MAX_IFINDEX), st.integers(0, MAX_QUEUES - 1))
def test_ids_round_trip_and_are_no_interface(ifindex, queue):
    known = tx_queue_id(ifindex, queue)
    assert (device_of(known), queue_of(known)) == (ifindex, queue)
    assert 2**31 <= known < 2**32
    assert (device_of(ifindex), queue_of(ifindex)) == (ifindex, None)
