"""Expressions for Prometheus, compared with a scrape: their metrics and labels exist."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import promql_parser

from fairq_ryu.metrics.exporter import FAMILIES
from tests.support.scrape import names_of

# Grafana replaces these.
GLOBALS = {"$__rate_interval": "1m", "$__range": "15m"}
COUNTERS = {name for f in FAMILIES if f.kind in ("counter", "histogram") for name in names_of(f)}
COUNTERS |= {"process_cpu_seconds_total"}


def parts(node: Any) -> Iterator[Any]:
    """All parts of an expression, itself first."""
    yield node
    for name in ("expr", "lhs", "rhs", "vector_selector", "param"):
        inner = getattr(node, name, None)
        if inner is not None:
            yield from parts(inner)
    for inner in getattr(node, "args", None) or []:
        yield from parts(inner)


def parse(expression: str) -> Any:
    for name, value in GLOBALS.items():
        expression = expression.replace(name, value)
    return promql_parser.parse(expression)


def labels_left(node: Any, there: dict[str, set[str]]) -> set[str]:
    """The labels that the result of an expression has."""
    match node:
        case promql_parser.VectorSelector():
            return there[node.name]
        case promql_parser.AggregateExpr():
            inner = labels_left(node.expr, there)
            if node.modifier is None:
                return set()
            named = set(node.modifier.labels)
            assert named <= inner | {"le"}, node
            return named
        case promql_parser.BinaryExpr():
            # With "on", set operations keep the labels of the left side, and others the matched labels.
            left, right = labels_left(node.lhs, there), labels_left(node.rhs, there)
            on = node.modifier.matching if node.modifier is not None else None
            if on is not None:
                assert set(on.labels) <= left & right, node
                return left if str(node.op) in ("and", "unless", "or") else set(on.labels)
            return right if isinstance(node.lhs, promql_parser.NumberLiteral) else left
        case promql_parser.Call():
            found = set().union(*(labels_left(argument, there) for argument in node.args))
            return found - {"le"} if node.func.name == "histogram_quantile" else found
    for name in ("expr", "vector_selector"):
        if hasattr(node, name):
            return labels_left(getattr(node, name), there)
    return set()


def check(expression: str, there: dict[str, set[str]]) -> Any:
    """Every metric exists with the used labels, and counters are used with their rate."""
    root = parse(expression)
    names = set()
    for node in parts(root):
        if isinstance(node, promql_parser.VectorSelector):
            assert node.name in there, f"there is no metric {node.name}: {expression}"
            names.add(node.name)
            asked = {matcher.name for matcher in node.matchers.matchers}
            assert asked <= there[node.name], f"{node.name} has no label {asked - there[node.name]}"
    for node in parts(root):
        if isinstance(node, promql_parser.Call) and node.func.name in ("rate", "increase", "irate"):
            (inner,) = node.args
            assert inner.vector_selector.name in COUNTERS, expression
    rated = [n.vector_selector.name for n in parts(root) if isinstance(n, promql_parser.MatrixSelector)]
    plain = [n.name for n in parts(root) if isinstance(n, promql_parser.VectorSelector)]
    for name in COUNTERS & names:
        assert plain.count(name) == rated.count(name), f"{name} is a counter: ask for its rate"
    labels_left(root, there)
    return root
