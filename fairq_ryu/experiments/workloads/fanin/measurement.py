"""Rounds of a fan-in, for each number of flows."""

from __future__ import annotations

from typing import Any, NamedTuple

from fairq_ryu.experiments.testbed import Testbed
from fairq_ryu.experiments.workloads.common import rounds
from fairq_ryu.experiments.workloads.common.measurement import Measurement, Progress, stolen_during
from fairq_ryu.experiments.workloads.common.outcomes import Flow, Outcome
from fairq_ryu.experiments.workloads.common.volleys import VolleyRunner
from fairq_ryu.experiments.workloads.fanin import figures
from fairq_ryu.experiments.workloads.fanin.settings import FaninScenario


class Round(NamedTuple):
    """One volley and its outcomes."""

    outcomes: list[Outcome]
    sender_timeouts: int
    """retransmission timeouts in the senders' namespaces during the volley"""
    stolen_percent: float
    """of all CPU time during the volley"""


class FaninMeasurement(Measurement[FaninScenario]):
    """Rounds for each number of flows."""

    def __init__(self, testbed: Testbed, scenario: FaninScenario, progress: Progress) -> None:
        super().__init__(testbed, scenario, progress)
        self._rounds_s = scenario.rounds * scenario.round_interval_s
        self._expected_s = len(scenario.flows) * self._rounds_s
        places = scenario.plan.receivers
        self._receivers = [places[number % len(places)] for number in range(len(scenario.sizes_bytes))]
        # A collector, and so a port, for each application: a policy can recognise the application by it.
        self._volleys = VolleyRunner(self, testbed, self._senders, self._receivers)

    def measure(self) -> dict[str, Any]:
        """Every number of flows, in order."""
        self._progress("reaching every receiver", 0.0)
        self._volleys.reach_all()
        before = self.reading()
        sweep = [self._sweep_entry(place, number) for place, number in enumerate(self._scenario.flows)]
        phase = self.since(before)
        return {"fanin": figures.fanin_figures(sweep, self._volleys.announced), **phase}

    def _sweep_entry(self, place: int, number: int) -> dict[str, Any]:
        """All rounds with ``number`` flows an application."""
        scenario = self._scenario
        before = self.reading()
        made = self.make_rounds(
            lambda _round: self._round(number),
            scenario.rounds,
            scenario.round_interval_s,
            place * self._rounds_s,
            prefix=f"{number} flows each, ",
        )
        phase = self.since(before)
        stolen = [each.stolen_percent for each in made]
        counted = rounds.counted(stolen, scenario.rounds)
        return {
            "n": number,
            "rounds": rounds.figures(stolen, scenario.rounds),
            **figures.rounds_figures(
                [made[each].outcomes for each in counted],
                sum(made[each].sender_timeouts for each in counted),
                scenario.round_timeout_s,
            ),
            "qdisc_drops": phase["queue"]["qdisc_drops"],
            "queue": phase["queue"]["rounds"],
            "stolen_percent": phase["cpu"]["stolen_percent"],
        }

    def _round(self, number: int) -> Round:
        scenario = self._scenario
        flows = [
            Flow(
                source=place % len(self._senders),
                sink=place // number,
                size=size,
                seed=self._random.getrandbits(32),
                deadline=deadline,
            )
            for place, (size, deadline) in enumerate(
                figures.round_flows(scenario.sizes_bytes, scenario.deadlines_s, number)
            )
        ]
        timeouts = self.read_counters()["rto_timeouts"]
        received, stolen_percent = stolen_during(
            lambda: self._volleys.run(flows, scenario.round_timeout_s, scenario.prepared)
        )
        return Round(received, self.read_counters()["rto_timeouts"] - timeouts, stolen_percent)


MEASUREMENT = FaninMeasurement
