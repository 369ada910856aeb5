"""SED's part in the switch: base windows in congestion, which new flows may announce, and no others."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.agent import layout
from fairq_ryu.config.loader import Config
from fairq_ryu.laws.sed.policy import Sed
from fairq_ryu.model import PortKey
from tests.support.host_laws import NO_WINDOW, FedPort, HostLaw, in_force

K = 31_250
MS = 1_000_000


def sed(**settings: float) -> FedPort:
    """A port as the agent would run it, after the first tick."""
    port = FedPort(HostLaw(in_force(Sed(Config().section("sed") | settings).switch_law(PortKey(1, 1)))))
    port.feed(0)
    return port


def test_base_windows_are_in_force_from_k_on():
    port = sed(base_segments=2)
    port.feed(K - 1)
    assert port.law.window(2) == NO_WINDOW
    port.feed(K)
    assert [port.law.window(2, mss=mss) for mss in (1460, 536)] == [2920, 1072]


def test_the_third_first_window_congests_the_queue():
    """Two of ten segments are less than K."""
    port, found = sed(), []
    for _ in range(3):
        port.law.flow_began(0, port.now)
        found.append(port.law.limits)
    assert found == [False, False, True]


@given(st.integers(1, 20_000), st.integers(0, K - 1))
def test_what_is_expected_drains_at_the_rate_of_the_port(gap_us, backlog):
    """Held against real numbers: each flow adds its first window, 25,000 bytes leave in a millisecond."""
    port = sed()
    expected, last = 0.0, 0
    for number in range(1, 6):
        now = port.now + number * gap_us * 1000
        expected = max(0.0, expected - 25e6 * (now - last) / 1e9) + 14_600
        last = now
        port.law.flow_began(backlog, now)
        if abs(backlog + expected - K) > 100:  # the law counts in thousands of bytes/s
            assert port.law.limits == (backlog + expected > K)
        if port.law.limits:
            return


def test_flows_that_begin_under_base_windows_do_not_prolong_them():
    port = sed()
    port.feed(K)
    began = port.now
    while port.law.limits and port.now < began + 200 * MS:
        for _ in range(5):
            port.law.flow_began(0, port.now)
        port.feed(0)
    assert port.now == began + 100 * MS + 200_000, "0.1 s after the queue was short"


def test_a_silence_counts_as_a_short_queue():
    """A tick comes with a packet only: the first after a silence finds windows that have lingered enough."""
    port = sed()
    port.feed(K, 0)
    port.now += 1000 * MS
    port.feed(0)
    assert not port.law.limits
    port.feed(*[0] * 60)
    assert port.law.window(1) == NO_WINDOW


def test_windows_open_in_steps_and_in_proportion_to_segments():
    port = sed()
    layout.own("sed_law", port.law.parameters).linger_ns = 0
    port.feed(K)
    sizes = []
    while (window := port.law.window(2)) != NO_WINDOW:
        sizes.append((window, port.law.window(2, mss=536)))
        port.feed(0)
    assert sizes[0] == (1460, 536)
    assert all(before[0] * 9 // 8 == after[0] for before, after in pairwise(sizes[1:]))
    assert all(small == large * 536 // 1460 for large, small in sizes)
    assert 125_000 * 8 // 9 - 2 < sizes[-1][0] < 125_000
