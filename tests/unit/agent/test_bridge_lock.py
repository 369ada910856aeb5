"""The lock that keeps a second agent from a bridge."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from fairq_ryu.agent.bridge_lock import BridgeLock
from fairq_ryu.errors import UserError


def test_the_lock_of_a_file_that_was_removed_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its holder has ended between our open and our lock: a third agent would make a new file."""
    monkeypatch.setenv("FAIRQ_RUNDIR", str(tmp_path))
    first, flock, late = BridgeLock("s1"), fcntl.flock, []

    def after_its_end(*arguments: object) -> None:
        if not late:
            late.append(first)
            first.release()
        flock(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(fcntl, "flock", after_its_end)
    second = BridgeLock("s1")
    with pytest.raises(UserError, match="has an agent already: process"):
        BridgeLock("s1")
    second.release()
    BridgeLock("s1").release()


def test_a_full_disk_keeps_no_agent_from_its_bridge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRQ_RUNDIR", str(tmp_path))

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    lock = BridgeLock("s1")
    with pytest.raises(UserError, match="has an agent already: another process"):
        BridgeLock("s1")
    lock.release()
