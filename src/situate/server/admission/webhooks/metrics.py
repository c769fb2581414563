"""Metrics of admission webhooks, under kube-apiserver's names."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, generate_latest

from situate.loop.metrics_series import CounterSeries, HistogramSeries, KnownNames, SeriesCollector
from situate.loop.metrics_table import Family

_WHICH: Final = ("name", "type", "operation")
_help = "How long calls of webhooks took, by the webhook, admit or validating, the operation, and whether it refused."
SECONDS: Final = Family(
    "apiserver_admission_webhook_admission_duration_seconds",
    "histogram",
    _help,
    (*_WHICH, "rejected"),
    (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0),
)
_help = "Calls of webhooks, also by the status code that the call or the refusal has; 200 for what was allowed."
CALLS: Final = Family("apiserver_admission_webhook_request_total", "counter", _help, (*_WHICH, "code", "rejected"))
_help = "Requests that a webhook refused, or that failed because it could not be asked."
# The client library would add `_total` to the names of the next two, if they were called counters.
REJECTIONS: Final = Family(
    "apiserver_admission_webhook_rejection_count", "gauge", _help, (*_WHICH, "error_type", "rejection_code")
)
_help = "Calls of webhooks that failed, and whose failurePolicy is Ignore."
FAILED_OPEN: Final = Family("apiserver_admission_webhook_fail_open_count", "gauge", _help, ("name", "type"))
MAX_NAMES: Final = 1_000
"""Webhooks with series of their own; others are counted together, as `other`."""
MAX_CODE: Final = 600
"""A webhook may refuse with any number; codes from here on are one label."""


class WebhookMetrics:
    def __init__(self) -> None:
        self._seconds = HistogramSeries(SECONDS)
        self._calls = CounterSeries(CALLS)
        self._rejections = CounterSeries(REJECTIONS)
        self._failed_open = CounterSeries(FAILED_OPEN)
        self._names = KnownNames(MAX_NAMES)
        self.registry = CollectorRegistry()
        series: list[CounterSeries | HistogramSeries] = [
            self._seconds,
            self._calls,
            self._rejections,
            self._failed_open,
        ]
        self.registry.register(SeriesCollector(series, lambda: None))

    def observe(self, name: str, kind: str, operation: str, seconds: float, code: int, *, rejected: bool) -> None:
        which = (*self._names.shown(name), kind, operation)
        shown = "true" if rejected else "false"
        self._seconds.add((*which, shown), seconds)
        self._calls.add((*which, str(min(code, MAX_CODE)), shown))

    def reject(self, name: str, kind: str, operation: str, error_type: str, code: int) -> None:
        self._rejections.add((*self._names.shown(name), kind, operation, error_type, str(min(code, MAX_CODE))))

    def fail_open(self, name: str, kind: str) -> None:
        self._failed_open.add((*self._names.shown(name), kind))

    def render(self) -> bytes:
        return generate_latest(self.registry)
