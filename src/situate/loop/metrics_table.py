"""Every metric: its name, kind, labels, buckets and meaning. docs/reference/metrics.md has the same for people.

Names, kinds, labels and buckets of scheduler_*, rest_client_* and leader_election_* are those of kube-scheduler v1.36,
so that its dashboards and alerts work; a test compares them. The help texts are ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Family:
    """One metric with all its series."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()
    """The upper bounds of a histogram's buckets, without +Inf."""


def _counter(name: str, text: str, *labels: str) -> Family:
    return Family(name, "counter", text, labels)


def _gauge(name: str, text: str, *labels: str) -> Family:
    return Family(name, "gauge", text, labels)


def _histogram(name: str, text: str, bounds: tuple[float, ...], *labels: str) -> Family:
    return Family(name, "histogram", text, labels, bounds)


def _exponential(first: float, factor: float, count: int) -> tuple[float, ...]:
    """Each bound is the last times the factor, rounded to what a person would write."""
    return tuple(float(f"{first * factor**n:.12g}") for n in range(count))


_ATTEMPT_S: Final = _exponential(0.001, 2, 15)
_REQUEST_S: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)

# -- kube-scheduler's ------------------------------------------------------------------------------------------------

_help = "Finished attempts to schedule a pod: scheduled (bound), unschedulable, or error."
ATTEMPTS: Final = _counter("scheduler_schedule_attempts_total", _help, "result", "profile")
_help = "How long an attempt took: deciding and, if a node was found, binding."
ATTEMPT_SECONDS: Final = _histogram(
    "scheduler_scheduling_attempt_duration_seconds", _help, _ATTEMPT_S, "result", "profile"
)
_help = "How long deciding about one pod took: an equal share of the deciding that one step did."
ALGORITHM_SECONDS: Final = _histogram("scheduler_scheduling_algorithm_duration_seconds", _help, _ATTEMPT_S)
_help = "How many attempts a pod took until it was scheduled."
POD_ATTEMPTS: Final = _histogram("scheduler_pod_scheduling_attempts", _help, _exponential(1, 2, 5))
_help = "How long a pod took to be scheduled, from when it was first ready until it was bound."
POD_SECONDS: Final = _histogram(
    "scheduler_pod_scheduling_sli_duration_seconds", _help, _exponential(0.01, 2, 20), "attempts"
)
_help = "Pending pods: active (to be decided), backoff, unschedulable (until something changes), gated."
PENDING: Final = _gauge("scheduler_pending_pods", _help, "queue")
_help = "Pods that were added to a part of the queue, by the event that brought them there."
INCOMING: Final = _counter("scheduler_queue_incoming_pods_total", _help, "queue", "event")
_help = "Pending pods that a plugin rejected; a pod that several rejected counts for each of them."
UNSCHEDULABLE: Final = _gauge("scheduler_unschedulable_pods", _help, "plugin", "profile")
_help = "How long all plugins of an extension point took."
POINT_SECONDS: Final = _histogram(
    "scheduler_framework_extension_point_duration_seconds",
    _help,
    _exponential(0.0001, 2, 12),
    *("extension_point", "status", "profile"),
)
_help = "How long a plugin took. Never told: plugins are timed together. The metric is there for dashboards."
PLUGIN_SECONDS: Final = _histogram(
    "scheduler_plugin_execution_duration_seconds",
    _help,
    _exponential(0.00001, 1.5, 20),
    *("plugin", "extension_point", "status"),
)
_help = "Attempts in which a plugin was evaluated. It evaluates all nodes at once, and that counts as one."
EVALUATIONS: Final = _counter("scheduler_plugin_evaluation_total", _help, "plugin", "extension_point", "profile")
_help = "How long pods waited on permit. None do: gangs are decided as a whole. The metric is there for dashboards."
PERMIT_SECONDS: Final = _histogram("scheduler_permit_wait_duration_seconds", _help, _ATTEMPT_S, "result")
_help = "How often the scheduler looked for pods to evict, for a pod or a gang."
PREEMPTIONS: Final = _counter("scheduler_preemption_attempts_total", _help)
_help = "How many pods were evicted for one pod or gang."
VICTIMS: Final = _histogram("scheduler_preemption_victims", _help, _exponential(1, 2, 7))
_help = "Work in flight beside deciding, by operation. There are no goroutines; the name is kube-scheduler's."
GOROUTINES: Final = _gauge("scheduler_goroutines", _help, "operation")
_help = "What the engine knows of the cluster: nodes, pods on them, and assumed_pods, whose binds are not confirmed."
CACHE: Final = _gauge("scheduler_cache_size", _help, "type")

# -- client-go's -----------------------------------------------------------------------------------------------------

_help = "How long requests to the API server took."
REQUEST_SECONDS: Final = _histogram("rest_client_request_duration_seconds", _help, _REQUEST_S, "verb", "host")
_help = "How long our own rate limiter held requests back."
LIMITER_SECONDS: Final = _histogram("rest_client_rate_limiter_duration_seconds", _help, _REQUEST_S, "verb", "host")
_help = "Requests to the API server, by status code."
REQUESTS: Final = _counter("rest_client_requests_total", _help, "code", "method", "host")
_help = "Requests that were retried, by the status code that was the reason."
RETRIES: Final = _counter("rest_client_request_retries_total", _help, "code", "verb", "host")
_help = "1 while this process holds the lease of this name, else 0."
LEADER: Final = _gauge("leader_election_master_status", _help, "name")

# -- ours ------------------------------------------------------------------------------------------------------------

_help = "Always 1: the version that runs, its Python, and the Kubernetes release whose decisions it makes."
BUILD: Final = _gauge("situate_build_info", _help, "version", "python", "kubernetes")
_help = "How long a step of the engine took."
STEP_SECONDS: Final = _histogram("situate_step_seconds", _help, _exponential(0.0001, 2, 16))
_help = "How many changes a step took in."
STEP_CHANGES: Final = _histogram("situate_step_changes", _help, _exponential(1, 4, 9))
_help = (
    "Unschedulable pods that were retried only because they had waited for long. Above 0, the queue missed an event."
)
FLUSHED: Final = _counter("situate_flushed_pods_total", _help)
_help = "Pending pods for which a node is being freed."
NOMINATED: Final = _gauge("situate_nominated_pods", _help)
_help = "Evicted pods that are not gone yet."
EVICTIONS: Final = _gauge("situate_evictions_in_flight", _help)
_help = "Binds, status writes, evictions, volumes, claims and calls of extenders that failed, after their retries."
FAILURES: Final = _counter("situate_failures_total", _help, "operation")
_help = "Events about pods that were not written: there were too many, or the API server could not take them."
DROPPED_EVENTS: Final = _counter("situate_dropped_events_total", _help)
_help = "The journal's size on disk; 0 without one."
JOURNAL_BYTES: Final = _gauge("situate_journal_bytes", _help)
_help = "1 if the journal had to stop: it is full, or the disk refused."
JOURNAL_STOPPED: Final = _gauge("situate_journal_stopped", _help)
_help = "Pods that another scheduler bound, by how its choice compares with ours."
SHADOW: Final = _counter("situate_shadow_decisions_total", _help, "result")
_help = "By how much the node that another scheduler chose scores less than our best, where it fits."
SHADOW_GAP: Final = _histogram("situate_shadow_score_gap", _help, (0, 1, 2, 5, 10, 20, 50, 100, 200, 500))

FAMILIES: Final = tuple(one for one in globals().values() if isinstance(one, Family))
