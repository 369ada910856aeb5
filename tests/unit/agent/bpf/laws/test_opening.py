"""When a flow counts for a law of the switch, and what a flood of SYNs can do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.law_spec import LawSpec
from fairq_ryu.laws.iqm import IqmLaw
from fairq_ryu.laws.sed import SedLaw
from tests.support.host_laws import HostLaw, Opening, OpeningFlags, fq_law

MS, S = 1_000_000, 1_000_000_000
START = 1000 * S
SYN, AGAIN, SYN_ACK, PROVEN = Opening
BEGUN, UNPROVEN = OpeningFlags
IQM = IqmLaw()


class Port:
    """A port with a law, ticking every 10 ms while its queue is empty."""

    def __init__(self, law: LawSpec = IQM, allowance: int = 256, target: int = 37_500) -> None:
        more = {"interval_ns": 10 * MS, "calm": 25_000}
        self.law = HostLaw(fq_law(law, target=target, syn_allowance=allowance, **more))
        self.now = START
        self.flags: dict[int, int] = {}
        self.run(0)

    def run(self, spent: int) -> None:
        self.now += spent
        self.law.tick(self.now, 0, 0, 0)

    def step(self, step: Opening, *flows: int) -> None:
        for flow in flows:
            self.flags[flow] = self.law.opening(step, self.flags.get(flow, 0), 0, self.now)

    @property
    def beta(self) -> int:
        return int(self.law.state.beta)

    @property
    def limits(self) -> bool:
        return self.law.limits


def test_a_volley_limits_with_the_syn_that_would_overflow_the_queue():
    """Eight first windows of 14,600 bytes fit into 125,000, nine do not."""
    port = Port()
    port.step(SYN, *range(8))
    assert not port.limits
    port.step(SYN, 8)
    assert port.limits and port.law.window(9, 0, 1) == 2 * 1460


@pytest.mark.parametrize(
    ("steps", "counts"),
    [
        ((SYN, SYN_ACK, PROVEN), (1, 1, 1)),
        ((SYN_ACK, PROVEN), (1, 1)),
        ((PROVEN,), (1,)),
        # The first SYN or its answer was lost: the data comes a second later.
        ((SYN, AGAIN, SYN_ACK, PROVEN), (1, 1, 2, 2)),
        ((SYN, AGAIN, AGAIN, SYN_ACK, PROVEN), (1, 1, 1, 2, 2)),
    ],
)
def test_a_flow_counts_once_and_as_early_as_possible(steps, counts):
    port = Port()
    found = []
    for step in steps:
        port.step(step, 0)
        found.append(port.beta)
    assert tuple(found) == counts
    assert (port.flags[0], port.law.state.unproven) == (BEGUN, 0)


def test_the_base_windows_of_sed_count_answered_flows_only():
    port = Port(SedLaw(anticipate=1))
    port.step(SYN, *range(9))
    assert (port.law.own("sed_state").expected, port.law.state.unproven) == (0, 0)
    port.step(SYN_ACK, 0)
    assert (port.law.own("sed_state").expected, port.law.state.unproven) == (14_600, 1)


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=60))
def test_the_allowance_changes_nothing_for_handshakes_that_are_completed(events):
    """As long as no more are open at once than it allows."""
    ports = Port(allowance=10), Port(allowance=1_000_000)
    next_step = dict.fromkeys(range(10), SYN)
    for flow, tick in events:
        step = next_step[flow]
        next_step[flow] = {SYN: SYN_ACK, SYN_ACK: PROVEN, PROVEN: SYN}[step]
        for port in ports:
            if step == SYN:
                port.flags[flow] = 0
            port.step(step, flow)
            if tick:
                port.run(10 * MS)
        one, other = (bytes(port.law.state) for port in ports)
        assert one == other
        assert ports[0].flags == ports[1].flags


def test_no_more_flows_than_the_allowance_count_before_they_are_proven():
    port = Port(allowance=5)
    port.step(SYN, *range(20))
    assert (port.beta, port.law.state.unproven) == (5, 5)
    assert [port.flags[flow] for flow in (4, 5)] == [BEGUN | UNPROVEN, 0]
    port.step(SYN_ACK, *range(20))
    assert port.beta == 5, "an answer to a forged SYN proves nothing"
    port.step(PROVEN, *range(3, 8))
    assert (port.beta, port.law.state.unproven) == (8, 3)
    port.step(SYN, 20, 21, 22)
    assert (port.beta, port.law.state.unproven) == (10, 5)


def test_what_is_not_proven_is_forgotten_after_ten_seconds():
    port = Port(allowance=5)
    port.step(SYN, *range(6))
    port.now += 10 * S - 1
    port.step(SYN, 6)
    assert port.beta == 5
    port.now += 1
    port.step(SYN, 7)
    assert (port.beta, port.law.state.unproven) == (6, 1)
    # Those from before are proven after all: they do not make room for more than there is.
    port.step(PROVEN, 0, 1, 2)
    assert port.law.state.unproven == 0


@pytest.mark.parametrize(("target", "intervals"), [(37_500, 22), (125_000, 32)])
def test_a_flood_limits_for_a_tenth_of_a_second_in_ten(target: int, intervals: int):
    """5,000 SYNs a second from addresses that do not answer, for 30 s."""
    port, limited, opening = Port(target=target), 0, 0
    for interval in range(3000):
        port.step(SYN, *range(50 * interval, 50 * interval + 50))
        limited += port.limits
        opening += not port.limits and port.law.state.window > 0
        port.run(10 * MS)
    # 256 SYNs in six intervals; the queue must be short for 50 ms; then the windows open by an eighth each,
    # until they are the share of the pool, or the buffer.
    assert (limited, opening) == (3 * 11, 3 * intervals)


def test_a_volley_in_a_flood_is_noticed_when_its_handshakes_are_complete():
    port = Port()
    port.step(SYN, *range(256))
    for _ in range(7):
        port.run(10 * MS)
    assert not port.limits
    port.step(SYN, *range(256, 265))
    port.step(SYN_ACK, *range(256, 265))
    port.step(PROVEN, *range(256, 264))
    assert (port.beta, port.limits) == (8, False)
    port.step(PROVEN, 264)
    assert port.limits
