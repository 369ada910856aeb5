"""A sweep on a real switch that is killed while it measures: the same command continues it."""

import json
import os
import signal

import pytest

from tests.support.lab import FAIRQ, Process, fairq

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]


def test_a_killed_sweep_continues_where_it_was(tmp_path, nothing_left):
    out = tmp_path / "out"
    words = ["sweep", "incast", "senders=2,3", "--policy", "bare,droptail[", "--out", str(out)]
    assert fairq(*words).returncode == 2 and not out.exists()
    words[4] = "bare"
    for each in ("elephants=1", "mice_per_sender=1", "rounds=2", "warmup_s=0.5", "elephants_only_s=0"):
        words += ["--set", each]
    sweep = Process(tmp_path / "log", FAIRQ, *words)
    sweep.wait_for("2 of 2: senders = 3, bare; ")
    os.kill(sweep.process.pid, signal.SIGKILL)
    sweep.process.wait(10)
    kept = (out / "senders=2" / "runs" / "1.1.json").read_bytes()
    answer = fairq(*words, timeout=120)
    assert answer.returncode == 0, answer.stderr
    assert "1 of 2 runs are there already" in answer.stderr and "senders = 2, bare" not in answer.stderr
    assert (out / "senders=2" / "runs" / "1.1.json").read_bytes() == kept
    for senders in (2, 3):
        whole = json.loads((out / f"senders={senders}" / "result.json").read_text())
        assert whole["scenario"]["senders"] == senders and whole["policies"][0]["failed"] is None
        assert whole["policies"][0]["mice"]["count"] == senders * 2
    refused = fairq(*words, "--set", "rounds=3")
    assert refused.returncode == 2 and "rounds: 2 and 3 now" in refused.stderr
    assert fairq("report", str(out)).returncode == 0 and (out / "sweep.png").exists()
