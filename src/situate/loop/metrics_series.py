"""The values of the metrics, and the collector that hands them to prometheus-client.

prometheus-client's own counters are not used. Many pods of one step have the same values, so `add` takes how often a
value occurred. One thread adds, so there is nothing to lock. What others count already is read at each scrape.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any, Final, TypeAlias

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from situate.loop.metrics_table import Family

Labels: TypeAlias = tuple[str, ...]


OTHER: Final = "other"


class KnownNames:
    """Values of labels that users choose: the first so many as they are, all others as `other`."""

    __slots__ = ("_known", "_most")

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[Labels] = set()

    def shown(self, *names: str) -> Labels:
        if names not in self._known:
            if len(self._known) >= self._most:
                return (OTHER,) * len(names)
            self._known.add(names)
        return names


class CounterSeries:
    """The series of a counter or a gauge."""

    __slots__ = ("family", "values")

    def __init__(self, family: Family) -> None:
        self.family = family
        self.values: dict[Labels, float] = {} if family.labels else {(): 0}

    def add(self, labels: Labels = (), amount: float = 1) -> None:
        self.values[labels] = self.values.get(labels, 0) + amount

    def put(self, labels: Labels, value: float) -> None:
        self.values[labels] = value

    def metric(self) -> Metric:
        made: Any = CounterMetricFamily if self.family.kind == "counter" else GaugeMetricFamily
        metric: Metric = made(self.family.name, self.family.help, labels=self.family.labels)
        for labels, value in self.values.items():
            metric.add_metric(labels, value)  # type: ignore[attr-defined]
        return metric


class HistogramSeries:
    """The series of a histogram."""

    __slots__ = ("counts", "family", "sums")

    def __init__(self, family: Family) -> None:
        self.family = family
        self.counts: dict[Labels, list[int]] = {}
        """By bucket; the last has the values above all bounds."""
        self.sums: dict[Labels, float] = {}
        if not family.labels:
            self.create(())

    def create(self, labels: Labels) -> list[int]:
        """Have a series, even before its first value."""
        self.sums.setdefault(labels, 0)
        return self.counts.setdefault(labels, [0] * (len(self.family.bounds) + 1))

    def add(self, labels: Labels, value: float, times: int = 1) -> None:
        counts = self.counts.get(labels)
        if counts is None:
            counts = self.create(labels)
        counts[bisect_left(self.family.bounds, value)] += times
        self.sums[labels] += value * times

    def metric(self) -> Metric:
        metric = HistogramMetricFamily(self.family.name, self.family.help, labels=self.family.labels)
        names = [*(_bound(bound) for bound in self.family.bounds), "+Inf"]
        for labels, counts in self.counts.items():
            up_to: list[Any] = list(zip(names, map(float, accumulate(counts)), strict=True))
            metric.add_metric(labels, up_to, self.sums[labels])
        return metric


def _bound(bound: float) -> str:
    """As Go writes a number: 1, not 1.0."""
    return f"{bound:.12g}"


class SeriesCollector(Collector):
    """Collects all series. `refresh` updates those that others count."""

    def __init__(self, series: Sequence[CounterSeries | HistogramSeries], refresh: Callable[[], None]) -> None:
        self._series = series
        self._refresh = refresh

    def collect(self) -> Iterable[Metric]:
        self._refresh()
        return [one.metric() for one in self._series]

    def describe(self) -> Iterable[Metric]:
        return [one.metric() for one in self._series]
