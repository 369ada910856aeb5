"""Flows whose data leaves by a port, and whose ACKs are seen at none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fairq_ryu.agent import layout
from fairq_ryu.agent.programs.flow_key import flow_key
from fairq_ryu.agent.programs.flow_sweep import FlowSweep
from fairq_ryu.agent.tx_queues import tx_queue_id
from fairq_ryu.agent.unanswered_flows import UnansweredFlows
from fairq_ryu.model import FlowKey
from tests.support.flow_rows import FlowRows

KEYS = [FlowKey("10.0.0.1", "10.0.0.2", 33000 + n, 80) for n in range(6)]
LONG = 10**12


class Agent(FlowRows):
    """A flow map that is swept; times in seconds."""

    def sends(self, key: FlowKey, port: int, at: float) -> None:
        """Data leaves by a port, and no ACK by any."""
        self.put(key, port, 0, last=at)
        self.alter(key, lambda flow, own: clear(flow.dir[1 - own]))

    def alter(self, key: FlowKey, change: Callable[[Any, int], None]) -> None:
        own = flow_key(key, directed=True).dir
        flow = layout.fq_flow.from_buffer_copy(self.flows.entries[bytes(flow_key(key))])
        change(flow, own)
        self.flows.set(flow_key(key), flow)

    def sweep(self, now: float) -> None:
        sweep = FlowSweep(self.map, [], int(now * 1e9), LONG, LONG)
        while (part := sweep.read()) is not None:
            sweep.process(part)
        sweep.finish()

    def counts(self, port: int) -> tuple[int, int]:
        return self.unanswered.of_port(100 + port)

    @property
    def unanswered(self) -> UnansweredFlows:
        found: UnansweredFlows = self.map.unanswered
        return found


def clear(end: Any) -> None:
    end.last_ns = end.packets = end.ifindex = end.flags = 0


def test_they_are_counted_when_they_have_sent_for_long():
    agent = Agent()
    for at in (1.0, 1.9, 2.0, 3.0):
        for key in KEYS[:4]:
            agent.sends(key, 2, at)
        agent.sends(KEYS[4], 3, at)
        agent.put(KEYS[5], 2, 1, last=at)  # with ACKs
        agent.sweep(at)
        assert agent.counts(2) == ((4, 4) if at >= 2.0 else (0, 0))
        assert agent.counts(3) == ((1, 1) if at >= 2.0 else (0, 0))
    assert agent.counts(1) == (0, 0)


def test_what_has_sent_once_is_not_counted():
    """A segment, and its retransmission soon after: the map has them for minutes."""
    agent = Agent()
    agent.sends(KEYS[0], 2, 1.0)
    agent.sweep(1.5)
    agent.sends(KEYS[0], 2, 1.9)
    for now in (2.0, 3.0, 60.0):
        agent.sweep(now)
    assert agent.counts(2) == (0, 0)


def test_the_total_stays_when_flows_go_or_are_acknowledged():
    agent = Agent()
    for at in (1.0, 2.0):
        for key in KEYS[:3]:
            agent.sends(key, 2, at)
        agent.sweep(at)
    assert agent.counts(2) == (3, 3)
    agent.put(KEYS[0], 2, 1, last=2.5)
    agent.flows.entries.popitem()
    agent.flows.entries.popitem()
    agent.sweep(3.0)
    assert agent.counts(2) == (0, 3)
    agent.unanswered.forget_port(102)
    assert agent.counts(2) == (0, 0)


def test_acks_without_data_are_no_such_flow():
    agent = Agent()
    for at in (1.0, 2.0):
        agent.sends(KEYS[0], 2, at)
        agent.alter(KEYS[0], lambda flow, own: setattr(flow.dir[own], "packets", 0))
        agent.sweep(at)
    assert agent.counts(2) == (0, 0)


def test_the_port_of_a_transmit_queue():
    agent = Agent()
    for at in (1.0, 2.0):
        agent.sends(KEYS[0], 2, at)
        agent.alter(KEYS[0], lambda flow, own: setattr(flow.dir[own].out, "ifindex", tx_queue_id(102, 3)))
        agent.sweep(at)
    assert agent.counts(2) == (1, 1)


def test_flows_are_known_again_in_any_order_and_part():
    """The map is read in parts, and what comes and goes in it moves the others."""
    keys = [bytes(each) for each in ((0, 0, 0), (1, 0, 0), (1, 0, 1), (1, 1, 0), (2, 0, 0))]
    found = UnansweredFlows(3)
    for second, parts in enumerate(([keys[:4]], [keys[3:1:-1], keys[1:2], keys[:1]], [keys[4:], keys[:4]])):
        found.begin()
        for part in parts:
            flows = np.zeros(len(part), np.dtype(layout.fq_flow))
            flows["dir"]["packets"][:, 1] = 1
            flows["dir"]["last_ns"][:, 1] = (1 + second) * 10**9
            flows["dir"]["out"]["ifindex"][:, 1] = [7 + (key == keys[0]) for key in part]
            found.observe(b"".join(part), flows)
        found.end()
        expected = [(0, 0), (0, 0)] if not second else [(3, 3), (1, 1)]
        assert [found.of_port(port) for port in (7, 8)] == expected
