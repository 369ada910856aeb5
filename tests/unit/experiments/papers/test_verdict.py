"""Verdicts: by the interval over repetitions, and never by hand."""

import pytest

from fairq_ryu.experiments.measure import intervals
from fairq_ryu.experiments.papers import expression, verdict
from fairq_ryu.experiments.papers.verdict import AGREES, DIFFERS, UNKNOWN


def policy(name, x, **more):
    return {"policy": name, "failed": None, "unsound": None, "tcp_left_out": {}, "x": x, **more}


def whole(a, b, **more):
    """A result with these values of x in each repetition."""
    parts = [
        {"policies": [policy("a", one, **more), policy("b", other)]} for one, other in zip(a, b, strict=True)
    ]
    return {**parts[0], "repetitions": parts if len(parts) > 1 else None}


def judge(text, a, b=None, results=None, **more):
    return verdict.judge(expression.parse(text), whole(a, b or (1.0,) * len(a), **more), results or {})


@pytest.mark.parametrize(
    ("text", "values", "word"),
    [
        ("a:x > 5", (9.0, 10.0, 11.0), AGREES),
        ("a:x > 15", (9.0, 10.0, 11.0), DIFFERS),
        ("a:x > 10.5", (9.0, 10.0, 11.0), UNKNOWN),
        ("a:x < 15", (9.0, 10.0, 11.0), AGREES),
        ("a:x < 5", (9.0, 10.0, 11.0), DIFFERS),
        ("a:x < 9.5", (9.0, 10.0, 11.0), UNKNOWN),
        ("a:x within 5..15", (9.0, 10.0, 11.0), AGREES),
        ("a:x within 14..15", (9.0, 10.0, 11.0), DIFFERS),
        ("a:x within 5..6", (9.0, 10.0, 11.0), DIFFERS),
        ("a:x within 8..11", (9.0, 10.0, 11.0), UNKNOWN),  # it is 10 +- 2.48
        ("a:x within 9.9..10.1", (9.0, 10.0, 11.0), UNKNOWN),
        ("a:x <= 0", (0.0, 0.0, 0.0), AGREES),
        ("a:x <= 0", (0.0, 0.0, 1.0), DIFFERS),
        ("a:x <= 0", (5.0, 40.0, 3.0), DIFFERS),
        ("a:x <= 0", (-1.0, 0.0, 1.0), UNKNOWN),
        ("a:x > 0", (0.0, 0.0, 0.0), DIFFERS),
        ("a:x < 0", (0.0, 0.0, 0.0), DIFFERS),
        ("a:x > b:x", (9.0, 10.0, 11.0), AGREES),
        ("a:x < b:x", (9.0, 10.0, 11.0), DIFFERS),
    ],
)
def test_the_interval_decides(text, values, word):
    assert judge(text, values).word == word


def test_a_difference_of_whole_numbers_is_no_count():
    assert judge("a:x <= b:x", (10.0, 10.0, 13.0), (10.0, 10.0, 10.0)).word == UNKNOWN


def test_what_never_happens_is_refuted_by_one_case():
    found = judge("a:x <= 0", (0.0, 0.0, 1.0))
    assert found.low == 0 and "in 1 of 3 repetitions it is not <= 0" in found.why


def test_flows_that_have_not_finished_are_told():
    times = {"mice": {"count": 32, "unfinished": 20, "fct_ms": {"p99": 1.0, "p50": 1.0}}}
    found = judge("a:mice.fct_ms.p99 < 5", (9.0, 9.0), **times)
    assert found.word == UNKNOWN and "a: 20 flows of a repetition have not finished" in found.why
    assert judge("a:mice.fct_ms.p99 > 0", (9.0, 9.0), **times).word == AGREES
    few = {"mice": {**times["mice"], "unfinished": 2}}
    assert judge("a:mice.fct_ms.p50 < 5", (9.0, 9.0), **few).word == AGREES


def times(a_max, b_max, a_unfinished=0, b_unfinished=0):
    """A result with these largest times, and numbers of flows that have not finished."""
    part = {
        "policies": [
            policy(name, 1.0, mice={"count": 32, "unfinished": unfinished, "fct_ms": {"max": most}})
            for name, most, unfinished in (("a", a_max, a_unfinished), ("b", b_max, b_unfinished))
        ]
    }
    return {**part, "repetitions": [part, part]}


@pytest.mark.parametrize(
    ("text", "result", "word"),
    [
        ("a:mice.fct_ms.max / b:mice.fct_ms.max > 3", times(90.0, 9.0), AGREES),
        ("a:mice.fct_ms.max / b:mice.fct_ms.max > 3", times(90.0, 9.0, 1, 0), AGREES),
        ("a:mice.fct_ms.max / b:mice.fct_ms.max > 3", times(90.0, 9.0, 0, 1), UNKNOWN),
        ("a:mice.fct_ms.max / b:mice.fct_ms.max < 1", times(9.0, 90.0, 1, 0), UNKNOWN),
        ("a:mice.fct_ms.max / b:mice.fct_ms.max < 1", times(9.0, 90.0, 0, 1), AGREES),
        ("a:mice.fct_ms.max < b:mice.fct_ms.max", times(9.0, 90.0, 1, 0), UNKNOWN),
        ("a:mice.fct_ms.max < b:mice.fct_ms.max", times(9.0, 90.0, 0, 1), AGREES),
        ("a:mice.fct_ms.max / b:mice.fct_ms.max > 3", times(9.0, 9.0, 1, 0), UNKNOWN),
        ("a:mice.fct_ms.max / b:mice.fct_ms.max > 3", times(9.0, 9.0, 0, 1), DIFFERS),
        ("a:mice.fct_ms.max / b:mice.fct_ms.max < 1", times(90.0, 9.0, 0, 1), UNKNOWN),
        ("a:mice.fct_ms.max / b:mice.fct_ms.max within 0.8..1.2", times(9.0, 9.0, 0, 1), UNKNOWN),
        ("a:mice.fct_ms.max / b:mice.fct_ms.max within 0.8..1.2", times(9.0, 90.0, 0, 1), DIFFERS),
        ("a:mice.fct_ms.max / b:mice.fct_ms.max within 0.8..1.2", times(9.0, 90.0, 1, 0), UNKNOWN),
        ("a:x / b:x > 0", times(9.0, 9.0, 1, 1), AGREES),
    ],
)
def test_a_time_that_unfinished_flows_favour_decides_nothing(text, result, word):
    found = verdict.judge(expression.parse(text), result, {})
    assert found.word == word
    assert ("not all flows have finished under" in found.why) == (word == UNKNOWN)


def test_a_quotient_has_the_interval_of_ratios():
    a, b = (90.0, 110.0, 100.0), (10.0, 9.0, 12.0)
    found = judge("a:x / b:x > 3.16", a, b)
    mean, low, high = intervals.of_ratio([one / other for one, other in zip(a, b, strict=True)])
    assert (found.word, found.value, found.low, found.high) == (AGREES, mean, low, high)


def test_values_of_zero_have_that_of_means():
    found = judge("a:x / b:x < 0.5", (0.0, 0.0, 0.3))
    assert found.value == pytest.approx(0.1) and found.low < 0


def test_one_repetition_tells_nothing_but_its_value():
    found = judge("a:x > 5", (10.0,))
    assert (found.word, found.value, found.low) == (UNKNOWN, 10.0, None)
    assert "single repetition" in found.why


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"failed": "no room"}, "a failed: no room"),
        ({"unsound": "it raised ValueError"}, "a: it raised ValueError"),
        ({"x": None}, "not known: a:x"),
    ],
)
def test_what_was_not_measured_is_not_judged(change, words):
    found = verdict.judge(expression.parse("a:x > 5"), whole((1.0, 2.0), (1.0, 1.0)) | _changed(change), {})
    assert (found.word, found.value) == (UNKNOWN, None) and words in found.why


def _changed(change):
    parts = whole((1.0, 2.0), (1.0, 1.0))["repetitions"]
    parts[1]["policies"][0].update(change)
    return {"repetitions": parts}


def test_an_experiment_or_a_policy_that_was_not_run():
    for found, why in (
        (verdict.judge(expression.parse("a:x > 5"), None, {}), "not run"),
        (judge("c:x > 5", (1.0, 2.0)), "c was not run"),
    ):
        assert (found.why, found.run) == (why, False)
    assert judge("a:x > 5", (1.0, 2.0)).run


def test_a_claim_may_compare_two_experiments():
    other = whole((2.0, 2.0, 2.0), (1.0, 1.0, 1.0))
    text = "a:x / FQ1.a:x > 3"
    found = judge(text, (9.0, 10.0, 11.0), results={"FQ1": other})
    assert (found.word, round(found.value, 1)) == (AGREES, 5.0)
    assert judge(text, (9.0, 10.0, 11.0)).why == "FQ1 was not run"
    short = whole((2.0, 2.0), (1.0, 1.0))
    assert judge(text, (9.0, 10.0, 11.0), results={"FQ1": short}).why == "FQ1.a was not run"


def test_what_else_one_must_know_is_said():
    busy = judge("a:x > 5", (9.0, 10.0, 11.0), cpu={"switch_thread_percent": 97.0})
    assert "97 % of a CPU" in busy.why
    starved = judge("a:x > 5", (9.0, 10.0, 11.0), cpu={"idle_percent": 0.0})
    assert "in 3 of 3 runs no processor was ever idle" in starved.why
    assert "idle" not in judge("a:x > 5", (9.0, 10.0, 11.0), cpu={"idle_percent": 9.0}).why
    skipped = judge("a:x > 5", (9.0, 10.0, 11.0), tcp_left_out={"dctcp": 4})
    assert "skipped reductions of windows under a" in skipped.why
    other = judge("b:x > 0", (9.0, 10.0, 11.0), cpu={"switch_thread_percent": 97.0})
    assert "CPU" not in other.why


def test_the_machine_counts_during_volleys_too():
    cpu = {"switch_thread_percent": 40.0, "switch_thread_volleys_percent": 81.0}
    assert "81 % of a CPU during volleys" in judge("a:x > 5", (9.0, 10.0, 11.0), cpu=cpu).why


def test_what_one_must_know_of_another_experiment_is_said():
    other = whole((2.0, 2.0, 2.0), (1.0, 1.0, 1.0), cpu={"switch_thread_percent": 97.0})
    found = judge("a:x / FQ1.a:x > 3", (9.0, 10.0, 11.0), results={"FQ1": other})
    assert "FQ1: the switch's thread used 97 % of a CPU" in found.why
    of_b = judge("a:x / FQ1.b:x > 3", (9.0, 10.0, 11.0), results={"FQ1": other})
    assert "CPU" not in of_b.why
