"""``/metrics``: the controller for Prometheus. ``docs/metrics.md`` has all names.

All values are read from the controller's tables at the time of the scrape. They are encoded in small pieces,
and the rest of the controller runs after each piece.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector, exposition
from prometheus_client.core import Metric
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector
from webob.acceptparse import create_accept_header

from fairq_ryu.control.reports.counters import Histogram
from fairq_ryu.metrics.family import Family
from fairq_ryu.metrics.health import HEALTH, health
from fairq_ryu.metrics.tables import FABRIC, PORTS, TENANTS, Samples, fabric, ports, tenants
from fairq_ryu.ryu_compat.runtime import hub

if TYPE_CHECKING:
    from fairq_ryu.control.operations.state import ControllerState

REQUESTS = (
    Family(
        "fairq_http_requests_total",
        "counter",
        "HTTP requests that were answered.",
        ("method", "path", "code"),
    ),
    Family(
        "fairq_http_request_duration_seconds",
        "histogram",
        "Time from a request to its answer, without event streams.",
        ("path",),
    ),
)
FAMILIES = (*PORTS, *TENANTS, *FABRIC, *HEALTH, *REQUESTS)
"""All metrics, besides ``process_*``."""

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
# Maximum number of paths and codes with samples of their own. The interface has far fewer.
_MAX_PATHS = 64
_OTHER = "other"
_DURATIONS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


_PLAIN = "text/plain;version=0.0.4"
# The formats, the preferred one first.
_FORMS: Mapping[str, tuple[Callable[[CollectorRegistry], bytes], str]] = {
    _PLAIN: (exposition.generate_latest, exposition.CONTENT_TYPE_PLAIN_0_0_4),
    "application/openmetrics-text;version=1.0.0": (
        openmetrics.generate_latest,
        openmetrics.CONTENT_TYPE_LATEST,
    ),
}


class Metrics:
    """The metrics of one controller."""

    def __init__(self, state: ControllerState) -> None:
        self._state = state
        self._requests: Counter[tuple[str, str, str]] = Counter()
        self._durations: dict[str, Histogram] = {}
        self._registry = CollectorRegistry()
        self._registry.register(_Tables(self))
        ProcessCollector(registry=self._registry)

    def render(self, accept: str) -> tuple[bytes, str]:
        """All metrics in the format that the header ``Accept`` requests, and its content type."""
        # prometheus_client's own choice ignores preferences (q) and fails on unusual headers.
        found = create_accept_header(accept or None).acceptable_offers(list(_FORMS))
        encode, content_type = _FORMS[found[0][0] if found else _PLAIN]
        return encode(self._registry), content_type

    def observe_request(self, method: str, path: str, code: int, seconds: float) -> None:
        """A request was answered. ``path`` is its template (``/v1/announcements/{id}``), the same for all
        of that template; "" for an unknown path.
        """
        if not path or (path not in self._durations and len(self._durations) >= _MAX_PATHS):
            path = _OTHER
        self._requests[method if method in _METHODS else _OTHER, path, f"{code:d}"] += 1
        self._durations.setdefault(path, Histogram(_DURATIONS)).observe(seconds)

    def tables(self) -> Iterator[tuple[Iterable[Family], Callable[[], Samples]]]:
        """The groups of metrics that are read together, each with the function that reads them."""
        state = self._state
        yield PORTS, lambda: ports(state, time.monotonic())
        yield TENANTS, lambda: tenants(state, time.monotonic())
        yield FABRIC, lambda: fabric(state, time.monotonic())
        yield HEALTH, lambda: health(state, time.monotonic())
        yield REQUESTS, self._asked

    def _asked(self) -> Samples:
        return {
            "fairq_http_requests_total": sorted(self._requests.items()),
            "fairq_http_request_duration_seconds": [
                ((path,), histogram) for path, histogram in sorted(self._durations.items())
            ],
        }


class _Tables(Collector):
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def describe(self) -> Iterable[Metric]:
        """The metrics without samples, for the registration, which happens before values can be read."""
        return [family.metric([]) for family in FAMILIES]

    def collect(self) -> Iterator[Metric]:
        for families, read in self._metrics.tables():
            found = read()
            for family in families:
                yield family.metric(found[family.name])
                hub.sleep(0)
