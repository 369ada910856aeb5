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


def test_with_a_qdisc_of_the_kernel_the_buffers_are_named() -> None:
    queue = {"law": "kernel cake", "qdisc": "cake bandwidth 1bit", "limit_bytes": 125_000}
    cake, tail = {**TAIL, "queue": queue}, {**TAIL, "queue": {**queue, "law": "", "qdisc": ""}}
    failed = {"policy": "red", "failed": "no reason"}
    assert naming.rows({**RESULT, "policies": [cake, tail, failed]})[:2] == [
        ["queue law", "kernel cake", "tail drop", "-"],
        ["buffer [bytes]", "125,000", "125,000", "-"],
    ]
    assert naming.rows({**RESULT, "policies": [tail]})[1][0] == "TCP"


def test_the_name_in_a_picture_has_both() -> None:
    assert naming.name(AFCD, {"cc": "cubic"}) == "afcd (afcd ours, cubic)"
    assert naming.name({"policy": "bare"}, {}) == "bare (tail drop, -)", "an older result has neither"


def test_hosts_may_run_several_controls() -> None:
    mixed = {**TAIL, "tcp": {"cubic": "the kernel's", "dctcp": "loaded"}}
    assert naming.tcp(mixed, {"cc": "cubic"}) == "cubic + dctcp"
    assert naming.tcp({**TAIL, "tcp": "bbr"}, {"cc": "cubic"}) == "bbr"
