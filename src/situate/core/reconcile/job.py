"""Job: runs pods to completion until enough have succeeded or too many have failed."""

from collections.abc import Sequence

from msgspec.structs import replace

from situate.core.model.batch import Job, JobStatus
from situate.core.model.managed import ManagedPod
from situate.core.model.refs import Millis
from situate.core.model.stored import Condition, condition_of, controller_of
from situate.core.reconcile.adoption import claim, selector_of
from situate.core.reconcile.api_values import SECOND, format_time, parse_time
from situate.core.reconcile.effects import (
    DeleteObject,
    Effect,
    ReconcileResult,
    RecordEvent,
    ResultBuilder,
    UpdateObject,
)
from situate.core.reconcile.job_failures import counts_restarts, has_failed, verdict
from situate.core.reconcile.job_indexes import success_rule
from situate.core.reconcile.job_pods import PodChanges, pod_changes
from situate.core.reconcile.job_tracking import TRACKING, JobCounts, count_pods, is_indexed, is_tracked, note_finished
from situate.core.reconcile.objects import ObjectLister, normal_event, ref_of, update_metadata, update_status
from situate.core.reconcile.pods import is_ready

CONTROLLER_NAME = "kubernetes.io/job-controller"
COMPLETE, FAILED, FAILURE_TARGET, CRITERIA_MET = "Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"
_COMPLETIONS_REACHED = ("CompletionsReached", "Reached expected number of succeeded pods")


def finished_condition(job: Job) -> Condition | None:
    for one in job.status.conditions:
        if one.type in (COMPLETE, FAILED) and one.status == "True":
            return one
    return None


def job(one: Job, objects: ObjectLister, now: Millis) -> ReconcileResult:
    if one.spec.managed_by not in (None, CONTROLLER_NAME):
        return ReconcileResult()
    if finished_condition(one) is not None:
        return _after(one, objects, now)
    selector = selector_of(one.spec.selector)
    if selector is None:
        return ReconcileResult()
    # 1. Adopt and release.
    claimed = claim(one, ManagedPod, selector, objects, finalizers=(TRACKING,))
    if claimed.effects:
        return ReconcileResult(claimed.effects)
    pods = claimed.mine
    # 2. Count the pods, and decide whether the Job ends.
    counted = count_pods(one, pods)
    result = ResultBuilder()
    decided = _decided(one, counted, pods, now, result)
    leaving = one.metadata.deletion_timestamp is not None
    # 3. Create or delete pods; all are deleted if it ends.
    if decided is not None:
        work = PodChanges(going=counted.active)
    elif leaving:
        work = PodChanges()
    else:
        work = pod_changes(one, counted, pods, objects, now)
        result.requeue(work.requeue_at)
        if _has_completed(one, counted, len(counted.active) - len(work.going) + len(work.coming)):
            decided = _condition(CRITERIA_MET, *_COMPLETIONS_REACHED, now)
    # 4. Update the status before anything is released that was only noted.
    failing = decided is not None and decided.type == FAILURE_TARGET
    status, loose = note_finished(one, counted, pods, ending=leaving or decided is not None, failing=failing)
    going = frozenset(pod.metadata.uid for pod in work.going)
    status = replace(
        status,
        active=len(counted.active) - len(work.going) + len(work.coming),
        ready=sum(is_ready(pod) and pod.metadata.uid not in going for pod in counted.active),
        terminating=counted.terminating + len(work.going),
    )
    status, events = _with_start(one, status, decided, now)
    if decided is not None:
        status, ended = _ended(one, status, decided, waiting=bool(loose or work.going or counted.terminating), now=now)
        events += ended
    result.effects += update_status(one, status)
    # 5. Release.
    result.effects += [
        _untracked(pod) for pod in {pod.metadata.uid: pod for pod in (*loose, *work.going)}.values() if is_tracked(pod)
    ]
    result.effects += [DeleteObject(ref_of(pod)) for pod in work.going]
    result.effects += [*work.coming, *events, *work.events]
    return result.done()


def _condition(kind: str, reason: str, message: str, now: Millis, status: str = "True") -> Condition:
    at = format_time(now)
    return Condition(
        type=kind, status=status, last_probe_time=at, last_transition_time=at, reason=reason, message=message
    )


def _decided(
    one: Job, counted: JobCounts, pods: Sequence[ManagedPod], now: Millis, result: ResultBuilder
) -> Condition | None:
    """SuccessCriteriaMet or FailureTarget, decided before or now."""
    for kind in (CRITERIA_MET, FAILURE_TARGET):
        held = condition_of(one.status.conditions, kind)
        if held is not None and held.status == "True":
            return held
    for pod in pods:
        why = verdict(one, pod).fails_job if has_failed(one, pod) else None
        if why is not None:
            return _condition(FAILURE_TARGET, "PodFailurePolicy", why, now)
    if counted.failed > one.spec.backoff_limit or counts_restarts(one, pods):
        return _condition(FAILURE_TARGET, "BackoffLimitExceeded", "Job has reached the specified backoff limit", now)
    start = parse_time(one.status.start_time)
    if one.spec.active_deadline_seconds is not None and not one.spec.suspend:
        end = (now if start is None else start) + one.spec.active_deadline_seconds * SECOND
        if start is not None and now >= end:
            return _condition(FAILURE_TARGET, "DeadlineExceeded", "Job was active longer than specified deadline", now)
        result.requeue(end)
    return _decided_by_index(one, counted, now) if is_indexed(one) else None


def _decided_by_index(one: Job, counted: JobCounts, now: Millis) -> Condition | None:
    failed, completions = counted.failed_indexes.count, one.spec.completions or 0
    if one.spec.max_failed_indexes is not None and failed > one.spec.max_failed_indexes:
        text = "Job has exceeded the specified maximal number of failed indexes"
        return _condition(FAILURE_TARGET, "MaxFailedIndexesExceeded", text, now)
    if failed and failed + counted.done_indexes.count >= completions:
        return _condition(FAILURE_TARGET, "FailedIndexes", "Job has failed indexes", now)
    met = success_rule(one.spec.success_policy, counted.done_indexes, completions)
    return None if met is None else _condition(CRITERIA_MET, "SuccessPolicy", met, now)


def _has_completed(one: Job, counted: JobCounts, active: int) -> bool:
    if active:
        return False
    needed = 1 if one.spec.completions is None else one.spec.completions
    return counted.succeeded >= needed


def _with_start(one: Job, status: JobStatus, decided: Condition | None, now: Millis) -> tuple[JobStatus, list[Effect]]:
    """The start time and the Suspended condition."""
    if status.start_time is None and not one.spec.suspend:
        status = replace(status, start_time=format_time(now))
    held = condition_of(status.conditions, "Suspended")
    was = held is not None and held.status == "True"
    if decided is not None or was == one.spec.suspend:
        return status, []
    others = tuple(each for each in status.conditions if each.type != "Suspended")
    if one.spec.suspend:
        new = _condition("Suspended", "JobSuspended", "Job suspended", now)
        status = replace(status, start_time=None)
    else:
        new = _condition("Suspended", "JobResumed", "Job resumed", now, "False")
        status = replace(status, start_time=format_time(now))
    event = normal_event(one, "Suspended" if one.spec.suspend else "Resumed", new.message)
    return replace(status, conditions=(*others, new)), [event]


def _ended(
    one: Job, status: JobStatus, decided: Condition, *, waiting: bool, now: Millis
) -> tuple[JobStatus, list[Effect]]:
    """The condition that it will end; and the final one, when no pod is left to wait for or to count."""
    if condition_of(status.conditions, decided.type) is None:
        status = replace(status, conditions=(*status.conditions, decided))
    notes = status.uncounted_terminated_pods
    if waiting or (notes is not None and (notes.succeeded or notes.failed)):
        return status, []
    won = decided.type == CRITERIA_MET
    final = _condition(COMPLETE if won else FAILED, decided.reason, decided.message, now)
    status = replace(status, conditions=(*status.conditions, final), completion_time=format_time(now) if won else None)
    if won:
        return status, [normal_event(one, "Completed", "Job completed")]
    return status, [RecordEvent(ref_of(one), "Warning", decided.reason, decided.message)]


def _untracked(pod: ManagedPod) -> UpdateObject:
    kept = [name for name in pod.metadata.finalizers if name != TRACKING]
    return update_metadata(pod, {"finalizers": kept or None})


def orphan_pod(pod: ManagedPod, objects: ObjectLister, _now: Millis) -> ReconcileResult:
    """Remove the finalizer of a pod whose Job does not exist."""
    if not is_tracked(pod):
        return ReconcileResult()
    owner = controller_of(pod.metadata)
    if owner is not None and (owner.api_version, owner.kind) != ("batch/v1", "Job"):
        return ReconcileResult()
    counter = None if owner is None else objects.get(Job, pod.metadata.namespace, owner.name)
    if owner is not None and counter is not None and counter.metadata.uid == owner.uid:
        return ReconcileResult()
    if owner is None and pod.metadata.deletion_timestamp is None:
        return ReconcileResult()  # it may still be adopted
    return ReconcileResult((_untracked(pod),))


def _after(one: Job, objects: ObjectLister, now: Millis) -> ReconcileResult:
    """A finished Job: release its pods, and delete it when its TTL is over."""
    pods = objects.controlled(ManagedPod, one.metadata.namespace, one.metadata.uid)
    effects: tuple[Effect, ...] = tuple(_untracked(pod) for pod in pods if is_tracked(pod))
    done = finished_condition(one)
    ttl = one.spec.ttl_seconds_after_finished
    since = parse_time(done.last_transition_time) if done is not None else None
    if ttl is None or since is None or one.metadata.deletion_timestamp is not None:
        return ReconcileResult(effects)
    if since + ttl * SECOND > now:
        return ReconcileResult(effects, since + ttl * SECOND)
    return ReconcileResult((*effects, DeleteObject(ref_of(one), one.metadata.resource_version, "Foreground")))
