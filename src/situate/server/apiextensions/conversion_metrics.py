"""Metrics of conversion webhooks, under kube-apiserver's names."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, generate_latest

from situate.loop.metrics_series import CounterSeries, HistogramSeries, KnownNames, SeriesCollector
from situate.loop.metrics_table import Family

_RESULT: Final = ("result", "failure_type")
REVIEWS: Final = Family(
    "apiserver_conversion_webhook_request_total",
    "counter",
    "Calls of conversion webhooks, by success or failure, and what failed.",
    _RESULT,
)
_help = "How long calls of conversion webhooks took, by success or failure, and what failed."
SECONDS: Final = Family(
    "apiserver_conversion_webhook_duration_seconds",
    "histogram",
    _help,
    _RESULT,
    (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0),
)
_help = "How long calls of conversion webhooks took, by definition, by the versions of the first object, and success."
OF_DEFINITIONS: Final = Family(
    "apiserver_crd_conversion_webhook_duration_seconds",
    "histogram",
    _help,
    ("crd_name", "from_version", "to_version", "succeeded"),
    tuple(0.001 * 2**power for power in range(15)),
)
MAX_DEFINITIONS: Final = 1_000
"""Definitions with series of their own, with their versions; others are counted together, as `other`."""

CALL: Final = "conversion_webhook_call_failure"
MALFORMED: Final = "conversion_webhook_malformed_response_failure"
PARTIAL: Final = "conversion_webhook_partial_response_failure"
INVALID_OBJECT: Final = "conversion_webhook_invalid_converted_object_failure"


class ConversionMetrics:
    def __init__(self) -> None:
        self._reviews = CounterSeries(REVIEWS)
        self._seconds = HistogramSeries(SECONDS)
        self._of_definitions = HistogramSeries(OF_DEFINITIONS)
        self._names = KnownNames(MAX_DEFINITIONS)
        self.registry = CollectorRegistry()
        series: list[CounterSeries | HistogramSeries] = [self._reviews, self._seconds, self._of_definitions]
        self.registry.register(SeriesCollector(series, lambda: None))

    def observe(self, definition: str, versions: tuple[str, str], seconds: float, failure: str = "") -> None:
        """One call: from which version to which, and what failed, if anything."""
        result = ("failure" if failure else "success", failure)
        self._reviews.add(result)
        self._seconds.add(result, seconds)
        of = self._names.shown(definition, *versions)
        self._of_definitions.add((*of, "false" if failure else "true"), seconds)

    def render(self) -> bytes:
        return generate_latest(self.registry)
