"""The description of a metric for Prometheus, and its samples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.utils import floatToGoString

from fairq_ryu.control.reports.counters import Histogram

Value = float | int | Histogram | None
Sample = tuple[Sequence[str], Value]
"""The values of the labels, and that of the metric; None: not known, and so left out."""


@dataclass(frozen=True, slots=True)
class Family:
    """One metric, named as in queries. ``docs/metrics.md`` lists them; a counter's name ends with ``_total``,
    that of an ``info`` metric, whose value is always 1, with ``_info``.
    """

    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = ()

    def metric(self, samples: Iterable[Sample]) -> Metric:
        """The samples as prometheus_client encodes them."""
        known = [(list(labels), value) for labels, value in samples if value is not None]
        match self.kind:
            case "histogram":
                histogram = HistogramMetricFamily(self.name, self.help, labels=self.labels)
                for labels, value in known:
                    assert isinstance(value, Histogram)
                    bounds = (*map(floatToGoString, value.bounds), "+Inf")
                    histogram.add_metric(labels, list(zip(bounds, value.cumulative, strict=True)), value.sum)
                return histogram
            case "info":
                info = InfoMetricFamily(self.name.removesuffix("_info"), self.help, labels=())
                for labels, _ in known:
                    info.add_metric([], dict(zip(self.labels, labels, strict=True)))
                return info
            case "counter":
                made: Metric = CounterMetricFamily(self.name.removesuffix("_total"), self.help)
            case _:
                made = GaugeMetricFamily(self.name, self.help)
        for labels, value in known:
            assert not isinstance(value, Histogram) and value is not None
            made.add_sample(self.name, dict(zip(self.labels, labels, strict=True)), value)
        return made
