"""The generators of the long flows: TCP by groups, and UDP."""

from __future__ import annotations

from typing import Any

from fairq_ryu.experiments.testbed import Testbed
from fairq_ryu.experiments.workloads.common.datagram_flows import DatagramFlow, DatagramFlows
from fairq_ryu.experiments.workloads.common.long_flows import LongFlow, LongFlows
from fairq_ryu.experiments.workloads.common.measurement import Measurement
from fairq_ryu.experiments.workloads.heterogeneous.figures import Mark, Sockets
from fairq_ryu.experiments.workloads.heterogeneous.settings import HeterogeneousScenario


class LongTraffic:
    """The groups of long flows from the senders in turn to the receiver."""

    def __init__(
        self, measurement: Measurement[Any], testbed: Testbed, scenario: HeterogeneousScenario
    ) -> None:
        """Start the generators; nothing is sent yet."""
        receiver, hosts = scenario.plan.receiver, scenario.plan.senders(scenario.senders)
        tcp = [
            LongFlow(number, hosts[number % len(hosts)], receiver, group.kind, group.start_s)
            for group in scenario.members
            if not group.udp
            for number in group.numbers
        ]
        self._tcp = LongFlows(measurement, testbed, tcp, scenario.seed)
        udp = [
            DatagramFlow(number, hosts[number % len(hosts)], group.start_s)
            for group in scenario.members
            if group.udp
            for number in group.numbers
        ]
        self._udp = (
            DatagramFlows(measurement, testbed, udp, receiver, scenario.udp_mbit, scenario.seed)
            if udp
            else None
        )

    def begin(self, at_ns: int) -> None:
        """Order all flows to start; ``at_ns``: when those start whose group starts at 0."""
        self._tcp.begin(at_ns)
        if self._udp is not None:
            self._udp.begin(at_ns)

    def mark(self, at_s: float) -> Mark:
        """What has arrived until now, which is ``at_s`` as planned."""
        if self._udp is not None:
            self._udp.ask_mark()
        tcp = self._tcp.mark()
        return Mark(at_s, tcp, None if self._udp is None else self._udp.mark())

    def sockets(self) -> Sockets:
        """The counters of the sockets that send."""
        return Sockets(self._tcp.sockets(), None if self._udp is None else self._udp.sent())

    def check_controls(self) -> None:
        """See `LongFlows.check_controls`."""
        self._tcp.check_controls()

    def finish(self, measurement: Measurement[Any]) -> None:
        """End all flows, and compare what arrived of each with what was sent."""
        if self._udp is not None:
            self._udp.finish(measurement)
        self._tcp.finish(measurement)
