"""Tenants, stage after stage; the figures are documented in `figures`."""

from __future__ import annotations

import time
from typing import Any

from fairq_ryu.experiments.testbed import Testbed
from fairq_ryu.experiments.workloads.common.long_flows import LongFlow, LongFlows
from fairq_ryu.experiments.workloads.common.measurement import LEAD_S, Measurement, Progress
from fairq_ryu.experiments.workloads.common.outcomes import Flow, Outcome
from fairq_ryu.experiments.workloads.common.short_flows import ShortFlows, flow_figures, short_figures
from fairq_ryu.experiments.workloads.common.volleys import VolleyRunner
from fairq_ryu.experiments.workloads.tenants import figures
from fairq_ryu.experiments.workloads.tenants.settings import TenantsScenario


class TenantsMeasurement(Measurement[TenantsScenario]):
    """Long flows of tenants, and short flows beside them."""

    def __init__(self, testbed: Testbed, scenario: TenantsScenario, progress: Progress) -> None:
        super().__init__(testbed, scenario, progress)
        self._expected_s = LEAD_S + scenario.stages * scenario.stage_s
        self._volley_runner = VolleyRunner(self, testbed, self._senders, scenario.plan.receivers)
        self._flows = scenario.flows
        flows = [
            LongFlow(
                flow.number,
                flow.sender,
                flow.receiver,
                self._control(flow.sender),
                flow.stage * scenario.stage_s,
            )
            for flow in self._flows
        ]
        self._long = LongFlows(self, testbed, flows, scenario.seed)
        self._short = ShortFlows(self, testbed, scenario, scenario.others) if scenario.short_rate else None

    def _control(self, host: str) -> str:
        own = self._scenario.sender_cc
        return own[self._senders.index(host) % len(own)] if own else self._scenario.cc

    def measure(self) -> dict[str, Any]:
        """All stages."""
        scenario = self._scenario
        self._progress("reaching every sender", 0.0)
        self._volley_runner.reach_all()
        at_ns = time.monotonic_ns() + int(LEAD_S * 1e9)
        self._long.begin(at_ns)
        if self._short is not None:
            self._short.begin(at_ns)
        self.sleep_until("the first stage settles", at_ns, scenario.settle_s)
        before, sockets_before = self.reading(), self._long.sockets()
        stages: list[figures.Stage] = []
        volleys: list[Outcome] = []
        for number in range(scenario.stages):
            from_s = number * scenario.stage_s
            step = f"stage {number + 1} of {scenario.stages}"
            self.sleep_until(step, at_ns, from_s + scenario.settle_s)
            began = self._long.mark()
            volleys += self._volleys(step, at_ns, from_s + scenario.stage_s)
            self.sleep_until(step, at_ns, from_s + scenario.stage_s)
            stages.append(figures.Stage(from_s, began, self._long.mark()))
        sockets = (sockets_before, self._long.sockets())
        phase = self.since(before)

        self._progress("comparing what arrived with what was sent", 1.0)
        self._long.check_controls()
        short = None
        if self._short is not None:
            measured = (scenario.settle_s, scenario.stages * scenario.stage_s)
            begin_ns, end_ns = (at_ns + int(seconds * 1e9) for seconds in measured)
            short = short_figures(self._short.finish(self), (begin_ns, end_ns))
        self._long.finish(self)
        return {
            "tenants": {
                **figures.tenants_figures(
                    scenario.long_tenants, self._flows, stages, sockets, scenario.weights
                ),
                "lost_share": figures.lost_share(phase["queue"]),
                "short": short,
                "volleys": flow_figures(
                    [each.ms for each in volleys], [each.rto_timeouts for each in volleys]
                )
                if volleys
                else None,
            },
            **phase,
        }

    def _volleys(self, step: str, at_ns: int, seconds: float) -> list[Outcome]:
        """Volleys, as long as there is time for one until then."""
        scenario = self._scenario
        outcomes: list[Outcome] = []
        receivers = scenario.plan.receivers
        pairs = [(self._senders.index(one), receivers.index(other)) for one, other in scenario.volley]
        while pairs:
            begun = time.monotonic() - at_ns / 1e9
            if begun + scenario.volley_interval_s > seconds:
                break
            flows = [
                Flow(*pair, scenario.volley_bytes, seed=len(outcomes) + place)
                for place, pair in enumerate(pairs)
            ]
            outcomes += self._volley_runner.run(flows, timeout=scenario.volley_interval_s)
            self.sleep_until(step, at_ns, begun + scenario.volley_interval_s)
        return outcomes


MEASUREMENT = TenantsMeasurement
