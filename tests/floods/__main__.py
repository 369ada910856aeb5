"""``python -m tests.floods``: every flood of the table, and what the flows keep of their rate beside it.

Prints a row for each flood, with what the flows keep beside the same flood when Open vSwitch forwards alone.
Ends with 1 if something does not hold: the median of the rate that flows keep is less than 0.90, windows
were not lowered all the time, or what tests/floods/run.py asserts.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence

from tests.floods.run import LONG, Measured, kept_alone, make
from tests.floods.site import made_flood_site
from tests.floods.table import FLOODS, Flood
from tests.support.traces import mark_processes

WANTED = 0.90
_HEAD = (
    "flood", "sent a second", "the flows keep", "Open vSwitch alone", "windows lowered",
    "slowest answer, ms", "memory, MB", "most kept, and bound",
)  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Make the floods of the command line. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.floods", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often each is made (default: 3)")
    parser.add_argument("floods", nargs="*", metavar="FLOOD", help="only these")
    options = parser.parse_args(arguments)
    chosen = [flood for flood in FLOODS if not options.floods or flood.name in options.floods]
    if unknown := set(options.floods) - {flood.name for flood in chosen}:
        parser.error(f"no such flood: {', '.join(unknown)}; there are {', '.join(f.name for f in FLOODS)}")
    mark_processes()
    found: dict[str, list[Measured]] = defaultdict(list)
    alone: dict[str, list[float]] = defaultdict(list)
    with made_flood_site() as site:
        for number in range(options.rounds):
            for flood in chosen:
                print(
                    f"round {number + 1} of {options.rounds}: {flood.name} ...", file=sys.stderr, flush=True
                )
                found[flood.name].append(make(site, flood, LONG))
                if flood.of_frames:
                    alone[flood.name].append(kept_alone(site, flood, LONG))
    print("\n".join(f"| {' | '.join(row)} |" for row in (_HEAD, ["---"] * len(_HEAD))))
    for flood in chosen:
        print(f"| {' | '.join(_row(flood, found[flood.name], alone[flood.name]))} |")
    poor = [name for name, each in found.items() if statistics.median(one.kept for one in each) < WANTED]
    if poor:
        print(f"less than {WANTED:.2f} of their rate: {', '.join(poor)}", file=sys.stderr)
    free = [name for name, each in found.items() if min(one.windows for one in each) < 1]
    if free:
        print(f"windows have ended: {', '.join(free)}", file=sys.stderr)
    return 1 if poor or free else 0


def _row(flood: Flood, found: Sequence[Measured], alone: Sequence[float]) -> list[str]:
    return [
        flood.name,
        f"{statistics.median(each.sent for each in found):,.0f}",
        _range([each.kept for each in found]),
        _range(alone) if alone else "-",
        f"{min(each.windows for each in found):.2f}",
        " and ".join(f"{max(each.slowest[n] for each in found) * 1e3:.0f}" for n in (0, 1)),
        " and ".join(f"{max(each.memory[n] for each in found):+.0f}" for n in (0, 1)),
        "; ".join(
            f"{name}: {max(each.bounds[name][0] for each in found):,.0f} of {bound:,.0f}"
            for name, (_, bound) in found[0].bounds.items()
        ),
    ]


def _range(kept: Sequence[float]) -> str:
    return f"{statistics.median(kept):.2f} ({min(kept):.2f} to {max(kept):.2f})"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
