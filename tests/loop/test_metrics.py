"""Metrics are kube-scheduler's by name, kind, labels and buckets, and say what happened."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from builders import node, pod
from situate.core.changes import BindDone, BindFailed, Change, NodeSeen, PodRef, PodSeen
from situate.core.config.defaults import default_configuration, under_rules
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.engine.engine import Engine
from situate.core.model.pod import PodSchedulingGate
from situate.core.queue import incoming
from situate.core.queue.queue import UNSCHEDULABLE_LIMIT_MS
from situate.core.versions import RULES, V1_37, KubernetesRules
from situate.loop import metrics_table as table
from situate.loop.journal import Journal
from situate.loop.metrics import CONTENT_TYPE, Metrics
from situate.loop.metrics_series import HistogramSeries
from situate.loop.metrics_stopwatch import GAPS, SampledStopwatch
from situate.wire.config import load_config

DEFAULT = "default-scheduler"
ROOMY = NodeSeen(node("n1", cpu="4", pods=10))

# -- what kube-scheduler v1.36 has, and v1.37 ------------------------------------------------------------------------


def doubling(first: float, count: int) -> tuple[float, ...]:
    return tuple(first * 2**n for n in range(count))


REQUEST_S = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
UPSTREAM: dict[str, tuple[str, str, set[str], tuple[float, ...]]] = {
    # name: stability, type, labels, buckets
    "scheduler_schedule_attempts_total": ("STABLE", "counter", {"result", "profile"}, ()),
    "scheduler_scheduling_attempt_duration_seconds": (
        "STABLE", "histogram", {"result", "profile"}, doubling(0.001, 15),
    ),
    "scheduler_preemption_victims": ("STABLE", "histogram", set(), doubling(1, 7)),
    "scheduler_preemption_attempts_total": ("STABLE", "counter", set(), ()),
    "scheduler_pending_pods": ("STABLE", "gauge", {"queue"}, ()),
    "scheduler_pod_scheduling_attempts": ("STABLE", "histogram", set(), doubling(1, 5)),
    "scheduler_framework_extension_point_duration_seconds": (
        "STABLE", "histogram", {"extension_point", "status", "profile"}, doubling(0.0001, 12),
    ),
    "scheduler_queue_incoming_pods_total": ("STABLE", "counter", {"queue", "event"}, ()),
    "scheduler_goroutines": ("BETA", "gauge", {"operation"}, ()),
    "scheduler_pod_scheduling_sli_duration_seconds": ("BETA", "histogram", {"attempts"}, doubling(0.01, 20)),
    "scheduler_permit_wait_duration_seconds": ("BETA", "histogram", {"result"}, doubling(0.001, 15)),
    "scheduler_unschedulable_pods": ("BETA", "gauge", {"plugin", "profile"}, ()),
    "scheduler_plugin_evaluation_total": ("BETA", "counter", {"plugin", "extension_point", "profile"}, ()),
    "scheduler_scheduling_algorithm_duration_seconds": ("ALPHA", "histogram", set(), doubling(0.001, 15)),
    "scheduler_plugin_execution_duration_seconds": (
        "ALPHA", "histogram", {"plugin", "extension_point", "status"},
        tuple(float(f"{0.00001 * 1.5**n:.12g}") for n in range(20)),
    ),
    "scheduler_cache_size": ("ALPHA", "gauge", {"type"}, ()),
    "rest_client_request_duration_seconds": ("ALPHA", "histogram", {"verb", "host"}, REQUEST_S),
    "rest_client_rate_limiter_duration_seconds": ("ALPHA", "histogram", {"verb", "host"}, REQUEST_S),
    "rest_client_requests_total": ("ALPHA", "counter", {"code", "method", "host"}, ()),
    "rest_client_request_retries_total": ("ALPHA", "counter", {"code", "verb", "host"}, ()),
    "leader_election_master_status": ("ALPHA", "gauge", {"name"}, ()),
}  # fmt: skip
OURS = {family.name: family for family in table.FAMILIES}


@pytest.mark.parametrize("name", UPSTREAM, ids=lambda name: f"{name} is as kube-scheduler has it")
def test_a_metric_of_kube_scheduler_is_here_unchanged(name: str) -> None:
    _, kind, labels, buckets = UPSTREAM[name]
    family = OURS[name]
    assert (family.kind, set(family.labels), family.bounds) == (kind, labels, buckets)


def test_a_name_that_is_not_kube_schedulers_begins_with_ours() -> None:
    assert [name for name in OURS if name not in UPSTREAM and not name.startswith("situate_")] == []


def test_no_metric_is_there_twice() -> None:
    assert len(OURS) == len(table.FAMILIES)


# -- reading what is shown -------------------------------------------------------------------------------------------


@dataclass
class Watched:
    """An engine with metrics, and a clock that goes on by a millisecond whenever somebody looks at it."""

    looked: int = 0
    config: KubeSchedulerConfiguration = field(default_factory=default_configuration)

    def __post_init__(self) -> None:
        self.metrics = Metrics(self.clock)
        self.start()

    def start(self) -> None:
        self.engine = Engine(self.config, metrics=self.metrics.engine, stopwatch=self.metrics.stopwatch)
        self.metrics.follow(self.engine)

    def clock(self) -> float:
        self.looked += 1
        return self.looked / 1_000

    def step(self, now: int, *changes: Change) -> None:
        self.metrics.stepping()
        self.engine.step(now, changes)
        self.metrics.stepped(now, len(changes))

    def shown(self) -> dict[str, float]:
        return {f"{name}{labels}": value for name, labels, value in samples(self.metrics)}

    def show(self, name: str) -> dict[str, float]:
        """The values of one metric by its labels, sorted by name."""
        return {labels: value for one, labels, value in samples(self.metrics) if one == name}


def samples(metrics: Metrics) -> Iterator[tuple[str, str, float]]:
    for family in text_string_to_metric_families(metrics.render().decode()):
        for sample in family.samples:
            yield sample.name, ",".join(f"{key}={value}" for key, value in sorted(sample.labels.items())), sample.value


def seen(name: str = "web", uid: str = "", **fields: Any) -> PodSeen:
    return PodSeen(pod(name, uid=uid or name, **fields))


def done(name: str = "web", attempt: int = 1) -> BindDone:
    return BindDone(PodRef("default", name, name), attempt)


# -- scheduling ------------------------------------------------------------------------------------------------------


def test_results_that_have_not_occurred_are_shown_as_zero() -> None:
    assert Watched().show("scheduler_schedule_attempts_total") == {
        f"profile={DEFAULT},result=scheduled": 0,
        f"profile={DEFAULT},result=unschedulable": 0,
        f"profile={DEFAULT},result=error": 0,
    }


def test_attempts_are_counted_by_what_they_came_to() -> None:
    watched = Watched()
    lost = seen("lost", node_selector={"disk": "tape"})
    watched.step(0, ROOMY, seen("fits", cpu="1"), lost, seen("unlucky", cpu="1"))
    watched.step(20, done("fits"), BindFailed(PodRef("default", "unlucky", "unlucky"), 1, "no", final=True))
    assert watched.show("scheduler_schedule_attempts_total") == {
        f"profile={DEFAULT},result=scheduled": 1,
        f"profile={DEFAULT},result=unschedulable": 1,
        f"profile={DEFAULT},result=error": 1,
    }


def test_a_scheduled_pod_took_from_its_decision_to_its_bind_and_waited_since_it_came() -> None:
    watched = Watched()
    watched.step(0, seen(cpu="1"))  # no node yet
    watched.step(5_000, ROOMY)
    watched.step(5_250, done(attempt=2))
    shown = watched.shown()
    assert shown[f"scheduler_scheduling_attempt_duration_seconds_sumprofile={DEFAULT},result=scheduled"] == 0.25
    assert shown["scheduler_pod_scheduling_sli_duration_seconds_sumattempts=2"] == 5.25
    assert shown["scheduler_pod_scheduling_attempts_sum"] == 2
    point = "scheduler_framework_extension_point_duration_seconds_sumextension_point=Bind"
    assert shown[f"{point},profile={DEFAULT},status=Success"] == 0.25


def test_a_bind_that_failed_and_is_asked_for_again_is_not_another_attempt() -> None:
    watched = Watched()
    watched.step(0, ROOMY, seen(cpu="1"))
    watched.step(10, BindFailed(PodRef("default", "web", "web"), 1, "no"))
    watched.step(1_000)
    watched.step(1_010, done(attempt=2))
    shown = watched.shown()
    assert shown["scheduler_pod_scheduling_attempts_sum"] == 1
    assert shown["scheduler_pod_scheduling_sli_duration_seconds_sumattempts=1"] == 1.01


def test_pods_that_took_many_attempts_share_a_label() -> None:
    watched = Watched()
    watched.step(0, ROOMY, seen(cpu="1"))
    for attempt in range(1, 16):
        failed = BindFailed(PodRef("default", "web", "web"), attempt, "no", final=True)
        watched.step(attempt * 20_000, failed)
        watched.step(attempt * 20_000 + 15_000)
    watched.step(400_000, done(attempt=16))
    assert watched.show("scheduler_pod_scheduling_sli_duration_seconds_count") == {"attempts=15+": 1}


def test_deciding_is_shared_among_the_attempts_of_a_step() -> None:
    watched = Watched()
    watched.step(0, ROOMY, *(seen(f"large-{at}", cpu="8") for at in range(4)))
    shown = watched.shown()
    assert shown["scheduler_scheduling_algorithm_duration_seconds_count"] == 4
    whole = shown["scheduler_scheduling_algorithm_duration_seconds_sum"]
    assert 0 < whole < shown["situate_step_seconds_sum"]
    refused = shown[f"scheduler_scheduling_attempt_duration_seconds_sumprofile={DEFAULT},result=unschedulable"]
    assert refused == pytest.approx(whole)


def test_preemption_is_counted() -> None:
    watched = Watched()
    small = [seen(f"small-{at}", cpu="1", node_name="n1", priority=0) for at in range(4)]
    watched.step(0, ROOMY, *small, seen("large", cpu="3", priority=9))
    shown = watched.shown()
    assert shown["scheduler_preemption_attempts_total"] == 1
    assert (shown["scheduler_preemption_victims_count"], shown["scheduler_preemption_victims_sum"]) == (1, 3)
    assert (shown["situate_nominated_pods"], shown["situate_evictions_in_flight"]) == (1, 3)


def test_plugins_are_counted_by_the_attempts_in_which_they_have_a_say() -> None:
    watched = Watched()
    watched.step(0, ROOMY, seen("fits", cpu="1"), seen("large", cpu="8"))
    shown = watched.show("scheduler_plugin_evaluation_total")
    assert shown[f"extension_point=Filter,plugin=NodeResourcesFit,profile={DEFAULT}"] == 2
    assert shown[f"extension_point=PreFilter,plugin=NodeResourcesFit,profile={DEFAULT}"] == 2
    assert shown[f"extension_point=Score,plugin=NodeResourcesFit,profile={DEFAULT}"] == 1
    assert f"extension_point=Score,plugin=NodeName,profile={DEFAULT}" not in shown
    watched.step(1, seen("fits too", cpu="1"))
    shown = watched.show("scheduler_plugin_evaluation_total")
    assert shown[f"extension_point=Filter,plugin=NodeResourcesFit,profile={DEFAULT}"] == 3
    assert shown[f"extension_point=Score,plugin=NodeResourcesFit,profile={DEFAULT}"] == 2


def test_who_had_a_say_with_the_engine_before_is_still_counted_for_it() -> None:
    watched = Watched()
    watched.step(0, ROOMY, seen("first", cpu="1"))
    without = "{plugins: {multiPoint: {disabled: [{name: NodeName}]}}}"
    config = f"{{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: [{without}]}}"
    watched.config = load_config(config.encode(), "test.yaml")
    watched.start()
    watched.step(1, ROOMY, seen("second", cpu="1"))
    shown = watched.show("scheduler_plugin_evaluation_total")
    assert shown[f"extension_point=Filter,plugin=NodeName,profile={DEFAULT}"] == 1
    assert shown[f"extension_point=Filter,plugin=NodeResourcesFit,profile={DEFAULT}"] == 2


def test_pods_that_are_bound_together_waited_since_each_came() -> None:
    watched = Watched()
    watched.step(0, seen("early", cpu="1"))  # no node yet
    watched.step(20_000, ROOMY, seen("late", cpu="1"), seen("too", cpu="1"))
    watched.step(20_250, done("early", attempt=2), done("late"), done("too"))
    shown = watched.shown()
    assert shown["scheduler_pod_scheduling_sli_duration_seconds_sumattempts=2"] == 20.25
    assert shown["scheduler_pod_scheduling_sli_duration_seconds_sumattempts=1"] == 0.5
    assert shown[f"scheduler_scheduling_attempt_duration_seconds_sumprofile={DEFAULT},result=scheduled"] == 0.75
    assert shown["scheduler_pod_scheduling_attempts_sum"] == 4


# -- what is there now -----------------------------------------------------------------------------------------------


def test_waiting_pods_are_counted_by_where_they_wait_and_who_refused_them() -> None:
    watched = Watched()
    gate = (PodSchedulingGate(name="later"),)
    watched.step(0, ROOMY, seen("large", cpu="8"), seen("gated", scheduling_gates=gate), seen("unlucky", cpu="1"))
    watched.step(10, BindFailed(PodRef("default", "unlucky", "unlucky"), 1, "no", final=True))
    assert watched.show("scheduler_pending_pods") == {
        "queue=active": 0,
        "queue=backoff": 1,
        "queue=unschedulable": 1,
        "queue=gated": 1,
    }
    assert watched.show("scheduler_unschedulable_pods") == {
        f"plugin=NodeResourcesFit,profile={DEFAULT}": 1,
        f"plugin=SchedulingGates,profile={DEFAULT}": 1,
    }


def test_a_refusal_that_is_over_is_shown_as_zero_and_does_not_vanish() -> None:
    watched = Watched()
    watched.step(0, ROOMY, seen("large", cpu="8"))
    assert watched.show("scheduler_unschedulable_pods") == {f"plugin=NodeResourcesFit,profile={DEFAULT}": 1}
    watched.step(20_000, NodeSeen(node("n2", cpu="8", pods=10)))
    assert watched.show("scheduler_unschedulable_pods") == {f"plugin=NodeResourcesFit,profile={DEFAULT}": 0}


def test_the_cluster_is_counted_and_binds_without_an_answer() -> None:
    watched = Watched()
    watched.step(0, ROOMY, seen("running", cpu="1", node_name="n1"), seen(cpu="1"))
    assert watched.show("scheduler_cache_size") == {"type=nodes": 1, "type=pods": 2, "type=assumed_pods": 1}
    assert watched.show("scheduler_goroutines") == {"operation=binding": 1}
    watched.step(10, done())
    assert watched.show("scheduler_goroutines") == {"operation=binding": 0}


def test_what_a_performer_does_and_fails_to_do_is_shown() -> None:
    metrics = Metrics()
    for operation, change in (("status", 1), ("status", 1), ("status", -1), ("preemption", 1)):
        metrics.in_flight(operation, change)
    metrics.failed("binding")
    metrics.dropped("event")
    lines = metrics.render().decode().splitlines()
    assert [
        line for line in lines if line.startswith(("scheduler_goroutines", "situate_failures", "situate_drop"))
    ] == [
        'scheduler_goroutines{operation="status"} 1.0',
        'scheduler_goroutines{operation="preemption"} 1.0',
        'situate_failures_total{operation="binding"} 1.0',
        "situate_dropped_events_total 1.0",
    ]


def test_pods_that_come_to_the_queue_are_counted_by_what_brought_them() -> None:
    watched = Watched()
    watched.step(0, ROOMY, seen("large", cpu="8"))
    assert watched.show("scheduler_queue_incoming_pods_total") == {
        "event=UnschedulablePodAdd,queue=active": 1,
        "event=ScheduleAttemptFailure,queue=unschedulable": 1,
    }


def test_with_kubernetes_1_37_queue_events_have_its_names() -> None:
    watched = Watched(config=under_rules(default_configuration(), V1_37))
    gated = [PodSchedulingGate(name="wait")]
    watched.step(0, ROOMY, seen("large", cpu="8"), seen("gated", cpu="1", scheduling_gates=gated))
    watched.step(1, seen("gated", cpu="1"))
    events = {key.partition(",")[0].partition("=")[2] for key in watched.show("scheduler_queue_incoming_pods_total")}
    ours = {"UnscheduledPodAdd", "TargetPodUpdatePodSchedulingGatesEliminated", "ScheduleAttemptFailure"}
    assert events == ours


def test_every_queue_event_that_1_37_renames_is_one_that_there_is() -> None:
    named = {incoming.POD_ADDED, incoming.POD_CHANGED, incoming.GATES_GONE, *incoming.CAUSES.values()}
    assert set(V1_37.queue_events) <= named
    assert not [name for name in named if name.startswith("UnschedulablePod") and name not in V1_37.queue_events]


@pytest.mark.parametrize("rules", RULES.values(), ids=lambda rules: rules.version)
def test_the_build_names_the_kubernetes_whose_decisions_are_made(rules: KubernetesRules) -> None:
    watched = Watched(config=under_rules(default_configuration(), rules))
    [build] = watched.show("situate_build_info")
    assert f"kubernetes=v{rules.version}" in build


def test_the_flush_that_must_not_happen_is_shown() -> None:
    watched = Watched()
    watched.step(0, ROOMY, seen("large", cpu="8"))
    assert watched.shown()["situate_flushed_pods_total"] == 0
    watched.step(UNSCHEDULABLE_LIMIT_MS + 60_000)
    assert watched.shown()["situate_flushed_pods_total"] == 1


def test_another_engine_goes_on_where_the_last_stopped() -> None:
    watched = Watched()
    for _ in range(2):
        watched.start()
        watched.step(0, ROOMY, seen("large", cpu="8"))
    shown = watched.shown()
    assert shown[f"scheduler_schedule_attempts_totalprofile={DEFAULT},result=unschedulable"] == 2
    assert shown["scheduler_queue_incoming_pods_totalevent=UnschedulablePodAdd,queue=active"] == 2
    assert shown["scheduler_pending_podsqueue=unschedulable"] == 1


def test_steps_are_measured() -> None:
    watched = Watched()
    watched.step(0, ROOMY, seen("large", cpu="8"))
    watched.step(1)
    shown = watched.shown()
    assert (shown["situate_step_seconds_count"], shown["situate_step_changes_sum"]) == (2, 2)


def test_the_journal_is_shown_as_long_as_it_is_written_and_when_it_had_to_stop(tmp_path: Path) -> None:
    metrics, config = Metrics(), default_configuration()
    with Journal(tmp_path / "journal", config, limit_bytes=1 << 14) as journal:
        engine = Engine(config, metrics=metrics.engine)
        metrics.follow(engine, journal)
        written = sum(file.stat().st_size for file in (tmp_path / "journal").iterdir())
        shown = {name: value for name, _, value in samples(metrics)}
        assert (shown["situate_journal_bytes"], shown["situate_journal_stopped"]) == (written, 0)
        journal.heard(0, [seen(f"web-{at}") for at in range(1_000)])
        shown = {name: value for name, _, value in samples(metrics)}
        assert shown["situate_journal_stopped"] == 1


# -- what others tell ------------------------------------------------------------------------------------------------


def test_requests_are_counted_as_client_go_counts_them() -> None:
    watched = Watched()
    watched.metrics.request_done("POST", "10.0.0.1:6443", "201", 0.3)
    watched.metrics.request_done("POST", "10.0.0.1:6443", "<error>", 0.01)
    watched.metrics.rate_limited("POST", "10.0.0.1:6443", 0.02)
    watched.metrics.retried("POST", "10.0.0.1:6443", "429")
    shown = watched.shown()
    assert shown["rest_client_requests_totalcode=201,host=10.0.0.1:6443,method=POST"] == 1
    assert shown["rest_client_requests_totalcode=<error>,host=10.0.0.1:6443,method=POST"] == 1
    assert shown["rest_client_request_duration_seconds_buckethost=10.0.0.1:6443,le=0.25,verb=POST"] == 1
    assert shown["rest_client_request_duration_seconds_buckethost=10.0.0.1:6443,le=0.5,verb=POST"] == 2
    assert shown["rest_client_rate_limiter_duration_seconds_counthost=10.0.0.1:6443,verb=POST"] == 1
    assert shown["rest_client_request_retries_totalcode=429,host=10.0.0.1:6443,verb=POST"] == 1


def test_who_leads_is_shown() -> None:
    watched = Watched()
    watched.metrics.leading("kube-scheduler", True)
    assert watched.show("leader_election_master_status") == {"name=kube-scheduler": 1}
    watched.metrics.leading("kube-scheduler", False)
    assert watched.show("leader_election_master_status") == {"name=kube-scheduler": 0}


# -- the text --------------------------------------------------------------------------------------------------------


def test_the_text_has_no_series_that_kube_scheduler_would_not_have() -> None:
    watched = Watched()
    watched.step(0, ROOMY, seen())
    text = watched.metrics.render().decode()
    assert "_created" not in text
    assert re.search(r'^scheduler_preemption_victims_bucket\{le="1"\} 0', text, re.MULTILINE)
    assert CONTENT_TYPE.startswith("text/plain; version=0.0.4")


def test_two_schedulers_in_one_process_do_not_share_numbers() -> None:
    one, other = Watched(), Watched()
    one.step(0, ROOMY, seen("large", cpu="8"))
    assert other.shown()["scheduler_pending_podsqueue=unschedulable"] == 0


def test_the_process_itself_is_shown() -> None:
    names = {name for name, _, _ in samples(Metrics())}
    assert {"process_cpu_seconds_total", "process_resident_memory_bytes", "situate_build_info"} <= names


# -- the stopwatch ---------------------------------------------------------------------------------------------------


def a_stopwatch(ticks: Iterator[float]) -> tuple[SampledStopwatch, HistogramSeries]:
    spread = HistogramSeries(table.POINT_SECONDS)
    return SampledStopwatch(lambda: next(ticks), spread), spread


def test_laps_at_one_point_add_up_within_a_decision() -> None:
    stopwatch, spread = a_stopwatch(iter([0.0, 1.0, 3.0, 7.0]))
    stopwatch.begin(DEFAULT)
    for point in ("Filter", "Score", "Filter"):
        stopwatch.lap(point)
    begun, seconds = stopwatch.end_step(10.0)
    assert spread.sums == {("Filter", "Success", DEFAULT): 5.0, ("Score", "Success", DEFAULT): 2.0}
    assert (begun, seconds) == ({DEFAULT: 1}, 10.0)


def test_one_decision_in_ten_is_timed_and_all_are_counted() -> None:
    stopwatch, spread = a_stopwatch(iter(range(10_000)))
    for _ in range(1_100):
        stopwatch.begin(DEFAULT)
        stopwatch.lap("Filter")
    begun, _ = stopwatch.end_step(0.0)
    assert begun == {DEFAULT: 1_100}
    assert sum(spread.counts["Filter", "Success", DEFAULT]) == pytest.approx(110, abs=2)


def test_pods_that_come_at_a_beat_are_all_timed_now_and_then() -> None:
    for beat in range(2, 16):
        stopwatch, spread = a_stopwatch(iter(range(10_000)))
        for at in range(2_000):
            stopwatch.begin(f"profile-{at % beat}")
            stopwatch.lap("Filter")
        stopwatch.end_step(0.0)
        assert len(spread.counts) == beat
    assert sum(GAPS) == pytest.approx(10 * len(GAPS), abs=1)


def test_a_step_without_decisions_took_no_time_to_decide() -> None:
    stopwatch, spread = a_stopwatch(iter(range(10)))
    stopwatch.lap("Filter")
    assert stopwatch.end_step(5.0) == ({}, 0.0)
    assert spread.counts == {}
