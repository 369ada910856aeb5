"""Flows that start at given times, whether or not others have ended. `collector` has their other end."""

from __future__ import annotations

import time
from collections.abc import Callable

from fairq_ryu.experiments.traffic.flow_sender import Source
from fairq_ryu.experiments.traffic.generator_control import Json, Loop, answer


class Scheduled(Source):
    """A `Source` that starts each flow by itself. Command ``schedule`` names flows, as ``open`` does, each
    with the time ``at_ns`` at which it is due; ``started`` answers with those that have started since the
    last answer, each with number, size, seed and ``start_ns``.
    """

    def __init__(self, loop: Loop) -> None:
        self._started: list[Json] = []
        super().__init__(loop)

    def command(self, order: Json) -> None:
        match order["cmd"]:
            case "schedule":
                for flow in order["flows"]:
                    self._loop.call_at(flow["at_ns"] / 1e9, self._starter(flow))
                answer("schedule")
            case "started":
                started, self._started = self._started, []
                answer("started", flows=started)
            case _:
                super().command(order)

    def _starter(self, order: Json) -> Callable[[], None]:
        def start() -> None:
            # Opened only now: a socket for each flow of a run would be too many.
            self._open(order)
            flow = self._flows[order["id"]]
            kept = {key: order[key] for key in ("id", "size", "seed")}
            self._started.append({**kept, "start_ns": time.monotonic_ns()})
            flow.may_send = True
            self._connect(flow)

        return start
