"""One factor for all time limits."""

import math

import pytest

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.measure import machine
from mininet_topos import patience
from mininet_topos.commands import CommandError, run


@pytest.mark.parametrize(("text", "factor"), [("", 1), ("1", 1), (" 2.5 ", 2.5), ("1000", 1000)])
def test_limits_are_multiplied(monkeypatch, text, factor):
    monkeypatch.setenv(patience.VARIABLE, text)
    assert patience.patient(3.0) == 3.0 * factor
    monkeypatch.delenv(patience.VARIABLE)
    assert patience.patient(3.0) == 3.0


@pytest.mark.parametrize("text", ["0.5", "-1", "nan", "inf", "1001", "long"])
def test_another_value_is_refused_before_a_run(monkeypatch, text):
    monkeypatch.setenv(patience.VARIABLE, text)
    with pytest.raises(ValueError, match="must be a number from 1 to 1000"):
        patience.patient(1.0)
    monkeypatch.setattr(machine.os, "geteuid", lambda: 0)
    with pytest.raises(UserError, match=r"FAIRQ_PATIENCE is .*correct or unset it"):
        machine.check_machine([])


def test_a_program_may_take_longer(monkeypatch):
    monkeypatch.delenv(patience.VARIABLE, raising=False)
    with pytest.raises(CommandError, match=r"took more than 0\.2 s"):
        run(["sleep", "0.5"], timeout=0.2)
    monkeypatch.setenv(patience.VARIABLE, "300")
    assert math.isclose(patience.patient(0.2), 60)
    assert run(["sleep", "0.5"], timeout=0.2) == ""
