"""The tables of the congestion controls: what is checked in, and what RFC 3649 prints."""

from __future__ import annotations

import pytest

from fairq_ryu.experiments.hostcc import tables
from tests.support.documents import ROOT


@pytest.mark.parametrize("name", tables.HEADERS)
def test_the_checked_in_header_is_the_one_that_is_made(name: str) -> None:
    assert (tables.BPF_DIR / name).read_text() == tables.HEADERS[name]()


def test_hstcp_s_table_is_that_of_the_rfc() -> None:
    printed = [line.split() for line in (ROOT / "tests/data/rfc3649.txt").read_text().splitlines()[1:]]
    found = [[str(window), str(a), f"{b:.2f}"] for window, a, b in tables.hstcp_rows()]
    assert found == printed


def test_reno_below_its_first_row() -> None:
    assert [(tables.increase(w), tables.decrease(w)) for w in (1, 38)] == [(1.0, 0.5), (1.0, 0.5)]
    assert tables.decrease(83_000) == pytest.approx(0.1)
