"""The effect of a thousand REST requests per second on an incast: delay of the control loop, and mice FCTs.

The incast scenario runs under FairQ, alternately without and with a client that requests ``/v1/ports`` all
the time, on the same processors as the rest.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from fairq_ryu.errors import UserError
from fairq_ryu.experiments import scenario
from fairq_ryu.experiments.testbed import Interrupted, Interrupts, Testbed
from fairq_ryu.experiments.traffic.workers import RunError
from fairq_ryu.experiments.workloads import registry
from mininet_topos.commands import CommandError

ROOT = Path(__file__).resolve().parents[1]
TURNS = (False, True, True, False)
SECONDS = 30
RATE = 1000
WANTED_DELAY, WANTED_FCT = 2.0, 1.5
METRIC = "fairq_loop_delay_seconds"


@dataclass(slots=True)
class Side:
    """The measurements of the runs without requests, or of those with requests. Times in seconds."""

    requests: int = 0
    buckets: dict[float, float] = field(default_factory=dict)
    fct_p99: list[float] = field(default_factory=list)

    @property
    def delay_p99(self) -> float:
        """The 99th percentile, by linear interpolation within its bucket, as Prometheus computes it."""
        bounds = sorted(self.buckets)
        wanted, below, least = 0.99 * self.buckets[bounds[-1]], 0.0, 0.0
        for bound in bounds:
            if self.buckets[bound] >= wanted:
                part = (wanted - below) / max(1.0, self.buckets[bound] - below)
                return least + part * (min(bound, 10.0) - least)
            least, below = bound, self.buckets[bound]
        return least


def main() -> None:
    """Print the figures."""
    sides = {False: Side(), True: Side()}
    try:
        with Interrupts() as interrupts, tempfile.TemporaryDirectory() as directory:
            for number, asked in enumerate(TURNS):
                _turn(sides[asked], asked, Path(directory) / str(number), interrupts)
    except Interrupted:
        print("bench: interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    except (CommandError, RunError, UserError) as error:
        raise SystemExit(f"bench: {error}") from None
    quiet, busy = sides[False], sides[True]
    seconds = SECONDS * TURNS.count(True)
    print(
        f"serving: {busy.requests / seconds:.0f} requests of /v1/ports a second for {seconds} s, all answered"
    )
    print(
        f"serving: control loop late by {quiet.delay_p99 * 1000:.2f} ms (p99) without them, "
        f"{busy.delay_p99 * 1000:.2f} with: ratio {busy.delay_p99 / quiet.delay_p99:.2f}, "
        f"wanted {WANTED_DELAY:.2f} at most"
    )
    without, others = max(quiet.fct_p99), max(busy.fct_p99)
    print(
        f"serving: mice FCT p99 {without:.1f} ms without them, {others:.1f} with: "
        f"ratio {others / without:.2f}, wanted {WANTED_FCT:.2f} at most"
    )


def _turn(side: Side, asked: bool, logs: Path, interrupts: Interrupts) -> None:
    chosen = scenario.load("incast", {"rounds": str(SECONDS), "elephants_only_s": "0"})
    testbed = Testbed(chosen, "fairq", logs, None)
    loader: subprocess.Popen[str] | None = None
    try:
        with interrupts.deferred():
            testbed.start()
        url = f"http://127.0.0.1:{testbed.rest_port}"

        def progress(step: str, _part: float) -> None:
            nonlocal loader, before
            if step.startswith("round 1 of"):
                before = _buckets(url)
                if asked:
                    loader = _start_loader(url)

        before: dict[float, float] = {}
        measurement = registry.WORKLOADS[chosen.traffic].measurement()
        measured: dict[str, Any] = measurement(testbed, chosen, progress).run()
        for bound, count in _buckets(url).items():
            side.buckets[bound] = side.buckets.get(bound, 0.0) + count - before.get(bound, 0.0)
        side.fct_p99.append(measured["mice"]["fct_ms"]["p99"])
        if loader is not None:
            answered, _ = loader.communicate(timeout=60)
            if loader.returncode:
                raise RunError("a request was not answered")
            side.requests += int(answered)
    finally:
        with interrupts.deferred():
            if loader is not None and loader.poll() is None:
                loader.kill()
                loader.wait()
            for trouble in testbed.stop():
                print(f"bench: {trouble}", file=sys.stderr)


def _start_loader(url: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "bench.serving", url], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )


def _buckets(url: str) -> dict[float, float]:
    """The number of turns of the loop whose delay was at most each bound (seconds)."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    return {
        float(sample.labels["le"]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == f"{METRIC}_bucket"
    }


if __name__ == "__main__":
    from bench.rest import load

    print(load(sys.argv[1], float(SECONDS), RATE))
