"""The file with the flows of an agent that has ended: who takes it over."""

from __future__ import annotations

import ctypes
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from fairq_ryu.agent import kept_flows, layout
from fairq_ryu.agent.kept_flows import Left

KEYS = os.urandom(2 * ctypes.sizeof(layout.fq_flow_key))
FLOWS = os.urandom(2 * ctypes.sizeof(layout.fq_flow))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "s1.flows"
    kept_flows.write(path, KEYS, FLOWS)
    return path


def test_it_is_taken_over_once(path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert kept_flows.take(path) == Left(KEYS, FLOWS)
    assert not path.exists() and kept_flows.take(path) == Left()


def test_it_replaces_an_older_one_and_follows_no_link(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"theirs")
    path.unlink()
    path.symlink_to(other)
    kept_flows.write(path, KEYS[: len(KEYS) // 2], FLOWS[: len(FLOWS) // 2])
    assert other.read_bytes() == b"theirs"
    assert kept_flows.take(path) == Left(KEYS[: len(KEYS) // 2], FLOWS[: len(FLOWS) // 2])


@pytest.mark.parametrize("age", [-1, 301])
def test_neither_an_old_one_nor_one_of_the_future(path: Path, monkeypatch: Any, age: int) -> None:
    now = kept_flows._now_ns()
    monkeypatch.setattr(kept_flows, "_now_ns", lambda: now + age * 10**9)
    assert kept_flows.take(path) == Left(dropped="it is not of the last 300 s")
    assert not path.exists()


def test_not_after_another_boot(path: Path, monkeypatch: Any, tmp_path: Path) -> None:
    boot = tmp_path / "boot_id"
    boot.write_text("0" * 36)
    monkeypatch.setattr(kept_flows, "_BOOT_ID", boot)
    assert kept_flows.take(path) == Left(dropped="the machine has booted since")


def test_not_with_another_layout(path: Path, monkeypatch: Any) -> None:
    version = layout.CONSTANTS["FQ_LAYOUT_VERSION"]
    monkeypatch.setitem(layout.CONSTANTS, "FQ_LAYOUT_VERSION", version + 1)
    dropped = f"it has layout {version} of the maps, and this agent has {version + 1}"
    assert kept_flows.take(path) == Left(dropped=dropped)


@pytest.mark.parametrize("keep", [0, 10, 60, -1])
def test_not_a_part_of_one(path: Path, keep: int) -> None:
    path.write_bytes(path.read_bytes()[:keep])
    assert kept_flows.take(path) == Left(dropped="it is not whole")
    assert not path.exists()


def test_a_full_disk_leaves_none(path: Path, monkeypatch: Any) -> None:
    def full(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kept_flows.os, "fdopen", full)
    with pytest.raises(OSError, match="No space"):
        kept_flows.write(path, KEYS, FLOWS)
    assert not path.exists()


def test_one_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert kept_flows.take(tmp_path) == Left(dropped="it cannot be read: Is a directory")
