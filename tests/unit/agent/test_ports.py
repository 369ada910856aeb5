"""Queues without events, as the ports of a bridge have them read from their qdiscs."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from fairq_ryu.agent import ports
from fairq_ryu.agent.ports import BridgePorts

NOW = 10**12


class Programs:
    """Interface 7, port 1 of the bridge, may be silent."""

    def __init__(self, silent: dict[int, int]) -> None:
        self.silent = silent
        self.corrections: list[Any] = []

    def silent_queues(self, now_ns: int) -> dict[int, int]:
        assert now_ns == NOW
        return self.silent

    def correct_backlogs(self, *what: Any) -> list[int]:
        self.corrections.append(what)
        return [1]


def read(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], list[set[int]]]:
    """The ports that are reported, and the interfaces that are read; each reading finds 9 bytes, a second
    after the agent has looked at the queues.
    """
    now, requested = NOW, []

    def read_backlogs(wanted: Any) -> dict[int, int]:
        nonlocal now
        now += 10**9
        requested.append(set(wanted))
        return dict.fromkeys(wanted, 9)

    monkeypatch.setattr(ports, "read_backlogs", read_backlogs)
    monkeypatch.setattr(ports, "time", SimpleNamespace(monotonic_ns=lambda: now))
    unused: Any = None
    made = BridgePorts("s1", unused, programs, unused, lambda: None)  # type: ignore[arg-type]
    return asyncio.run(made.read_silent_queues()), requested


def test_a_reading_counts_from_before_it_was_made(monkeypatch):
    """An event that comes during the reading is newer."""
    programs = Programs({7: NOW - 5})
    assert read(programs, monkeypatch) == ([1], [{7}])
    assert programs.corrections == [({7: NOW - 5}, NOW, {7: 9})]


def test_nothing_is_read_while_no_queue_is_silent(monkeypatch):
    programs = Programs({})
    assert read(programs, monkeypatch) == ([], [])
    assert programs.corrections == []
