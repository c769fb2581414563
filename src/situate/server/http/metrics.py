"""Request metrics under kube-apiserver's names. Cheap to record; formatted when scraped."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Protocol

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS: Final = (
    0.005,
    0.025,
    0.05,
    0.1,
    0.2,
    0.4,
    0.6,
    0.8,
    1.0,
    1.25,
    1.5,
    2.0,
    3.0,
    4.0,
    5.0,
    6.0,
    8.0,
    10.0,
    15.0,
) + (20.0, 30.0, 45.0, 60.0)
_LABELS: Final = ("verb", "group", "version", "resource", "subresource", "scope")
RequestLabels = tuple[str, str, str, str, str, str]
"""The values of `_LABELS`."""


class RequestQueues(Protocol):
    @property
    def waiting(self) -> int: ...


class OpenConnections(Protocol):
    refused: int

    @property
    def open(self) -> int: ...


class RequestMetrics(Collector):
    """`gauges` and `others`, the text of other metrics, are called on each scrape."""

    def __init__(
        self,
        gauges: Mapping[str, tuple[str, Callable[[], float]]] | None = None,
        others: Callable[[], bytes] = bytes,
    ) -> None:
        self._others = others
        self._requests: dict[tuple[RequestLabels, int], int] = {}
        self._times: dict[RequestLabels, list[float]] = {}
        self._gauges = dict(gauges or {})
        self.in_flight = {"readOnly": 0, "mutating": 0}
        self.long_running: dict[RequestLabels, int] = {}
        self.rejected: dict[str, int] = {}
        """By limit."""
        self.panics = 0
        self._levels: Mapping[tuple[str, str], RequestQueues] = {}
        self._connections: OpenConnections | None = None
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def watch_levels(self, levels: Mapping[tuple[str, str], RequestQueues]) -> None:
        """Show how many requests wait, by priority level and lane."""
        self._levels = levels

    def watch_connections(self, connections: OpenConnections) -> None:
        self._connections = connections

    def observe(self, what: RequestLabels, code: int, seconds: float | None) -> None:
        """Record a response; without a duration for long-running requests."""
        key = (what, code)
        self._requests[key] = self._requests.get(key, 0) + 1
        if seconds is None:
            return
        times = self._times.get(what)
        if times is None:
            times = self._times[what] = [0.0] * (len(BUCKETS) + 2)
        times[bisect_left(BUCKETS, seconds)] += 1
        times[-1] += seconds

    def reject(self, limit: str) -> None:
        self.rejected[limit] = self.rejected.get(limit, 0) + 1

    def count(self, code: int | None = None) -> int:
        """How many requests were answered, with this code or with any."""
        return sum(number for (_, found), number in self._requests.items() if code is None or found == code)

    def text(self) -> bytes:
        return generate_latest(self._registry) + self._others()

    def collect(self) -> Iterator[Metric]:
        total = CounterMetricFamily(
            "apiserver_request", "Requests that were answered, by verb, resource and code.", labels=(*_LABELS, "code")
        )
        for (what, code), number in list(self._requests.items()):
            total.add_metric((*what, str(code)), number)
        yield total
        times = HistogramMetricFamily(
            "apiserver_request_duration_seconds", "How long requests took that were no watches.", labels=_LABELS
        )
        for what, found in list(self._times.items()):
            times.add_metric(what, list(_cumulative(found)), found[-1])
        yield times
        yield from self._now()
        for name, (text, ask) in self._gauges.items():
            yield GaugeMetricFamily(name, text, value=ask())

    def _now(self) -> Iterator[Metric]:
        running = GaugeMetricFamily(
            "apiserver_current_inflight_requests", "Requests in flight.", labels=("request_kind",)
        )
        for kind, number in self.in_flight.items():
            running.add_metric((kind,), number)
        yield running
        queued = GaugeMetricFamily(
            "situate_apiserver_waiting_requests",
            "Requests that wait for a slot.",
            labels=("priority_level", "request_kind"),
        )
        for (level, kind), slots in self._levels.items():
            queued.add_metric((level, kind), slots.waiting)
        yield queued
        long = GaugeMetricFamily("apiserver_longrunning_requests", "Watches and logs that are open.", labels=_LABELS)
        for what, number in list(self.long_running.items()):
            long.add_metric(what, number)
        yield long
        refused = CounterMetricFamily(
            "situate_apiserver_refused_requests", "Requests refused at a limit.", labels=("limit",)
        )
        for limit, number in self.rejected.items():
            refused.add_metric((limit,), number)
        yield refused
        count, refused_count = (there.open, there.refused) if (there := self._connections) is not None else (0, 0)
        text = "Connections that are open, or in their handshake."
        yield GaugeMetricFamily("situate_apiserver_connections", text, value=count)
        text = "Connections closed because a limit was reached."
        yield CounterMetricFamily("situate_apiserver_refused_connections", text, value=refused_count)
        yield CounterMetricFamily(
            "situate_apiserver_panics", "Requests that failed for a fault of the server.", value=self.panics
        )


def _cumulative(times: list[float]) -> Iterator[tuple[str, float]]:
    total = 0.0
    for bound, number in zip((*BUCKETS, float("inf")), times[:-1], strict=True):
        total += number
        yield ("+Inf" if bound == float("inf") else str(bound)), total
