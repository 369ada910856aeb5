"""The picture of a sweep: its drawn headlines, one above the other, by the first axis that has numbers.

Of several axes there is a picture for each combination of the values of the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from fairq_ryu.experiments.checking import KNOWN
from fairq_ryu.experiments.sweep import axes
from fairq_ryu.experiments.sweep.axes import Point
from fairq_ryu.experiments.sweep.table import Results, headlines
from fairq_ryu.experiments.workloads.common.naming import name as full_name
from fairq_ryu.experiments.workloads.common.pictures import Shown, shown
from fairq_ryu.experiments.workloads.common.rows import Headline, figure

_WIDTH, _HEIGHT, _AXIS, _LINE = 3.4, 1.5, 0.4, 0.15
"""Inches: of the picture, of a panel, of the axis below, and of a line of the key above."""
_WIDE = 4
"""An axis whose largest number is so many times the smallest is logarithmic."""
_MOST_PERCENT = 103
"""Intervals may be wider than what a share can be."""


class Drawn(NamedTuple):
    """A picture."""

    name: str
    """of its files"""
    caption: str
    figure: Figure


class _Place(NamedTuple):
    """A point of a picture: where it is on the axis, its value as text, and its result."""

    at: float
    text: str
    result: Mapping[str, Any]


def pictures(points: Sequence[Point], results: Results) -> list[Drawn]:
    """All pictures for which there are figures. Of a single policy without any, it has no curve."""
    wanted = [each for each in headlines(results) if each.drawn] or headlines(results)
    if not points or not wanted:
        return []
    across = _across(points)
    found = []
    for number, (rest, places) in enumerate(_groups(points, results, across).items(), 1):
        caption = f"By {across}" + (f", with {rest}" if rest else "")
        name = "sweep" if number == 1 else f"sweep-{number}"
        found.append(Drawn(name, caption, _draw(wanted, across, places)))
    return found


def _across(points: Sequence[Point]) -> str:
    """The axis of the pictures: the first with several numbers, or else the first."""
    names = list(points[0].values)
    values = {name: dict.fromkeys(point.values[name] for point in points) for name in names}
    several = [name for name in names if len(values[name]) > 1]
    numbers = [name for name in several if all(_number(value) is not None for value in values[name])]
    return (numbers or several or names)[0]


def _number(text: str) -> float | None:
    """Also of a list of one number."""
    return axes.number(text.strip("[]"))


def _groups(points: Sequence[Point], results: Results, across: str) -> dict[str, list[_Place]]:
    """The points that have a result, by the values of all other axes."""
    texts = list(dict.fromkeys(point.values[across] for point in points))
    numbers = {text: _number(text) for text in texts}
    found: dict[str, list[_Place]] = {}
    for point, result in zip(points, results, strict=True):
        if result is None:
            continue
        others = Point({name: value for name, value in point.values.items() if name != across})
        text = point.values[across]
        number = numbers[text]
        place = float(texts.index(text)) if None in numbers.values() or number is None else number
        found.setdefault(others.label, []).append(_Place(place, text.strip("[]"), result))
    return {rest: sorted(places) if places else [] for rest, places in found.items()}


def _draw(wanted: Sequence[Headline], across: str, places: Sequence[_Place]) -> Figure:
    curves = _curves(places)
    height = _HEIGHT * len(wanted) + _AXIS + _LINE * (len(curves) + 1)
    drawing = Figure(figsize=(_WIDTH, height), layout="constrained")
    panels = drawing.subplots(len(wanted), 1, sharex=True, squeeze=False)[:, 0]
    for panel, headline in zip(panels, wanted, strict=True):
        for number, curve in enumerate(curves):
            _curve(panel, headline, curve, number, places)
        _limit(panel, headline, places)
        _scale(panel, headline)
    _ticks(panels[-1], places)
    panels[-1].set_xlabel(_named(across))
    key: dict[str, Any] = {}
    for panel in panels:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            key.setdefault(label, handle[0] if isinstance(handle, tuple) else handle)  # without its bars
    drawing.legend(key.values(), key.keys(), loc="outside upper center", fontsize="small")
    return drawing


def _curves(places: Sequence[_Place]) -> list[Shown]:
    """The policies, each by its name at the first point where it has not failed."""
    found: dict[int, str] = {}
    policies = [place.result["policies"] for place in places]
    for place in places:
        for number, policy in enumerate(place.result["policies"]):
            if not policy["failed"]:
                found.setdefault(number, full_name(policy))
    return shown([({}, found.get(number, each["policy"])) for number, each in enumerate(policies[0])])


def _curve(panel: Any, headline: Headline, curve: Shown, number: int, places: Sequence[_Place]) -> None:
    path, times = headline.row.path, _times(headline)
    there = [(place, place.result["policies"][number]) for place in places]
    known = [(place, policy) for place, policy in there if figure(policy, path) is not None]
    if not known:
        return
    values = [figure(policy, path) * times for _place, policy in known]
    halves = [(figure(policy, ("interval", *path)) or 0.0) * times for _place, policy in known]
    # A logarithmic scale has no place for what is 0 or less.
    most = [0.9 * value if headline.logarithmic else half for value, half in zip(values, halves, strict=True)]
    low = [min(both) for both in zip(halves, most, strict=True)]
    panel.errorbar(
        [place.at for place, _policy in known],
        values,
        yerr=[low, halves] if any(halves) else None,
        marker="o",
        markersize=3,
        capsize=2,
        elinewidth=1,
        **curve.curve,
    )


def _limit(panel: Any, headline: Headline, places: Sequence[_Place]) -> None:
    """What no policy can beat."""
    if not headline.limit:
        return
    limits: dict[float, float] = {}
    for place in places:
        for policy in place.result["policies"]:
            if (limit := figure(policy, headline.limit)) is not None:
                limits[place.at] = limit
    if limits:
        panel.plot(list(limits), list(limits.values()), color="0.5", linewidth=1, label="physical limit")


def _scale(panel: Any, headline: Headline) -> None:
    row = headline.row
    unit = "%" if _times(headline) != 1 else row.unit
    label = row.label.removesuffix(", share")
    panel.set_ylabel(f"{label}\n[{unit}]" if unit else label)
    if headline.logarithmic:
        panel.set_yscale("log")
        panel.yaxis.set_major_formatter("{x:,g}")
    else:
        most = panel.get_ylim()[1]
        panel.set_ylim(0, min(most, _MOST_PERCENT) if unit == "%" else most)


def _times(headline: Headline) -> int:
    """Shares are drawn in percent."""
    return 100 if headline.row.style.endswith("%") else 1


def _ticks(panel: Any, places: Sequence[_Place]) -> None:
    """Every point has its value below it."""
    at = [place.at for place in places]
    if min(at) > 0 and max(at) >= _WIDE * min(at):
        panel.set_xscale("log")
    panel.set_xticks(at, [place.text for place in places])
    panel.set_xticks([], minor=True)


def _named(across: str) -> str:
    unit = KNOWN[across].metadata["unit"]
    return f"{across} [{unit}]" if unit else across
