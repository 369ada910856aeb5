"""The generators of heterogeneous flows: started in the hosts, marked while they run, compared at the end."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from fairq_ryu.experiments.testbed import Testbed
from fairq_ryu.experiments.traffic.flow_sender import HEADER
from fairq_ryu.experiments.traffic.payload import checksum
from fairq_ryu.experiments.traffic.workers import RunError, Worker, ask_all
from fairq_ryu.experiments.workloads.common.measurement import START_S, Measurement
from fairq_ryu.experiments.workloads.common.transfers import finish_transfers
from fairq_ryu.experiments.workloads.heterogeneous.figures import Mark, Sockets
from fairq_ryu.experiments.workloads.heterogeneous.settings import Group, HeterogeneousScenario

LINGER_S = 10.0
"""Short flows have this long to finish after the measured phase."""


class LongTraffic:
    """The groups of long flows from the senders in turn to the receiver."""

    def __init__(
        self, measurement: Measurement[Any], testbed: Testbed, scenario: HeterogeneousScenario
    ) -> None:
        """Start the generators; nothing is sent yet."""
        self._testbed = testbed
        self._scenario = scenario
        receiver, hosts = scenario.plan.receiver, scenario.plan.senders(scenario.senders)
        self._address = testbed.host(receiver).IP()
        self._sink, _port = measurement.start_worker(receiver, "sink")
        self._places = self._start(measurement, hosts, udp=False)
        self._udp_places = self._start(measurement, hosts, udp=True)
        self._datagrams: Worker | None = None
        self._udp_port = 0
        if self._udp_places:
            self._datagrams, self._udp_port = measurement.start_worker(receiver, "datagrams")
            self._datagrams.ask("expect", seed=scenario.seed)

    def _start(
        self, measurement: Measurement[Any], hosts: Sequence[str], udp: bool
    ) -> list[tuple[Worker, list[tuple[Group, int]]]]:
        """A generator on each host that has such flows, with the group and the number of each of these."""
        flows = [
            (group, number)
            for group in self._scenario.members
            if group.udp == udp
            for number in group.numbers
        ]
        by_host = {
            name: [each for each in flows if each[1] % len(hosts) == place]
            for place, name in enumerate(hosts)
        }
        used = [name for name in hosts if by_host[name]]
        workers = measurement.start_workers(used, "udp" if udp else "longflows")
        return [(worker, by_host[name]) for name, (worker, _port) in zip(used, workers, strict=True)]

    def begin(self, at_ns: int) -> None:
        """Order all flows to start; ``at_ns``: when those start whose group starts at 0."""
        # Receivers, too: where packets are marked, both ends of a flow need a control that echoes marks.
        ports = {
            kind: self._sink.ask("listen", cc=self._testbed.tcp.name_of(kind))["port"]
            for kind in self._scenario.long_controls
        }
        for worker, flows in self._places:
            orders = [
                {**self._order(group, number, at_ns, ports[group.kind]), "cc": self._name(group)}
                for group, number in flows
            ]
            worker.ask("begin", flows=orders, seed=self._scenario.seed)
        for worker, flows in self._udp_places:
            orders = [
                {**self._order(group, number, at_ns, self._udp_port), "mbit": self._scenario.udp_mbit}
                for group, number in flows
            ]
            worker.ask("begin", flows=orders, seed=self._scenario.seed)

    def _name(self, group: Group) -> str:
        return self._testbed.tcp.name_of(group.kind)

    def _order(self, group: Group, number: int, at_ns: int, port: int) -> dict[str, Any]:
        start_ns = at_ns + int(group.start_s * 1e9)
        return {"index": number, "address": self._address, "port": port, "at_ns": start_ns}

    def mark(self, at_s: float) -> Mark:
        """What has arrived until now, which is ``at_s`` as planned."""
        if self._datagrams is not None:
            self._datagrams.send("mark")
        tcp = self._sink.ask("mark")
        udp = None if self._datagrams is None else self._datagrams.receive("mark", 10.0)
        return Mark(at_s, tcp, udp)

    def sockets(self) -> Sockets:
        """The counters of the sockets that send."""
        tcp: dict[str, Any] = {}
        for answer in ask_all([worker for worker, _flows in self._places], "info"):
            tcp.update(answer["flows"])
        return Sockets(tcp, self._udp_sent("mark") if self._udp_places else None)

    def _udp_sent(self, command: str) -> dict[str, Any]:
        """What has been sent of each UDP flow."""
        answers = ask_all([worker for worker, _flows in self._udp_places], command)
        sent = {number: count for each in answers for number, count in each["bytes"].items()}
        return {"clock_ns": answers[0]["clock_ns"], "bytes": sent}

    def check_controls(self) -> None:
        """`RunError` unless the sockets at both ends of each flow that has a connection use the congestion
        control of its group.
        """
        wanted = {
            str(number): self._name(group)
            for group in self._scenario.members
            if not group.udp
            for number in group.numbers
        }
        senders = ask_all([worker for worker, _flows in self._places], "controls")
        ends = {"sender": {number: name for each in senders for number, name in each["flows"].items()}}
        ends["receiver"] = self._sink.ask("controls")["flows"]
        for end, found in ends.items():
            for number, name in found.items():
                if name != wanted[number]:
                    raise RunError(
                        f"the {end}'s socket of flow {number} uses the congestion control {name} and not"
                        f" {wanted[number]}"
                    )

    def finish(self, measurement: Measurement[Any]) -> None:
        """End all flows, and compare what arrived of each with what was sent."""
        if self._datagrams is not None:
            sent = self._udp_sent("finish")["bytes"]
            arrived = self._datagrams.ask("mark")
            for number, count in sent.items():
                measurement.integrity.flow(
                    arrived["bytes"].get(number, 0) <= count and not arrived["altered"]
                )
        finish_transfers(measurement, [worker for worker, _flows in self._places], self._sink)


class ShortTraffic:
    """Short flows from the senders in turn to the receiver."""

    def __init__(
        self, measurement: Measurement[Any], testbed: Testbed, scenario: HeterogeneousScenario
    ) -> None:
        """Start the generators; nothing is sent yet."""
        self._scenario = scenario
        self._source = testbed.local_worker("arrivals")
        self._source.receive("ready", START_S)
        receiver = scenario.plan.receiver
        self._collector, port = measurement.start_worker(receiver, "collector")
        pids = [testbed.host(name).pid for name in scenario.plan.senders(scenario.senders)]
        self._to = {"address": testbed.host(receiver).IP(), "port": port, "pids": pids}

    def begin(self, at_ns: int) -> None:
        """Start flows from ``at_ns`` on."""
        scenario = self._scenario
        self._source.ask(
            "arrive",
            at_ns=at_ns,
            per_s=scenario.short_rate,
            seed=scenario.seed,
            least=max(HEADER.size + 1, scenario.short_least_bytes),
            most=scenario.short_most_bytes,
            shape=scenario.short_shape,
            **self._to,
        )

    def finish(self, measurement: Measurement[Any]) -> tuple[list[dict[str, Any]], Mapping[int, int | None]]:
        """Start no more; the flows, and when the last byte of each has arrived (None: it has not). What
        arrived is compared with what was sent.
        """
        started: list[dict[str, Any]] = self._source.ask("cease")["flows"]
        ids = [flow["id"] for flow in started]
        until_ns = time.monotonic_ns() + int(LINGER_S * 1e9)
        arrived = self._collector.ask("await", LINGER_S + 20.0, ids=ids, until_ns=until_ns)["flows"]
        sent = self._source.ask("report", 30.0, ids=ids, timeout_s=1.0)["flows"]
        for flow, here, there in zip(started, arrived, sent, strict=True):
            whole = here["done_ns"] is None or here["bytes"] == flow["size"] - HEADER.size
            same = here["crc"] == checksum(flow["seed"], here["bytes"])
            measurement.integrity.flow(whole and same and here["bytes"] <= there["sent"])
        return started, {each["id"]: each["done_ns"] for each in arrived}
