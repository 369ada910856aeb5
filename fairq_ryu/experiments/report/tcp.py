"""What TCP did, drawn: for each traced flow the queue, the law, the flow's windows and its round trip above
each other, on one time axis.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.measure import tcp_trace

DIRECTORY = "tcp"
"""Of its pictures, within that of the report."""
_SIZE, _HEIGHTS, _NO_LAW = (7.2, 7.6), (1, 1, 1.6, 0.8), 0.05
# Okabe and Ito's colours; line styles help in grey.
_BLUE, _RED, _GREEN, _BLACK, _GREY = "#0072B2", "#D55E00", "#009E73", "#000000", "#808080"
_STATE_COLOURS = {"Disorder": "#F0E442", "CWR": "#56B4E9", "Recovery": "#E69F00", "Loss": "#D55E00"}
_FAINT = 0.35
_MARGIN = 0.08
"""Part of a flow's time that is shown before and after it."""
_LEAST_MS = 20.0
_AT = {name: place for place, name in enumerate(tcp_trace.COLUMNS)}
_WINDOWS: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
    ("rwnd", "receive window, as the sender saw it", {"color": _RED, "linestyle": "--", "linewidth": 1.5}),
    ("cwnd", "congestion window", {"color": _BLUE, "linewidth": 1.5}),
    ("in_flight", "in flight", {"color": _GREEN, "linestyle": "-.", "linewidth": 1.2}),
)


class Traced(NamedTuple):
    """A picture to draw."""

    name: str
    """of its files"""
    caption: str
    figure: Figure


def pictures(result_directory: Path) -> list[Traced]:
    """Those of all traces of a result, in the order of their names. ``UserError`` when a trace is damaged."""
    logs = result_directory / "logs"
    found = []
    for path in sorted(logs.rglob(tcp_trace.FILE_NAME)):
        parts = path.parent.relative_to(logs).parts
        try:
            trace = tcp_trace.load(path)
            for number, flow in enumerate(trace["flows"], 1):
                found.append(
                    Traced("-".join((*parts, str(number))), _caption(parts, flow), drawn(trace, flow))
                )
        except (OSError, EOFError, ValueError, KeyError, TypeError, IndexError) as error:
            raise UserError(f"{path} is damaged: {error!r}", "remove it, or repeat the run") from None
    return found


def _caption(parts: Sequence[str], flow: Mapping[str, Any]) -> str:
    timeouts, took_ms = flow["rto_timeouts"], flow["ended_ms"] - flow["began_ms"]
    said = "" if timeouts is None else f", RTO timeouts: {timeouts}"
    if again := flow["syn_acks_again"]:
        said += f", SYN-ACKs sent again: {again}"
    return (
        f"What TCP did under {' '.join(parts)}: {flow['host']} port {flow['port']}, {flow['bytes']:,} bytes"
        f" in {took_ms:,.0f} ms; segments sent again: {flow['retransmissions']}{said}"
    )


def drawn(trace: Mapping[str, Any], flow: Mapping[str, Any]) -> Figure:
    """The picture of one flow."""
    began, ended = flow["began_ms"], flow["ended_ms"]
    margin = max(_LEAST_MS, (ended - began) * _MARGIN)
    window = max(0.0, began - margin), ended + margin
    figure = Figure(figsize=_SIZE, layout="constrained")
    limited = any(each[1] for each in _steps(trace["law"], window))
    heights = _HEIGHTS if limited else (_HEIGHTS[0], _NO_LAW, *_HEIGHTS[2:])
    queue, law, windows, trip = figure.subplots(4, sharex=True, height_ratios=heights)
    _queue(queue, trace, window)
    _law(law, trace, window)
    samples = [*flow["samples"], [ended, *flow["samples"][-1][1:]]]
    _windows(windows, samples, window[0], began)
    windows.set_title(
        f"{flow['host']} port {flow['port']}: {flow['bytes']:,} bytes", fontsize="small", loc="left"
    )
    _draw(trip, window[0], samples, _AT["srtt_us"], color=_BLACK, linewidth=1.5)
    trip.set_ylim(0, max(1.15 * max(each[_AT["srtt_us"]] for each in samples), 1) / 1e3)
    trip.set_ylabel("srtt [ms]")
    for axes in (queue, law, windows, trip):
        axes.set_ylim(bottom=0)
        axes.margins(x=0)
    trip.set_xlim(0.0, window[1] - window[0])
    trip.set_xlabel(f"time [ms], from {window[0] / 1e3:,.2f} s of the trace on")
    figure.align_ylabels()
    return figure


def _steps(points: Sequence[Sequence[Any]], window: tuple[float, float]) -> list[Sequence[Any]]:
    """The points in a window of time, with what was before it and what is at its end."""
    first = max(0, bisect.bisect_right(points, window[0], key=lambda each: each[0]) - 1)
    last = bisect.bisect_right(points, window[1], key=lambda each: each[0])
    inside = list(points[first:last])
    return [*inside, [window[1], *inside[-1][1:]]] if inside else []


def _draw(axes: Any, start: float, points: Sequence[Sequence[Any]], place: int, **style: Any) -> None:
    axes.step(
        [each[0] - start for each in points], [each[place] / 1e3 for each in points], where="post", **style
    )


def _queue(axes: Any, trace: Mapping[str, Any], window: tuple[float, float]) -> None:
    _draw(axes, window[0], _steps(trace["queue"], window), 1, color=_BLACK, linewidth=1)
    axes.axhline(trace["buffer_bytes"] / 1e3, color="0.5", linewidth=1, linestyle="--")
    axes.set_ylabel("queue [kB]")
    axes.set_title("queue of the bottleneck; dashed: its buffer", fontsize="small", loc="left")


def _law(axes: Any, trace: Mapping[str, Any], window: tuple[float, float]) -> None:
    points = _steps(trace["law"], window)
    kinds = list(dict.fromkeys(each[1] for each in points if each[1]))
    if not kinds:
        axes.set_title("no law lowers windows", fontsize="small", loc="left")
        axes.set_axis_off()
        return
    axes.set_ylabel("law [kB]")
    title = f"law {', '.join(kinds)}"
    if any(each[2] for each in points):
        shares = [(at, pool / flows if flows else pool) for at, _kind, pool, _window, flows in points]
        _draw(axes, window[0], points, 2, color=_BLUE, linewidth=1.5, label="pool")
        _draw(
            axes, window[0], shares, 1, color=_RED, linewidth=1.5, linestyle="--", label="pool / active flows"
        )
    if any(each[3] for each in points):
        _draw(
            axes, window[0], points, 3, color=_GREEN, linewidth=1.5, linestyle="-.", label="window of a flow"
        )
    axes.set_title(title, fontsize="small", loc="left")
    axes.legend(fontsize="small", ncols=3, loc="lower right", bbox_to_anchor=(1.0, 0.96), frameon=False)


def _windows(axes: Any, samples: Sequence[Sequence[Any]], start: float, began: float) -> None:
    # A receive window that nobody lowers is many times what flows: it may leave the picture.
    highest = max(max(each[_AT["cwnd"]], each[_AT["in_flight"]]) for each in samples)
    offered = [each[_AT["rwnd"]] for each in samples]
    top = 1.15 * max(highest, min(max(offered), 2 * highest), 1)
    for name, label, style in _WINDOWS:
        above = " (above)" if min(each[_AT[name]] for each in samples) > top else ""
        _draw(axes, start, samples, _AT[name], label=label + above, **style)
    axes.set_ylim(0, top / 1e3)
    states: set[str] = set()
    again: list[float] = []
    for each, after in itertools.pairwise(samples):
        state = tcp_trace.STATES[each[_AT["state"]]]
        if colour := _STATE_COLOURS.get(state):
            states.add(state)
            axes.axvspan(each[0] - start, after[0] - start, color=colour, alpha=_FAINT, linewidth=0)
        if after[_AT["retransmissions"]] > each[_AT["retransmissions"]]:
            again.append(after[0] - start)
    handles, labels = axes.get_legend_handles_labels()
    if again:
        at_top = axes.get_xaxis_transform()
        handles += axes.plot(again, [0.96] * len(again), "v", color=_BLACK, markersize=5, transform=at_top)
        labels.append("sent again")
    if began < samples[0][0]:
        axes.axvspan(began - start, samples[0][0] - start, color=_GREY, alpha=_FAINT, linewidth=0)
        handles.append(Patch(color=_GREY, alpha=_FAINT, linewidth=0))
        labels.append("handshake")
    for state in (each for each in _STATE_COLOURS if each in states):
        handles.append(Patch(color=_STATE_COLOURS[state], alpha=_FAINT, linewidth=0))
        labels.append(state)
    axes.legend(handles, labels, fontsize="small", ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.02))
    axes.set_ylabel("windows [kB]")
