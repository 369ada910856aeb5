"""Faults of the controller: counted, logged once in a while, and reported for a while."""

from __future__ import annotations

import logging

import pytest

from fairq_ryu.control.reports.faults import _LOG_AGAIN, RECENT, Faults


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_what_fails_is_counted_and_what_follows_goes_on(clock):
    faults = Faults(clock)
    for _ in range(3):
        with faults.noted("tick"):
            raise ZeroDivisionError
    with faults.noted("expiry"):
        pass
    assert faults.counts == {"tick": 3} and faults.recent() == ["tick"]


def test_each_kind_is_logged_with_its_traceback_once_in_a_while(clock, caplog):
    faults = Faults(clock)

    def fail(part: str, error: Exception) -> list[logging.LogRecord]:
        caplog.clear()
        with faults.noted(part):
            raise error
        return list(caplog.records)

    (record,) = fail("tick", ValueError("one"))
    assert record.levelno == logging.ERROR and "tick has failed (1 times so far)" in record.message
    assert record.exc_info is not None and str(record.exc_info[1]) == "one" and record.exc_info[2] is not None
    assert fail("tick", ValueError("two")) == []
    assert len(fail("tick", KeyError("other"))) == len(fail("expiry", ValueError("three"))) == 1
    clock.now += _LOG_AGAIN
    (record,) = fail("tick", ValueError("four"))
    assert "4 times" in record.message


def test_a_fault_is_the_state_for_a_while(clock):
    faults = Faults(clock)
    faults.add("tick", ValueError())
    clock.now += RECENT / 2
    faults.add("expiry", ValueError())
    assert faults.recent() == ["expiry", "tick"]
    clock.now += RECENT / 2
    assert faults.recent() == ["expiry"]
    clock.now += RECENT / 2
    assert faults.recent() == []


def test_the_end_of_a_greenlet_is_no_fault(clock):
    faults = Faults(clock)
    with pytest.raises(SystemExit), faults.noted("tick"):
        raise SystemExit
    assert not faults.counts
