"""Which ports believe the scale that segments tell."""

from __future__ import annotations

import pytest

from fairq_ryu.agent import layout
from fairq_ryu.agent.told_scale import MODES, NOT_TOLD, ToldScales
from fairq_ryu.config import schema


@pytest.mark.parametrize("mode", MODES)
def test_a_port_that_a_pattern_matches_believes(mode: str) -> None:
    told = ToldScales(mode, ("vnet*", "eth1"))
    assert {name: told.of([name]) for name in ("vnet7", "eth1", "eth10", "s1")} == {
        "vnet7": MODES[mode],
        "eth1": MODES[mode],
        "eth10": 0,
        "s1": 0,
    }
    assert told.of(["s1", "eth1"]) == MODES[mode], "a device of several ports"


def test_nobody_believes_without_a_mode() -> None:
    assert NOT_TOLD.of(["eth1"]) == 0 and ToldScales("", ("*",)).of(["eth1"]) == 0


def test_the_setting_has_the_modes_of_the_programs() -> None:
    assert schema.settings_of("agent")["told_scale"].choices == ("", *MODES)
    numbers = {name: value for name, value in layout.CONSTANTS.items() if name.startswith("FQ_TELL_")}
    assert sorted(numbers.values()) == sorted(MODES.values())
