"""FairQ's law in the switch: worked by hand, against real numbers, and in a closed loop.

Every T the pool moves by a part of itself times ``1 - Q / target``.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.law_spec import Mode
from fairq_ryu.laws.fairq import FairQLaw
from tests.support.host_laws import ClosedLoop, FedPort, HostLaw, LimitedBy, fq_law, in_force

LIMIT, RATE, TARGET = 100_000, 25_000_000, 25_000
CEILING = 125_000  # the limit and 1 ms of the rate
FAIRQ = FairQLaw()


@pytest.fixture
def port() -> FedPort:
    law = HostLaw(fq_law(FairQLaw, limit=LIMIT, rate=RATE, target=TARGET))
    made = FedPort(law, 1000)
    made.feed(0, used=False)
    return made


def test_the_pool_never_exceeds_what_the_port_holds(port):
    assert port.feed(*[0] * 8 * 400) == CEILING
    assert port.law.state.limited_by == LimitedBy.CAP


def test_the_pool_is_not_raised_while_flows_do_not_use_it(port):
    assert port.feed(*[0] * 8 * 400, used=False) == TARGET
    assert port.law.state.limited_by == LimitedBy.FLOWS
    assert port.feed(*[LIMIT] * 8, used=False) < TARGET, "but lowered"


def test_without_flows_the_next_volley_finds_the_target(port):
    assert port.feed(*[0] * 80) > TARGET
    assert port.feed(0, flows=0) == TARGET


def test_the_floor_is_two_segments_a_flow_and_one_where_the_buffer_does_not_hold_them(port):
    port.feed(*[LIMIT] * 80, flows=1)
    assert [port.law.window(flows) for flows in (20, 50, 51, 500)] == [2000, 2000, 1000, 1000]
    port.feed(*[TARGET] * 8, flows=51)
    assert (port.law.state.granted, port.law.state.limited_by) == (51_000, LimitedBy.FLOOR)
    assert port.law.state.mode & Mode.FLOORED


def test_while_the_floors_are_in_force_a_long_queue_does_not_lower_the_pool(port):
    """It depends on them, and not on the pool: after the volley the pool is what it was."""
    port.feed(*[TARGET] * 8, flows=50)
    before = port.law.pool
    assert port.feed(*[LIMIT] * 80, flows=50) == before
    assert port.feed(*[LIMIT] * 9, flows=2) < before


def test_a_new_flow_begins_with_one_segment_where_the_floors_do_not_fit_above_the_target(port):
    """35 flows of 2 * 1066 bytes, and the target, are 99,620 bytes; 36 are more than the buffer."""
    assert port.law.window(35, sent=0) == 2000
    assert (port.law.window(36, sent=0), port.law.window(36, sent=1)) == (1000, 2000)


@given(st.integers(1, 100_000), st.integers(0, 1 << 40))
def test_a_window_is_a_share_of_the_pool(flows, sent):
    law = HostLaw(fq_law(FairQLaw))
    FedPort(law).feed(0)
    floor = 2920 if flows * 2920 <= 125_000 else 1460
    if sent:
        assert law.window(flows, sent=sent) == max(31_250 // flows, floor)


@given(
    st.lists(st.integers(0, 125_000), min_size=1, max_size=200),
    st.integers(3_000_000, 1_250_000_000),
    st.integers(100, 20_000),
)
def test_the_pool_follows_its_formula_in_real_numbers(queues, rate, base_rtt_us):
    """Every T the pool, or two targets of it, by g * (1 - Q / target); g is 0.4 in a round trip."""
    values = in_force(FairQLaw(base_rtt_us=base_rtt_us), rate=rate)
    law = HostLaw(values)
    port = FedPort(law)
    port.feed(0)
    target, segment = 31_250.0, 1460.0
    g = 0.4 * 0.0002 / (base_rtt_us / 1e6 + target / rate)
    pool = target
    for queue in queues:
        move = min(g, 0.5) * min(pool, 2 * target) * (1 - queue / target)
        if move > 0:
            pool += move
        else:
            pool -= min(-move, pool / 2)
        pool = min(max(pool, segment), 125_000 + rate * base_rtt_us / 1e6)
        floored = port.law.state.mode & Mode.FLOORED and queue > target
        if floored:
            break
        # The gain is rounded to 1/65536; each step rounds down.
        assert port.feed(queue) == pytest.approx(pool, rel=0.5 / values.gain_q16 + 1e-3, abs=2)
        pool = float(port.law.state.pool) / 256


# In a closed loop


@pytest.mark.parametrize("rtt", [0.0002, 0.001])
@pytest.mark.parametrize("flows", [1, 2, 8, 12])
def test_the_queue_settles_at_the_target(flows, rtt):
    loop = ClosedLoop(HostLaw(in_force(FAIRQ)), flows, rtt)
    loop.run(2)
    assert loop.mean_queue(0.5) == pytest.approx(31_250, rel=0.05)
    assert max(loop.queues[-2500:]) < 1.1 * 31_250
    assert loop.lost == 0


@pytest.mark.parametrize(("before", "after"), [(0.001, 0.0002), (0.0002, 0.001)])
def test_the_pool_follows_a_path_that_changes(before, after):
    loop = ClosedLoop(HostLaw(in_force(FAIRQ)), 4, before)
    loop.run(1)
    loop.rtt = after
    loop.run(1)
    assert loop.mean_queue(0.2) == pytest.approx(31_250, rel=0.05)
    assert loop.lost == 0


@pytest.mark.parametrize("flows", [32, 64, 80])
def test_more_flows_than_the_target_holds_still_fit_the_buffer(flows):
    loop = ClosedLoop(HostLaw(in_force(FAIRQ)), flows, 0.001)
    loop.run(1)
    assert max(loop.queues) <= 125_000 and loop.lost == 0


def test_a_short_volley_does_not_change_the_pool():
    loop = ClosedLoop(HostLaw(in_force(FAIRQ)), 4, 0.0005)
    loop.run(1)
    settled = loop.law.pool
    loop.flows = 36
    loop.run(0.05)
    loop.flows = 4
    loop.run(0.002)
    assert loop.law.pool == pytest.approx(settled, rel=0.1)
