"""Rivals that are better than our best policy: what is said below a table."""

import copy
import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from fairq_ryu.experiments.report import better, page, result, table, unfinished

STORED = json.loads((Path(__file__).parents[3] / "data/results/incast.json").read_text())


def made(values, unfinished=(), scenario=None):
    """A result with these p99 of mice in each repetition, by policy."""
    measured = []
    for samples in zip(*values.values(), strict=True):
        policies = []
        for policy, p99 in zip(values, samples, strict=True):
            figures = copy.deepcopy(STORED["policies"][0])
            figures["policy"] = policy
            figures["mice"] |= {"unfinished": 99 if policy in unfinished else 0}
            figures["mice"]["fct_ms"]["p99"] = p99
            policies.append(figures)
        measured.append({"order": list(values), "floor": None, "policies": policies})
    return result.assemble(scenario or STORED["scenario"], STORED["metadata"], measured)


FAIRQ, LAS = [199.0, 200.0, 201.0], [159.0, 160.0, 161.0]
CAKE = [79.0, 80.0, 81.0]


def test_the_rivals_are_named_that_are_better_than_our_best():
    whole = made(
        {"fairq": FAIRQ, "las[alpha=0.5]": LAS, "cake": CAKE, "droptail-rto5": [179.0, 180.0, 181.0]}
    )
    said = better.rivals(whole)
    assert said.startswith(
        "Rivals win: mice FCT p99 is lower than that of las[alpha=0.5], our best, under"
        " cake (80.0 ms instead of 160.0 ms, 2 ["
    )
    assert said.endswith("] times lower).") and "droptail" not in said and "fairq" not in said


@pytest.mark.parametrize(
    "values",
    [
        {"droptail": FAIRQ, "fairq": LAS},
        {"droptail": CAKE, "mark-dctcp": LAS},  # none of ours
        {"fairq": FAIRQ, "las": CAKE},  # no rival
        {"fairq": [100.0, 200.0, 300.0], "codel": [90.0, 180.0, 290.0]},  # they may be equal
    ],
)
def test_nothing_is_said_where_none_is(values):
    whole = made(values)
    assert better.rivals(whole) is None
    assert not any("Rivals" in line for line in table.remarks(whole))


def test_one_repetition_has_no_interval():
    whole = made({"fairq": [200.0], "cake": [150.0], "droptail": [900.0]})
    assert better.rivals(whole) == (
        "Rivals win: mice FCT p99 is lower than that of fairq, our best, under"
        " cake (150.0 ms instead of 200.0 ms; no interval, one repetition)."
    )


def test_flows_that_have_not_finished_win_nothing():
    values = {"las": CAKE, "fairq": FAIRQ, "droptail": LAS, "cake": CAKE}
    assert better.rivals(made(values, unfinished=("droptail", "cake"))) is None
    said = better.rivals(made(values, unfinished=("las",)))
    assert "fairq, our best" in said and "under droptail (" in said and "cake (" in said


def test_slowdowns_lack_flows_that_have_not_finished_and_last_bytes_do_not():
    small = {"count": 100, "unfinished": 2, "slowdown": {"p50": 1.0, "p99": 2.0}}
    policy = {"empirical": {"small": small}, "fanin": {"unfinished": 2, "last_byte_ms": {"p99": 1.0}}}
    assert unfinished.matters(policy, ("empirical", "small", "slowdown", "p99"))
    assert not unfinished.matters(policy, ("empirical", "small", "slowdown", "p50"))
    assert not unfinished.matters(policy, ("fanin", "last_byte_ms", "p99"))


def test_failed_and_unsound_policies_do_not_count():
    whole = made({"fairq": FAIRQ, "las": LAS, "codel": CAKE, "cake": CAKE})
    whole["policies"][1] = {"policy": "las", "failed": "no room"}
    whole["policies"][2]["unsound"] = "the policy failed once"
    assert "fairq, our best, under cake (" in better.rivals(whole)
    assert "codel" not in better.rivals(whole)


def test_the_p99_and_the_mean_have_a_winner_each():
    whole = made({"fairq": [200.0], "las": [210.0], "cake": [150.0], "fq": [900.0]})
    for each, mean in zip(whole["policies"], [99.0, 90.0, 95.0, 80.0], strict=True):
        each["mice"]["fct_ms"]["mean"] = mean
    assert better.rivals(whole) == (
        "Rivals win: mice FCT p99 is lower than that of fairq, our best, under"
        " cake (150.0 ms instead of 200.0 ms; no interval, one repetition);"
        " mice FCT mean is lower than that of las, our best, under"
        " fq (80.0 ms instead of 90.0 ms; no interval, one repetition)."
    )


@pytest.mark.parametrize(
    ("traffic", "path", "ours", "rival", "words"),
    [
        ("deadlines", ("deadlines", "missed"), [8, 9, 8], [0, 0, 0], "deadlines missed is lower than"),
        ("fanin", ("fanin", "missed"), [8, 9, 8], [0, 0, 0], "all n: deadlines missed is lower than"),
        ("flood", ("elephants", "goodput_sum_mbit"), [10.0, 11, 10], [20.0, 21, 20],
         "elephants goodput is higher than"),
    ],
)  # fmt: skip
def test_other_traffic_has_its_own_figure(traffic, path, ours, rival, words):
    whole = made({"fairq": FAIRQ, "cake": FAIRQ}, scenario={**STORED["scenario"], "traffic": traffic})
    for part, *values in zip(whole["repetitions"], ours, rival, strict=True):
        for each, value in zip(part["policies"], values, strict=True):
            each.setdefault(path[0], {})[path[1]] = value
    said = better.rivals(whole)
    assert said.startswith(f"Rivals win: {words} that of fairq, our best, under cake (")
    for part in whole["repetitions"]:
        for each in part["policies"]:
            each[path[0]][path[1]] = 0
    assert better.rivals(whole) is None


@pytest.mark.parametrize("full", [False, True])
def test_it_is_the_first_line_below_the_table(full):
    whole = made({"fairq": FAIRQ, "cake": CAKE})
    out = io.StringIO()
    table.show(whole, full, Console(file=out, width=400))
    rows = sum(map(len, table.sections(whole, full)))
    lines = out.getvalue().splitlines()
    assert lines[1 + rows] == better.rivals(whole)  # below the heading and the rows


def test_it_is_the_first_line_below_the_table_of_a_page():
    whole = made({"fairq": FAIRQ, "cake": CAKE})
    assert page.page(whole, []).partition("</table>")[2].split("\n")[2] == f"<p>{better.rivals(whole)}</p>"
