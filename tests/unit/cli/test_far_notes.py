"""What is inferred about hidden queues, in words."""

from __future__ import annotations

from typing import Any

import pytest

from fairq_ryu.cli.far_notes import far_notes
from fairq_ryu.far_queue import Why

ROW: dict[str, Any] = {
    "dpid": "0000000000000001",
    "port": 65537,
    "virtual_rate_why": "others",
    "line_bps": 50_000_000,
    "virtual_rate_bps": 30_000_000,
    "hidden_delay_s": 0.00123,
}


def test_the_rate_the_reason_and_the_delay_are_told() -> None:
    (line,) = far_notes([ROW, ROW | {"virtual_rate_why": None}])
    assert line == (
        "far queue 1:65537: rate 30 of 50 Mbit/s (what other traffic leaves), delay above 1.23 ms"
    )


def test_what_is_not_known_is_said() -> None:
    (blind,) = far_notes([ROW | {"virtual_rate_why": "blind", "hidden_delay_s": None}])
    assert blind.endswith("no round trips are seen), delay above not measured")
    (unknown,) = far_notes([ROW | {"virtual_rate_why": "unknown", "line_bps": 0, "virtual_rate_bps": 0}])
    assert "not known yet" in unknown


@pytest.mark.parametrize("why", [each for each in Why if each is not Why.UNKNOWN])
def test_each_reason_has_words(why: Why) -> None:
    (line,) = far_notes([ROW | {"virtual_rate_why": why.name.lower()}])
    assert f"({why.name.lower()})" not in line
