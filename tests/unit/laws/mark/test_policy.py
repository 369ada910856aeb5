"""K of the policy mark: packets, or a part of the buffer."""

import pytest

from fairq_ryu.config.loader import Config
from fairq_ryu.laws.mark import MarkLaw
from fairq_ryu.laws.mark.policy import Mark


@pytest.mark.parametrize(
    ("settings", "law", "mark_bytes"),
    [
        ({}, MarkLaw(), 20 * 1514),
        ({"threshold": 30}, MarkLaw(mark_bytes=30 * 1514), 30 * 1514),
        ({"threshold": 30, "fraction": 0.25}, MarkLaw(mark_bytes=30 * 1514, mark_ppm=250_000), 25_000),
        ({"fraction": 1.0}, MarkLaw(mark_ppm=1_000_000), 100_000),
    ],
)
def test_a_fraction_takes_the_place_of_a_number_of_packets(settings, law, mark_bytes):
    spec = Mark(Config().section("mark") | settings).spec()
    assert spec == law and spec.wrong() is None
    assert spec.own(100_000, 25_000_000) == {"mark_bytes": mark_bytes}
