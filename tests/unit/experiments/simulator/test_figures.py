"""The figures of a simulated run, from readings of counters at the beginnings of its phases."""

from __future__ import annotations

from typing import Any

from fairq_ryu.experiments import scenario
from fairq_ryu.experiments.report import result
from fairq_ryu.experiments.simulator.figures import figures_of
from fairq_ryu.experiments.workloads.incast.settings import IncastScenario

NAMES = ("warm", "begin", "end", "after")


def counts(**given: int) -> dict[str, int]:
    return {"data_out": 0, "data_in": 0, "retransmissions": 0, "timeouts": 0} | given


def mark(name: str, step: int) -> dict[str, Any]:
    """After so many seconds, in each of which all counters grow by the same."""
    return {
        "name": name,
        "clock_ns": step * 10**9,
        "elephants": [{"received": 10**6 * step, "counts": counts(retransmissions=step, timeouts=step)}] * 2,
        "senders": counts(retransmissions=5 * step, timeouts=4 * step),
        "queue": {
            "byte_ns": 1000 * 10**9 * step,
            "packets": 100 * step,
            "drops": 7 * step,
            "lowered": 60 * step,
            "judged": 100 * step,
            "dropped": step,
            "marked": 2 * step,
            "depth_ns": [[0, 10**9 * step], [3028, 10**6 * step]],
        },
    }


def mouse(fct_ns: int | None) -> dict[str, Any]:
    return {
        "fct_ns": fct_ns,
        "asking": counts(data_out=1, data_in=8, retransmissions=1),
        "answering": counts(data_out=10, data_in=1, retransmissions=2, timeouts=1),
    }


def figures(rounds: list[list[dict[str, Any]]], law: str | None = None, **changes: object) -> dict[str, Any]:
    given = {"elephants_only_s": "1", "after_s": "1", "rounds": "2"}
    chosen = scenario.load("incast", given | {name: str(value) for name, value in changes.items()})
    assert isinstance(chosen, IncastScenario)
    answer = {"marks": [mark(name, step) for step, name in enumerate(NAMES, 1)], "rounds": rounds}
    return figures_of(answer, chosen, law)


TWO = [[mouse(10**6), mouse(3 * 10**6)], [mouse(2 * 10**6), mouse(None)]]


def test_mice_are_those_of_all_rounds():
    found = figures(TWO)
    mice = found["mice"]
    assert (mice["count"], mice["unfinished"], mice["errors"]) == (4, 1, {"timeout": 1})
    assert mice["fct_list_ms"] == [1.0, 3.0, 2.0, None] and mice["fct_ms"]["mean"] == 2.0
    assert (mice["rto_timeouts"], mice["rto_source"]) == (4, "tcp_info")
    assert (mice["segments_dropped"], mice["retransmissions"], mice["client_retransmissions"]) == (8, 12, 4)
    assert found["rounds"] == {"wanted": 2, "made": 2, "disturbed": 0, "counted_disturbed": 0}


def test_a_mouse_that_is_late_is_unfinished():
    found = figures([[mouse(10**8), mouse(10**8 + 1)]], round_timeout_s=0.1)
    assert found["mice"]["fct_list_ms"] == [100.0, None]


def test_elephants_and_queue_are_those_of_each_phase():
    found = figures(TWO, "mark")
    assert found["elephants"]["goodput_mbit"] == [8.0, 8.0]
    assert (found["elephants"]["alone_sum_mbit"], found["elephants"]["after_sum_mbit"]) == (16.0, 16.0)
    assert (found["elephants"]["retransmissions"], found["elephants"]["rto_timeouts"]) == (2, 2)
    assert found["senders"] == {"retransmissions": 5, "rto_timeouts": 4}
    queue = found["queue"]
    assert (queue["law"], queue["qdisc_drops"], queue["port"]) == ("mark", 7, "s1 to r")
    assert queue["alone"] == queue["rounds"]
    assert queue["rounds"] == {
        "seconds": 1.0,
        "mean_bytes": 1000.0,
        "p99_bytes": queue["rounds"]["p99_bytes"],
        "drops": 7,
        "packets": 100,
        "acks_rewritten": 60,
        "law": {"judged": 100, "dropped": 1, "marked": 2},
        "histogram": [[0, 1514, 10**9], [3028, 4542, 10**6]],
    }
    assert 0 < queue["rounds"]["p99_bytes"] < 1514


def test_without_mice_elephants_or_phases_there_are_no_figures_of_them():
    assert figures([[]], mice_per_sender=0)["mice"] is None
    found = figures(TWO, elephants=0, elephants_only_s=0)
    assert found["elephants"] is None and found["queue"]["alone"] is None
    assert found["queue"]["rounds"]["law"] is None and found["queue"]["law"] == ""


def test_they_make_a_result_as_those_of_the_bench_do():
    policies = [{"policy": name, "failed": None, **figures(TWO)} for name in ("droptail", "fairq")]
    made = result.assemble({}, {}, [{"order": [], "floor": None, "policies": policies}] * 2)
    assert made["comparison"]["fairq"]["fct_mean_times_lower"] == 1.0
    assert made["policies"][0]["interval"]["mice"]["fct_ms"]["mean"] == 0.0
