"""Pairs of flows at one rate, one pair after the other."""

from __future__ import annotations

import time
from typing import Any

from fairq_ryu.experiments.testbed import Testbed
from fairq_ryu.experiments.workloads.common.measurement import Measurement, Progress
from fairq_ryu.experiments.workloads.common.outcomes import Flow, Outcome
from fairq_ryu.experiments.workloads.common.volleys import LEAD_S, VolleyRunner
from fairq_ryu.experiments.workloads.pairs import figures
from fairq_ryu.experiments.workloads.pairs.settings import LONG, SHORT, SHORT_DSCP, PairsScenario

PAUSE_S = 2.0
"""Time between two pairs: then queues are empty, the controller knows that all flows have ended, and coupled
hosts have forgotten their windows.
"""


class PairsMeasurement(Measurement[PairsScenario]):
    """Pairs at the rate of the scenario."""

    def __init__(self, testbed: Testbed, scenario: PairsScenario, progress: Progress) -> None:
        super().__init__(testbed, scenario, progress)
        alone_s = (scenario.long_bytes + scenario.short_bytes) * 8e-6 / scenario.rate_mbit
        self._pair_s = max(scenario.short_after_s + 1, alone_s) + PAUSE_S
        self._expected_s = scenario.repeats * self._pair_s
        self._volleys = VolleyRunner(self, testbed, self._senders, [self._receiver])

    def measure(self) -> dict[str, Any]:
        """All pairs."""
        scenario = self._scenario
        self._progress("reaching every sender", 0.0)
        self._volleys.reach_all()
        before = self.reading()
        made: list[tuple[Outcome, Outcome]] = []
        for number in range(scenario.repeats):
            self._progress(f"pair {number + 1} of {scenario.repeats}", self.share_done(number * self._pair_s))
            made.append(self._pair())
            time.sleep(PAUSE_S)
        phase = self.since(before)
        queue = phase["queue"]["rounds"]
        rate = {
            "rate_mbit": scenario.rate_mbit,
            "buffer_bytes": scenario.buffer_bytes,
            "pairs": len(made),
            "long": figures.flows_figures([pair[0] for pair in made], scenario.round_timeout_s),
            "short": figures.flows_figures([pair[1] for pair in made], scenario.round_timeout_s),
            "qdisc_drops": phase["queue"]["qdisc_drops"],
            "queue_mean_bytes": queue["mean_bytes"] if queue else None,
        }
        return {"pairs": figures.pairs_figures([rate]), **phase}

    def _pair(self) -> tuple[Outcome, Outcome]:
        """The outcomes of a long flow and of the short one beside it."""
        scenario = self._scenario
        # Drawn in the same order under every policy.
        starts = self._random.random(), scenario.short_after_s + self._random.random()
        sizes = scenario.long_bytes, scenario.short_bytes
        flows = [
            Flow(source, 0, size, self._random.getrandbits(32), dscp=SHORT_DSCP if source == SHORT else 0)
            for source, size in zip((LONG, SHORT), sizes, strict=True)
        ]
        began = time.monotonic()
        volleys = []
        for start, flow in zip(starts, flows, strict=True):
            time.sleep(max(0.0, began + start - LEAD_S - time.monotonic()))
            volleys.append(self._volleys.start([flow]))
        found = [
            self._volleys.finish(volley, volley.start_ns + int(scenario.round_timeout_s * 1e9))[0]
            for volley in reversed(volleys)  # the short one ends first, as a rule
        ]
        return found[1], found[0]


MEASUREMENT = PairsMeasurement
