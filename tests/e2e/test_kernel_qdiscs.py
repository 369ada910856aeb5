"""Policies with a qdisc of the kernel: refused where the kernel has none, otherwise with all figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairq_ryu.experiments import kernel_kinds
from fairq_ryu.experiments.baselines import BASELINES
from fairq_ryu.experiments.hostcc import controls
from mininet_topos.commands import has_kernel_datapath
from tests.support.lab import fairq

pytestmark = [pytest.mark.root, pytest.mark.timeout(900)]
QDISCS = {name: each.qdisc.kind for name, each in BASELINES.items() if each.qdisc is not None}
SEGMENT = 1448
SEGMENTS = 65_536 // SEGMENT
"""The most in a packet that segmentation offload has put together."""
SETTINGS = ("senders=3", "elephants=3", "mice_per_sender=2", "rate_mbit=10", "buffer_bytes=40000", "rounds=1")
SETTINGS += ("warmup_s=2", "elephants_only_s=3", "floor=no", "round_timeout_s=60")


def run(out: Path, policy: str, *settings: str) -> dict[str, object]:
    words = [word for each in (*SETTINGS, *settings) for word in ("--set", each)]
    answer = fairq(
        *("run", "incast", "--policy", policy, "--out", str(out)),
        *words,
        timeout=800,
    )
    assert answer.returncode == 0, answer.stderr
    (found,) = json.loads((out / "result.json").read_text())["policies"]
    assert isinstance(found, dict)
    return found


def test_what_the_kernel_lacks_is_refused_before_anything_starts(tmp_path: Path) -> None:
    reasons = kernel_kinds.refused(kernel_kinds.LEAST)
    lacking = [name for name, kind in QDISCS.items() if kind in reasons]
    if not lacking:
        pytest.skip("this kernel has all qdiscs")
    answer = fairq("run", "incast", "--policy", f"droptail,{','.join(lacking)}", "--out", str(tmp_path))
    lines = answer.stderr.splitlines()
    assert (answer.returncode, len(lines)) == (2, len(lacking))
    for name, line in zip(lacking, lines, strict=True):
        assert f"policy {name!r} cannot run: {kernel_kinds.missing(QDISCS[name])}. Remedy: boot a " in line
    assert not (tmp_path / "logs").exists()


@pytest.mark.parametrize("policy", QDISCS)
def test_a_qdisc_of_the_kernel_stands_for_the_fifo(tmp_path: Path, policy: str) -> None:
    kind = QDISCS[policy]
    if reason := kernel_kinds.refused({kind: kernel_kinds.LEAST[kind]}).get(kind):
        pytest.skip(reason)
    if not has_kernel_datapath():
        pytest.skip("Open vSwitch has no kernel datapath here")
    found = run(tmp_path, policy)
    queue, losses = found["queue"], found["losses"]
    assert isinstance(queue, dict) and isinstance(losses, dict)
    assert (queue["law"], queue["qdisc"].split()[0]) == (f"kernel {kind}", kind)
    # Packets that the qdisc has dropped, at either end, are counted by itself: a filter took none.
    assert (losses["taken"], losses["program"]) == (0, None)
    law = queue["rounds"]["law"]
    # The kernel counts a packet of several segments once if it is dropped or waits, and otherwise by its
    # segments.
    lost, longest = losses["refused"] + losses["law"], queue["rounds"]["histogram"][-1][1]
    most = law["judged"] + SEGMENTS * lost + longest / SEGMENT
    assert most >= queue["rounds"]["packets"] > 0 and law["marked"] == 0
    assert 0 <= law["dropped"] <= losses["law"]
    for phase in (queue["rounds"], queue["alone"]):
        assert 0 < phase["mean_bytes"] <= phase["histogram"][-1][1]


@pytest.fixture
def dctcp() -> bool:
    """Whether the kernel has DCTCP."""
    return "dctcp" in controls.ask_for(["dctcp"])


def test_without_dctcp_of_the_kernel_its_policy_is_refused(tmp_path: Path, dctcp: bool) -> None:
    if dctcp:
        pytest.skip("this kernel has DCTCP")
    answer = fairq("run", "incast", "--policy", "kernel-dctcp", "--out", str(tmp_path))
    assert answer.returncode == 2
    assert "this kernel does not offer the congestion control 'dctcp'" in answer.stderr


def test_dctcp_of_the_kernel(tmp_path: Path, dctcp: bool) -> None:
    if not dctcp:
        pytest.skip("the kernel has no DCTCP (module tcp_dctcp)")
    assert run(tmp_path, "kernel-dctcp")["tcp"] == {"dctcp": "dctcp, of the kernel"}
