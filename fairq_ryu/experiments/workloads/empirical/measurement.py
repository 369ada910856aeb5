"""Flows of published sizes: the empty network, warm-up, then one measured phase; its figures are documented
in `figures`.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Mapping, Sequence
from typing import Any

from fairq_ryu.experiments.measure import queues, stats
from fairq_ryu.experiments.testbed import Testbed
from fairq_ryu.experiments.traffic.workers import RunError
from fairq_ryu.experiments.workloads.common.measurement import LEAD_S, START_S, Measurement, Progress
from fairq_ryu.experiments.workloads.common.short_flows import arrived_and_compared
from fairq_ryu.experiments.workloads.common.volleys import VolleyRunner
from fairq_ryu.experiments.workloads.empirical.figures import RECORD, RECORDS
from fairq_ryu.experiments.workloads.empirical.limits import PROBE_BYTES
from fairq_ryu.experiments.workloads.empirical.schedule import Planned, schedule
from fairq_ryu.experiments.workloads.empirical.settings import EmpiricalScenario

PROBES, PROBE_INTERVAL_S = 50, 0.03


class EmpiricalMeasurement(Measurement[EmpiricalScenario]):
    """Flows that start when they are due, whether or not others have ended."""

    def __init__(self, testbed: Testbed, scenario: EmpiricalScenario, progress: Progress) -> None:
        super().__init__(testbed, scenario, progress)
        self._before_s = 2 * LEAD_S + PROBES * PROBE_INTERVAL_S
        self._expected_s = self._before_s + scenario.warmup_s + scenario.measured_s
        self._probes = VolleyRunner(self, testbed, self._senders, [self._receiver])
        self._source = testbed.local_worker("scheduled")
        self._source.receive("ready", START_S)
        self._collector, port = self.start_worker(self._receiver, "collector")
        self._to = {"address": testbed.host(self._receiver).IP(), "port": port}
        self._pids = [testbed.host(name).pid for name in self._senders]

    def measure(self) -> dict[str, Any]:
        """The empty network; then warm-up and the measured phase, unless there is none."""
        scenario = self._scenario
        self._progress("reaching every sender", 0.0)
        self._probes.reach_all()
        self._progress("single flows on the empty network", 0.0)
        probe_ms = self._probe()
        if not scenario.measured_s:
            return {"empirical": {"probe_ms": probe_ms}}

        planned = schedule(scenario)
        end_s = scenario.warmup_s + scenario.measured_s
        at_ns = self._start(planned)
        self._until("warm-up", at_ns, scenario.warmup_s)
        before, bytes_before = self.reading(), self._left()
        self._until("measuring", at_ns, end_s)
        sent_bytes, seconds = (last - first for first, last in zip(bytes_before, self._left(), strict=True))
        phase = self.since(before)

        self._progress("the last flows end", 1.0)
        ended = self._finish(scenario.finish_s)
        counted = [
            (plan, flow) for plan, flow in zip(planned, ended, strict=True) if plan.due_s >= scenario.warmup_s
        ]
        records = [_record(plan, flow, at_ns) for plan, flow in counted]
        self._write([(number, *each) for number, each in enumerate(records, len(planned) - len(counted))])
        sizes = [plan.size for plan, _flow in counted]
        capacity = scenario.measured_s * scenario.rate_mbit * 1e6 / 8
        late = [(start_s - due_s) * 1e3 for _sender, _size, due_s, start_s, _fct, _timeouts in records]
        return {
            "empirical": {
                "probe_ms": probe_ms,
                "load": sum(sizes) / capacity,
                "mean_bytes": stats.mean(sizes) if sizes else None,
                "utilisation": sent_bytes * 8e-6 / (scenario.rate_mbit * seconds),
                "late_ms": stats.percentile(late, 0.99) if late else None,
                "flows": [(size, fct, timeouts) for _sender, size, _due, _start, fct, timeouts in records],
            },
            **phase,
        }

    def _probe(self) -> float:
        """Median completion time of flows of one segment, one after the other, ms."""
        plan = [
            Planned(number * PROBE_INTERVAL_S, number % len(self._senders), PROBE_BYTES, number)
            for number in range(PROBES)
        ]
        at_ns = self._start(plan)
        time.sleep(max(0.0, at_ns / 1e9 + PROBES * PROBE_INTERVAL_S - time.monotonic()))
        times = [_fct_ms(flow) for flow in self._finish(START_S)]
        ended = [each for each in times if each is not None]
        if not ended:
            raise RunError(f"none of {PROBES} flows of one segment has ended within {START_S:g} s")
        return stats.percentile(ended, 0.5)

    def _start(self, planned: Sequence[Planned]) -> int:
        """Order these flows; returns when the first may start, in ns of the monotonic clock."""
        at_ns = time.monotonic_ns() + int(LEAD_S * 1e9)
        flows = [
            {
                "id": number,
                "at_ns": at_ns + int(plan.due_s * 1e9),
                "pid": self._pids[plan.sender],
                "size": plan.size,
                "seed": plan.seed,
                **self._to,
            }
            for number, plan in enumerate(planned)
        ]
        self._source.ask("schedule", START_S, flows=flows)
        return at_ns

    def _finish(self, within_s: float) -> list[dict[str, Any]]:
        """All flows that were ordered, ended or not after ``within_s``."""
        started = self._source.ask("started", START_S)["flows"]
        return arrived_and_compared(self, self._source, self._collector, started, within_s)

    def _write(self, rows: Sequence[Sequence[Any]]) -> None:
        with (self._testbed.logs / RECORDS).open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(RECORD)
            writer.writerows(rows)

    def _until(self, step: str, at_ns: int, seconds: float) -> None:
        """Wait until ``seconds`` after the first flow may start."""
        passed = time.monotonic() - at_ns / 1e9
        self.sleep(step, seconds - passed, self._before_s + passed)

    def _left(self) -> tuple[float, float]:
        """Bytes that have left the bottleneck port, and the time of this reading, s."""
        return queues.sent_bytes(self._port), time.monotonic()


def _fct_ms(flow: Mapping[str, Any]) -> float | None:
    return None if flow["done_ns"] is None else (flow["done_ns"] - flow["start_ns"]) / 1e6


def _record(
    plan: Planned, flow: Mapping[str, Any], at_ns: int
) -> tuple[int, int, float, float, float | None, int | None]:
    """Of a flow what `RECORD` says, without its number."""
    start_s = (flow["start_ns"] - at_ns) / 1e9
    return plan.sender, plan.size, round(plan.due_s, 6), round(start_s, 6), _fct_ms(flow), flow["total_rto"]


MEASUREMENT = EmpiricalMeasurement
