"""Laws of ports in the kernel: which window an ACK gets, and what ends a law."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from ctypes import c_uint32

import pytest

from fairq_ryu.agent import layout
from fairq_ryu.agent.law_table import parameters
from fairq_ryu.agent.programs.flow_key import flow_key
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.law_spec import LawSpec
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.laws.fairswitch import FairSwitchLaw
from fairq_ryu.laws.iqm import IqmLaw
from fairq_ryu.laws.las import LasLaw
from fairq_ryu.laws.sed import SedLaw
from fairq_ryu.model import WindowKind
from tests.switch import packets
from tests.switch.rig import MOST_MTU, Connection, Switch, set_mtu

PORT = 2
LIMITS = QueueLimits("htb", 125_000, 25_000_000)
# Without windows between incasts.
PAPER_IQM = IqmLaw(target_ppm=1_000_000)
# What SED expects leaves at the rate of the port, and these tests have no time to lose.
SLOW = QueueLimits("htb", 125_000, 1_000)


def install(switch: Switch, spec: LawSpec, lease: float = 3600, pool: int | None = None) -> None:
    """Put a law in force. ``pool``: as after a tick, which needs a queue."""
    expires = time.monotonic_ns() + int(lease * 1e9)
    limits = SLOW if spec.kind == SedLaw.kind else LIMITS
    switch.datapath.install_law(PORT, PORT, parameters(spec, limits), expires)
    switch.rule(PORT, PORT, WindowKind.LAW, lease)
    if pool is not None:
        state = switch.datapath.law_state(PORT)
        state.pool, state.segment = pool << 8, 1460
        key = c_uint32(switch.datapath.window.slots[switch.ports[PORT].ifindex])
        switch.datapath.window.law_states.set(key, state)


def test_large_segments_count_while_their_flows_send(switch: Switch) -> None:
    """Minimum windows are of the largest segments of the flows that were seen in the last seconds."""
    install(switch, FairQLaw(), pool=1460)
    window = switch.datapath.window
    key = c_uint32(window.slots[switch.ports[PORT].ifindex])

    def a_while_later() -> None:
        state = switch.datapath.law_state(PORT)
        state.segment_ns -= 3 * 10**9
        window.law_states.set(key, state)

    large = Connection(switch, client_mss=8960, server_mss=8960, server_scale=0).open()
    small = Connection(switch, server_scale=0).open()
    assert small.granted() == 2 * 8960
    for _ in range(2):  # the large one still sends
        a_while_later()
        large.ack()
        assert small.granted() == 2 * 8960
    a_while_later()
    assert small.granted() == 2 * 1460 and switch.datapath.law_state(PORT).segment == 1460
    large.ack()
    assert small.granted() == 2 * 8960


def test_no_segment_counts_that_its_port_cannot_carry(switch: Switch) -> None:
    """Whoever makes up both ends of a handshake would raise the minimum windows of all flows of the port."""
    install(switch, FairQLaw(), pool=1460)
    for port in ("p1", "p2"):
        set_mtu(port, 1500)
    try:
        for client, server, segment in (("10.0.0.1", "10.0.0.2", 1460), ("fd00::1", "fd00::2", 1440)):
            made_up = Connection(
                switch, client, server, client_mss=8960, server_mss=9000, server_scale=0
            ).open()
            found = switch.flow(made_up.data_key)
            assert found is not None and [end.port_mss for end in found] == [segment] * 2
            made_up.ack()
            assert Connection(switch, server_scale=0).open().granted() == 2 * 1460
    finally:
        for port in ("p1", "p2"):
            set_mtu(port, MOST_MTU)
    assert switch.datapath.law_state(PORT).segment == 1460


@pytest.fixture(autouse=True)
def no_law(switch: Switch) -> Iterator[None]:
    yield
    switch.datapath.remove_law(PORT)


def fall_silent(switch: Switch, flow: Connection) -> None:
    """So long that no flow of the port is counted any more."""
    window = switch.datapath.window
    key = flow_key(flow.data_key)
    entry = window.flows.get(key)
    for direction in entry.dir:
        direction.out.epoch = direction.out.sharing_epoch = direction.out.young_epoch = 0
    window.flows.set(key, entry)
    ifindex = switch.ports[PORT].ifindex
    window._port_states.set(c_uint32(window.slots[ifindex]), layout.fq_port(ifindex=ifindex))


def opened(switch: Switch, number: int) -> list[Connection]:
    return [Connection(switch, server_scale=0).open() for _ in range(number)]


def test_the_pool_of_a_law_is_shared_by_the_flows(switch: Switch) -> None:
    install(switch, FairQLaw(), pool=60_000)
    flows = opened(switch, 3)
    assert [flow.granted() for flow in flows] == [20_000] * 3


def test_only_flows_that_the_law_limits_want_a_larger_pool(switch: Switch) -> None:
    """A receiver with a small buffer is always full, and no pool of its port would help it."""
    install(switch, FairQLaw(), pool=20_000)
    (flow,) = opened(switch, 1)
    sent = 0
    for allowed, granted in (16_000, 16_000), (65_535, 20_000):
        assert flow.granted(allowed) == granted
        for _ in range(granted // 1000):
            flow.data(seq=flow.client_isn + 1 + sent)
            sent += 1000
        flow.ack(allowed, ack=flow.client_isn + 1 + sent - 1000)
        assert (switch.datapath.law_state(PORT).limited_ns > 0) == (granted < allowed)
        flow.ack(allowed, ack=flow.client_isn + 1 + sent)


def test_a_law_whose_lease_has_ended_does_nothing(switch: Switch) -> None:
    install(switch, FairQLaw(), lease=-1, pool=60_000)
    (flow,) = opened(switch, 1)
    assert flow.granted() == 65_535


def test_a_removed_law_does_nothing_even_if_its_rule_stays(switch: Switch) -> None:
    install(switch, FairQLaw(), pool=60_000)
    (flow,) = opened(switch, 1)
    assert flow.granted() == 60_000
    switch.datapath.remove_law(PORT)
    assert switch.datapath.law_state(PORT) is None
    assert flow.granted() == 65_535


def test_iqm_limits_from_the_flow_on_that_would_overflow_the_queue(switch: Switch) -> None:
    install(switch, PAPER_IQM, pool=0)
    # Eight first windows of 14,600 bytes fit into 125,000, nine do not.
    flows = opened(switch, 8)
    assert {flow.granted() for flow in flows} == {65_535}
    opened(switch, 1)
    assert {flow.granted() for flow in flows} == {2 * 1460}
    state = switch.datapath.law_state(PORT)
    assert (state.beta, state.mode, state.window) == (9, 1, 2920)


def test_iqm_keeps_room_between_incasts(switch: Switch) -> None:
    install(switch, IqmLaw(target_ppm=500_000), pool=60_000)
    assert [flow.granted() for flow in opened(switch, 3)] == [20_000] * 3


def test_iqm_predicts_with_the_backlog_unless_it_is_stale(switch: Switch) -> None:
    """The events that emptied the queue may have been missed; the rate is not known: a second is enough."""
    install(switch, PAPER_IQM, pool=0)
    ifindex = switch.ports[PORT].ifindex
    queues, key = switch.datapath.queues.queues, c_uint32(ifindex)
    slot, now = switch.datapath.window.slots[ifindex], time.monotonic_ns()
    try:
        for last_ns, mode in ((now - 2 * 10**9, 0), (now + 10**9, 1)):
            queues.set(key, layout.fq_queue(backlog=LIMITS.limit, last_ns=last_ns, slot=slot))
            opened(switch, 1)
            assert switch.datapath.law_state(PORT).mode == mode
    finally:
        queues.set(key, layout.fq_queue(slot=slot))


def test_iqm_counts_the_syns_that_leave_before_any_is_answered(switch: Switch) -> None:
    install(switch, PAPER_IQM, pool=0)
    flows = [Connection(switch, server_scale=0) for _ in range(9)]
    for flow in flows[:8]:
        flow.syn()
    assert switch.datapath.law_state(PORT).mode == 0
    flows[8].syn()
    state = switch.datapath.law_state(PORT)
    assert (state.beta, state.mode, state.unproven) == (9, 1, 9)
    assert packets.window(flows[0].syn_ack(window=65_535)) == 2 * 1460
    assert switch.datapath.law_state(PORT).beta == 9, "counted with its SYN"
    flows[0].data()
    assert switch.datapath.law_state(PORT).unproven == 8


def test_a_repeated_syn_counts_again_with_its_answer(switch: Switch) -> None:
    install(switch, PAPER_IQM, pool=0)
    flow = Connection(switch)
    betas = []
    for leave in (flow.syn, flow.syn, flow.syn_ack, flow.syn_ack, flow.data):
        leave()
        betas.append(switch.datapath.law_state(PORT).beta)
    assert betas == [1, 1, 2, 2, 2]
    assert switch.datapath.law_state(PORT).unproven == 0


def test_a_flow_beyond_the_allowance_counts_when_its_handshake_is_complete(switch: Switch) -> None:
    install(switch, dataclasses.replace(PAPER_IQM, syn_allowance=3), pool=0)
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
    install(switch, PAPER_IQM, pool=0)
    (old,) = opened(switch, 1)
    old.data()
    new = Connection(switch, sport=old.sport, client_isn=2_000_000_000, server_isn=3_000_000_000)
    betas = []
    for leave in (new.syn, new.syn_ack, new.data):
        leave()
        betas.append(switch.datapath.law_state(PORT).beta)
    assert betas == [1, 1, 2]


def test_the_mss_of_a_syn_counts_when_it_is_answered(switch: Switch) -> None:
    install(switch, PAPER_IQM, pool=0)
    flow = Connection(switch, client_mss=8960, server_mss=9000)
    flow.syn()
    assert switch.datapath.law_state(PORT).segment == 1460
    flow.syn_ack()
    assert switch.datapath.law_state(PORT).segment == 8960


@pytest.mark.parametrize(
    ("client", "server", "counted"),
    [(8960, 1460, 1460), (65535, 4000, 4000), (65535, 65535, 8960), (4000, None, 4000)],
)
def test_the_smaller_mss_of_both_ends_counts(
    switch: Switch, client: int, server: int | None, counted: int
) -> None:
    """Otherwise one SYN with a large MSS would raise the minimum window of every flow."""
    install(switch, FairQLaw(), pool=60_000)
    Connection(switch, client_mss=client, server_mss=server).open()
    assert switch.datapath.law_state(PORT).segment == counted


def test_a_young_flow_that_was_silent_gets_no_more_than_its_share(switch: Switch) -> None:
    """It is not counted yet when its first ACK passes: it counts as one more, and as a young one."""
    install(switch, LasLaw(young_bytes=100_000), pool=18_000)
    (flow,) = opened(switch, 1)
    assert flow.granted() == 18_000
    fall_silent(switch, flow)
    assert flow.granted() == 18_000
    switch.datapath.remove_law(PORT)
    install(switch, LasLaw(young_bytes=0), pool=18_000)
    fall_silent(switch, flow)
    assert flow.granted() == 18_000  # as an old one, the same


def test_las_prefers_flows_that_have_sent_little(switch: Switch) -> None:
    install(switch, LasLaw(young_bytes=1000), pool=45_000)
    old, young = opened(switch, 2)
    for number in range(20):  # more than half of its window is under way: it is counted again, as old
        old.data(1400, seq=old.client_isn + 1 + 1400 * number)
    # The young one weighs 8.
    assert (old.granted(), young.granted()) == (5_000, 40_000)


def test_fairswitch_divides_the_target_but_not_below_2048_bytes(switch: Switch) -> None:
    install(switch, FairSwitchLaw(), pool=0)
    flows = opened(switch, 3)
    assert [flow.granted() for flow in flows] == [31_250 // 3] * 3
    opened(switch, 13)
    assert flows[0].granted() == 2048


def test_fairswitchs_text_counts_by_syn_ack_fin_and_rst(switch: Switch) -> None:
    """A repeated SYN-ACK, FIN or RST counts once, and a RST after the FIN does not count."""
    install(switch, FairSwitchLaw(increments=8), pool=0)
    flows = [Connection(switch, server_scale=0) for _ in range(4)]
    for flow in flows:
        flow.syn()
        flow.open()
        flow.syn_ack()
    assert [flow.granted() for flow in flows] == [31_250 // 4] * 4
    for _ in range(2):
        flows[0].data(0, flags="FA")
    assert flows[1].granted() == 31_250 // 3
    flows[0].data(0, flags="RA", seq=flows[0].client_isn + 2)
    assert flows[1].granted() == 31_250 // 3
    for _ in range(2):
        flows[2].data(0, flags="RA")
    assert [flow.granted() for flow in (flows[1], flows[3])] == [31_250 // 2] * 2


def test_a_renewal_keeps_the_state_and_another_kind_does_not(switch: Switch) -> None:
    install(switch, FairQLaw(), pool=60_000)
    install(switch, FairQLaw(target_ppm=100_000))
    assert switch.datapath.law_state(PORT).pool == 60_000 << 8
    install(switch, LasLaw())
    assert switch.datapath.law_state(PORT).pool == 0


# SED: base windows of the port, and windows of flows above them

SED = SedLaw(anticipate=1, calm_ppm=50_000, limiting_segments=1)


def test_sed_anticipates_from_the_flow_on_that_would_congest_the_queue(switch: Switch) -> None:
    install(switch, SED, pool=0)
    # Two first windows of 14,600 bytes are less than K, and three are not.
    flows = opened(switch, 2)
    assert {flow.granted() for flow in flows} == {65_535}
    flows += opened(switch, 1)
    assert {flow.granted() for flow in flows} == {1460}
    state = switch.datapath.law_state(PORT)
    assert (state.mode, state.window, layout.own("sed_state", state).expected) == (1, 1460, 0)
    # One that begins now is under the base window from its first ACK on, and no reason to limit longer.
    state.calm_ns = 1
    key = c_uint32(switch.datapath.window.slots[switch.ports[PORT].ifindex])
    switch.datapath.window.law_states.set(key, state)
    flows += opened(switch, 1)
    assert flows[-1].granted() == 1460
    assert switch.datapath.law_state(PORT).calm_ns == 1


@pytest.mark.parametrize("segments", [1, 3])
def test_a_base_window_is_counted_in_segments_of_the_flow(switch: Switch, segments: int) -> None:
    """The smaller MSS of both ends, and rounded up to a step of the scale."""
    install(switch, dataclasses.replace(SED, limiting_segments=segments), pool=0)
    ends = [(1460, 1460), (536, 1460), (1460, 536), (1220, 900)]
    flows = [
        Connection(switch, server_scale=scale, client_mss=client, server_mss=server).open()
        for client, server in ends
        for scale in (0, 9)
    ]
    for number, flow in enumerate(flows):
        step, mss = (1, 512)[number % 2], min(ends[number // 2])
        assert flow.granted() == -(-segments * mss // step)


def test_a_rule_of_a_flow_overrides_the_law_above_it_and_below(switch: Switch) -> None:
    install(switch, SED, pool=0)
    paused, small, granted, wide, other = flows = opened(switch, 5)
    for flow, size in ((paused, 0), (small, 1000), (granted, 20_000), (wide, 200_000)):
        switch.rule(flow.ack_key, size)
    # Never below a segment unless it pauses, and never above what the receiver advertises.
    assert [flow.granted() for flow in flows] == [0, 1460, 20_000, 65_535, 1460]
    assert granted.granted(window=9_000) == 9_000
    assert other.granted(window=1_000) == 1_000
    before = [flow.granted() for flow in flows]
    install(switch, SED)  # the law is renewed
    assert [flow.granted() for flow in flows] == before


def test_a_flow_whose_rule_has_ended_is_under_the_law_again(switch: Switch) -> None:
    install(switch, SED, pool=0)
    first, second, third = opened(switch, 3)
    switch.rule(first.ack_key, 20_000)
    switch.rule(second.ack_key, 0)
    assert [flow.granted() for flow in (first, second, third)] == [20_000, 0, 1460]
    switch.rule(first.ack_key, 20_000, lease=-1)
    switch.datapath.remove_rule(second.ack_key)
    assert [flow.granted() for flow in (first, second, third)] == [1460] * 3


def test_a_rule_of_a_flow_stands_without_the_law_and_the_other_way_round(switch: Switch) -> None:
    install(switch, SED, pool=0)
    one, two, _ = opened(switch, 3)
    switch.rule(one.ack_key, 20_000)
    install(switch, SED, lease=-1)
    assert (one.granted(), two.granted()) == (20_000, 65_535)


def test_what_a_law_granted_before_a_rule_is_forgotten(switch: Switch) -> None:
    """Otherwise data under way under the larger rule would count as a window of the law that is used up."""
    install(switch, FairQLaw(), pool=60_000)
    (flow,) = opened(switch, 1)
    assert flow.granted() == 60_000
    granted = switch.flow(flow.data_key)
    assert granted is not None and granted[0].out.granted == 60_000
    switch.rule(flow.ack_key, 5_000)
    assert flow.granted() == 5_000
    granted = switch.flow(flow.data_key)
    assert granted is not None and granted[0].out.granted == 0


def test_a_flow_that_has_ended_no_longer_shares_the_pool(switch: Switch) -> None:
    """Its last ACK comes behind the FIN. If the sender is far away, what it has sent in the last round trip
    still looks like a window that is used.
    """
    install(switch, FairQLaw(), pool=2920)
    flow = Connection(switch, server_scale=0).open()
    sent = 1400
    flow.data(sent)
    flow.ack(ack=flow.client_isn + 1 + sent)
    assert sharing(switch) == 1
    window, key = switch.datapath.window, flow_key(flow.data_key)
    entry = window.flows.get(key)
    client = entry.dir[flow_key(flow.data_key, directed=True).dir]
    client.rtt_ns = 3 * 10**9
    client.round.ns, client.round.released = time.monotonic_ns(), 2920
    window.flows.set(key, entry)
    flow.data(0, seq=flow.client_isn + 1 + sent, flags="FA")
    assert sharing(switch) == 0
    flow.ack(ack=flow.client_isn + 2 + sent)
    assert sharing(switch) == 0


def sharing(switch: Switch) -> int:
    counts, bucket_ns = switch.state(PORT), switch.datapath.window.bucket_ns
    return int(layout.counted_flows(counts.sharing, time.monotonic_ns(), bucket_ns))
