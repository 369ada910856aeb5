"""Fan-in: applications with several senders and one receiver each, in rounds that all begin at once, for a
list of numbers of senders: the large experiment of SED's paper, and with one application RSED's
barrier-synchronised rounds.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from fairq_ryu.experiments.measure import machine, outcomes
from fairq_ryu.experiments.measure.measurement import Measurement, Progress
from fairq_ryu.experiments.measure.outcomes import Flow, Outcome
from fairq_ryu.experiments.scenario import Scenario
from fairq_ryu.experiments.testbed import Testbed
from fairq_ryu.experiments.workloads import rounds
from fairq_ryu.experiments.workloads.incast import STOLEN_LATE_S
from fairq_ryu.experiments.workloads.volleys import Volleys


class Round(NamedTuple):
    """One volley and what came of it."""

    outcomes: list[Outcome]
    sender_timeouts: int
    """retransmission timeouts in the senders' namespaces since the end of the round before"""
    stolen_percent: float
    """of all CPU time during the volley"""


class Fanin(Measurement):
    """Rounds for each number of flows."""

    def __init__(self, testbed: Testbed, scenario: Scenario, progress: Progress) -> None:
        """Start the generators inside the hosts."""
        super().__init__(testbed, scenario, progress)
        self._each_s = scenario.rounds * scenario.round_interval_s
        self._expected_s = len(scenario.flows) * self._each_s
        places = scenario.shape.receivers
        self._receivers = [places[number % len(places)] for number in range(len(scenario.sizes_bytes))]
        # A collector, and so a port, for each application: it can be told by that as a service.
        self._volleys = Volleys(self, testbed, self._senders, self._receivers)

    def measure(self) -> dict[str, Any]:
        """Every number of flows, in order."""
        self._progress("reaching every receiver", 0.0)
        self._volleys.reach_all()
        before = self.reading()
        sweep = [self._at(place, number) for place, number in enumerate(self._scenario.flows)]
        phase = self.since(before)
        return {"fanin": outcomes.fanin_figures(sweep, self._volleys.announced), **phase}

    def _at(self, place: int, number: int) -> dict[str, Any]:
        """All rounds with ``number`` flows an application."""
        scenario = self._scenario
        before = self.reading()
        made: list[Round] = []
        stolen: list[float] = []
        next_start = began = time.monotonic()
        while len(made) < (needed := rounds.needed(stolen, scenario.rounds)):
            start = next_start + self._random.uniform(0, 0.1) * scenario.round_interval_s
            time.sleep(max(0.0, start - time.monotonic()))
            further = (needed - scenario.rounds) * scenario.round_interval_s
            step = f"{number} flows each, {rounds.step(stolen, scenario.rounds)}"
            self._progress(step, self.part(place * self._each_s + start - began, further))
            made.append(self._round(number))
            stolen.append(made[-1].stolen_percent)
            next_start = max(next_start + scenario.round_interval_s, time.monotonic())
        phase = self.since(before)
        counted = rounds.counted(stolen, scenario.rounds)
        return {
            "n": number,
            "rounds": rounds.figures(stolen, scenario.rounds),
            **outcomes.rounds_figures(
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
                source=(application * number + copy) % len(self._senders),
                sink=application,
                size=size,
                seed=self._random.getrandbits(32),
                deadline=deadline or None,
            )
            for application, (size, deadline) in enumerate(
                zip(scenario.sizes_bytes, scenario.deadlines_s, strict=True)
            )
            for copy in range(number)
        ]
        timeouts = self.read_counters()["rto_timeouts"]
        cpu_before = machine.cpu_times()
        came = self._volleys.run(flows, scenario.round_timeout_s, scenario.prepared)
        time.sleep(STOLEN_LATE_S)
        stolen_percent = machine.cpu_shares(cpu_before, machine.cpu_times())["stolen_percent"]
        return Round(came, self.read_counters()["rto_timeouts"] - timeouts, stolen_percent)
