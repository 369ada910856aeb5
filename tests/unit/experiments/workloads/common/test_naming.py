"""Tables and pictures name the queue law and the TCP of each policy."""

from __future__ import annotations

from fairq_ryu.experiments.workloads.common import naming

AFCD = {"policy": "afcd", "failed": None, "queue": {"law": "afcd ours"}}
TAIL = {"policy": "droptail", "failed": None, "queue": {"law": ""}}
RESULT = {"scenario": {"cc": "cubic"}, "policies": [AFCD, TAIL, {"policy": "red", "failed": "no reason"}]}


def test_each_policy_has_a_row_for_both() -> None:
    assert naming.rows(RESULT) == [
        ["queue law", "afcd ours", "tail drop", "-"],
        ["TCP", "cubic", "cubic", "-"],
    ]
    assert naming.rows({**RESULT, "policies": RESULT["policies"][2:]}) == []


def test_the_name_in_a_picture_has_both() -> None:
    assert naming.name(AFCD, {"cc": "cubic"}) == "afcd (afcd ours, cubic)"
    assert naming.name({"policy": "bare"}, {}) == "bare (tail drop, -)", "an older result has neither"


def test_hosts_may_run_several_controls() -> None:
    mixed = {**TAIL, "tcp": {"cubic": "the kernel's", "dctcp": "loaded"}}
    assert naming.tcp(mixed, {"cc": "cubic"}) == "cubic + dctcp"
    assert naming.tcp({**TAIL, "tcp": "bbr"}, {"cc": "cubic"}) == "bbr"
