"""Which of two results is better, in words."""

import copy
import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.report import better, compare, result

STORED = json.loads((Path(__file__).parents[3] / "data/results/incast.json").read_text())
P99 = ("mice", "fct_ms", "p99")
SHARE = ("mice", "timeout_share")
GOODPUT = ("elephants", "goodput_sum_mbit")
UNFINISHED = ("mice", "unfinished")


def put(figures, path, value):
    for key in path[:-1]:
        figures = figures[key]
    figures[path[-1]] = value


@pytest.fixture
def made(tmp_path):
    """Makes the result of several repetitions: of each policy, a list of values for each path."""

    def make(name, values, scenario=(), metadata=()):
        measured = []
        for number in range(max(len(listed) for paths in values.values() for listed in paths.values())):
            policies = []
            for policy, paths in values.items():
                figures = copy.deepcopy(STORED["policies"][0])
                figures["policy"] = policy
                put(figures, UNFINISHED, 0)
                for path, listed in paths.items():
                    put(figures, path, listed[number])
                policies.append(figures)
            measured.append({"order": list(values), "floor": None, "policies": policies})
        chosen, about = STORED["scenario"] | dict(scenario), STORED["metadata"] | dict(metadata)
        (tmp_path / name).mkdir()
        result.save(result.assemble(chosen, about, measured), tmp_path / name)
        return str(tmp_path / name)

    return make


def told(one, other, anyway=False):
    """Without the last line, the commits."""
    return printed(one, other, anyway)[:-1]


def printed(one, other, anyway=False):
    out = io.StringIO()
    assert compare.main(one, other, anyway, Console(file=out, width=300)) == 0
    return out.getvalue().splitlines()


def test_the_commits_are_printed_last(made):
    policies = {"fairq": {P99: [1.0, 2]}, "las": {P99: [1.0, 2]}}
    one, two = (made(name, policies, metadata={"git_commit": name}) for name in "ab")
    assert printed(one, two)[-1] == "Of commit a+ and b+."
    assert printed(f"{one}:fairq", ":las")[-1] == "Of commit a+."


def line(lines, label):
    (found,) = [each.strip() for each in lines if each.strip().startswith(f"{label}: ")]
    return found.removeprefix(f"{label}: ")


def test_the_better_policy_of_a_result_is_named_with_intervals(made):
    here = made(
        "a",
        {
            "droptail": {P99: [900.0, 1000, 1100], SHARE: [0.5, 0.6, 0.7], GOODPUT: [20.0, 21, 22]},
            "fairq": {P99: [99.0, 100, 101], SHARE: [0.0, 0, 0], GOODPUT: [20.5, 21, 21.5]},
        },
    )
    lines = told(f"{here}:droptail", ":fairq")
    assert lines[0] == "droptail and fairq"
    p99 = line(lines, "mice FCT p99")
    assert p99.startswith("fairq is better: 100.0 ms instead of 1,000.0 ms, 9.97 [")
    assert p99.endswith("] times lower")
    # Of a share that is 0 there is no ratio.
    share = line(lines, "mice with RTO timeouts, share")
    assert share == "fairq is better: 0.0% instead of 60.0%, lower by 60.0% [35.2%, 84.8%]"
    assert line(lines, "elephants goodput").startswith(
        "no difference that these repetitions can show: 21.0 Mbit/s and 21.0 Mbit/s, ratio 1 ["
    )
    assert "3 and 3 repetitions; 95 % confidence intervals by Welch's t-test" in lines[-1]


def test_the_first_may_be_the_better_one_and_more_may_be_better(made):
    good = {P99: [99.0, 100, 101], GOODPUT: [20.0, 21, 22]}
    here = made("a", {"a": good, "b": {P99: [900.0, 1000, 1100], GOODPUT: [10.0, 11, 12]}})
    lines = told(f"{here}:a", f"{here}:b")
    assert line(lines, "mice FCT p99").startswith("a is better: 100.0 ms instead of 1,000.0 ms, 9.97 [")
    goodput = line(lines, "elephants goodput")
    assert goodput.startswith("a is better: 21.0 Mbit/s instead of 11.0 Mbit/s, 1.91 [")
    assert goodput.endswith("] times higher")


def test_flows_that_have_not_finished_win_nothing(made):
    """Their times are in no figure: those of the others say little."""
    collapsed = {P99: [149.0, 150, 151], UNFINISHED: [20, 20, 20]}
    here = made("a", {"droptail": collapsed, "fairq": {P99: [199.0, 200, 201], UNFINISHED: [0, 0, 0]}})
    lines = told(f"{here}:droptail", ":fairq")
    assert line(lines, "mice FCT p99") == (
        "cannot tell: 150.0 ms and 200.0 ms, of the flows that have finished"
    )
    assert any(each.startswith("  droptail: 20 flows of a repetition have not finished") for each in lines)
    there = made("b", {"droptail": collapsed, "fairq": {P99: [99.0, 100, 101], UNFINISHED: [0, 0, 0]}})
    assert line(told(f"{there}:droptail", ":fairq"), "mice FCT p99").startswith("fairq is better: 100.0 ms")


def test_a_figure_that_some_repetitions_lack_is_named(made):
    """All mice of the second are unfinished: it has no p99."""
    here = made("a", {"a": {P99: [9.0, None, 10], GOODPUT: [None] * 3}, "b": {P99: [1.0, 2, 3]}})
    lines = told(f"{here}:a", ":b")
    assert line(lines, "mice FCT p99") == "not compared: missing in 1 of 3 repetitions of a"
    assert line(lines, "elephants goodput") == "not compared: missing in 3 of 3 repetitions of a"
    there = made("b", {name: {GOODPUT: [None] * 2} for name in "ab"})
    assert not any("elephants" in each for each in told(f"{there}:a", ":b"))


def test_wide_intervals_show_no_difference(made):
    here = made("a", {"a": {P99: [10.0, 100, 1000]}, "b": {P99: [20.0, 200, 2000]}})
    assert line(told(f"{here}:a", ":b"), "mice FCT p99").startswith(better.NO_DIFFERENCE)


def test_a_single_repetition_shows_nothing(made):
    here = made("a", {"a": {P99: [10.0]}, "b": {P99: [1000.0]}})
    lines = told(f"{here}:a", ":b")
    assert line(lines, "mice FCT p99") == (
        "10.0 ms and 1,000.0 ms; a single repetition shows no difference, --repeat 5 may"
    )
    assert not any("Welch" in each for each in lines)


def test_two_results_are_compared_policy_by_policy(made):
    first = {"fairq": {P99: [99.0, 100, 101]}, "las": {P99: [1.0, 2, 3]}}
    second = {"sed": {P99: [1.0, 2, 3, 4]}, "fairq": {P99: [9.9, 10, 10.1, 10]}}
    one = made("one", first, metadata={"git_commit": "a"})
    two = made("two", second, metadata={"git_commit": "b"})
    lines = told(one, two)
    assert lines[0] == "Of different machines or versions: git_commit: a and b."
    assert lines[1] == f"{one}: fairq and {two}: fairq"
    assert line(lines, "mice FCT p99").startswith(
        f"{two}: fairq is better: 10.0 ms instead of 100.0 ms, 10 ["
    )
    assert "3 and 4 repetitions" in lines[-1]
    assert told(f"{one}:las", f"{two}:sed")[1] == "las and sed"
    assert told(one, f"{two}:fairq")[1:] == lines[1:]


def test_simulations_that_were_made_differently_are_refused(made):
    policies = {"fairq": {P99: [1.0, 2]}}
    one, two = (made(str(n), policies, metadata={"simulator": {"ack_every": n}}) for n in (1, 2))
    with pytest.raises(UserError, match=r"\[simulator\] ack_every: 1 and 2"):
        told(one, two)


def test_results_of_different_scenarios_or_settings_are_refused(made):
    policies = {"fairq": {P99: [1.0, 2]}}
    one = made("one", policies, metadata={"settings": {"fairq": {"alpha": 0.25}}})
    other = {"senders": 5, "title": "another title"}
    two = made("two", policies, scenario=other, metadata={"settings": {"fairq": {"alpha": 0.5}}})
    with pytest.raises(UserError) as caught:
        told(one, two)
    assert caught.value.message.endswith("differ: senders: 18 and 5; [fairq] alpha: 0.25 and 0.5")
    assert "--anyway" in caught.value.remedy
    assert told(one, two, anyway=True)[0] == (
        "Compared although these differ: senders: 18 and 5; [fairq] alpha: 0.25 and 0.5."
    )


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        ("{}", "{}", "both are the same result"),
        ("{}:a", ":a", "the same policy of the same result"),
        ("{}:a", ":zzz", "has no policy 'zzz'. Remedy: known are a, b"),
        ("{}:a", "/none:b", "there is no /none/result.json"),
    ],
)
def test_what_cannot_be_compared_is_refused(made, one, other, words):
    here = made("a", {"a": {P99: [1.0, 2]}, "b": {P99: [1.0, 2]}})
    with pytest.raises(UserError) as caught:
        told(one.format(here), other.format(here))
    assert words in str(caught.value)


def test_failed_and_unsound_policies_are_told(made):
    here = made("a", {name: {P99: [1.0, 2]} for name in "abc"})
    whole = result.load(Path(here))
    whole["policies"][1] = {"policy": "b", "failed": "no room"}
    whole["policies"][2]["unsound"] = "the policy failed once"
    result.save(whole, Path(here))
    with pytest.raises(UserError, match=r"b has failed in .*: no room"):
        told(f"{here}:a", ":b")
    assert any("c: the policy failed once" in each for each in told(f"{here}:a", ":c"))


def test_results_without_a_common_policy_need_names(made):
    one, two = made("one", {"a": {P99: [1.0, 2]}}), made("two", {"b": {P99: [1.0, 2]}})
    with pytest.raises(UserError, match="no policy in common"):
        told(one, two)
    assert told(f"{one}:a", f"{two}:b")[0] == "a and b"
