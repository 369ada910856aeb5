"""One flood beside an incast with elephants and deadline flows: what must hold, and what is measured."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from fairq_ryu.errors import UserError
from mininet_topos.patience import patient
from tests.faults.load import Load
from tests.faults.site import RATE
from tests.floods.frames import SIZE
from tests.floods.site import FloodSite
from tests.floods.table import Flood
from tests.support.lab import until

_STEP = 0.1
MOST_MB = 200
"""Each of controller and agent may grow by so much: nearly three times the most that was measured."""


@dataclass(frozen=True)
class Lengths:
    """Seconds without the flood, before and afterwards each, and with it."""

    without: float
    flood: float


# The short one has no rate to compare with: nothing asks for it.
SHORT, LONG = Lengths(0.0, 2.0), Lengths(3.0, 10.0)


@dataclass(frozen=True)
class Measured:
    """``kept``: the rate of the elephants during the flood, divided by that without it (0: there was none);
    where the flood takes a part of their port, the rate of all connections, divided by what is left of it.
    ``sent``: frames or connections of the flood a second. The slowest answers, seconds. ``memory``: what
    controller and agent have grown by, MB. ``bounds``: quantities and their bounds. ``windows``: the part of
    the looks at which all elephants had lowered windows.
    """

    kept: float
    sent: float
    slowest: tuple[float, float]
    memory: tuple[float, float]
    bounds: dict[str, tuple[float, float]]
    windows: float


def make(flooded: FloodSite, flood: Flood, lengths: Lengths) -> Measured:
    """Make the flood in the middle of traffic. AssertionError: something does not hold."""
    site = flooded.site
    if flood.config:
        assert site.agent.end() == 0, site.agent.text
        site.start_agent(flood.config)
    resets, known = site.resets(), flooded.known()
    evicted = site.status()["flows_evicted"]
    with site.load() as load:
        site.wait_until_governed(load)
        flooded.flows = load.elephants()
        count = _counted(flood, load)
        before = _rate(count, patient(lengths.without))
        memory = flooded.memory()
        running = flood.make(flooded, lengths.flood)
        time.sleep(max(0.0, running.begin - time.monotonic()))
        volleys = load.done.copy()
        most: tuple[float, ...] = memory
        windows: list[bool] = []
        with flooded.asked() as answers:
            begun, first = time.monotonic(), count()
            while (passed := time.monotonic() - begun) < lengths.flood:
                time.sleep(_STEP)
                windows.append(not site.is_free(load))
                most = tuple(map(max, most, flooded.memory()))
            during = (count() - first) / passed
            bounds = dict(flood.bounds(flooded))
            sent = running.wait()
        most = tuple(map(max, most, flooded.memory()))
        after = _rate(count, patient(lengths.without))
        grown = (most[0] - memory[0], most[1] - memory[1])
        assert max(grown) <= MOST_MB, f"controller and agent have grown by {grown} MB"
        assert answers.failed == [], f"no answer: {answers.failed}\n{site.explained(load)}"
        assert answers.controller and answers.agent
        over = {name: pair for name, pair in bounds.items() if not pair[0] <= pair[1]}
        assert not over, f"more than the bound: {over}\n{site.explained(load)}"
        assert _evicted(flooded) > evicted or not flood.evicts, site.explained(load)
        assert flooded.known() == known, site.explained(load)
        assert until(lambda: load.done["mouse"] > volleys["mouse"]), site.explained(load)
        assert until(site.governs(load)), f"no normal control\n{site.explained(load)}"
        assert load.finish() == [], site.logs()
    assert site.resets() == resets
    if flood.config:
        assert site.agent.end() == 0, site.agent.text
        site.start_agent()
    return Measured(
        kept=_kept(flood, sent, before, during, after),
        sent=sent,
        slowest=(max(answers.controller), max(answers.agent)),
        memory=grown,
        bounds=bounds,
        windows=sum(windows) / len(windows),
    )


def kept_alone(flooded: FloodSite, flood: Flood, lengths: Lengths) -> float:
    """What flows keep of their rate beside the same flood when Open vSwitch forwards alone, without agent and
    controller (and so without windows): that much the machine and the switch can do.
    """
    with flooded.alone(), flooded.site.load() as load:
        assert until(lambda: load.done["mouse"] > 0), load.faults
        flooded.flows = load.elephants()
        count = _counted(flood, load)
        before = _rate(count, patient(lengths.without))
        running = flood.make(flooded, lengths.flood)
        time.sleep(max(0.0, running.begin - time.monotonic()))
        during = _rate(count, lengths.flood)
        sent = running.wait()
        after = _rate(count, patient(lengths.without))
        assert load.finish() == [], load.faults
    return _kept(flood, sent, before, during, after)


def _counted(flood: Flood, load: Load) -> Callable[[], int]:
    """The bytes that a rate is of."""
    return (lambda: load.arrived) if flood.to_receiver else (lambda: sum(load.acknowledged()))


def _kept(flood: Flood, sent: float, before: float, during: float, after: float) -> float:
    left = 1 - sent * SIZE * 8e-6 / RATE if flood.to_receiver else 1.0
    without = (before + after) / 2 * left
    return during / without if without else 0.0


def _rate(count: Callable[[], int], seconds: float) -> float:
    """Bytes a second."""
    if not seconds:
        return 0.0
    began, first = time.monotonic(), count()
    time.sleep(seconds)
    return (count() - first) / (time.monotonic() - began)


def _evicted(flooded: FloodSite) -> int:
    try:
        return int(flooded.site.status()["flows_evicted"])
    except UserError as error:
        raise AssertionError(f"the agent does not answer: {error}") from error
