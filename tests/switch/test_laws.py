"""Laws of ports in the kernel: which window an ACK gets, and what ends a law."""

from __future__ import annotations

import time
from collections.abc import Iterator
from ctypes import c_uint32

import pytest

from fairq_ryu.agent.law_table import parameters
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.law_spec import LawKind, LawSpec
from fairq_ryu.model import WindowKind
from tests.switch import packets
from tests.switch.rig import Connection, Switch

PORT = 2
LIMITS = QueueLimits("htb", 125_000, 25_000_000)


def install(switch: Switch, spec: LawSpec, lease: float = 3600, pool: int | None = None) -> None:
    """Put a law in force. ``pool``: as after a tick, which needs a queue."""
    expires = time.monotonic_ns() + int(lease * 1e9)
    switch.datapath.install_law(PORT, PORT, parameters(spec, LIMITS), expires)
    switch.rule(PORT, PORT, WindowKind.LAW, lease)
    if pool is not None:
        state = switch.datapath.law_state(PORT)
        state.pool, state.segment = pool << 8, 1460
        key = c_uint32(switch.datapath.window.slots[switch.ports[PORT].ifindex])
        switch.datapath.window.law_states.set(key, state)


@pytest.fixture(autouse=True)
def no_law(switch: Switch) -> Iterator[None]:
    yield
    switch.datapath.remove_law(PORT)


def opened(switch: Switch, number: int) -> list[Connection]:
    return [Connection(switch, server_scale=0).open() for _ in range(number)]


def test_the_pool_of_a_law_is_shared_by_the_flows(switch: Switch) -> None:
    install(switch, LawSpec(LawKind.FAIRQ), pool=60_000)
    flows = opened(switch, 3)
    assert [flow.granted() for flow in flows] == [20_000] * 3


def test_a_law_whose_lease_has_ended_does_nothing(switch: Switch) -> None:
    install(switch, LawSpec(LawKind.FAIRQ), lease=-1, pool=60_000)
    (flow,) = opened(switch, 1)
    assert flow.granted() == 65_535


def test_a_removed_law_does_nothing_even_if_its_rule_stays(switch: Switch) -> None:
    install(switch, LawSpec(LawKind.FAIRQ), pool=60_000)
    (flow,) = opened(switch, 1)
    assert flow.granted() == 60_000
    switch.datapath.remove_law(PORT)
    assert switch.datapath.law_state(PORT) is None
    assert flow.granted() == 65_535


def test_iqm_limits_from_the_flow_on_that_would_overflow_the_queue(switch: Switch) -> None:
    install(switch, LawSpec(LawKind.IQM), pool=0)
    # Eight first windows of 14,600 bytes fit into 125,000, nine do not.
    flows = opened(switch, 8)
    assert {flow.granted() for flow in flows} == {65_535}
    opened(switch, 1)
    assert {flow.granted() for flow in flows} == {2 * 1460}
    state = switch.datapath.law_state(PORT)
    assert (state.beta, state.mode, state.window) == (9, 2, 2920)


def test_iqm_counts_the_syns_that_leave_before_any_is_answered(switch: Switch) -> None:
    install(switch, LawSpec(LawKind.IQM), pool=0)
    flows = [Connection(switch, server_scale=0) for _ in range(9)]
    for flow in flows[:8]:
        flow.syn()
    assert switch.datapath.law_state(PORT).mode == 0
    flows[8].syn()
    state = switch.datapath.law_state(PORT)
    assert (state.beta, state.mode, state.unproven) == (9, 2, 9)
    assert packets.window(flows[0].syn_ack(window=65_535)) == 2 * 1460
    assert switch.datapath.law_state(PORT).beta == 9, "counted with its SYN"
    flows[0].data()
    assert switch.datapath.law_state(PORT).unproven == 8


def test_a_repeated_syn_counts_again_with_its_answer(switch: Switch) -> None:
    install(switch, LawSpec(LawKind.IQM), pool=0)
    flow = Connection(switch)
    betas = []
    for leave in (flow.syn, flow.syn, flow.syn_ack, flow.syn_ack, flow.data):
        leave()
        betas.append(switch.datapath.law_state(PORT).beta)
    assert betas == [1, 1, 2, 2, 2]
    assert switch.datapath.law_state(PORT).unproven == 0


def test_a_flow_beyond_the_allowance_counts_when_its_handshake_is_complete(switch: Switch) -> None:
    install(switch, LawSpec(LawKind.IQM, syn_allowance=3), pool=0)
    flows = [Connection(switch) for _ in range(5)]
    for flow in flows:
        flow.syn()
    for flow in flows:
        flow.syn_ack()
    state = switch.datapath.law_state(PORT)
    assert (state.beta, state.unproven) == (3, 3)
    flows[4].data()
    state = switch.datapath.law_state(PORT)
    assert (state.beta, state.unproven) == (4, 3)
    flows[0].data()
    flows[0].data(seq=flows[0].client_isn + 1001)
    state = switch.datapath.law_state(PORT)
    assert (state.beta, state.unproven) == (4, 2)


def test_a_connection_that_replaces_another_counts_when_it_is_proven(switch: Switch) -> None:
    install(switch, LawSpec(LawKind.IQM), pool=0)
    (old,) = opened(switch, 1)
    old.data()
    new = Connection(switch, sport=old.sport, client_isn=2_000_000_000, server_isn=3_000_000_000)
    betas = []
    for leave in (new.syn, new.syn_ack, new.data):
        leave()
        betas.append(switch.datapath.law_state(PORT).beta)
    assert betas == [1, 1, 2]


def test_the_mss_of_a_syn_counts_when_it_is_answered(switch: Switch) -> None:
    install(switch, LawSpec(LawKind.IQM), pool=0)
    flow = Connection(switch, client_mss=8960)
    flow.syn()
    assert switch.datapath.law_state(PORT).segment == 1460
    flow.syn_ack()
    assert switch.datapath.law_state(PORT).segment == 8960


def test_las_prefers_flows_that_have_sent_little(switch: Switch) -> None:
    install(switch, LawSpec(LawKind.LAS, young_bytes=1000), pool=45_000)
    old, young = opened(switch, 2)
    for number in range(20):  # more than half of its window is under way: it is counted again, as old
        old.data(1400, seq=old.client_isn + 1 + 1400 * number)
    # The young one weighs 8.
    assert (old.granted(), young.granted()) == (5_000, 40_000)


def test_fairswitch_divides_the_target_but_not_below_2048_bytes(switch: Switch) -> None:
    install(switch, LawSpec(LawKind.FAIRSWITCH), pool=0)
    flows = opened(switch, 3)
    assert [flow.granted() for flow in flows] == [31_250 // 3] * 3
    opened(switch, 13)
    assert flows[0].granted() == 2048


def test_a_renewal_keeps_the_state_and_another_kind_does_not(switch: Switch) -> None:
    install(switch, LawSpec(LawKind.FAIRQ), pool=60_000)
    install(switch, LawSpec(LawKind.FAIRQ, target_ppm=100_000))
    assert switch.datapath.law_state(PORT).pool == 60_000 << 8
    install(switch, LawSpec(LawKind.LAS))
    assert switch.datapath.law_state(PORT).pool == 0
