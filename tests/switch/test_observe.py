"""Observed ports: what would be lowered is counted exactly as it would be lowered, and nothing is written."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from fairq_ryu.agent.law_table import parameters
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.model import Thresholds, WindowKind
from tests.switch.rig import Connection, Switch, make_port, run

LIMITS = QueueLimits("htb", 125_000, 25_000_000)
DATA, ACKS = 2, 1  # data leaves by port 2, its ACKs by port 1
SPORTS = range(31_000, 31_006)


def law(switch: Switch, turns: int = 0) -> None:
    expires = time.monotonic_ns() + 3600 * 10**9
    switch.datapath.install_law(DATA, DATA, parameters(FairQLaw(turns=turns), LIMITS), expires)
    switch.rule(DATA, DATA, WindowKind.LAW)


def one_flow(switch: Switch) -> None:
    """A pause for the first connection, a window for the second, and a pool for the others."""
    switch.pool(DATA, 60_000)
    for sport, size in zip(SPORTS, (0, 9000), strict=False):
        switch.rule(Connection(switch, sport=sport).ack_key, size, slot=1)


RULES: dict[str, Callable[[Switch], None]] = {
    "window": lambda switch: switch.rule(DATA, 20_000),
    "pause": lambda switch: switch.rule(DATA, 0),
    "pool": lambda switch: switch.pool(DATA, 60_000),
    "flows": one_flow,
    "law": law,
}


def traffic(switch: Switch, seed: int) -> list[tuple[bytes, bytes]]:
    """Connections of different scales, and one whose handshake was not seen: ACKs as they come and leave."""
    rng = random.Random(seed)
    scales = (None, 0, 2, 7, 9)
    flows = [
        Connection(switch, sport=sport, server_scale=scale)
        for sport, scale in zip(SPORTS, scales, strict=False)
    ]
    acks = []

    def leave(segment: Any) -> None:
        acks.append((segment.frame(), switch.leave(ACKS, segment)))

    for flow in flows:
        flow.syn()
        leave(flow.syn_ack_segment(window=rng.randrange(65536)))
    flows.append(Connection(switch, sport=SPORTS[-1]))
    sent = dict.fromkeys(SPORTS, 0)
    for _ in range(300):
        flow = rng.choice(flows)
        size = rng.choice((1, 500, 1448))
        if rng.random() < 0.6:
            flow.data(size, seq=flow.client_isn + 1 + sent[flow.sport])
            sent[flow.sport] += size
        leave(flow.from_server(window=rng.randrange(65536), ack=flow.client_isn + 1 + sent[flow.sport]))
    return acks


@pytest.mark.parametrize("rules", RULES)
def test_the_same_packets_give_the_same_count_and_leave_unchanged(switch: Switch, rules: str) -> None:
    counts = []
    for observed in (False, True):
        switch.reset()
        switch.datapath.remove_law(DATA)
        switch.datapath.observe(DATA, observed)
        RULES[rules](switch)
        acks = traffic(switch, seed=7)
        changed = sum(before != after for before, after in acks)
        state = switch.state(DATA)
        assert state.rewritten == changed
        assert state.would_lower == 0 or (observed and not changed)
        counts.append((state.acks, state.rewritten + state.would_lower, state.unknown_scale, state.coarse))
    switch.datapath.remove_law(DATA)
    acted, seen = counts
    assert acted == seen and acted[1] > 100
    assert switch.datapath.window_counts(DATA) == (seen[0], 0, seen[1])


def test_what_counts_is_the_port_by_which_the_data_leaves(switch: Switch) -> None:
    flow = Connection(switch, server_scale=0).open()
    flow.data()
    switch.rule(DATA, 20_000)
    switch.datapath.observe(ACKS, True)
    assert flow.granted(60_000) == 20_000
    switch.datapath.observe(ACKS, False)
    switch.datapath.observe(DATA, True)
    assert flow.granted(60_000) == 60_000
    switch.datapath.observe(DATA, False)
    assert flow.granted(60_000) == 20_000
    assert (switch.state(DATA).rewritten, switch.state(DATA).would_lower) == (2, 1)


def test_a_port_that_is_added_again_is_observed_before_its_first_packet(switch: Switch) -> None:
    port = make_port(9, "p9")
    datapath = switch.datapath
    try:
        datapath.add_port(port)
        datapath.observe(9, True)
        datapath.remove_port(9)
        datapath.add_port(port)
        assert 9 in datapath.observed
        flow = Connection(switch, server_scale=0)
        switch.ports[9] = port
        flow = Connection(switch, server_scale=0, server_port=9).open()
        flow.data()
        switch.rule(9, 20_000)
        assert flow.granted(60_000) == 60_000 and switch.state(9).would_lower == 1
    finally:
        switch.ports.pop(9, None)
        datapath.remove_port(9)
        run("ip", "link", "del", "p9")
    # Another port in the same slot does not inherit it.
    other = make_port(8, "p8")
    try:
        datapath.add_port(other)
        switch.ports[8] = other
        flow = Connection(switch, server_scale=0, server_port=8).open()
        flow.data()
        switch.rule(8, 20_000)
        assert flow.granted(60_000) == 20_000
    finally:
        switch.ports.pop(8, None)
        datapath.remove_port(8)
        run("ip", "link", "del", "p8")
        datapath._observed.discard(9)


def test_no_handshake_waits_at_an_observed_port(switch: Switch) -> None:
    """Neither if the law comes later, nor if the mode does."""
    datapath = switch.datapath
    ifindex = switch.ports[DATA].ifindex
    for mode_first in (True, False):
        if mode_first:
            datapath.observe(DATA, True)
        law(switch, turns=1)
        assert (ifindex in datapath.turn_program.ports) is not mode_first
        datapath.observe(DATA, True)
        assert ifindex not in datapath.turn_program.ports
        law(switch, turns=1)  # renewed
        assert ifindex not in datapath.turn_program.ports
        datapath.observe(DATA, False)
        law(switch, turns=1)
        assert ifindex in datapath.turn_program.ports
        datapath.remove_law(DATA)


def test_no_packet_is_dropped_before_the_queue_is_full_at_an_observed_port(switch: Switch) -> None:
    datapath, ifindex = switch.datapath, switch.ports[DATA].ifindex
    wanted = Thresholds(30_000, 20_000, True)
    datapath.set_thresholds(DATA, wanted)
    assert datapath.queues.thresholds[ifindex].drops
    datapath.observe(DATA, True)
    assert not datapath.queues.thresholds[ifindex].drops
    datapath.set_thresholds(DATA, wanted)
    assert not datapath.queues.thresholds[ifindex].drops
    datapath.observe(DATA, False)
    assert datapath.queues.thresholds[ifindex].drops
    datapath.set_thresholds(DATA, None)
