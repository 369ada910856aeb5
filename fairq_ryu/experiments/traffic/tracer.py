"""Samples what TCP does in the senders, the queue of the bottleneck, and the state of its law."""

from __future__ import annotations

import contextlib
import json
import math
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairq_ryu.experiments.measure import tcp_trace
from fairq_ryu.experiments.measure.backlog import Backlog
from fairq_ryu.experiments.measure.sock_diag import SocketList
from fairq_ryu.experiments.traffic.generator_control import Json, Loop, answer

LAW_S = 0.1
"""From one question about the law to the next: the agent answers with its whole status."""
ANSWER_S = 0.5
"""Time limit of its answer."""
FOUND_S = 0.04
"""Within this time a new connection is found. A list of connections takes long (`sock_diag`), so each sample
asks only some senders for one, and the others for the connections that are known.
"""
PRUNED_EACH = 500
"""After so many samples, ended connections that will not be chosen are forgotten."""


@dataclass
class _Place:
    """A sender."""

    host: str
    sockets: SocketList
    open: dict[bytes, tcp_trace.Connection] = field(default_factory=dict)


class Tracer:
    """Command ``start`` names the senders (``hosts``, by pid), the interface of the bottleneck (``port``),
    the agent's socket and its name of the port there (``status`` and ``law_port``; null: none) and the rest
    as in `tcp_trace`. ``end`` writes the file ``path`` with ``count`` flows.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._order: Json = {}
        self._places: list[_Place] = []
        self._lists = 1
        """senders whose connections are listed at each sample"""
        self._turn = 0
        self._backlog: Backlog | None = None
        self._began = self._cpu = self._law_due = 0.0
        self._samples = 0
        self._ended: list[tcp_trace.Connection] = []
        self._queue: list[tuple[float, int]] = []
        self._law: list[tuple[float, str, int, int, int]] = []
        answer("ready")

    def command(self, order: Json) -> None:
        match order["cmd"]:
            case "start":
                self._order = order
                self._places = [_Place(name, SocketList(pid)) for name, pid in order["hosts"].items()]
                share = order["interval_ms"] / 1e3 / FOUND_S
                self._lists = min(len(self._places), math.ceil(len(self._places) * share))
                self._backlog = Backlog(order["port"])
                self._began, self._cpu = time.monotonic(), time.process_time()
                self._loop.call_at(self._began, self._sample)
                answer("start")
            case "end":
                self._end(Path(order["path"]))
                answer("end")
            case other:
                raise ValueError(f"a tracer has no command {other}")

    def _sample(self) -> None:
        if self._backlog is None:
            return
        now = time.monotonic()
        at = now - self._began
        waiting = self._backlog.read()
        if not self._queue or waiting != self._queue[-1][1]:
            self._queue.append((at, waiting))
        for place in self._places:
            self._look(place, at, listed=self._turn < self._lists)
            self._turn = (self._turn + 1) % len(self._places)
        self._turn = (self._turn - self._lists) % len(self._places)
        self._samples += 1
        if self._samples % PRUNED_EACH == 0:
            self._ended = self._chosen(self._ended, at)
        if now >= self._law_due:
            self._law_due = now + LAW_S
            self._ask_law(at)
        interval = self._order["interval_ms"] / 1e3
        # On the grid, so that a late sample delays no other; what was missed is left out.
        self._loop.call_at(self._began + (int(at / interval) + 1) * interval, self._sample)

    def _look(self, place: _Place, at: float, listed: bool) -> None:
        """Sample the connections of a sender: all, or those that are known."""
        found = place.sockets.all() if listed else place.sockets.those(list(place.open))
        still: dict[bytes, tcp_trace.Connection] = {}
        for each in found:
            connection = place.open.pop(each.key, None)
            if connection is None:
                connection = tcp_trace.Connection(place.host, *each.ports, at)
            if each.info:
                connection.sample(at, each.info)
            else:
                connection.syn_acks_again = each.syn_acks_again
            still[each.key] = connection
        self._ended += place.open.values()
        place.open = still

    def _chosen(self, connections: list[tcp_trace.Connection], at: float) -> list[tcp_trace.Connection]:
        return tcp_trace.chosen(connections, self._order["count"], self._order["rate_mbit"], at)

    def _ask_law(self, at: float) -> None:
        if self._order["status"] is None:
            return
        rule = None
        with contextlib.suppress(
            OSError, ValueError, KeyError
        ):  # it is busy, or has ended: the run will tell
            rule = _rule(_status(self._order["status"]), self._order["law_port"])
        if rule is not None and (not self._law or self._law[-1][1:] != rule):
            self._law.append((at, *rule))

    def _end(self, path: Path) -> None:
        at = time.monotonic() - self._began
        for place in self._places:
            place.sockets.close()
        if self._backlog is not None:
            self._backlog.close()
            self._backlog = None
        still = [each for place in self._places for each in place.open.values()]
        kept = self._chosen([*self._ended, *still], at)
        trace: dict[str, Any] = {
            "interval_ms": self._order["interval_ms"],
            "taken_ms": at * 1e3 / max(1, self._samples),
            "cpu_share": (time.process_time() - self._cpu) / at,
            "rate_mbit": self._order["rate_mbit"],
            "buffer_bytes": self._order["buffer_bytes"],
            "queue": [(round(when * 1e3, 1), waiting) for when, waiting in self._queue],
            "law": [(round(when * 1e3, 1), *rule) for when, *rule in self._law],
            "flows": [each.described() for each in kept],
        }
        tcp_trace.write(path, trace)


def _status(path: str) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as agent:
        agent.settimeout(ANSWER_S)
        agent.connect(path)
        chunks = []
        while chunk := agent.recv(1 << 16):
            chunks.append(chunk)
    found: dict[str, Any] = json.loads(b"".join(chunks))
    return found


def _rule(status: dict[str, Any], port: str) -> tuple[str, int, int, int]:
    """Of the window rule of a port its kind or that of its law, pool and window; then the active flows."""
    found = next(each for each in status["ports"] if each["name"] == port)
    rule, flows = found["rule"], found["active_flows"]
    if rule is None:
        return ("", 0, 0, flows)
    if "law" in rule:
        return (rule["law"]["kind"], rule["law"]["pool"], rule["law"]["window"], flows)
    pooled = rule["kind"] == "pool"
    return (rule["kind"], rule["bytes"] if pooled else 0, 0 if pooled else rule["bytes"], flows)
