"""Per-flow records of a result, as rows and as a Parquet file for pandas, Polars, DuckDB and R.

A row for each flow in each repetition:

    scenario, commit   what the result is of
    policy, repetition the latter from 1
    kind               mouse, elephant, deadline, endless, fanin, long, short or tenant: what the flow is
    group              n of a fan-in, the run of flows with deadlines, or the rate of a pair
    place              among the flows of its kind and group, in the order of the result
    size_bytes, deadline_s
    fct_ms             completion time; null: unfinished, or a flow without end
    goodput_mbit       of flows without end
    met                whether it was complete by its deadline; null without one
    rto_timeouts, retransmissions   where the result has them by flow

Columns that a kind of flow does not have are null. Flows of published sizes are not in the result, but in the
run's logs/POLICY/flows.csv.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.report import origin

FILE_NAME = "flows.parquet"
COLUMNS = {
    "scenario": "string",
    "commit": "string",
    "policy": "string",
    "repetition": "int32",
    "kind": "string",
    "group": "float64",
    "place": "int32",
    "size_bytes": "int64",
    "deadline_s": "float64",
    "fct_ms": "float64",
    "goodput_mbit": "float64",
    "met": "bool_",
    "rto_timeouts": "int32",
    "retransmissions": "int32",
}
"""Name and type, as of Arrow."""
Row = dict[str, Any]


def rows(whole: Mapping[str, Any]) -> Iterator[Row]:
    """The records of a result, with all columns."""
    empty = dict.fromkeys(COLUMNS)
    fixed = {
        "scenario": whole["metadata"].get("scenario_name") or whole["scenario"]["title"],
        "commit": origin.commit(whole["metadata"]),
    }
    for number, part in enumerate(whole.get("repetitions") or [whole], 1):
        for policy in part["policies"]:
            if not policy["failed"]:
                of = {"policy": policy["policy"], "repetition": number}
                for row in _of_policy(policy, whole["scenario"]):
                    yield {**empty, **fixed, **of, **row}


def _of_policy(policy: Mapping[str, Any], scenario: Mapping[str, Any]) -> Iterator[Row]:
    if mice := policy.get("mice"):
        yield from _times("mouse", mice["fct_list_ms"], size_bytes=scenario["mice_bytes"])
    if elephants := policy.get("elephants"):
        yield from _goodputs("elephant", elephants["goodput_mbit"])
    for number, run in enumerate((policy.get("deadlines") or {}).get("runs", ())):
        for place, flow in enumerate(run["flows"]):
            names = ("size_bytes", "deadline_s", "met", "rto_timeouts", "retransmissions")
            same = {name: flow[name] for name in names}
            yield {"kind": "deadline", "group": number, "place": place, "fct_ms": flow["ms"], **same}
        yield from _goodputs("endless", [each["goodput_mbit"] for each in run["endless"]], group=number)
    for entry in (policy.get("fanin") or {}).get("sweep", ()):
        yield from _times("fanin", entry.get("fct_list_ms", ()), group=entry["n"])
    if mixed := policy.get("heterogeneous"):
        yield from _goodputs("long", mixed["goodput_mbit"])
    if tenants := policy.get("tenants"):
        yield from _goodputs("tenant", tenants["flow_goodput_mbit"])
    for rate in (policy.get("pairs") or {}).get("rates", ()):
        for kind in ("long", "short"):
            size = scenario[f"{kind}_bytes"]
            yield from _times(kind, rate[kind]["fct_list_ms"], group=rate["rate_mbit"], size_bytes=size)


def _times(kind: str, times: Sequence[float | None], **more: Any) -> Iterator[Row]:
    for place, ms in enumerate(times):
        yield {"kind": kind, "place": place, "fct_ms": ms, **more}


def _goodputs(kind: str, goodputs: Sequence[float], **more: Any) -> Iterator[Row]:
    for place, mbit in enumerate(goodputs):
        yield {"kind": kind, "place": place, "goodput_mbit": mbit, **more}


def write(whole: Mapping[str, Any], directory: Path) -> Path:
    """Write the records of a result to ``directory``/flows.parquet. ``UserError`` without PyArrow."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UserError(
            "Parquet files need the package pyarrow, which is not installed",
            "`.venv/bin/python -m pip install pyarrow` (50 MB), or leave --flows out",
        ) from None
    schema = pyarrow.schema(
        [(name, getattr(pyarrow, kind)()) for name, kind in COLUMNS.items()],
        metadata={"fairq": origin.line(whole)},
    )
    path = directory / FILE_NAME
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows(whole)), schema), path)
    return path
