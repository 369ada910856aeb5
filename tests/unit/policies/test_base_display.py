"""What a law shows is one value, and what is no law."""

from __future__ import annotations

import pytest

from fairq_ryu.model import (
    NO_WINDOWS,
    Congestion,
    FlowKey,
    PortKey,
    QueueSample,
    Thresholds,
    WindowPlan,
)
from fairq_ryu.policies.base import Display, PortLaw
from fairq_ryu.policies.engine import PolicyEngine
from fairq_ryu.policies.parts.deadline_table import GifTable

PORT = PortKey(1, 1)
FLOW = FlowKey("10.0.0.1", "10.0.0.2", 80, 1000)
SAMPLE = QueueSample(0, 0, 100_000, 0, 0, 0, 0.0)
PLAN = WindowPlan(window=1460)


class Shown:
    """A policy whose laws are of one class."""

    name, interval = "shown", 0.01

    def __init__(self, law: object) -> None:
        self.law = law

    def port_law(self, port):
        return self.law


def display(law: object) -> Display:
    engine = PolicyEngine(Shown(law), 2.0)
    engine.sampled(PORT, SAMPLE, 0.0)
    assert engine.failures == 0
    return engine.view()[PORT].shown


def test_what_a_law_shows_is_one_value():
    table = GifTable()

    class Law(PortLaw):
        def display(self):
            return Display(target=1000.7, incast=True, gif=table)

    shown = display(Law())
    assert (shown.target, shown.incast, shown.state) == (1000, True, None)
    assert shown.gif is table


def test_what_does_not_derive_from_the_class_of_laws_is_none(caplog):
    engine = PolicyEngine(Shown(object()), 2.0)
    engine.sampled(PORT, SAMPLE, 0.0)
    assert engine.failures == 1 and "port_law() returns a PortLaw or None, not <object" in caplog.text
    assert engine.view()[PORT].plan == NO_WINDOWS


def test_a_law_without_display_shows_nothing():
    assert display(PortLaw()) == Display(where="controller")


def fail() -> Display:
    raise RuntimeError("a bad day")


@pytest.mark.parametrize(
    "shows",
    [
        fail,
        dict,
        lambda: Display(target=float("nan")),
        lambda: Display(target="much"),
        lambda: Display(incast=1),
        lambda: Display(gif=[]),
    ],
)
def test_a_law_that_cannot_be_shown_still_governs(shows):
    class Law(PortLaw):
        def queue_sampled(self, sample, flows, now):
            return PLAN

        def display(self):
            return shows()

    assert display(Law()) == Display(where="controller")
    engine = PolicyEngine(Shown(Law()), 2.0)
    engine.sampled(PORT, SAMPLE, 0.0)
    assert engine.view()[PORT].plan == PLAN


def test_the_state_of_a_queue_that_the_switch_watches_is_shown():
    class Law(PortLaw):
        wanted: Thresholds | None = Thresholds(50, 20)

        def thresholds(self):
            return self.wanted

    law = Law()
    engine = PolicyEngine(Shown(law), 2.0)
    engine.sampled(PORT, SAMPLE, 0.0)
    assert engine.view()[PORT].shown.state is None  # no thresholds yet
    engine.thresholds(PORT)
    assert engine.view()[PORT].shown.state is Congestion.NOM
    engine.congestion(PORT, Congestion.CNG, 60, 0.1)
    assert engine.view()[PORT].shown.state is Congestion.CNG
    law.wanted = None
    engine.thresholds(PORT)
    assert engine.view()[PORT].shown.state is None
    assert engine.view()[PORT].plan == NO_WINDOWS
