"""Volleys: flows that start together, from several senders to several receivers."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairq_ryu.experiments.testbed import Testbed
from fairq_ryu.experiments.traffic.announcer import Announcer
from fairq_ryu.experiments.traffic.flow_sender import HEADER
from fairq_ryu.experiments.traffic.workers import RunError, Worker
from fairq_ryu.experiments.workloads.common.measurement import (
    PROBE_BYTES,
    START_S,
    Measurement,
    unreached,
)
from fairq_ryu.experiments.workloads.common.outcomes import Flow, Outcome
from fairq_ryu.experiments.workloads.common.transfers import checksum_limit_s
from mininet_topos.patience import patient

LEAD_S = 0.1
"""From the command to start until the start: by then every source has read it."""
CONNECT_S = 20.0
"""Time limit for opening prepared connections; it allows for two lost SYNs in a row."""
ENDING_S = 2.0
"""After the last byte, a source waits this long for the end of its connection."""


@dataclass
class Volley:
    """A running volley: its flows by number, and their common start."""

    flows: Mapping[int, Flow]
    start_ns: int


class VolleyRunner:
    """Runs volleys with one source for all ``senders`` and a collector for each of ``receivers``. A host may
    appear more than once in each list.
    """

    def __init__(
        self,
        measurement: Measurement[Any],
        testbed: Testbed,
        senders: Sequence[str],
        receivers: Sequence[str],
    ) -> None:
        self._measurement = measurement
        self._senders = list(senders)
        self._source = testbed.local_worker("source")
        self._source.receive("ready", START_S)
        self._sinks = measurement.start_workers(list(receivers), "collector")
        self._pids = [testbed.host(name).pid for name in senders]
        self._from = [testbed.host(name).IP() for name in senders]
        self._to = [testbed.host(name).IP() for name in receivers]
        self._announcer = Announcer(testbed.rest_port, testbed.token)
        self._tcp = testbed.tcp
        self._number = 0

    @property
    def announced(self) -> int:
        """Announcements that the controller has accepted."""
        return self._announcer.accepted

    def reach_all(self) -> None:
        """Send a few bytes from each sender to each sink, so that hosts know each other's addresses.
        `RunError` when they do not arrive.
        """
        flows = [
            Flow(source, sink, PROBE_BYTES, seed=0)
            for source in range(len(self._senders))
            for sink in range(len(self._sinks))
        ]
        limit = patient(5.0)
        failed = unreached(lambda: [each for each in self.run(flows, timeout=limit) if each.ms is None])
        if failed:
            raise RunError(
                f"{self._senders[failed[0].flow.source]} cannot reach a receiver through the network:"
                f" {failed[0].error}"
            )

    def run(self, flows: Sequence[Flow], timeout: float, prepared: bool = False) -> list[Outcome]:
        """Start all flows together; returns when all have arrived, or after ``timeout`` s."""
        volley = self.start(flows, prepared)
        return self.finish(volley, volley.start_ns + int(timeout * 1e9))

    def start(self, flows: Sequence[Flow], prepared: bool = False) -> Volley:
        """Open, announce and start flows. ``prepared``: connections are open before the common start."""
        numbered = {self._number + place: each for place, each in enumerate(flows)}
        self._number += len(flows)
        orders = [self._order(number, flow) for number, flow in numbered.items()]
        opened = self._source.ask("open", 20.0, flows=orders)["ports"]
        ports = {int(number): port for number, port in opened.items()}
        began: float | None = None
        if prepared:
            began = time.monotonic()
            limit = patient(CONNECT_S)
            answer = self._source.ask("connect", CONNECT_S + 10.0, ids=list(numbered), timeout_s=limit)
            if answer["missing"]:
                raise RunError(f"{len(answer['missing'])} connections did not open in {limit:g} s")
        self._announce(numbered, ports, began)
        start_ns = time.monotonic_ns() + int(LEAD_S * 1e9)
        self._tell_hosts(numbered, ports, start_ns)
        self._source.ask("go", 20.0, ids=list(numbered), at_ns=start_ns)
        return Volley(numbered, start_ns)

    def _order(self, number: int, flow: Flow) -> dict[str, Any]:
        return {
            "id": number,
            "pid": self._pids[flow.source],
            "address": self._to[flow.sink],
            "port": self._sinks[flow.sink][1],
            "size": flow.size,
            "seed": flow.seed,
            "dscp": flow.dscp,
        }

    def _announce(self, flows: Mapping[int, Flow], ports: Mapping[int, int], opened: float | None) -> None:
        """Announce every flow with a deadline to the controller. The controller counts a deadline from the
        flow's first SYN; a scenario counts it from the common start, which is later for connections that were
        ``opened`` before (s of the clock).
        """
        for number, flow in flows.items():
            if flow.deadline is None:
                continue
            since_opened = time.monotonic() + LEAD_S - opened if opened is not None else 0.0
            self._announcer.announce(
                src=self._from[flow.source],
                dst=self._to[flow.sink],
                sport=ports[number],
                dport=self._sinks[flow.sink][1],
                size=flow.size,
                deadline=round(flow.deadline + since_opened, 6),
            )

    def _tell_hosts(self, flows: Mapping[int, Flow], ports: Mapping[int, int], start_ns: int) -> None:
        """Tell D2TCP, where hosts run it, of every flow with a deadline, before it sends."""
        for number, flow in flows.items():
            if flow.deadline is not None:
                self._tcp.announce(
                    src=self._from[flow.source],
                    dst=self._to[flow.sink],
                    sport=ports[number],
                    dport=self._sinks[flow.sink][1],
                    size=flow.size,
                    deadline_ns=start_ns + int(flow.deadline * 1e9),
                )

    def end_endless(self, volley: Volley) -> None:
        """End the flows without end."""
        self._source.ask("end", ids=list(volley.flows))

    def finish(self, volley: Volley, until_ns: int) -> list[Outcome]:
        """Wait for the last byte of every flow, at most until ``until_ns``; the outcomes in order."""
        received: dict[int, dict[str, Any]] = {}
        timeout_s = max(0.0, until_ns / 1e9 - time.monotonic()) + 20.0
        waiting: list[Worker] = []
        for place, (worker, _port) in enumerate(self._sinks):
            ids = [number for number, flow in volley.flows.items() if flow.sink == place]
            if ids:
                worker.send("await", ids=ids, until_ns=until_ns)
                waiting.append(worker)
        time.sleep(max(0.0, volley.start_ns / 1e9 - time.monotonic()))
        with self._measurement.volley():
            for worker in waiting:
                received.update({each["id"]: each for each in worker.receive("await", timeout_s)["flows"]})
        answer = self._source.ask("report", ENDING_S + 20.0, ids=list(volley.flows), timeout_s=ENDING_S)
        sent = {each["id"]: each for each in answer["flows"]}
        self._compare(volley, received, sent)
        return [
            _outcome(flow, volley.start_ns, received[number], sent[number])
            for number, flow in volley.flows.items()
        ]

    def _compare(
        self, volley: Volley, received: Mapping[int, dict[str, Any]], sent: Mapping[int, dict[str, Any]]
    ) -> None:
        """Compare the checksum of what arrived of each flow with that of as many bytes at its source."""
        wanted = [(flow.seed, received[number]["bytes"]) for number, flow in volley.flows.items()]
        limit_s = checksum_limit_s(sum(size for _seed, size in wanted))
        sums = self._source.ask("checksum", limit_s, wanted=wanted)["crc"]
        for (number, flow), crc in zip(volley.flows.items(), sums, strict=True):
            arrived = received[number]
            whole = arrived["done_ns"] is None or not flow.size or arrived["bytes"] == flow.size - HEADER.size
            self._measurement.integrity.flow(
                whole and crc == arrived["crc"] and arrived["bytes"] <= sent[number]["sent"]
            )


def _outcome(flow: Flow, start_ns: int, received: Mapping[str, Any], sent: Mapping[str, Any]) -> Outcome:
    done = received["done_ns"]
    return Outcome(
        flow=flow,
        ms=None if done is None else (done - start_ns) / 1e6,
        bytes=received["bytes"],
        error=(sent["error"] or "timeout") if done is None else None,
        retransmissions=sent.get("total_retrans", 0),
        rto_timeouts=sent.get("total_rto"),
        series=[(at, count) for at, count in received["series"]],
    )
