"""The language of claims: what it reads, computes and refuses."""

import pytest

from fairq_ryu.experiments.papers import expression
from fairq_ryu.experiments.papers.expression import UnknownFigure

FIGURES = {
    "droptail": {"mice": {"fct_ms": {"sd": 40.0}}, "drops": 6, "none": None, "flag": True},
    "fairq[alpha=0.5]": {"mice": {"fct_ms": {"sd": 4.0}}, "drops": 0},
    "sed": {"sweep": [{"n": 1, "goodput": 8.0}, {"n": 10, "goodput": 40.0}], "by_flow": [{"missed": 2}]},
    "afcd": {"groups": [{"kind": "cubic", "share": 0.25}, {"kind": "udp", "share": 0.75}]},
}


def value(text):
    return expression.parse(text).value(FIGURES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("droptail:mice.fct_ms.sd / fairq[alpha=0.5]:mice.fct_ms.sd > 3.16", 10.0),
        ("sed:sweep.n=10.goodput / sed:sweep.n=1.goodput > 1", 5.0),
        ("sed:by_flow.0.missed <= 0", 2.0),
        ("afcd:groups.kind=udp.share > 0.9", 0.75),
        ("max(droptail:drops, sed:by_flow.0.missed) - min(droptail:drops, sed:by_flow.0.missed) > 3", 4.0),
        ("(droptail:drops + 4) * 2 / 5 - 1 < 9", 3.0),
        ("fairq[alpha=0.5]:drops / droptail:drops < 0.1", 0.0),
        ("droptail:drops < sed:by_flow.0.missed", 4.0),  # of two sides with figures, the difference
    ],
)
def test_values(text, expected):
    assert value(text) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("droptail:drops > 3", [3.1], [3.0, 2.9]),
        ("droptail:drops >= 3", [3.1, 3.0], [2.9]),
        ("droptail:drops < 3", [2.9], [3.0, 3.1]),
        ("droptail:drops <= 0", [0.0, -1.0], [0.1]),
        ("droptail:drops within 0.8..1.25", [0.8, 1.0, 1.25], [0.79, 1.26]),
        ("droptail:drops < sed:by_flow.0.missed", [-0.1], [0.0, 0.1]),
    ],
)
def test_what_is_claimed(text, inside, outside):
    claimed = expression.parse(text).claimed
    assert all(claimed.holds(each) for each in inside)
    assert not any(claimed.holds(each) for each in outside)


@pytest.mark.parametrize(
    ("text", "quotient"),
    [
        ("droptail:drops / sed:by_flow.0.missed > 1", True),
        ("droptail:drops / min(sed:by_flow.0.missed, afcd:x) < 1", True),
        ("droptail:drops / sed:by_flow.0.missed - 1 > 0", False),
        ("droptail:drops / 2 > sed:by_flow.0.missed", False),
        ("droptail:drops > 1", False),
    ],
)
def test_only_quotients_are_compared_in_the_logarithm(text, quotient):
    assert expression.parse(text).quotient is quotient


def test_the_policies_of_a_claim():
    claim = expression.parse("droptail:a / max(fairq[alpha=0.5]:a, droptail:b) > 1")
    assert claim.policies == ("droptail", "fairq[alpha=0.5]")


@pytest.mark.parametrize(
    ("text", "raises"),
    [
        ("a:x < 1", "a"),
        ("a:x / b:x > 1", "a"),
        ("a:x / (b:x / c:x) > 1", "ac"),
        ("a:x - b:x * 2 + c:x > 1", "ac"),
        ("a:x / max(b:x, c:x) < d:x - a:x", "aa"),
    ],
)
def test_which_figures_make_the_value_larger(text, raises):
    assert "".join(each.policy for each in expression.parse(text).terms if each.raises) == raises


def test_figures_may_be_added_on_the_right_side():
    assert value("droptail:drops < sed:by_flow.0.missed * 2 + fairq[alpha=0.5]:drops") == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("droptail:none > 1", "droptail:none"),
        ("droptail:flag > 0", "droptail:flag"),
        ("droptail:mice.fct_ms > 1", "droptail:mice.fct_ms"),
        ("sed:sweep.n=5.goodput > 1", "sed:sweep.n=5.goodput"),
        ("sed:by_flow.1.missed > 1", "sed:by_flow.1.missed"),
        ("iqm:drops > 1", "iqm"),
        ("droptail:drops / fairq[alpha=0.5]:drops > 1", "quotient by 0"),
    ],
)
def test_a_figure_that_is_not_there_is_named(text, words):
    with pytest.raises(UnknownFigure, match=words.replace("[", r"\[")):
        value(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("droptail:drops", "ends too early"),
        ("droptail:drops >", "ends too early"),
        ("droptail:drops ~ 3", "'~ 3', which is no figure and no sign"),
        ("3 > 2", "has no figure"),
        ("droptail:drops > 1 2", "'2' after its end"),
        ("droptail:drops within 1 2", "'2' where '..' is due"),
        ("droptail:drops within a:b 2", "'a:b' where a number is due"),
        ("min droptail:drops > 1", "'droptail:drops' where '(' is due"),
        ("> 1", "'>' where a figure or a number is due"),
        ("droptail:drops 1", "'1' where a comparison is due"),
        ("droptail:drops <= sed:drops + 1", "adds a number on its right side"),
        ("droptail:drops <= 1 + sed:drops", "adds a number on its right side"),
        ("droptail:drops <= min(sed:drops - 1, sed:none)", "adds a number on its right side"),
    ],
)
def test_what_is_no_claim_is_refused(text, words):
    with pytest.raises(ValueError) as caught:
        expression.parse(text)
    assert words in str(caught.value) and repr(text) in str(caught.value)
