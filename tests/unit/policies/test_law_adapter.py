"""Port laws of any class become typed port laws; what a law shows is one value."""

from __future__ import annotations

import pytest

from fairq_ryu.model import (
    NO_WINDOWS,
    Announcement,
    Congestion,
    FlowKey,
    FlowProgress,
    PortKey,
    QueueSample,
    Thresholds,
    WindowPlan,
)
from fairq_ryu.policies.base import Display, PortLaw
from fairq_ryu.policies.engine import PolicyEngine
from fairq_ryu.policies.law_adapter import adapted, takes_announcements
from fairq_ryu.policies.parts.deadline_table import GifTable
from tests.support.fakes import info

PORT = PortKey(1, 1)
FLOW = FlowKey("10.0.0.1", "10.0.0.2", 80, 1000)
SAMPLE = QueueSample(0, 0, 100_000, 0, 0, 0, 0.0)
PLAN = WindowPlan(window=1460)
CALLS = {
    "flow_started": (info(FLOW), 1, 0.5),
    "flow_ended": (info(FLOW), 0, 0.5),
    "queue_sampled": (SAMPLE, 1, 0.5),
    "congestion": (Congestion.CNG, 9000, 0.5),
    "announced": (FLOW, Announcement(1000, 5.0), 0.5),
    "progressed": ({FLOW: FlowProgress(1, 2, 0.001, True)}, 0.5),
    "settled": (0.5,),
}
WISHES = {"wants_progress": True, "thresholds": Thresholds(50, 20), "display": Display(target=7)}
NEUTRAL = {"wants_progress": False, "thresholds": None, "display": Display()}


def test_a_typed_port_law_is_not_wrapped():
    law = PortLaw()
    assert adapted(law) is law


@pytest.mark.parametrize("method", CALLS)
def test_each_event_alone_reaches_a_law_of_any_class(method):
    calls = []

    def record(self, *arguments):
        calls.append(arguments)
        return PLAN

    law = adapted(type("Foreign", (), {method: record})())
    answers = {name: getattr(law, name)(*arguments) for name, arguments in CALLS.items()}
    assert calls == [CALLS[method]]
    assert answers == {name: PLAN if name == method else None for name in CALLS}
    assert {name: getattr(law, name)() for name in NEUTRAL} == NEUTRAL


@pytest.mark.parametrize("method", WISHES)
def test_each_request_method_alone_is_used_of_a_law_of_any_class(method):
    law = adapted(type("Foreign", (), {method: lambda self: WISHES[method]})())
    assert {name: getattr(law, name)() for name in WISHES} == NEUTRAL | {method: WISHES[method]}


@pytest.mark.parametrize("name", CALLS | WISHES)
def test_methods_that_a_law_provides_by_getattr_are_called(name):
    class Dynamic:
        def __getattr__(self, attribute):
            if attribute == name:
                return lambda *arguments: WISHES.get(name, PLAN)
            raise AttributeError(attribute)

    law = adapted(Dynamic())
    assert {each: getattr(law, each)(*arguments) for each, arguments in CALLS.items()} == {
        each: PLAN if each == name else None for each in CALLS
    }
    assert {each: getattr(law, each)() for each in NEUTRAL} == NEUTRAL | (
        {name: WISHES[name]} if name in WISHES else {}
    )
    policy = type("Policy", (), {"port_law": lambda self, port: Dynamic()})()
    assert takes_announcements(policy) == (name == "announced")


def test_an_attribute_that_cannot_be_called_is_no_method():
    law = adapted(type("Foreign", (), dict.fromkeys(CALLS | WISHES))())
    assert {name: getattr(law, name)(*arguments) for name, arguments in CALLS.items()} == dict.fromkeys(CALLS)
    assert {name: getattr(law, name)() for name in NEUTRAL} == NEUTRAL


# Display


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
    assert engine.display(PORT) == engine.view()[PORT].shown
    assert engine.failures == 0
    return engine.display(PORT)


@pytest.mark.parametrize("base", [PortLaw, object])
def test_what_a_law_shows_is_one_value(base):
    table = GifTable()

    class Law(base):
        def display(self):
            return Display(target=1000.7, incast=True, gif=table)

    shown = display(Law())
    assert (shown.target, shown.incast, shown.state) == (1000, True, None)
    assert shown.gif is table


def test_a_law_without_display_shows_nothing():
    assert display(object()) == display(PortLaw()) == Display(where="controller")


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
    assert engine.display(PORT).state is None  # no thresholds yet
    engine.thresholds(PORT)
    assert engine.display(PORT).state is Congestion.NOM
    engine.congestion(PORT, Congestion.CNG, 60, 0.1)
    assert engine.display(PORT).state is Congestion.CNG
    law.wanted = None
    engine.thresholds(PORT)
    assert engine.display(PORT).state is None
    assert engine.display(PortKey(9, 9)) == Display()
    assert engine.view()[PORT].plan == NO_WINDOWS
