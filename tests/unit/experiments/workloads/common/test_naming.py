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


def test_buffers_are_named_where_they_differ() -> None:
    there = {"law": "", "qdisc": "", "limit_bytes": 125_000}
    deep = {**TAIL, "policy": "droptail-x4", "queue": {**there, "limit_bytes": 500_000}}
    result = {**RESULT, "policies": [{**TAIL, "queue": there}, deep]}
    assert naming.rows(result)[1] == ["buffer [bytes]", "125,000", "500,000"]
    assert naming.buffers([*result["policies"], deep], {"buffer_bytes": 1}) == [125_000, 500_000]
    assert naming.buffers([TAIL], {"buffer_bytes": 7}) == [7], "an older result does not say"


def test_what_a_baseline_has_changed_is_named() -> None:
    names = ("droptail-iw2", "red-ecn", "droptail-dctcp", "red")
    changed = {"droptail-iw2": {"initcwnd": 2}, "red-ecn": {"ecn": True}, "droptail-dctcp": {"cc": "dctcp"}}
    policies = [{**TAIL, "policy": each} for each in names]
    result = {**RESULT, "metadata": {"changed": changed}, "policies": policies}
    assert naming.rows(result)[-1] == ["changed", "initcwnd = 2", "ecn = yes", "-", "-"]
    assert naming.rows({**result, "policies": policies[2:]})[-1][0] == "TCP"


def test_the_name_in_a_picture_has_both() -> None:
    assert naming.name(AFCD, {"cc": "cubic"}) == "afcd (afcd ours, cubic)"
    assert naming.name({"policy": "bare"}, {}) == "bare (tail drop, -)", "an older result has neither"


def test_hosts_may_run_several_controls() -> None:
    mixed = {**TAIL, "tcp": {"cubic": "the kernel's", "dctcp": "loaded"}}
    assert naming.tcp(mixed, {"cc": "cubic"}) == "cubic + dctcp"
    assert naming.tcp({**TAIL, "tcp": "bbr"}, {"cc": "cubic"}) == "bbr"
