"""FairSwitch's law in the switch: ``max(2048, target / n)`` and a trim, which follows the queue."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.laws.fairswitch import FairSwitchLaw
from tests.support.host_laws import ClosedLoop, FedPort, HostLaw, fq_law, in_force
from tests.support.law_traces import TRACES, drive, parameters

LIMIT, RATE, TARGET = 100_000, 25_000_000, 25_000
STEP = 40  # RATE * 0.2 ms / 125
DEAD = 1460 // 4


def fed(*queues: int, flows: int = 2, segment: int = 1460) -> FedPort:
    """A port with these queues, the first of which begins the law."""
    port = FedPort(HostLaw(fq_law(FairSwitchLaw, limit=LIMIT, rate=RATE, target=TARGET)), segment)
    port.feed(0, *queues, flows=flows)
    return port


def test_the_trim_grows_by_a_step_in_each_interval_while_the_queue_is_short():
    assert [fed(*[5000] * ticks).law.window(2) for ticks in (0, 1, 3)] == [
        TARGET // 2 + trim * STEP for trim in (0, 1, 3)
    ]


def test_the_trim_shrinks_while_the_queue_is_long_but_not_below_zero():
    port = fed(*[5000] * 5)
    for trim in (4, 3, 2, 1, 0, 0):
        port.feed(60_000)
        assert port.law.own("fairswitch_state").trim == trim * STEP


@pytest.mark.parametrize(
    ("queue", "steps"),
    [
        *((queue, 0) for queue in (TARGET - DEAD, TARGET, TARGET + DEAD, 80, 0)),
        (TARGET - DEAD - 1, 1),
        (81, 1),
        (TARGET + DEAD + 1, -1),
    ],
)
def test_the_trim_rests_near_the_target_and_with_an_empty_queue(queue, steps):
    """The dead band is a quarter of a segment."""
    port = fed(5000, 5000)
    port.feed(queue)
    assert port.law.own("fairswitch_state").trim == (2 + steps) * STEP


def test_the_dead_band_is_that_of_the_largest_segment():
    port = fed(TARGET - 2000, segment=8000)
    assert port.law.own("fairswitch_state").trim == 0
    port.feed(TARGET - 2001)
    assert port.law.own("fairswitch_state").trim == STEP


def test_a_window_is_at_least_2048_bytes_before_the_trim():
    port = fed(5000, flows=40)
    assert port.law.window(40) == 2048 + STEP and port.law.state.granted == 40 * (2048 + STEP)


def test_no_window_is_more_than_the_port_holds_and_no_trim_more_than_the_buffer():
    port = fed(*[5000] * 4000, flows=1)
    assert port.law.own("fairswitch_state").trim == LIMIT
    assert port.law.window(1) == LIMIT + RATE // 1000


def test_without_flows_the_trim_is_gone():
    port = fed(5000, 5000)
    port.feed(0, flows=0)
    assert port.law.window(2) == TARGET // 2


@given(st.integers(1, 100_000), st.integers(1, 100_000), st.integers(0, 50))
def test_more_flows_have_less_each_and_all_have_the_same(one, other, ticks):
    law = fed(*[5000] * ticks).law
    fewer, more = sorted((one, other))
    assert law.window(fewer) >= law.window(more) >= 2048
    assert law.window(one, 0, 0) == law.window(one, 5, 10**9)


@pytest.mark.parametrize("flows", [2, 8, 12])
def test_the_queue_settles_at_the_target(flows):
    loop = ClosedLoop(HostLaw(in_force(FairSwitchLaw())), flows, 0.001)
    loop.run(2)
    assert loop.mean_queue(0.5) == pytest.approx(31_250, rel=0.1) and loop.lost == 0


@given(parameters([FairSwitchLaw]), st.lists(st.integers(0, 1 << 30), max_size=20))
def test_a_longer_queue_never_leaves_a_larger_trim_and_no_trim_is_above_the_buffer(values, queues):
    """The same past, then a tick with a longer queue than the 80 bytes that count as none."""
    for queue in (81, 81 + values["target"] // 2, 81 + values["target"]):
        trims = []
        for more in (0, 1, 1000, values["limit"]):
            port = FedPort(HostLaw(fq_law(**values)))
            port.feed(*queues, min(queue + more, 1 << 30), flows=3)
            trims.append(port.law.own("fairswitch_state").trim)
        assert trims == sorted(trims, reverse=True) and trims[0] <= values["limit"]


@given(parameters([FairSwitchLaw]), TRACES)
def test_a_window_is_within_what_the_port_can_hold(values, trace):
    for law, step, window in drive(values, trace):
        if step == "window":
            p = law.parameters
            held = p.limit + p.rate // 1000 * p.base_rtt_ns // 10**6
            cap = min(max(held, p.rate // 1000 * law.state.rtt_ns // 10**6), 1 << 30)
            assert min(law.state.segment, cap) <= window <= cap
