"""The cost of an idle agent: goodput of one TCP flow through the unshaped switch, without and with it."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from tests.support.lab import Lab, output, received

ROUNDS = 5
SECONDS = 3.0


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as directory:
        lab = Lab(Path(directory))
        try:
            # Remove the shallow queue, so that the switch itself is the bottleneck.
            output("tc", "qdisc", "del", "dev", f"s1-eth{lab.port}", "root")
            sink, _ = lab.bulk()
            time.sleep(1)
            without, with_agent = [], []
            for _ in range(ROUNDS):
                without.append(_goodput(sink))
                agent = lab.agent()
                with_agent.append(_goodput(sink))
                agent.end()
        finally:
            lab.close()
    base, own = statistics.median(without), statistics.median(with_agent)
    ratios = sorted(b / a for a, b in zip(without, with_agent, strict=True))
    print(
        f"goodput, unshaped switch: without agent {base:.0f} Mbit/s, with an idle one {own:.0f} Mbit/s, "
        f"ratio {statistics.median(ratios):.3f} (median of pairs; {ratios[0]:.3f} to {ratios[-1]:.3f})"
    )


def _goodput(sink: object) -> float:
    time.sleep(0.3)
    first, began = received(sink), time.monotonic()
    time.sleep(SECONDS)
    return float((received(sink) - first) * 8 / (time.monotonic() - began) / 1e6)
