"""The tables of settings, metrics, REST, experiments, machines, faults and floods, and what a policy
implements.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from docs.generate.marks import Old, Row, Rows
from fairq_ryu import model
from fairq_ryu.config import schema, services, tenants
from fairq_ryu.experiments import checking, scenario
from fairq_ryu.experiments.measure import machine
from fairq_ryu.metrics import exporter
from fairq_ryu.policies import base
from fairq_ryu.rest.openapi import document
from fairq_ryu.rest.resources import RESOURCES
from fairq_ryu.setting import Setting
from tests.faults import results as fault_results
from tests.faults.table import FAULTS
from tests.floods.table import FLOODS
from tests.vm import results

_API = document(RESOURCES)
SCHEMAS: Mapping[str, Any] = _API["components"]["schemas"]
"""The models of the REST interface."""
PATHS: Mapping[str, Any] = _API["paths"]
"""Its paths."""


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


# Settings


def _value(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) and value < 1000 else str(int(value))


def _setting(each: Setting) -> Row:
    numbers = map(_value, (each.default, each.minimum, each.maximum))
    return f"`{each.name}`", each.unit, *numbers, each.help


_SETTING = ("setting", "unit", "default", "least", "most", "meaning")


def settings(_old: Old, section: str, _but: str = "but", other: str = "") -> Rows:
    """``settings SECTION``, or ``settings SECTION but OTHER``: without those that the other has, too. Shared
    settings have the section in which they are written.
    """
    rest = schema.settings_of(other) if other else {}
    rows: list[Row] = [_SETTING]
    for each in schema.settings_of(section).values():
        if each.name not in rest:
            name, *row = _setting(each)
            rows.append((name if each.section == section else f"{name} in `[{each.section}]`", *row))
    return rows


def every_setting(_old: Old) -> Rows:
    """Those of all sections."""
    every = [each for section in schema.sections().values() for each in section.values()]
    return [("section", *_SETTING), *((f"`{each.section}`", *_setting(each)) for each in every)]


def service_settings(_old: Old) -> Rows:
    """Those of a service."""
    return [_SETTING, *map(_setting, services.SERVICE_SETTINGS)]


def tenant_settings(_old: Old) -> Rows:
    """Those of a tenant."""
    return [_SETTING, *map(_setting, tenants.TENANT_SETTINGS)]


# Metrics


def metrics(_old: Old, group: str) -> Rows:
    """Those of a group of the exporter."""
    head = ("metric", "type", "labels", "meaning")
    return [head, *((f"`{f.name}`", f.kind, _code(f.labels), f.help) for f in getattr(exporter, group))]


# The REST interface


def _operations() -> list[tuple[str, str, Mapping[str, Any]]]:
    """Method, path and description of each."""
    return [
        (method.upper(), path, operation)
        for path, item in PATHS.items()
        for method, operation in item.items()
    ]


def requests(_old: Old) -> Rows:
    """Every operation."""
    rows = [(f"`{method}`", f"`{path}`", each["summary"]) for method, path, each in _operations()]
    return [("method", "path", "what"), *rows]


def parameters(_old: Old, path: str) -> Rows:
    """Those of a path's queries."""
    queries = [each for each in PATHS[path]["get"]["parameters"] if each["in"] == "query"]
    rows = [
        (f"`{each['name']}`", str(each["schema"].get("default", "")), each["description"]) for each in queries
    ]
    return [("parameter", "default", "meaning"), *rows]


def fields_of(_old: Old, name: str) -> Rows:
    """Those of a model; of one that requests send, also whether they must be given."""
    asked = any(f"/{name}'" in str(operation.get("requestBody")) for _, _, operation in _operations())
    needed = SCHEMAS[name].get("required", [])
    rows = [
        (
            f"`{field}`",
            *(["yes" if field in needed else ""] * asked),
            each.get("x-unit", ""),
            each["description"],
        )
        for field, each in SCHEMAS[name]["properties"].items()
    ]
    return [("field", *["needed"] * asked, "unit", "meaning"), *rows]


def statuses(_old: Old) -> Rows:
    """The statuses of errors."""
    words: dict[str, dict[str, None]] = {}
    for _, _, operation in _operations():
        for status, answer in operation["responses"].items():
            if status[0] in "45":
                words.setdefault(status, {})[answer["description"]] = None
    rows = [(status, "; ".join(words[status])) for status in sorted(words)]
    return [("status", "when"), *rows, ("500", "a fault of the controller, which is in its log")]


# Experiments


_TYPES = {
    "str": "text", "int": "whole number", "float": "number", "bool": "yes or no",
    "tuple[int, ...]": "list of whole numbers", "tuple[float, ...]": "list of numbers",
    "tuple[str, ...]": "list of texts",
}  # fmt: skip


def _scenario_setting(each: Any) -> Row:
    about = each.metadata
    default = about["default"]
    if isinstance(default, str):
        default = f"`{default}`"
    elif isinstance(default, float):
        default = f"{default:g}"
    bounds = ("" if about[end] is None else str(about[end]) for end in ("low", "high"))
    default = about["default_text"] or _value(default)
    return f"`{each.name}`", _TYPES[scenario.type_of(each)], about["unit"], *bounds, default, about["help"]


_SCENARIO = ("setting", "type", "unit", "least", "most", "if left out", "meaning")


def scenario_settings(_old: Old, owners: str = "") -> Rows:
    """Those of every scenario; with ``topologies`` or ``traffic``, those of some of these."""
    if owners == "traffic":
        of = {name: checking.workloads_with(name) for name in checking.KNOWN if name not in checking.COMMON}
    else:
        of = {name: each.metadata["topologies"] or () for name, each in checking.COMMON.items()}
        of = {name: found for name, found in of.items() if bool(found) == bool(owners)}
    rows = [
        (*_scenario_setting(checking.KNOWN[name]), *([_code(found)] * bool(owners)))
        for name, found in of.items()
    ]
    return [(*_SCENARIO, *[owners] * bool(owners)), *rows]


def scenarios(old: Old) -> Rows:
    """The stored scenarios, in the order of the page."""
    traffic = {name: f"`{scenario.load(name).traffic}`" for name in scenario.names()}
    return [old.head, *((key, traffic[key[1:-1]], old.texts(key)[1]) for key in old.keys(traffic))]


def policies(old: Old) -> Rows:
    """Those that experiments can compare, in the order of the page."""
    return [old.head, *((key, *old.texts(key)) for key in old.keys(machine.known_policies()))]


def topologies(old: Old) -> Rows:
    """Those that scenarios can name."""
    return [old.head, *((f"`{name}`", *old.texts(f"`{name}`")) for name in scenario.TOPOLOGIES)]


def arguments(old: Old, module: str) -> Rows:
    """Those of a topology, with their defaults."""
    (topology,) = importlib.import_module(f"mininet_topos.{module}").topos.values()
    rows = [old.head]
    for name, each in list(inspect.signature(topology.build).parameters.items())[1:]:
        if each.kind is not inspect.Parameter.VAR_KEYWORD:
            unit, default, meaning = old.texts(f"`{name}`")
            # None is explained in the page.
            rows.append((f"`{name}`", unit, default if each.default is None else str(each.default), meaning))
    return rows


# Machines


def machines(_old: Old) -> Rows:
    """What was run where."""
    return results.machine_table(results.Results.read(results.FILE))


def objects(_old: Old) -> Rows:
    """What kernels say of the eBPF programs."""
    return results.object_table(results.Results.read(results.FILE))


# What a policy implements, and what it is told


def methods(old: Old, protocol: str) -> Rows:
    """The attributes and methods of a protocol, and what else the page tells, in the order of the page."""
    for name, member in vars(getattr(base, protocol)).items():
        if inspect.isfunction(member) and not name.startswith("_"):
            old.texts(f"`{name}({', '.join(list(inspect.signature(member).parameters)[1:])})`")
    return [old.head, *old.rows]


def fields_of_type(old: Old, name: str) -> Rows:
    """The fields of a type."""
    kind = getattr(model, name, None) or getattr(base, name)
    names = [each.name for each in fields(kind)] if is_dataclass(kind) else kind._fields
    return [old.head, *((f"`{each}`", *old.texts(f"`{each}`")) for each in names)]


# Faults and floods


def faults(_old: Old) -> Rows:
    """What is promised when something breaks."""
    outcomes = fault_results.read()
    head = ("what happens", "forwarding meanwhile", "lowered windows meanwhile", "what else")
    shown: Rows = [(*head, "held", "control back after, s: median, longest")]
    for each in FAULTS:
        found = outcomes.get(each.name)
        figures = ("not run", "")
        if found is not None:
            figures = (f"{found.passed} of {found.made}", f"{found.median:.1f}, {found.longest:.1f}")
        shown.append((each.what, each.forwarding.value, each.windows.value, each.note, *figures))
    return shown


def floods(_old: Old) -> Rows:
    """What is kept of each flood."""
    head = ("flood", "how it is made", "kept of it, at most")
    return [head, *((each.name, each.what, each.bounded) for each in FLOODS)]
