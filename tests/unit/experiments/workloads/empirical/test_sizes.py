"""The published distributions, and sizes drawn from them by inverse."""

import pytest

from fairq_ryu.experiments.workloads.empirical.sizes import PACKET_BYTES, SOURCES, Sizes, read

LINE = Sizes(((100, 0.0), (100, 0.25), (300, 0.75), (1100, 1.0)))


@pytest.mark.parametrize(
    ("share", "size"), [(0, 100), (0.1, 100), (0.25, 100), (0.5, 200), (0.75, 300), (0.875, 700), (1, 1100)]
)
def test_a_size_is_the_inverse_of_the_distribution(share, size):
    assert LINE.quantile(share) == size


@pytest.mark.parametrize("share", [-0.01, 1.01, float("nan")])
def test_a_share_outside_of_0_to_1_is_refused(share):
    with pytest.raises(ValueError, match="must be 0 to 1"):
        LINE.quantile(share)


def test_the_mean_is_that_of_the_straight_lines():
    assert LINE.mean == 0.25 * 100 + 0.5 * 200 + 0.25 * 700
    assert Sizes(LINE.points, divisor=10).mean == pytest.approx(LINE.mean / 10)
    # Above 700 is half of the last quarter; below it, the mean of that quarter is 500.
    capped = Sizes(LINE.points, cap=700)
    assert capped.mean == pytest.approx(0.25 * 100 + 0.5 * 200 + 0.125 * 500 + 0.125 * 700)
    assert capped.quantile(0.99) == 700 and capped.quantile(0.75) == 300
    # The cap is of the divided sizes.
    assert Sizes(LINE.points, divisor=2, cap=100).quantile(0.75) == 100
    assert Sizes(LINE.points, cap=200).mean == pytest.approx(0.25 * 100 + 0.25 * 150 + 0.5 * 200)


def test_the_steps_are_divided_and_capped_and_appear_once():
    assert LINE.steps == [100, 300, 1100]
    assert Sizes(LINE.points, divisor=2, cap=200).steps == [50, 150, 200]


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize(("divisor", "cap"), [(1, 0), (10, 0), (10, 100_000)])
def test_the_mean_is_that_of_many_quantiles(name, divisor, cap):
    sizes, count = read(name, divisor, cap), 100_000
    drawn = sum(sizes.quantile((number + 0.5) / count) for number in range(count)) / count
    assert drawn == pytest.approx(sizes.mean, rel=2e-3)


def test_web_search_is_what_was_published():
    """pFabric's scripts give the mean as 1,138 packets; 95 % of all bytes are in the 30 % above 1 MB."""
    sizes = read("web-search")
    assert sizes.mean / PACKET_BYTES == pytest.approx(1138, rel=5e-3)
    assert sizes.quantile(0.7) == 667 * PACKET_BYTES < 1e6
    above = sizes.mean - Sizes(sizes.points, cap=667 * PACKET_BYTES).mean + 0.3 * 667 * PACKET_BYTES
    assert above / sizes.mean == pytest.approx(0.95, abs=0.005)


def test_data_mining_is_what_was_published():
    """5,117 packets, 7.47 MB; four of five flows are of about 10 kB or less, and 95 % of all bytes are in the
    3.6 % that are larger than 35 MB.
    """
    sizes = read("data-mining")
    assert sizes.mean / PACKET_BYTES == pytest.approx(5117, rel=1e-3)
    assert sizes.quantile(0.8) == 7 * PACKET_BYTES
    share, large = 0.0365, 35e6
    assert sizes.quantile(1 - share) == pytest.approx(large, rel=0.01)
    above = sizes.mean - Sizes(sizes.points, cap=int(large)).mean + share * large
    assert above / sizes.mean == pytest.approx(0.95, abs=0.005)
