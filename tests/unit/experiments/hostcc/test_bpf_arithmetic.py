"""The arithmetic of hosts' congestion controls: the C and its twin, and both with the published formulas."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.experiments.hostcc import tables
from tests.support import host_controls as twin

U32 = st.integers(0, (1 << 32) - 1)
U64 = st.integers(0, (1 << 64) - 1)
ALPHA = st.integers(0, twin.MAX_ALPHA)
INPUTS = {
    "alpha": (ALPHA, U32, U32),
    "window": (U32, st.integers(0, 32_768)),
    "window_after_loss": (U32,),
    "imminence": (U64, U64, U32, U32, U32),
    "power": (ALPHA, st.integers(64, 256)),
    "increase": (st.integers(0, 200_000),),
    "hstcp_after_loss": (U32,),
    "threshold_is_impossible": (st.integers(0, 4), U32, U32),
}


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return twin.build(tmp_path_factory.mktemp("controls"))


@pytest.fixture(params=["C", "twin"])
def laws(request: pytest.FixtureRequest, library: Any) -> Any:
    class Compiled:
        def __getattr__(self, name: str) -> Any:
            return getattr(library, f"cc_host_{name}")

    return Compiled() if request.param == "C" else twin


@pytest.mark.parametrize("name", INPUTS)
def test_the_c_computes_the_integers_of_its_twin(library: Any, name: str) -> None:
    @given(st.tuples(*INPUTS[name]))
    def same(arguments: tuple[int, ...]) -> None:
        assert getattr(library, f"cc_host_{name}")(*arguments) == getattr(twin, name)(*arguments)

    same()


@given(
    st.lists(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), max_size=80)
)
def test_alpha_is_that_of_rfc_8257(windows: list[tuple[int, int]]) -> None:
    """Each window truncates twice, by less than 1/2^20 in all, and forgets a sixteenth of earlier errors."""
    found, exact = twin.MAX_ALPHA, 1.0
    for delivered, marked in windows:
        found = twin.alpha(found, delivered, marked)
        exact = (1 - 1 / 16) * exact + 1 / 16 * marked / delivered
        assert abs(found - exact * twin.MAX_ALPHA) <= 16


@pytest.mark.parametrize(("every", "percent"), [(1, 100), (2, 50), (4, 25), (10, 10), (100, 1)])
def test_a_fixed_pattern_of_marks(laws: ModuleType, every: int, percent: int) -> None:
    """Every n-th segment is marked, in windows of 20: alpha comes to the share of marks, also from 0."""
    exact = {True: 1.0, False: 0.0}
    for marks_before in (True, False):
        found, sent = twin.MAX_ALPHA if marks_before else 0, 0
        for _ in range(400):
            marked = sum((sent + n) % every == 0 for n in range(20))
            sent += 20
            found = laws.alpha(found, 20, marked)
            exact[marks_before] = 15 / 16 * exact[marks_before] + marked / 20 / 16
        assert abs(found - exact[marks_before] * twin.MAX_ALPHA) <= 16
        if 20 % every == 0:
            assert round(100 * found / twin.MAX_ALPHA) == percent


def test_a_marked_window_is_cut_by_half_of_alpha(laws: ModuleType) -> None:
    for alpha, left in (
        (twin.MAX_ALPHA, 50),
        (twin.MAX_ALPHA // 2, 75),
        (twin.MAX_ALPHA // 10, 96),
        (0, 100),
    ):
        assert laws.window(100, laws.power(alpha, twin.ONE)) == left
    assert [laws.window(cwnd, 32_768) for cwnd in (0, 1, 2, 3, 4, 5)] == [2, 2, 2, 2, 2, 3]
    assert [laws.window_after_loss(cwnd) for cwnd in (0, 3, 10)] == [2, 2, 5]


@given(ALPHA, st.integers(64, 256))
def test_the_error_of_alpha_to_the_d(alpha: int, imminence: int) -> None:
    exact = (alpha / twin.MAX_ALPHA) ** (imminence / twin.ONE)
    assert abs(twin.power(alpha, imminence) / 32_768 - exact) <= 0.00005


def test_d_is_the_time_needed_over_the_time_left(laws: ModuleType) -> None:
    """75 segments left, a window of 10 and so 7.5 segments in a round trip of 1 ms: 10 ms are needed."""
    d = {
        left_ms: laws.imminence(75 * 1448, left_ms * 10**6 - 1000, 1000, 10, 1448) for left_ms in range(1, 41)
    }
    assert {ms: d[ms] for ms in (1, 4, 5, 8, 10, 20, 40)} == {
        1: 256, 4: 256, 5: 256, 8: 160, 10: 128, 20: 64, 40: 64
    }  # fmt: skip


def test_a_flow_without_deadline_is_one_of_dctcp(laws: ModuleType) -> None:
    for arguments in ((0, 10, 10, 10, 10), (10, 0, 10, 10, 10), (10, 10, 0, 10, 10), (10, 10, 10, 0, 10)):
        assert laws.imminence(*arguments) == twin.ONE
    assert laws.power(123_456, twin.ONE) == 123_456 >> 5


def test_a_late_flow_backs_off_less_and_an_early_one_more(laws: ModuleType) -> None:
    for alpha in (1000, 100_000, 500_000, 1_000_000):
        powers = [laws.power(alpha, d) for d in range(64, 257)]
        assert powers == sorted(powers, reverse=True)
        assert powers[0] > powers[64] > powers[-1]


def test_hstcp_s_increase_and_decrease(laws: ModuleType) -> None:
    assert [laws.increase(cwnd) for cwnd in (0, 2, 37, 38, 117, 118, 83_999, 84_035, 94_716, 94_717)] == [
        1, 1, 1, 1, 1, 2, 70, 71, 72, 73
    ]  # fmt: skip
    for cwnd in (38, 118, 10_661, 94_717, 1_000_000):
        share = 1 - laws.hstcp_after_loss(cwnd) / cwnd
        row = max(window for window, _a, _b in tables.hstcp_rows() if window <= cwnd)
        assert share == pytest.approx(tables.decrease(row), abs=0.0005 + 1 / cwnd)
    assert laws.hstcp_after_loss(20) == 10 and laws.hstcp_after_loss(2) == 2


def test_a_threshold_above_the_window_before_is_impossible_while_it_is_reduced(laws: ModuleType) -> None:
    for state, reduced in enumerate((False, False, True, True, True)):
        assert bool(laws.threshold_is_impossible(state, 8, 7)) == reduced
        assert not laws.threshold_is_impossible(state, 7, 7)
        assert not laws.threshold_is_impossible(state, 2, 1)
