"""How an agent follows a bridge whose ports change."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from fairq_ryu.agent import bridge as module
from fairq_ryu.agent.bridge import AgentBridge
from fairq_ryu.agent.ovsdb import BridgeView

OLD, NEW = (BridgeView(name, 1, "netdev", (), (), ()) for name in ("old", "new"))


class Ports:
    """Ports whose updates fail while ``fails`` is not empty."""

    def __init__(self, fails: list[Exception]) -> None:
        self.fails, self.done = fails, list[str]()

    def update(self, view: BridgeView) -> bool:
        return self._did(view.name)

    def remove_all(self) -> None:
        self._did("gone")

    def _did(self, what: str) -> bool:
        self.done.append(what)
        if self.fails:
            raise self.fails.pop(0)
        return False


def follow(monkeypatch: pytest.MonkeyPatch, tmp_path: Any, ports: Any, views: list[Any], wanted: int) -> None:
    """Follow a bridge that has these views, until so many were carried out."""
    monkeypatch.setenv("FAIRQ_RUNDIR", str(tmp_path))

    async def main() -> None:
        made = AgentBridge("s1", SimpleNamespace(targets=()))  # type: ignore[arg-type]
        made.ports = ports
        for view in views:
            made._changed(view)
        task = asyncio.create_task(made._follow())
        while len(ports.done) < wanted and not task.done():
            await asyncio.sleep(0)
        assert not task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        made.release()

    asyncio.run(main())


@pytest.mark.parametrize("view", [OLD, None])
def test_a_view_that_cannot_be_carried_out_is_tried_again(monkeypatch, tmp_path, caplog, view):
    monkeypatch.setattr(module, "_AGAIN", 0.0)
    ports = Ports([OSError("no descriptor"), ZeroDivisionError()])
    follow(monkeypatch, tmp_path, ports, [view], 3)
    assert ports.done == ["gone" if view is None else "old"] * 3
    (record,) = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert record.message == "bridge s1: its ports cannot be followed; trying again"
    assert record.exc_info is not None and isinstance(record.exc_info[1], OSError)


def test_a_newer_view_takes_the_place_of_one_that_failed(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_AGAIN", 3600.0)
    ports = Ports([OSError("no descriptor")])
    follow(monkeypatch, tmp_path, ports, [OLD, NEW], 2)
    assert ports.done == ["old", "new"]
