"""Coupled connections as policies of `fairq run`: loaded for the run, and gone after it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairq_ryu.experiments.hostcc.controls import offered, refusal
from tests.support.lab import fairq

pytestmark = [pytest.mark.root, pytest.mark.timeout(900)]
SETTINGS = ("senders=3", "elephants=3", "mice_per_sender=2", "rate_mbit=10", "buffer_bytes=40000", "rounds=1")
SETTINGS += ("warmup_s=2", "elephants_only_s=1", "floor=no", "round_timeout_s=60")


def test_a_run_loads_both_and_leaves_neither(tmp_path: Path) -> None:
    why = refusal()
    if why is not None:
        pytest.skip(str(why))
    words = [word for each in SETTINGS for word in ("--set", each)]
    policies = "droptail-ctrl-reno,droptail-ctrl-cubic"
    answer = fairq(*("run", "incast", "--policy", policies, "--out", str(tmp_path)), *words, timeout=800)
    assert answer.returncode == 0, answer.stderr
    found = json.loads((tmp_path / "result.json").read_text())["policies"]
    names = ("ctrl_reno", "ctrl_cubic")
    assert [each["tcp"] for each in found] == [{name: f"{name}, loaded for this run"} for name in names]
    assert not set(names).intersection(offered())
