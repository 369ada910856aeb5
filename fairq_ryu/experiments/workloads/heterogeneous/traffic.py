"""The generators of the long flows: TCP by groups, and UDP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairq_ryu.experiments.testbed import Testbed
from fairq_ryu.experiments.traffic.workers import Worker, ask_all
from fairq_ryu.experiments.workloads.common.long_flows import LongFlow, LongFlows
from fairq_ryu.experiments.workloads.common.measurement import Measurement
from fairq_ryu.experiments.workloads.heterogeneous.figures import Mark, Sockets
from fairq_ryu.experiments.workloads.heterogeneous.settings import Group, HeterogeneousScenario


class LongTraffic:
    """The groups of long flows from the senders in turn to the receiver."""

    def __init__(
        self, measurement: Measurement[Any], testbed: Testbed, scenario: HeterogeneousScenario
    ) -> None:
        """Start the generators; nothing is sent yet."""
        self._scenario = scenario
        receiver, hosts = scenario.plan.receiver, scenario.plan.senders(scenario.senders)
        self._address = testbed.host(receiver).IP()
        tcp = [
            LongFlow(number, hosts[number % len(hosts)], receiver, group.kind, group.start_s)
            for group in scenario.members
            if not group.udp
            for number in group.numbers
        ]
        self._tcp = LongFlows(measurement, testbed, tcp, scenario.seed)
        self._udp = self._start_udp(measurement, hosts)
        self._datagrams: Worker | None = None
        self._udp_port = 0
        if self._udp:
            self._datagrams, self._udp_port = measurement.start_worker(receiver, "datagrams")
            self._datagrams.ask("expect", seed=scenario.seed)

    def _start_udp(
        self, measurement: Measurement[Any], hosts: Sequence[str]
    ) -> list[tuple[Worker, list[tuple[Group, int]]]]:
        """A generator on each host that has UDP flows, with the group and the number of each of these."""
        flows = [(group, number) for group in self._scenario.members if group.udp for number in group.numbers]
        by_host = {
            name: [each for each in flows if each[1] % len(hosts) == place]
            for place, name in enumerate(hosts)
        }
        used = [name for name in hosts if by_host[name]]
        workers = measurement.start_workers(used, "udp")
        return [(worker, by_host[name]) for name, (worker, _port) in zip(used, workers, strict=True)]

    def begin(self, at_ns: int) -> None:
        """Order all flows to start; ``at_ns``: when those start whose group starts at 0."""
        self._tcp.begin(at_ns)
        for worker, flows in self._udp:
            orders = [
                {
                    "index": number,
                    "address": self._address,
                    "port": self._udp_port,
                    "at_ns": at_ns + int(group.start_s * 1e9),
                    "mbit": self._scenario.udp_mbit,
                }
                for group, number in flows
            ]
            worker.ask("begin", flows=orders, seed=self._scenario.seed)

    def mark(self, at_s: float) -> Mark:
        """What has arrived until now, which is ``at_s`` as planned."""
        if self._datagrams is not None:
            self._datagrams.send("mark")
        tcp = self._tcp.mark()
        udp = None if self._datagrams is None else self._datagrams.receive("mark", 10.0)
        return Mark(at_s, tcp, udp)

    def sockets(self) -> Sockets:
        """The counters of the sockets that send."""
        return Sockets(self._tcp.sockets(), self._udp_sent("mark") if self._udp else None)

    def _udp_sent(self, command: str) -> dict[str, Any]:
        """What has been sent of each UDP flow."""
        answers = ask_all([worker for worker, _flows in self._udp], command)
        sent = {number: count for each in answers for number, count in each["bytes"].items()}
        return {"clock_ns": answers[0]["clock_ns"], "bytes": sent}

    def check_controls(self) -> None:
        """See `LongFlows.check_controls`."""
        self._tcp.check_controls()

    def finish(self, measurement: Measurement[Any]) -> None:
        """End all flows, and compare what arrived of each with what was sent."""
        if self._datagrams is not None:
            sent = self._udp_sent("finish")["bytes"]
            arrived = self._datagrams.ask("mark")
            for number, count in sent.items():
                measurement.integrity.flow(
                    arrived["bytes"].get(number, 0) <= count and not arrived["altered"]
                )
        self._tcp.finish(measurement)
