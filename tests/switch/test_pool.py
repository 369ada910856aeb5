"""Which flows take a share of a pool: flows that send, without their own rule, each once."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from fairq_ryu.agent.programs.program import ProgramLimits
from tests.switch.rig import Connection, Switch, loaded, lowered, namespace

POOL = 3_000_000
# Longer than a busy machine keeps a test waiting between two packets.
TIMEOUT = 3.0


def opened(switch: Switch, number: int, first: int = 0) -> list[Connection]:
    return [
        Connection(switch, client=f"10.1.{i >> 8}.{i & 255}", sport=30000, server_scale=0).open()
        for i in range(first, first + number)
    ]


@pytest.mark.parametrize("number", [1, 2, 7, 100, 1000])
def test_pool_is_shared_equally(switch: Switch, number: int) -> None:
    flows = opened(switch, number)
    assert switch.active(2) == number
    switch.pool(2, POOL)
    for flow in (flows[0], flows[-1]):
        assert flow.granted() == lowered(65535, POOL // number, 0, 1460)
    for flow in flows:
        flow.data()
    assert switch.active(2) == number


def test_shares_below_one_mss_are_one_mss(switch: Switch) -> None:
    flows = opened(switch, 1000)
    switch.pool(2, 1_000_000)
    assert flows[0].granted() == 1460


def test_pool_without_active_flows(switch: Switch) -> None:
    (flow,) = opened(switch, 1)
    switch.leave(2, flow.from_client(flags="FA"))
    assert switch.active(2) == 0
    switch.pool(2, 30_000)
    # The program expects its data: it counts as one flow.
    assert flow.granted() == 30_000
    (other,) = opened(switch, 1, first=1)
    assert switch.active(2) == 1
    assert other.granted() == 30_000
    assert flow.granted() == 15_000
    assert switch.active(2) == 1, "an ACK makes nobody active"


def test_new_flow_gets_its_share_from_its_syn_ack_on(switch: Switch) -> None:
    opened(switch, 2)
    switch.pool(2, 60_000)
    flow = Connection(switch)
    flow.syn()
    before = flow.syn_ack_segment(window=65535)
    assert switch.leave(1, before) == before.but(window=20_000).frame()


def test_each_direction_counts_where_its_data_leaves(switch: Switch) -> None:
    flow = Connection(switch).open()
    assert (switch.active(1), switch.active(2), switch.active(3)) == (1, 1, 0)
    flow.ack(payload=b"x")
    flow.data()
    assert (switch.active(1), switch.active(2), switch.active(3)) == (1, 1, 0)


@pytest.mark.parametrize("end", ["FA", "R", "RA", "FPA"])
def test_a_repeated_end_leaves_the_pool_once(switch: Switch, end: str) -> None:
    flows = opened(switch, 3)
    switch.pool(2, 30_000)
    for _ in range(3):
        switch.leave(2, flows[0].from_client(flags=end, payload=b"x" if "P" in end else b""))
        assert switch.active(2) == 2
        assert flows[1].granted() == 15_000
    # Data retransmitted after the end does not add it again.
    flows[0].data()
    assert switch.active(2) == 2


def test_fin_ends_its_own_direction_and_rst_both(switch: Switch) -> None:
    first, second = opened(switch, 2)
    first.ack(flags="FA")
    assert (switch.active(1), switch.active(2)) == (1, 2)
    second.ack(flags="R")
    assert (switch.active(1), switch.active(2)) == (0, 1)
    first.data()
    assert switch.active(2) == 1, "a half-closed connection still sends"


def test_flow_with_its_own_rule_takes_no_share(switch: Switch) -> None:
    flows = opened(switch, 4)
    switch.pool(2, 40_000)
    assert flows[1].granted() == 10_000
    switch.rule(flows[0].ack_key, 7000, slot=1)
    assert flows[0].granted() == 7000
    assert switch.active(2) == 3
    flows[0].data()
    assert switch.active(2) == 3
    assert flows[0].granted() == 7000
    assert switch.active(2) == 3
    assert flows[1].granted() == 40_000 // 3
    # Without the rule it takes a share again.
    switch.datapath.remove_rule(flows[0].ack_key)
    assert flows[0].granted() == 10_000, "it counts itself in before its next data"
    flows[0].data()
    assert switch.active(2) == 4
    assert flows[1].granted() == 10_000


def test_flow_whose_own_rule_expires_takes_a_share_again(switch: Switch) -> None:
    flows = opened(switch, 2)
    switch.rule(flows[0].ack_key, 7000, slot=1, lease=2)
    switch.pool(2, 40_000)
    flows[0].ack()
    assert switch.active(2) == 1
    time.sleep(2.01)
    flows[0].data()
    assert switch.active(2) == 2
    assert flows[0].granted() == 20_000


def test_flow_of_unknown_scale_takes_no_share(switch: Switch) -> None:
    opened(switch, 1)
    Connection(switch).data()
    assert switch.active(2) == 1


def test_flow_that_moves_counts_at_its_new_port(switch: Switch) -> None:
    (flow,) = opened(switch, 1)
    flow.server_port = 3
    flow.data()
    flow.ack(ack=flow.client_isn + 1001)
    flow.data()
    assert (switch.active(2), switch.active(3)) == (0, 1)


@pytest.fixture
def hasty() -> Iterator[Switch]:
    """A switch whose flows become idle soon."""
    with (
        namespace(),
        loaded(ProgramLimits(flows=1024, rules=16, ports=4, active_timeout=TIMEOUT)) as switch,
    ):
        yield switch


def test_idle_flow_takes_no_share_until_it_sends_again(hasty: Switch) -> None:
    flows = opened(hasty, 3)
    hasty.pool(2, 30_000)
    time.sleep(TIMEOUT + 0.01)
    assert hasty.active(2) == 0
    flows[0].data()
    assert hasty.active(2) == 1
    assert flows[0].granted() == 30_000
    assert flows[1].granted() == 15_000
    flows[1].data()
    assert hasty.active(2) == 2
    # Only data keeps a flow active.
    time.sleep(TIMEOUT + 0.01)
    flows[1].data(0)
    flows[1].ack()
    assert hasty.active(2) == 0
    # A late end removes no other flow.
    flows[0].data()
    hasty.leave(2, flows[1].from_client(flags="FA"))
    assert hasty.active(2) == 1


def test_flow_that_keeps_sending_is_counted_once(hasty: Switch) -> None:
    flows = opened(hasty, 5)
    began = time.monotonic()
    while time.monotonic() - began < 2 * TIMEOUT:
        for flow in flows:
            flow.data()
        assert hasty.active(2) == 5
        time.sleep(TIMEOUT / 20)


def test_flows_that_start_one_after_another_are_all_counted(hasty: Switch) -> None:
    number = 6
    for i in range(number):
        opened(hasty, 1, first=i)
        time.sleep(TIMEOUT / 32)
    assert hasty.active(2) == number
