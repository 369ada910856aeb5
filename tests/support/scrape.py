"""A scrape of a controller's metrics, as Prometheus reads it."""

from __future__ import annotations

from typing import Any

from prometheus_client import parser as plain
from prometheus_client.openmetrics import parser as openmetrics

from fairq_ryu.metrics import exporter


def scrape(controller: Any, accept: str = "") -> dict[str, list[Any]]:
    """The samples by the names that queries use."""
    body, content_type = controller.metrics.render(accept)
    read = openmetrics if content_type.startswith("application/openmetrics") else plain
    found: dict[str, list[Any]] = {}
    for family in read.text_string_to_metric_families(body.decode()):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample)
    return found


def names_of(family: exporter.Family) -> list[str]:
    """The names of a metric's samples."""
    if family.kind == "histogram":
        return [f"{family.name}_{part}" for part in ("bucket", "count", "sum")]
    return [family.name]
