"""The rows of `make bench` that count new connections."""

from bench import connections
from bench.network import Measurement


def test_every_row_is_compared_with_one_before_it():
    seen = set()
    for row in connections.rows():
        assert not row.base or row.base in seen
        seen.add(row.name)


def row(name, rates, dropped=0, repeated=0, **rest):
    """A row measured in as many rounds as there are rates, each a second long and without warm-up."""
    results = [Measurement(rate, round(rate), rate * 3e-4, dropped, repeated) for rate in rates]
    return connections.Row(name, results=results, **rest)


def test_a_row_shows_its_ratio_and_its_losses():
    base = row("base", [100.0, 200.0, 400.0])
    own = row("own", [90.0, 160.0, 300.0], dropped=220, copies=4, base="base", wanted=0.8)
    # 660 of the 4 copies of each of 550 connections.
    assert connections.describe(own, [base, own]) == (
        "new connections, own                160 (90 to 300) a second, "
        "ratio to base 0.80 (0.75 to 0.90), wanted 0.80, processors 300 µs each, copies lost 30 %"
    )


def test_a_row_whose_base_was_not_measured_has_no_ratio():
    own = row("own", [10.0], repeated=3, base="base")
    assert connections.describe(own, [own]) == (
        "new connections, own                10 (10 to 10) a second, processors 300 µs each, "
        "segments sent again 3"
    )
