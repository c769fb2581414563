"""Counts controllers' failures about single objects. The counts outlive the runners."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, generate_latest

from situate.loop.metrics_series import CounterSeries, SeriesCollector
from situate.loop.metrics_table import Family

_help = "How often a controller failed because of one object, or could not read it, by the object's kind."
ERRORS: Final = Family("situate_controller_errors_total", "counter", _help, ("kind",))
_help = "Controller calls that blocked the process for longer than a second, by the object's kind."
SLOW_CALLS: Final = Family("situate_controller_slow_calls_total", "counter", _help, ("kind",))


class ControllerMetrics:
    def __init__(self) -> None:
        self.errors = CounterSeries(ERRORS)
        self.slow_calls = CounterSeries(SLOW_CALLS)
        self.metrics = CollectorRegistry()
        self.metrics.register(SeriesCollector([self.errors, self.slow_calls], lambda: None))

    def render(self) -> bytes:
        return generate_latest(self.metrics)
