"""Failed pods of a Job: the pod failure policy and the backoff."""

from collections.abc import Iterable, Sequence

import msgspec

from situate.core.model.batch import Job, OnExitCodes
from situate.core.model.managed import ManagedPod, PodContainerStatus
from situate.core.model.refs import Millis
from situate.core.reconcile.api_values import SECOND, parse_time
from situate.core.reconcile.pods import FAILED, SUCCEEDED, ready_condition

BACKOFF_FIRST: Millis = 10 * SECOND
BACKOFF_MAX: Millis = 600 * SECOND


class FailureVerdict(msgspec.Struct, frozen=True):
    """`counts`: towards the backoff limit. `fails_job`: why the whole Job fails, if it does."""

    counts: bool = True
    fails_index: bool = False
    fails_job: str | None = None


def only_replaces_failed(job: Job) -> bool:
    """Whether a pod that is being deleted is replaced only when it has finished."""
    policy = job.spec.pod_replacement_policy
    return policy == "Failed" or (policy is None and job.spec.pod_failure_policy is not None)


def has_failed(job: Job, pod: ManagedPod) -> bool:
    if pod.status.phase == FAILED:
        return True
    going = pod.metadata.deletion_timestamp is not None and pod.status.phase != SUCCEEDED
    return going and not only_replaces_failed(job)


def verdict(job: Job, pod: ManagedPod) -> FailureVerdict:
    """The result of the first matching rule; without one, a failure counts."""
    policy = job.spec.pod_failure_policy
    for at, rule in enumerate(policy.rules if policy is not None else ()):
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        why: str | None = None
        if rule.on_exit_codes is not None:
            container = _exited(pod, rule.on_exit_codes)
            if container is not None and container.state.terminated is not None:
                code = container.state.terminated.exit_code
                why = f"Container {container.name} for pod {key} failed with exit code {code}"
        else:
            wanted = [(one.type, one.status) for one in rule.on_pod_conditions]
            met = next((one for one in pod.status.conditions if (one.type, one.status) in wanted), None)
            if met is not None:
                why = f"Pod {key} has condition {met.type}"
        if why is None:
            continue
        if rule.action == "FailJob":
            return FailureVerdict(fails_job=f"{why} matching {rule.action} rule at index {at}")
        return FailureVerdict(counts=rule.action != "Ignore", fails_index=rule.action == "FailIndex")
    return FailureVerdict()


def _exited(pod: ManagedPod, wanted: OnExitCodes) -> PodContainerStatus | None:
    for one in (*pod.status.container_statuses, *pod.status.init_container_statuses):
        end = one.state.terminated
        if end is None or not end.exit_code or wanted.container_name not in (None, one.name):
            continue
        if (end.exit_code in wanted.values) == (wanted.operator == "In"):
            return one
    return None


def counts_restarts(job: Job, pods: Iterable[ManagedPod]) -> bool:
    """Whether container restarts have exceeded the backoff limit."""
    if job.spec.template.spec.get("restartPolicy") != "OnFailure":
        return False
    restarts = sum(
        one.restart_count
        for pod in pods
        if pod.status.phase in ("Running", "Pending")
        for one in (*pod.status.init_container_statuses, *pod.status.container_statuses)
    )
    return restarts >= max(job.spec.backoff_limit, 1)


def backoff_until(job: Job, pods: Sequence[ManagedPod]) -> Millis | None:
    """When the next pod may be created: later for more failures since the last success."""
    won = [_finished_at(pod) for pod in pods if pod.status.phase == SUCCEEDED]
    last_won = max(won, default=-1)
    lost = [_finished_at(pod) for pod in pods if has_failed(job, pod)]
    lost = [at for at in lost if at > last_won]
    if not lost:
        return None
    wait = min(BACKOFF_FIRST << min(len(lost) - 1, 32), BACKOFF_MAX)
    return max(lost) + wait


def _finished_at(pod: ManagedPod) -> Millis:
    ends = [one.state.terminated for one in (*pod.status.container_statuses, *pod.status.init_container_statuses)]
    times = [parse_time(end.finished_at) for end in ends if end is not None]
    known = [at for at in times if at is not None]
    if known:
        return max(known)
    ready = ready_condition(pod)
    for text in (
        None if ready is None else ready.last_transition_time,
        pod.metadata.deletion_timestamp,
        pod.metadata.creation_timestamp,
    ):
        at = parse_time(text)
        if at is not None:
            return at
    return 0
