"""Tables and pictures name the queue law and the TCP of each policy."""

from __future__ import annotations

from fairq_ryu.experiments.workloads.common import naming

QUEUE = {"law": "", "qdisc": "", "limit_bytes": 125_000}
TAIL = {"policy": "droptail", "failed": None, "queue": QUEUE, "tcp": {"cubic": "cubic, of the kernel"}}
AFCD = {**TAIL, "policy": "afcd", "queue": {**QUEUE, "law": "afcd ours"}}
FAILED = {"policy": "red", "failed": "no reason"}
RESULT = {"metadata": {}, "policies": [AFCD, TAIL, FAILED]}


def test_each_policy_has_a_row_for_both() -> None:
    assert naming.rows(RESULT) == [
        ["queue law", "afcd ours", "tail drop", "-"],
        ["TCP", "cubic", "cubic", "-"],
    ]
    assert naming.rows({**RESULT, "policies": RESULT["policies"][2:]}) == []


def test_with_a_qdisc_of_the_kernel_the_buffers_are_named() -> None:
    cake = {**TAIL, "queue": {**QUEUE, "law": "kernel cake", "qdisc": "cake bandwidth 1bit"}}
    assert naming.rows({**RESULT, "policies": [cake, TAIL, FAILED]})[:2] == [
        ["queue law", "kernel cake", "tail drop", "-"],
        ["buffer [bytes]", "125,000", "125,000", "-"],
    ]
    assert naming.rows({**RESULT, "policies": [TAIL]})[1][0] == "TCP"


def test_buffers_are_named_where_they_differ() -> None:
    deep = {**TAIL, "policy": "droptail-x4", "queue": {**QUEUE, "limit_bytes": 500_000}}
    result = {**RESULT, "policies": [TAIL, deep]}
    assert naming.rows(result)[1] == ["buffer [bytes]", "125,000", "500,000"]
    assert naming.buffers([*result["policies"], deep]) == [125_000, 500_000]


def test_what_a_baseline_has_changed_is_named() -> None:
    names = ("droptail-iw2", "red-ecn", "droptail-dctcp", "red")
    changed = {"droptail-iw2": {"initcwnd": 2}, "red-ecn": {"ecn": True}, "droptail-dctcp": {"cc": "dctcp"}}
    policies = [{**TAIL, "policy": each} for each in names]
    result = {**RESULT, "metadata": {"changed": changed}, "policies": policies}
    assert naming.rows(result)[-1] == ["changed", "initcwnd = 2", "ecn = yes", "-", "-"]
    assert naming.rows({**result, "policies": policies[2:]})[-1][0] == "TCP"


def test_the_name_in_a_picture_has_both() -> None:
    assert naming.name(AFCD) == "afcd (afcd ours, cubic)"


def test_hosts_may_run_several_controls_or_none() -> None:
    mixed = {**TAIL, "tcp": {"cubic": "the kernel's", "dctcp": "loaded"}}
    assert naming.tcp(mixed) == "cubic + dctcp"
    assert naming.tcp({**TAIL, "tcp": {}}) == "-"
