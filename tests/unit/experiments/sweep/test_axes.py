"""How the settings of a sweep and their values are written."""

import pytest

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.sweep import axes
from fairq_ryu.experiments.sweep.axes import Axis, Point


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("senders=1..128", ["1", "2", "4", "8", "16", "32", "64", "128"]),
        ("senders=3..20", ["3", "6", "12", "20"]),
        ("senders=5..5", ["5"]),
        ("senders=10..100/30", ["10", "40", "70", "100"]),
        ("senders=10..99/30", ["10", "40", "70"]),
        ("rtt_ms=0..1/0.5", ["0", "0.5", "1"]),
        ("rtt_ms=0.1..0.4/0.1", ["0.1", "0.2", "0.3", "0.4"]),
        ("rate_mbit=2.5..10", ["2.5", "5", "10"]),
        ("senders=4,8,16", ["4", "8", "16"]),
        ("senders = 4", ["4"]),
        ("cc=cubic,reno", ["cubic", "reno"]),
        ("flows=5..20", ["[5]", "[10]", "[20]"]),
        ("flows=[5,10],[20]", ["[5,10]", "[20]"]),
        ("buffer_bytes=100000..1000000/300000", ["100000", "400000", "700000", "1000000"]),
    ],
)
def test_ranges_and_lists(text, values):
    (axis,) = axes.read([text])
    assert axis == Axis(text.partition("=")[0].strip(), tuple(values))


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ([], "nothing varies"),
        (["senders"], "is not SETTING=VALUES"),
        (["sender=1..4"], "unknown setting 'sender'. Remedy: did you mean senders?"),
        (["senders=8..1"], "ends before it begins"),
        (["senders=0..8"], "0 cannot be doubled"),
        (["senders=1..8/0"], "the step is not above 0"),
        (["senders=a..b"], "is not a range of numbers"),
        (["senders=1..nan"], "ends before it begins"),
        (["senders=1..100000/1"], "more than 1000 values"),
        (["senders=1,1"], "a value twice"),
        (["senders=1..2", "senders=4"], "senders varies twice"),
        (["seed=1..4"], "use --repeat"),
        (["topology=incast,dumbbell"], "topology cannot vary"),
    ],
)
def test_a_wrong_axis_is_refused(texts, words):
    with pytest.raises(UserError) as caught:
        axes.read(texts)
    assert words in str(caught.value)


def test_all_faults_are_told():
    with pytest.raises(UserError) as caught:
        axes.read(["sender=1", "senders=8..1", "rounds=2"])
    assert len(str(caught.value).splitlines()) == 2


def test_points_are_all_combinations():
    found = axes.points(axes.read(["senders=2,4", "cc=cubic,reno"]))
    assert [point.label for point in found] == [
        "senders = 2, cc = cubic", "senders = 2, cc = reno", "senders = 4, cc = cubic",
        "senders = 4, cc = reno",
    ]  # fmt: skip
    assert found[1].directory == "senders=2,cc=reno"
    assert Point({"flows": "[5, 10]"}).directory == "flows=-5,-10-"
    assert Point({"title": "../../x y"}).directory == "title=..-..-x-y"
