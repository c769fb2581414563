"""Every metric there is: its name, kind, labels, bounds and meaning. docs/METRICS.md says the same to people.

Names, kinds, labels and bounds of scheduler_*, rest_client_* and leader_election_* are those of kube-scheduler v1.36,
so that its dashboards and alerts work; a test holds them to that. The words are ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True, slots=True)
class Family:
    """One metric with all its series."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()
    """Of a histogram's buckets, without the last, which has none."""


def _growing(first: float, factor: float, count: int) -> tuple[float, ...]:
    """Each bound is the last times the factor, rounded to what a person would write."""
    return tuple(float(f"{first * factor**n:.12g}") for n in range(count))


_ATTEMPT_S: Final = _growing(0.001, 2, 15)
_POINT_S: Final = _growing(0.0001, 2, 12)
_REQUEST_S: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)

# -- kube-scheduler's ------------------------------------------------------------------------------------------------

ATTEMPTS: Final = Family(
    "scheduler_schedule_attempts_total",
    "counter",
    "Attempts at scheduling a pod that came to an end: scheduled (bound), unschedulable, or error.",
    ("result", "profile"),
)
ATTEMPT_SECONDS: Final = Family(
    "scheduler_scheduling_attempt_duration_seconds",
    "histogram",
    "How long an attempt took: deciding and, where it came to that, binding.",
    ("result", "profile"),
    _ATTEMPT_S,
)
ALGORITHM_SECONDS: Final = Family(
    "scheduler_scheduling_algorithm_duration_seconds",
    "histogram",
    "How long deciding about one pod took: an equal share of the deciding that one step did.",
    bounds=_ATTEMPT_S,
)
POD_ATTEMPTS: Final = Family(
    "scheduler_pod_scheduling_attempts",
    "histogram",
    "How many attempts a pod took until it was scheduled.",
    bounds=_growing(1, 2, 5),
)
POD_SECONDS: Final = Family(
    "scheduler_pod_scheduling_sli_duration_seconds",
    "histogram",
    "How long a pod took to be scheduled, from when it was first ready until its bind was carried out.",
    ("attempts",),
    _growing(0.01, 2, 20),
)
PENDING: Final = Family(
    "scheduler_pending_pods",
    "gauge",
    "Waiting pods: active (to be decided), backoff, unschedulable (until something changes), gated.",
    ("queue",),
)
INCOMING: Final = Family(
    "scheduler_queue_incoming_pods_total",
    "counter",
    "Pods that came to a part of the queue, by what brought them there.",
    ("queue", "event"),
)
UNSCHEDULABLE: Final = Family(
    "scheduler_unschedulable_pods",
    "gauge",
    "Waiting pods that a plugin refused; a pod that several refused counts for each of them.",
    ("plugin", "profile"),
)
POINT_SECONDS: Final = Family(
    "scheduler_framework_extension_point_duration_seconds",
    "histogram",
    "How long all plugins of an extension point took.",
    ("extension_point", "status", "profile"),
    _POINT_S,
)
EVALUATIONS: Final = Family(
    "scheduler_plugin_evaluation_total",
    "counter",
    "Attempts in which a plugin had its say. It is asked about all nodes at once, and that counts as one.",
    ("plugin", "extension_point", "profile"),
)
PERMIT_SECONDS: Final = Family(
    "scheduler_permit_wait_duration_seconds",
    "histogram",
    "How long pods waited on permit. Nobody does here: gangs are decided whole. It is there for dashboards.",
    ("result",),
    _ATTEMPT_S,
)
PREEMPTIONS: Final = Family(
    "scheduler_preemption_attempts_total", "counter", "How often pods to evict were looked for, for a pod or a gang."
)
VICTIMS: Final = Family(
    "scheduler_preemption_victims",
    "histogram",
    "How many pods were asked to leave for one pod or gang.",
    bounds=_growing(1, 2, 7),
)
GOROUTINES: Final = Family(
    "scheduler_goroutines",
    "gauge",
    "What is under way beside deciding, by operation. There are no goroutines; the name is kept.",
    ("operation",),
)
CACHE: Final = Family(
    "scheduler_cache_size",
    "gauge",
    "What is known of the cluster: nodes, pods on them, and assumed_pods, whose binds are not confirmed.",
    ("type",),
)

# -- client-go's -----------------------------------------------------------------------------------------------------

REQUEST_SECONDS: Final = Family(
    "rest_client_request_duration_seconds",
    "histogram",
    "How long requests to the API server took.",
    ("verb", "host"),
    _REQUEST_S,
)
LIMITER_SECONDS: Final = Family(
    "rest_client_rate_limiter_duration_seconds",
    "histogram",
    "How long requests were held back by our own rate limit.",
    ("verb", "host"),
    _REQUEST_S,
)
REQUESTS: Final = Family(
    "rest_client_requests_total", "counter", "Requests to the API server, by its answer.", ("code", "method", "host")
)
RETRIES: Final = Family(
    "rest_client_request_retries_total",
    "counter",
    "Requests that were made again, by the answer that was the reason.",
    ("code", "verb", "host"),
)
LEADER: Final = Family(
    "leader_election_master_status", "gauge", "1 while this process holds the lease of this name, else 0.", ("name",)
)

# -- ours ------------------------------------------------------------------------------------------------------------

BUILD: Final = Family(
    "situate_build_info",
    "gauge",
    "Always 1: which version runs, on which Python, deciding as which release of Kubernetes.",
    ("version", "python", "kubernetes"),
)
STEP_SECONDS: Final = Family(
    "situate_step_seconds", "histogram", "How long a step of the engine took.", bounds=_growing(0.0001, 2, 16)
)
STEP_CHANGES: Final = Family(
    "situate_step_changes", "histogram", "How many changes a step was told of.", bounds=_growing(1, 4, 9)
)
FLUSHED: Final = Family(
    "situate_flushed_pods_total",
    "counter",
    "Pods that waited for long and were tried again for no reason. Stays 0, or a wake-up was missed: report it.",
)
NOMINATED: Final = Family("situate_nominated_pods", "gauge", "Waiting pods for which a node is being freed.")
EVICTIONS: Final = Family(
    "situate_evictions_in_flight", "gauge", "Pods that were asked to leave and have not been seen to go."
)
FAILURES: Final = Family(
    "situate_failures_total",
    "counter",
    "Binds, notes in a pod's status, evictions, volumes and questions to extenders that failed, after their retries.",
    ("operation",),
)
DROPPED_EVENTS: Final = Family(
    "situate_dropped_events_total",
    "counter",
    "Events about pods that were not written: there were too many, or the API server could not take them.",
)
JOURNAL_BYTES: Final = Family("situate_journal_bytes", "gauge", "What the journal takes on disk; 0 without one.")
JOURNAL_STOPPED: Final = Family(
    "situate_journal_stopped", "gauge", "1 if the journal had to stop: it is full, or the disk refused."
)
SHADOW: Final = Family(
    "situate_shadow_decisions_total",
    "counter",
    "Pods that another scheduler bound, by how its choice compares with ours.",
    ("result",),
)
SHADOW_GAP: Final = Family(
    "situate_shadow_score_gap",
    "histogram",
    "By how much the node that another scheduler chose scores less than our best, where it fits.",
    bounds=(0, 1, 2, 5, 10, 20, 50, 100, 200, 500),
)

FAMILIES: Final = (
    ATTEMPTS, ATTEMPT_SECONDS, ALGORITHM_SECONDS, POD_ATTEMPTS, POD_SECONDS, PENDING, INCOMING, UNSCHEDULABLE,
    POINT_SECONDS, EVALUATIONS, PERMIT_SECONDS, PREEMPTIONS, VICTIMS, GOROUTINES, CACHE,
    REQUEST_SECONDS, LIMITER_SECONDS, REQUESTS, RETRIES, LEADER,
    BUILD, STEP_SECONDS, STEP_CHANGES, FLUSHED, NOMINATED, EVICTIONS,
    FAILURES, DROPPED_EVENTS, JOURNAL_BYTES, JOURNAL_STOPPED,
    SHADOW, SHADOW_GAP,
)  # fmt: skip
