"""What counts as flat, as drift and as a long log."""

from __future__ import annotations

import pytest

from tests.soak import judge
from tests.soak.judge import Change, Sample


def line(first: float, last: float, count: int = 101) -> list[Sample]:
    """A straight line, a sample each second."""
    return [Sample(float(at), first + (last - first) * at / (count - 1)) for at in range(count)]


def test_the_warm_up_is_not_judged():
    assert [each.at for each in judge.judged(line(0, 1), 100)] == list(range(20, 101))


def test_a_line_has_its_slope_and_the_middles_of_its_quarters():
    found = judge.change(line(0, 100))
    assert found == pytest.approx((12, 88, 3600))


def test_memory_that_grows_is_not_flat():
    assert judge.is_flat(Change(100, 100 * (1 + judge.GROWTH) + judge.MORE, 0))
    assert not judge.is_flat(Change(100, 100 * (1 + judge.GROWTH) + judge.MORE + 0.1, 0))
    assert judge.is_flat(Change(100, 50, -50))


def test_one_peak_is_no_growth():
    samples = line(100, 100)
    samples[-1] = Sample(100, 1000)
    assert judge.is_flat(judge.change(samples))


@pytest.mark.parametrize("sign", [1, -1])
def test_a_difference_may_be_there_but_not_change(sign):
    def drifted(change, noise):
        values = [3.0 + sign * change * (at >= 20) + noise * (-1) ** at for at in range(40)]
        return judge.has_drifted(judge.drift([Sample(float(at), each) for at, each in enumerate(values)]))

    assert drifted(0.0, 0.0) is False and drifted(judge.DRIFT * 0.9, 0.0) is False
    assert drifted(judge.DRIFT, 0.0) is True
    # In noise it takes more to tell, and much noise tells nothing.
    assert (drifted(0.0, 0.5), drifted(2 * judge.DRIFT, 0.5)) == (False, True)
    assert (drifted(0.0, 5.0), drifted(judge.DRIFT, 5.0)) == (None, None)


def test_a_short_soak_has_a_part_of_the_log():
    assert judge.log_bound(7200) == 2 * judge.LOG_BYTES
    assert judge.log_bound(1) == judge.LOG_BYTES / 4


def test_too_few_samples_are_refused():
    with pytest.raises(ValueError, match="soak for longer"):
        judge.change(line(0, 1, 3))
