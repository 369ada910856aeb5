"""Per-flow records of a result, as rows and as a Parquet file for pandas, Polars, DuckDB and R.

A row for each flow in each repetition:

    scenario, commit   what the result is of
    policy, repetition the latter from 1
    kind               mouse, elephant, deadline, endless, fanin, long, short, tenant, or sized (of traffic
                       `empirical`): what the flow is
    group              n of a fan-in, the run of flows with deadlines, or the rate of a pair
    round              of a mouse or a flow of a fan-in: which of the counted rounds, from 0
    place              among the flows of its kind and group, in the order of the result
    sender, due_s, start_s   of a sized flow: number of its sender from 0, when it was due and when it began,
                       since the beginning of the warm-up
    size_bytes         payload
    deadline_s         from the common start of the flows
    fct_ms             completion time; null: unfinished, or a flow without end
    goodput_mbit       of flows without end
    met                whether it was complete by its deadline; null without one
    rto_timeouts, retransmissions   where the result has them by flow

Columns that a kind of flow does not have are null. Sized flows are not in the result: they are read from the
run's logs. The file's metadata have `schema`, which is `SCHEMA`, and `fairq`, what it is of (`origin.line`).
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.report import origin
from fairq_ryu.experiments.variants import directory_of
from fairq_ryu.experiments.workloads.common.outcomes import met
from fairq_ryu.experiments.workloads.empirical.figures import RECORDS
from fairq_ryu.experiments.workloads.fanin.figures import round_flows

FILE_NAME = "flows.parquet"
SCHEMA = "fairq-flows/1"
"""Another number when a reader of this one would be misled."""
COLUMNS = {
    "scenario": "string",
    "commit": "string",
    "policy": "string",
    "repetition": "int32",
    "kind": "string",
    "group": "float64",
    "round": "int32",
    "place": "int32",
    "sender": "int32",
    "due_s": "float64",
    "start_s": "float64",
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


def rows(whole: Mapping[str, Any], measured: Path) -> Iterator[Row]:
    """The records of a result, with all columns. ``measured``: its directory, for the logs. ``UserError`` if
    sized flows are not there, or damaged.
    """
    empty = dict.fromkeys(COLUMNS)
    fixed = {
        "scenario": whole["metadata"]["scenario_name"],
        "commit": origin.commit(whole["metadata"]),
    }
    for number, part in enumerate(whole["repetitions"] or [whole], 1):
        for policy in part["policies"]:
            if not policy["failed"]:
                of = {"policy": policy["policy"], "repetition": number}
                own = _of_policy(policy, whole["scenario"])
                if policy.get("empirical"):
                    own = _sized(_sized_file(measured / "logs", policy["policy"], number))
                for row in own:
                    yield {**empty, **fixed, **of, **row}


def _of_policy(policy: Mapping[str, Any], scenario: Mapping[str, Any]) -> Iterator[Row]:
    if mice := policy.get("mice"):
        volley = scenario["senders"] * scenario["mice_per_sender"] * scenario.get("requests", 1)
        for row in _times("mouse", mice["fct_list_ms"], size_bytes=scenario["mice_bytes"]):
            yield {**row, "round": row["place"] // volley}
    if elephants := policy.get("elephants"):
        yield from _goodputs("elephant", elephants["goodput_mbit"])
    for number, run in enumerate((policy.get("deadlines") or {}).get("runs", ())):
        for place, flow in enumerate(run["flows"]):
            names = ("size_bytes", "deadline_s", "met", "rto_timeouts", "retransmissions")
            same = {name: flow[name] for name in names}
            yield {"kind": "deadline", "group": number, "place": place, "fct_ms": flow["ms"], **same}
        yield from _goodputs("endless", [each["goodput_mbit"] for each in run["endless"]], group=number)
    for entry in (policy.get("fanin") or {}).get("sweep", ()):
        of_round = round_flows(scenario["sizes_bytes"], scenario["deadlines_s"], entry["n"])
        times = zip(entry["fct_list_ms"], itertools.cycle(of_round), strict=False)
        for place, (ms, (size, deadline)) in enumerate(times):
            about = {"size_bytes": size, "deadline_s": deadline, "met": met(ms, deadline)}
            about["round"] = place // len(of_round)
            yield {"kind": "fanin", "group": entry["n"], "place": place, "fct_ms": ms, **about}
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


def _sized_file(logs: Path, policy: str, number: int) -> Path:
    """Of a policy in one repetition: a run of a single one has no directory for it."""
    own = logs / directory_of(policy)
    return next(
        (each for each in (own / str(number) / RECORDS, own / RECORDS) if each.exists()), own / RECORDS
    )


def _sized(path: Path) -> Iterator[Row]:
    """What `RECORD` of the traffic says, in the columns of here."""
    try:
        with path.open(newline="") as file:
            for each in csv.DictReader(file):
                yield {
                    "kind": "sized",
                    "place": int(each["number"]),
                    **{name: int(each[name]) for name in ("sender", "size_bytes")},
                    **{name: float(each[name]) for name in ("due_s", "start_s")},
                    "fct_ms": float(each["fct_ms"]) if each["fct_ms"] else None,
                    "rto_timeouts": int(each["timeouts"]) if each["timeouts"] else None,
                }
    except OSError as error:
        raise UserError(
            f"cannot read {path}, which has the single flows: {error.strerror}",
            "give the directory of the run with its logs, or leave --flows out",
        ) from None
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path} is damaged: {error!r}", "repeat the run, or leave --flows out") from None


def write(whole: Mapping[str, Any], directory: Path, measured: Path) -> Path:
    """Write the records of a result, which was measured in the directory ``measured``, to
    ``directory``/flows.parquet. ``UserError`` without PyArrow, and as `rows`.
    """
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
        metadata={"schema": SCHEMA, "fairq": origin.line(whole)},
    )
    path = directory / FILE_NAME
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows(whole, measured)), schema), path)
    return path
