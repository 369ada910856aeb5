"""Runs of flows with deadlines that start together, beside flows without end."""

from __future__ import annotations

import time
from typing import Any

from fairq_ryu.experiments.testbed import Testbed
from fairq_ryu.experiments.workloads.common.measurement import Measurement, Progress
from fairq_ryu.experiments.workloads.common.outcomes import Flow, last_ms
from fairq_ryu.experiments.workloads.common.volleys import VolleyRunner
from fairq_ryu.experiments.workloads.deadlines import figures
from fairq_ryu.experiments.workloads.deadlines.settings import DeadlinesScenario

PAUSE_S = 1.0
"""Time between two runs: then queues are empty, and the controller knows that all flows have ended."""
DRAIN_S = 30.0
"""Time limit for the data that the host of an endless flow still has queued when the flow is ended."""


class DeadlinesMeasurement(Measurement[DeadlinesScenario]):
    """All flows together, in each of several runs."""

    def __init__(self, testbed: Testbed, scenario: DeadlinesScenario, progress: Progress) -> None:
        super().__init__(testbed, scenario, progress)
        # Until the last deadline; how much longer the flows of a bad run take is not known.
        self._run_s = scenario.warmup_s + max(*scenario.deadlines_s, 1.0) + PAUSE_S
        self._expected_s = scenario.repeats * self._run_s
        count = len(scenario.sizes_bytes)
        # Endless flows have sources of their own, also where they share a host.
        places = [*range(count), *(count + number for number in range(scenario.endless))]
        hosts = [self._senders[place % len(self._senders)] for place in places]
        self._volleys = VolleyRunner(self, testbed, hosts, [self._receiver])

    def measure(self) -> dict[str, Any]:
        """All runs, in order."""
        scenario = self._scenario
        self._progress("reaching every sender", 0.0)
        self._volleys.reach_all()
        runs: list[dict[str, Any]] = []
        before = self.reading()
        for number in range(scenario.repeats):
            self._progress(f"run {number + 1} of {scenario.repeats}", self.share_done(number * self._run_s))
            runs.append(self._run())
            time.sleep(PAUSE_S)
        phase = self.since(before)
        return {
            "deadlines": figures.deadlines_figures(runs, self._volleys.announced),
            **phase,
        }

    def _run(self) -> dict[str, Any]:
        scenario = self._scenario
        count = len(scenario.sizes_bytes)
        endless = [
            Flow(count + number, 0, 0, self._random.getrandbits(32)) for number in range(scenario.endless)
        ]
        background = self._volleys.start(endless) if endless else None
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
        received = self._volleys.finish(volley, until_ns)
        end_ns = volley.start_ns + int(last_ms(received, scenario.round_timeout_s) * 1e6)
        phase = self.since(before)
        endless_flows: list[dict[str, Any]] = []
        if background is not None:
            self._volleys.end_endless(background)
            drained = time.monotonic_ns() + int(DRAIN_S * 1e9)
            for each in self._volleys.finish(background, drained):
                endless_flows.append(figures.endless_figures(each.series, volley.start_ns, end_ns))
        queue = phase["queue"]["rounds"]
        return {
            "flows": [figures.flow_figures(each) for each in received],
            "endless": endless_flows,
            "seconds": (end_ns - volley.start_ns) / 1e9,
            "qdisc_drops": phase["queue"]["qdisc_drops"],
            "queue_mean_bytes": queue["mean_bytes"] if queue else None,
            "queue_p99_bytes": queue["p99_bytes"] if queue else None,
            "stolen_percent": phase["cpu"]["stolen_percent"],
        }


MEASUREMENT = DeadlinesMeasurement
