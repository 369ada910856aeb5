"""Numbers in the cells of tables are short."""

import pytest

from fairq_ryu.cli import cell_text


@pytest.mark.parametrize(
    ("count", "printed"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.0k"),
        (99_940, "99.9k"),
        (99_960, "100k"),
        (999_499, "999k"),
        (999_600, "1.0M"),
        (10**18, "1.0E"),
        (2**64, "18.4E"),
        (10**21, "1000E"),
    ],
)
def test_sizes(count, printed):
    assert cell_text.size(count) == printed


@pytest.mark.parametrize(
    ("bps", "printed"),
    [(1, "1e-06"), (1_500_000, "1.5"), (9_990_000, "10"), (200_000_000, "200"), (1.6e12, "1600000")],
)
def test_rates(bps, printed):
    assert cell_text.mbit(bps) == printed


@pytest.mark.parametrize(
    ("seconds", "printed"),
    [
        (-0.01, "0.0s"),
        (0.34, "0.3s"),
        (9.96, "10s"),
        (59.6, "1m00s"),
        (3599, "59m59s"),
        (3600, "1h00m"),
        (86399, "23h59m"),
        (90000.0, "1d"),
    ],
)
def test_times(seconds, printed):
    assert cell_text.span(seconds) == printed
