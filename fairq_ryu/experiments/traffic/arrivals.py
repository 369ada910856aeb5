"""Short flows that start at random times, with sizes of a Pareto distribution. `collector` has their other
end.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import Any

from fairq_ryu.experiments.traffic.flow_sender import Source
from fairq_ryu.experiments.traffic.generator_control import Json, Loop, answer


@dataclass(frozen=True)
class Sizes:
    """A Pareto distribution: P(size > x) = (least / x) ** shape; what is above ``most`` becomes ``most``."""

    least: int
    most: int
    shape: float

    def draw(self, random_numbers: random.Random) -> int:
        """The size of a flow, bytes."""
        return int(min(self.most, self.least * random_numbers.paretovariate(self.shape)))


class Arrivals(Source):
    """A `Source` that starts flows by itself from command ``arrive`` on, ``per_s`` each second on average, at
    the times of a Poisson process, from the hosts ``pids`` in turn. ``cease`` ends this, and answers with the
    flows that were started: number, size, seed, when each was due, and when it was started.
    """

    def __init__(self, loop: Loop) -> None:
        self._arriving = False
        self._started: list[Json] = []
        super().__init__(loop)

    def command(self, order: Json) -> None:
        match order["cmd"]:
            case "arrive":
                self._arriving = True
                numbers = random.Random(order["seed"])
                self._wait(order, numbers, order["at_ns"] / 1e9)
                answer("arrive")
            case "cease":
                self._arriving = False
                answer("cease", flows=self._started)
            case _:
                super().command(order)

    def _wait(self, order: Json, numbers: random.Random, since: float) -> None:
        """Start the next flow a random time after the one before it."""
        due = since + numbers.expovariate(order["per_s"])
        self._loop.call_at(due, lambda: self._arrive(order, numbers, due))

    def _arrive(self, order: Json, numbers: random.Random, due: float) -> None:
        if not self._arriving:
            return
        number = len(self._started)
        flow: dict[str, Any] = {
            "id": number,
            "size": Sizes(order["least"], order["most"], order["shape"]).draw(numbers),
            "seed": numbers.getrandbits(32),
        }
        pid = order["pids"][number % len(order["pids"])]
        self._open({**flow, "pid": pid, "address": order["address"], "port": order["port"]})
        self._started.append({**flow, "due_ns": int(due * 1e9), "start_ns": time.monotonic_ns()})
        self._flows[number].may_send = True
        self._connect(self._flows[number])
        self._wait(order, numbers, due)
