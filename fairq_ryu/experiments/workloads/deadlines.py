"""Flows with deadlines from one start moment on, beside flows without end: the small experiment of SED's
paper.
"""

from __future__ import annotations

import time
from typing import Any

from fairq_ryu.experiments.measure import outcomes
from fairq_ryu.experiments.measure.measurement import Measurement, Progress
from fairq_ryu.experiments.measure.outcomes import Flow
from fairq_ryu.experiments.scenario import Scenario
from fairq_ryu.experiments.testbed import Testbed
from fairq_ryu.experiments.workloads.volleys import Volleys

PAUSE_S = 1.0
"""Between two runs: queues are empty and the controller has heard that all flows have ended."""
DRAIN_S = 30.0
"""An endless flow gets so long to bring what its host had taken in when it is ended."""


class Deadlines(Measurement):
    """All flows at once, again and again."""

    def __init__(self, testbed: Testbed, scenario: Scenario, progress: Progress) -> None:
        """Start the generators inside the hosts."""
        super().__init__(testbed, scenario, progress)
        # Until the last deadline; nobody knows how much longer the flows of a bad run take.
        self._each_s = scenario.warmup_s + max(*scenario.deadlines_s, 1.0) + PAUSE_S
        self._expected_s = scenario.repeats * self._each_s
        count = len(scenario.sizes_bytes)
        # Sources of endless flows are processes of their own, also where they share a host.
        places = [*range(count), *(count + number for number in range(scenario.endless))]
        hosts = [self._senders[place % len(self._senders)] for place in places]
        self._volleys = Volleys(self, testbed, hosts, [self._receiver])

    def measure(self) -> dict[str, Any]:
        """All runs, in order."""
        scenario = self._scenario
        self._progress("reaching every sender", 0.0)
        self._volleys.reach_all()
        runs: list[dict[str, Any]] = []
        before = self.reading()
        for number in range(scenario.repeats):
            self._progress(f"run {number + 1} of {scenario.repeats}", self.part(number * self._each_s))
            runs.append(self._run())
            time.sleep(PAUSE_S)
        phase = self.since(before)
        return {
            "deadlines": outcomes.deadlines_figures(runs, self._volleys.announced),
            **phase,
        }

    def _run(self) -> dict[str, Any]:
        scenario = self._scenario
        count = len(scenario.sizes_bytes)
        endless = [
            Flow(count + number, 0, 0, self._random.getrandbits(32)) for number in range(scenario.endless)
        ]
        beside = self._volleys.start(endless) if endless else None
        time.sleep(scenario.warmup_s)
        flows = [
            Flow(place, 0, size, self._random.getrandbits(32), deadline or None)
            for place, (size, deadline) in enumerate(
                zip(scenario.sizes_bytes, scenario.deadlines_s, strict=True)
            )
        ]
        before = self.reading()
        volley = self._volleys.start(flows)
        until_ns = volley.start_ns + int(scenario.round_timeout_s * 1e9)
        came = self._volleys.finish(volley, until_ns)
        end_ns = volley.start_ns + int(outcomes.last_ms(came, scenario.round_timeout_s) * 1e6)
        phase = self.since(before)
        starved: list[dict[str, Any]] = []
        if beside is not None:
            self._volleys.end_endless(beside)
            drained = time.monotonic_ns() + int(DRAIN_S * 1e9)
            for each in self._volleys.finish(beside, drained):
                starved.append(outcomes.beside_others(each.series, volley.start_ns, end_ns))
        queue = phase["queue"]["rounds"]
        return {
            "flows": [outcomes.flow_figures(each) for each in came],
            "endless": starved,
            "seconds": (end_ns - volley.start_ns) / 1e9,
            "qdisc_drops": phase["queue"]["qdisc_drops"],
            "queue_mean_bytes": queue["mean_bytes"] if queue else None,
            "queue_p99_bytes": queue["p99_bytes"] if queue else None,
            "stolen_percent": phase["cpu"]["stolen_percent"],
        }
