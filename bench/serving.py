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

from bench.figures import ratios
from fairq_ryu.errors import UserError
from fairq_ryu.experiments import scenario
from fairq_ryu.experiments.measure import intervals
from fairq_ryu.experiments.testbed import Interrupted, Interrupts, Testbed
from fairq_ryu.experiments.traffic.workers import RunError
from fairq_ryu.experiments.variants import Variant
from fairq_ryu.experiments.workloads import registry
from mininet_topos.commands import CommandError

ROOT = Path(__file__).resolve().parents[1]
PAIRS = 5
TURNS = (False, True, True, False) * (PAIRS // 2) + (False, True) * (PAIRS % 2)
SECONDS = 15
RATE = 1000
WANTED_DELAY, WANTED_FCT = 2.0, 1.5
METRIC = "fairq_loop_delay_seconds"


@dataclass(slots=True)
class Side:
    """The measurements of the runs without requests, or of those with requests, one of each run."""

    requests: int = 0
    delay_p99_ms: list[float] = field(default_factory=list)
    fct_p99_ms: list[float] = field(default_factory=list)


def p99(buckets: dict[float, float]) -> float:
    """The 99th percentile of a histogram (upper bound: number up to it), by linear interpolation within its
    bucket, as Prometheus computes it. Above 10 there is no bound.
    """
    bounds = sorted(buckets)
    wanted, below, least = 0.99 * buckets[bounds[-1]], 0.0, 0.0
    for bound in bounds:
        if buckets[bound] >= wanted:
            part = (wanted - below) / max(1.0, buckets[bound] - below)
            return least + part * (min(bound, 10.0) - least)
        least, below = bound, buckets[bound]
    return least


def compared(what: str, without: list[float], others: list[float], wanted: float) -> str:
    """A line with the means of both sides, ms, and the ratio of neighbouring runs, with 95 % intervals."""
    means = [intervals.of_mean(each) for each in (without, others)]
    before, after = (f"{each.mean:.1f} \u00b1 {each.high - each.mean:.1f}" for each in means)
    ratio = intervals.of_ratio(ratios(others, without))
    return (
        f"serving: {what} (p99) {before} ms without them, {after} with: ratio {ratio.mean:.2f}"
        f" [{ratio.low:.2f}, {ratio.high:.2f}], wanted {wanted:.2f} at most"
    )


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
    seconds = SECONDS * PAIRS
    print(
        f"serving: {busy.requests / seconds:.0f} requests of /v1/ports a second for {seconds} s, all answered"
    )
    print(compared("control loop late by", quiet.delay_p99_ms, busy.delay_p99_ms, WANTED_DELAY))
    print(compared("mice FCT", quiet.fct_p99_ms, busy.fct_p99_ms, WANTED_FCT))


def _turn(side: Side, asked: bool, logs: Path, interrupts: Interrupts) -> None:
    chosen = scenario.load("incast", {"rounds": str(SECONDS), "elephants_only_s": "0"})
    testbed = Testbed(chosen, Variant("fairq", "fairq"), logs, None)
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
        after = _buckets(url)
        side.delay_p99_ms.append(1000 * p99({each: after[each] - before.get(each, 0.0) for each in after}))
        side.fct_p99_ms.append(measured["mice"]["fct_ms"]["p99"])
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
    if sys.argv[1:]:  # as `_start_loader` starts it
        from bench.rest import load

        print(load(sys.argv[1], float(SECONDS), RATE))
    else:
        main()
