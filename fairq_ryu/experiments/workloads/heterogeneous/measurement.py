"""Heterogeneous flows: warm-up, then one measured phase; its figures are documented in `figures`."""

from __future__ import annotations

import time
from typing import Any

from fairq_ryu.experiments.measure import queues
from fairq_ryu.experiments.testbed import Testbed
from fairq_ryu.experiments.workloads.common.measurement import LEAD_S, Measurement, Progress
from fairq_ryu.experiments.workloads.common.short_flows import ShortFlows, short_figures
from fairq_ryu.experiments.workloads.common.volleys import VolleyRunner
from fairq_ryu.experiments.workloads.heterogeneous import figures
from fairq_ryu.experiments.workloads.heterogeneous.settings import HeterogeneousScenario
from fairq_ryu.experiments.workloads.heterogeneous.traffic import LongTraffic


class HeterogeneousMeasurement(Measurement[HeterogeneousScenario]):
    """Groups of long flows, and short flows beside them."""

    def __init__(self, testbed: Testbed, scenario: HeterogeneousScenario, progress: Progress) -> None:
        super().__init__(testbed, scenario, progress)
        self._expected_s = LEAD_S + scenario.warmup_s + scenario.measured_s
        self._probes = VolleyRunner(self, testbed, self._senders, [self._receiver])
        self._long = LongTraffic(self, testbed, scenario)
        self._short = ShortFlows(self, testbed, scenario, self._senders) if scenario.short_rate else None

    def measure(self) -> dict[str, Any]:
        """Warm-up, then the measured phase."""
        scenario = self._scenario
        self._progress("reaching every sender", 0.0)
        self._probes.reach_all()
        at_ns = time.monotonic_ns() + int(LEAD_S * 1e9)
        self._long.begin(at_ns)
        if self._short is not None:
            self._short.begin(at_ns)
        self.sleep_until("warm-up", at_ns, scenario.warmup_s)

        before, sockets_before, bytes_before = self.reading(), self._long.sockets(), self._left()
        marks = [self._long.mark(scenario.warmup_s)]
        end_s = scenario.warmup_s + scenario.measured_s
        starts = {group.start_s for group in scenario.members if group.start_s > scenario.warmup_s}
        for at_s in (*sorted(starts), end_s):
            self.sleep_until("measuring", at_ns, at_s)
            marks.append(self._long.mark(at_s))
        sent_bytes, seconds = (last - first for first, last in zip(bytes_before, self._left(), strict=True))
        sockets = (sockets_before, self._long.sockets())
        phase = self.since(before)

        self._progress("comparing what arrived with what was sent", 1.0)
        self._long.check_controls()
        short = None
        if self._short is not None:
            measured_ns = at_ns + int(scenario.warmup_s * 1e9), at_ns + int(end_s * 1e9)
            short = short_figures(self._short.finish(self), measured_ns)
        self._long.finish(self)
        queue = phase["queue"]["rounds"]
        return {
            "tcp": self._controls(),
            "heterogeneous": {
                **figures.long_flows(scenario.members, marks, sockets, scenario.rate_mbit),
                "utilisation": figures.utilisation(int(sent_bytes), seconds, scenario.rate_mbit),
                "delay_ms": figures.delay_ms(queue, self._testbed.buffer_bytes, scenario.rate_mbit),
                "short": short,
            },
            **phase,
        }

    def _left(self) -> tuple[float, float]:
        """Bytes that have left the bottleneck port, and the time of this reading, s."""
        return queues.sent_bytes(self._port), time.monotonic()

    def _controls(self) -> dict[str, str]:
        """The congestion controls that flows have used, as the result describes them."""
        used = {*self._scenario.long_controls, *([self._scenario.cc] if self._short else [])}
        return {name: what for name, what in self._testbed.tcp.described().items() if name in used}


MEASUREMENT = HeterogeneousMeasurement
