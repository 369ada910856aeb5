"""Where the simulator cannot run, one message says what to install."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.simulator import program, runner
from fairq_ryu.experiments.traffic.workers import RunError


def test_without_ns3_it_says_what_to_install(monkeypatch, tmp_path: Path):
    def missing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(program.importlib.metadata, "distribution", missing)
    with pytest.raises(UserError, match=r"pip install --no-deps ns3==[\d.]+post0"):
        runner.main("incast", ["fairq"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_without_the_sources_it_says_so(monkeypatch, tmp_path: Path):
    monkeypatch.setattr(program, "find_ns3", lambda: program.Ns3("3.44", tmp_path, tmp_path))
    monkeypatch.setattr(program, "SOURCES", tmp_path / "simulator")
    with pytest.raises(UserError, match="run it from a checkout"):
        program.built()


def test_where_nothing_can_be_written_it_says_so(monkeypatch, tmp_path: Path):
    (tmp_path / "build").touch()
    monkeypatch.setattr(program, "find_ns3", lambda: program.Ns3("3.44", tmp_path, tmp_path))
    monkeypatch.setattr(program, "SOURCES", tmp_path)
    monkeypatch.setattr(program, "BUILT", tmp_path / "build")
    with pytest.raises(UserError, match=f"cannot compile into {tmp_path}/build: File exists"):
        program.built()


def test_what_it_says_last_is_the_reason_of_a_failure(tmp_path: Path):
    fails = tmp_path / "simulate"
    fails.write_text("#!/bin/sh\necho first >&2\necho no host h1 >&2\nexit 1\n")
    fails.chmod(0o755)
    with pytest.raises(RunError, match="the simulator failed: no host h1"):
        program.answer(tmp_path, "")
