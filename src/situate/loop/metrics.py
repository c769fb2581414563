"""The metrics of a scheduler, for Prometheus: kube-scheduler's under their names, and a few of our own.

    metrics = Metrics()
    engine = Engine(config, metrics=metrics.engine, stopwatch=metrics.stopwatch)
    metrics.follow(engine)
    ...                                                  # around every step:
    metrics.stepping()
    effects = engine.step(now, changes)
    metrics.stepped(now, len(changes))

Metrics influence no decision. Each object has a registry of its own, so that several schedulers can run in one process.
To be used only from the thread that steps the engine.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Final

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, generate_latest

import situate
from situate.core.changes import Millis
from situate.core.engine.engine import Engine
from situate.core.engine.metrics import EngineMetrics
from situate.core.queue.incoming import TIMED_OUT
from situate.core.queue.queued_pod import QueuedPod, QueueState
from situate.core.versions import DEFAULT
from situate.loop import metrics_table as table
from situate.loop.journal import Journal
from situate.loop.metrics_series import CounterSeries, HistogramSeries, Labels, SeriesCollector
from situate.loop.metrics_stopwatch import SUCCESS, SampledStopwatch

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
MANY_ATTEMPTS: Final = 15
"""Pods that took this many attempts or more share a label, as with kube-scheduler."""
ATTEMPTS: Final[Sequence[Labels]] = (*((str(many),) for many in range(MANY_ATTEMPTS)), (f"{MANY_ATTEMPTS}+",))
"""The label, by the number of attempts."""
ERROR: Final = "Error"
QUEUES: Final = {
    QueueState.ACTIVE: "active",
    QueueState.BACKOFF: "backoff",
    QueueState.UNSCHEDULABLE: "unschedulable",
    QueueState.GATED: "gated",
}
GATES: Final = "SchedulingGates"
GANGS: Final = "GangScheduling"
CLAIMS: Final = "DynamicResources"
BINDING: Final = "binding"


class Metrics:
    """All metrics of one scheduler. It is also a client's observer."""

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._engine: Engine | None = None
        self._journal: Journal | None = None
        self._plugins: dict[str, list[tuple[Labels, bool]]] = {}
        """By profile, the plugins of every attempt: their labels, and whether they run only when a node was found."""
        self._evaluated: dict[str, tuple[int, int]] = {}
        """By profile, the attempts since the last scrape, and in how many of them a node was found."""
        self._stepping_at: float | None = None
        self._counters = {one.name: CounterSeries(one) for one in table.FAMILIES if one.kind != "histogram"}
        self._histograms = {one.name: HistogramSeries(one) for one in table.FAMILIES if one.kind == "histogram"}
        self.engine = EngineMetrics()
        """The engine counts in this."""
        self.stopwatch = SampledStopwatch(clock, self._histogram(table.POINT_SECONDS))
        """The engine is timed with this."""
        series: list[CounterSeries | HistogramSeries] = []
        for one in table.FAMILIES:
            series.append(self._histogram(one) if one.kind == "histogram" else self._counter(one))
        self.registry = CollectorRegistry()
        self.registry.register(SeriesCollector(series, self._refresh))
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self._rules = DEFAULT
        self._show_build()

    def render(self) -> bytes:
        """The response to a scrape, of CONTENT_TYPE."""
        return generate_latest(self.registry)

    def follow(self, engine: Engine, journal: Journal | None = None) -> None:
        """Show this engine from now on. It was made with `engine` and `stopwatch`, as was an earlier one."""
        self._count_evaluations()
        self._engine, self._journal, self._rules = engine, journal, engine.cluster.rules
        self._show_build()
        self._plugins = {name: _plugins_of(engine, name) for name in engine.profiles}
        for name in engine.profiles:
            for result in ("scheduled", "unschedulable", "error"):
                self._counter(table.ATTEMPTS).add((result, name), 0)

    def _show_build(self) -> None:
        build = self._counter(table.BUILD)
        build.values.clear()
        build.put((situate.__version__, platform.python_version(), f"v{self._rules.version}"), 1)

    def _counter(self, family: table.Family) -> CounterSeries:
        return self._counters[family.name]

    def _histogram(self, family: table.Family) -> HistogramSeries:
        return self._histograms[family.name]

    # -- around a step -------------------------------------------------------------------------------------------

    def stepping(self) -> None:
        """A step begins."""
        self._stepping_at = self._clock()

    def stepped(self, now: Millis, changes: int) -> None:
        """The step ended. `now` is the engine's time in it."""
        ended_at = self._clock()
        if self._stepping_at is not None:
            self._histogram(table.STEP_SECONDS).add((), ended_at - self._stepping_at)
            self._stepping_at = None
        self._histogram(table.STEP_CHANGES).add((), changes)
        begun, seconds = self.stopwatch.end_step(ended_at)
        attempts = sum(begun.values())
        share = seconds / attempts if attempts else 0.0
        if attempts:
            self._histogram(table.ALGORITHM_SECONDS).add((), share, attempts)
        nowhere = self._count_refusals(share) if self.engine.failed_attempts else {}
        for profile, pods in begun.items():
            before, found = self._evaluated.get(profile, (0, 0))
            self._evaluated[profile] = before + pods, found + max(0, pods - nowhere.get(profile, 0))
        if self.engine.bound:
            self._count_bound(now)
        for point, profile, took_ms, success in self.engine.binding_results:
            self._histogram(table.POINT_SECONDS).add((point, SUCCESS if success else ERROR, profile), took_ms / 1_000)
        for victims in self.engine.victims:
            self._histogram(table.VICTIMS).add((), victims)

    def _count_refusals(self, share: float) -> dict[str, int]:
        """Count attempts that failed; by profile, in how many of those of this step no node was found."""
        nowhere: dict[str, int] = {}
        for (profile, result, took_ms), pods in Counter(self.engine.failed_attempts).items():
            self._counter(table.ATTEMPTS).add((result, profile), pods)
            seconds = share if took_ms is None else took_ms / 1_000
            self._histogram(table.ATTEMPT_SECONDS).add((result, profile), seconds, pods)
            if took_ms is None and result == "unschedulable":
                nowhere[profile] = nowhere.get(profile, 0) + pods
        return nowhere

    def _count_evaluations(self) -> None:
        """Count the plugins of the attempts so far."""
        for profile, (pods, found) in self._evaluated.items():
            for labels, only_where_found in self._plugins.get(profile, ()):
                self._counter(table.EVALUATIONS).add(labels, found if only_where_found else pods)
        self._evaluated.clear()

    def _count_bound(self, now: Millis) -> None:
        """Count pods that were bound. Those of one step have most values in common, but not when they became ready."""
        by_step: dict[tuple[str, int, Millis, Millis], int] = {}
        waited = self._histogram(table.POD_SECONDS)
        for one in self.engine.bound:
            entry = one.entry
            attempts = one.attempt - entry.retries
            common = entry.pod.spec.scheduler_name, attempts, one.since_ms, one.asked_ms
            by_step[common] = by_step.get(common, 0) + 1
            ready_ms = one.since_ms if entry.first_ready_ms is None else entry.first_ready_ms
            waited.add(ATTEMPTS[min(attempts, MANY_ATTEMPTS)], (now - ready_ms) / 1_000)
        for (profile, attempts, decided_ms, asked_ms), pods in by_step.items():
            self._counter(table.ATTEMPTS).add(("scheduled", profile), pods)
            self._histogram(table.ATTEMPT_SECONDS).add(("scheduled", profile), (now - decided_ms) / 1_000, pods)
            self._histogram(table.POINT_SECONDS).add(("Bind", SUCCESS, profile), (now - asked_ms) / 1_000, pods)
            self._histogram(table.POD_ATTEMPTS).add((), attempts, pods)

    # -- the client's Observer -----------------------------------------------------------------------------------

    def request_done(self, verb: str, host: str, code: str, seconds: float) -> None:
        self._counter(table.REQUESTS).add((code, verb, host))
        self._histogram(table.REQUEST_SECONDS).add((verb, host), seconds)

    def rate_limited(self, verb: str, host: str, seconds: float) -> None:
        self._histogram(table.LIMITER_SECONDS).add((verb, host), seconds)

    def retried(self, verb: str, host: str, code: str) -> None:
        self._counter(table.RETRIES).add((code, verb, host))

    # -- reported by others --------------------------------------------------------------------------------------

    def leading(self, lease: str, leads: bool) -> None:
        self._counter(table.LEADER).put((lease,), float(leads))

    def shadowed(self, result: str, gap: int | None) -> None:
        """Another scheduler's choice was compared with ours; the gap is None where its node does not fit."""
        self._counter(table.SHADOW).add((result,))
        if gap is not None:
            self._histogram(table.SHADOW_GAP).add((), gap)

    def in_flight(self, operation: str, change: int) -> None:
        """A performer runs one more of these, or one less: status, preemption, extender. The engine counts binds;
        volumes and events wait most of their time."""
        self._counter(table.GOROUTINES).add((operation,), change)

    def failed(self, operation: str) -> None:
        """Work of a performer failed."""
        self._counter(table.FAILURES).add((operation,))

    def dropped(self, operation: str) -> None:
        """A performer dropped an event."""
        self._counter(table.DROPPED_EVENTS).add()

    # -- at a scrape ----------------------------------------------------------------------------------------------

    def _refresh(self) -> None:
        """Read what others count."""
        self._count_evaluations()
        engine = self.engine
        for (queue, event), pods in engine.incoming.items():
            self._counter(table.INCOMING).put((queue, self._rules.queue_events.get(event, event)), pods)
        flushed = sum(pods for (_, event), pods in engine.incoming.items() if event == TIMED_OUT)
        self._counter(table.FLUSHED).put((), flushed)
        self._counter(table.PREEMPTIONS).put((), engine.preemptions)
        if self._engine is not None:
            self._refresh_from(self._engine)
        if self._journal is not None:
            self._counter(table.JOURNAL_BYTES).put((), self._journal.size)
            self._counter(table.JOURNAL_STOPPED).put((), float(self._journal.stopped not in ("", "closed")))

    def _refresh_from(self, engine: Engine) -> None:
        waiting = engine.queue.values()
        places = Counter(entry.state for entry in waiting)
        for place, queue in QUEUES.items():
            self._counter(table.PENDING).put((queue,), places[place])
        refusals = Counter(
            refusal for entry in waiting for refusal in _refusals(entry, entry.key in engine.queue.awaiting_claims)
        )
        known = self._counter(table.UNSCHEDULABLE)
        known.values = {**dict.fromkeys(known.values, 0), **refusals}
        state, cluster = engine.state, engine.cluster
        cache = self._counter(table.CACHE)
        cache.put(("nodes",), len(cluster.nodes.rows))
        cache.put(("pods",), len(cluster.pods.rows))
        cache.put(("assumed_pods",), len(state.reservations))
        binding = sum(1 for one in state.reservations.values() if not one.done)
        self._counter(table.GOROUTINES).put((BINDING,), binding)
        self._counter(table.NOMINATED).put((), len(state.nominations))
        self._counter(table.EVICTIONS).put((), len(state.evictions))


def _refusals(entry: QueuedPod, awaits_claim: bool) -> list[Labels]:
    """The plugins that keep a pod pending, with its profile. None, while it is being decided."""
    profile = entry.pod.spec.scheduler_name
    if entry.state is QueueState.GATED:
        if entry.pod.spec.scheduling_gates:
            return [(GATES, profile)]
        return [(CLAIMS if awaits_claim else GANGS, profile)]
    if entry.state in (QueueState.IN_FLIGHT, QueueState.RESERVED):
        return []
    return [(plugin, profile) for plugin in entry.unschedulable_plugins]


def _plugins_of(engine: Engine, name: str) -> list[tuple[Labels, bool]]:
    """The plugins that take part in the attempts of a profile."""
    profile = engine.profiles[name].profile
    early = [plugin.name for plugin in profile.filters if plugin.name in profile.before_nodes]
    return [
        *(((plugin, "PreFilter", name), False) for plugin in early),
        *(((plugin.name, "Filter", name), False) for plugin in profile.filters),
        *(((weighted.scorer.name, "Score", name), True) for weighted in profile.scorers),
    ]
