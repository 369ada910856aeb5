"""A flood of SYNs: the elephants before it, during it and afterwards.

The ``flood`` object of a policy in the result: syns sent in seconds, syn_rate (per s, as achieved),
during_share (elephants' goodput during the flood / before it). ``elephants`` and all other figures are of
the time of the flood.
"""

from __future__ import annotations

from typing import Any

from fairq_ryu.experiments.testbed import Testbed
from fairq_ryu.experiments.traffic import syns
from fairq_ryu.experiments.workloads.common.elephants import ElephantGroup, elephants_summary
from fairq_ryu.experiments.workloads.common.measurement import Measurement, Progress
from fairq_ryu.experiments.workloads.flood.settings import FloodScenario


class FloodMeasurement(Measurement[FloodScenario]):
    """The last sender sends the SYNs; the others send elephants."""

    def __init__(self, testbed: Testbed, scenario: FloodScenario, progress: Progress) -> None:
        super().__init__(testbed, scenario, progress)
        self._expected_s = scenario.warmup_s + scenario.elephants_only_s + scenario.flood_s + scenario.after_s
        self._attacker = self._senders.pop()
        self._elephants = ElephantGroup(
            self, [self._receiver], self._senders, scenario.elephants, scenario.seed
        )
        self._syns, _port = self.start_worker(self._attacker, "syns")

    def measure(self) -> dict[str, Any]:
        """Before, during, after."""
        scenario, victim = self._scenario, self._testbed.host(self._receiver)
        attacker = self._testbed.host(self._attacker)
        self._elephants.start(victim.IP())
        self._syns.ask(
            "aim",
            interface=str(attacker.defaultIntf()),
            addresses=syns.spare_addresses(
                f"{victim.IP()}/{victim.defaultIntf().prefixLen}", scenario.flood_addresses
            ),
            mac=victim.MAC(),
            address=victim.IP(),
            port=self._elephants.ports[0],
        )
        passed = scenario.warmup_s
        self.sleep("elephants warm up", passed, 0.0)
        alone, alone_queue = self._elephants.measure_alone(
            self, "before the flood", scenario.elephants_only_s, passed
        )
        passed += scenario.elephants_only_s

        before, info_before, mark_before = self.reading(), self._elephants.info(), self._elephants.mark()
        self._syns.send("flood", rate=scenario.syn_rate, seconds=scenario.flood_s, seed=scenario.seed)
        self.sleep("flood", scenario.flood_s, passed)
        sent = self._syns.receive("flood", 60.0)
        mark_after, info_after = self._elephants.mark(), self._elephants.info()
        phase = self.since(before, alone_queue)
        after, _ = self._elephants.measure_alone(
            self, "after the flood", scenario.after_s, passed + scenario.flood_s
        )
        self._progress("comparing what arrived with what was sent", 1.0)
        self._elephants.finish(self)
        elephants = elephants_summary(mark_before, mark_after, info_before, info_after, alone, after)
        return {
            "elephants": elephants,
            "flood": {
                "syns": sent["sent"],
                "syn_rate": sent["sent"] / sent["seconds"],
                "seconds": sent["seconds"],
                "during_share": elephants["goodput_sum_mbit"] / alone if alone else None,
            },
            **phase,
        }


MEASUREMENT = FloodMeasurement
