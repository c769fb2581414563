"""Counts a Job's pods exactly once.

A pod of a Job has a finalizer until it is counted. First its uid is noted in `uncountedTerminatedPods`; then the
finalizer is removed; then, when the pod is seen without it or is gone, it moves from the note to the counter. After a
crash between these steps, the next call continues. Successes of an indexed Job need no note: an index is completed or
not.
"""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from situate.core.model.batch import Job, JobStatus, UncountedPods
from situate.core.model.managed import ManagedPod
from situate.core.reconcile.job_failures import has_failed, verdict
from situate.core.reconcile.job_indexes import Indexes, index_of, indexes_in, indexes_of
from situate.core.reconcile.pods import SUCCEEDED, is_active, is_terminating

TRACKING = "batch.kubernetes.io/job-tracking"
MAX_UNCOUNTED = 500
"""The limit of noted uids."""


class JobCounts(msgspec.Struct, frozen=True):
    status: JobStatus
    """After counting the noted pods that have lost their finalizer."""
    active: tuple[ManagedPod, ...]
    terminating: int
    succeeded: int
    failed: int
    """Counted or not."""
    done_indexes: Indexes
    failed_indexes: Indexes


def is_indexed(job: Job) -> bool:
    return job.spec.completion_mode == "Indexed" and job.spec.completions is not None


def is_tracked(pod: ManagedPod) -> bool:
    return TRACKING in pod.metadata.finalizers


def count_pods(job: Job, pods: Sequence[ManagedPod]) -> JobCounts:
    status = _folded(job, [pod.metadata.uid for pod in pods if is_tracked(pod)])
    notes = status.uncounted_terminated_pods or UncountedPods()
    noted_uids = frozenset((*notes.succeeded, *notes.failed))
    fresh = [pod for pod in pods if is_tracked(pod) and pod.metadata.uid not in noted_uids]
    won = sum(pod.status.phase == SUCCEEDED for pod in fresh)
    lost = sum(has_failed(job, pod) and verdict(job, pod).counts for pod in fresh)
    done, failed = Indexes(), Indexes()
    succeeded = status.succeeded + len(notes.succeeded) + won
    if is_indexed(job):
        done = _done_indexes(job, pods)
        failed = _failed_indexes(job, pods, done)
        succeeded = done.count
    return JobCounts(
        status=status,
        active=tuple(pod for pod in pods if is_active(pod)),
        terminating=sum(map(is_terminating, pods)),
        succeeded=succeeded,
        failed=status.failed + len(notes.failed) + lost,
        done_indexes=done,
        failed_indexes=failed,
    )


def _folded(job: Job, tracked: Sequence[str]) -> JobStatus:
    status = job.status
    notes = status.uncounted_terminated_pods or UncountedPods()
    held = frozenset(tracked)
    won = tuple(uid for uid in notes.succeeded if uid in held)
    lost = tuple(uid for uid in notes.failed if uid in held)
    return replace(
        status,
        succeeded=status.succeeded + len(notes.succeeded) - len(won),
        failed=status.failed + len(notes.failed) - len(lost),
        uncounted_terminated_pods=UncountedPods(succeeded=won, failed=lost),
    )


def _done_indexes(job: Job, pods: Sequence[ManagedPod]) -> Indexes:
    completions = job.spec.completions or 0
    found = [index_of(pod) for pod in pods if pod.status.phase == SUCCEEDED and is_tracked(pod)]
    fresh = indexes_of(index for index in found if index is not None and index < completions)
    return indexes_in(job.status.completed_indexes, completions) | fresh


def _failed_indexes(job: Job, pods: Sequence[ManagedPod], done: Indexes) -> Indexes:
    """Indexes beyond their backoff limit, or failed by the policy."""
    limit = job.spec.backoff_limit_per_index
    if limit is None:
        return Indexes()
    failed: list[int] = []
    times: dict[int, int] = {}
    for pod in pods:
        index = index_of(pod)
        if index is None or index in done or index >= (job.spec.completions or 0) or not has_failed(job, pod):
            continue
        said = verdict(job, pod)
        times[index] = times.get(index, 0) + said.counts
        if said.fails_index or times[index] > limit:
            failed.append(index)
    return indexes_in(job.status.failed_indexes, job.spec.completions or 0) | indexes_of(failed)


def note_finished(
    job: Job, counted: JobCounts, pods: Sequence[ManagedPod], *, ending: bool, failing: bool
) -> tuple[JobStatus, list[ManagedPod]]:
    """The status with finished pods noted, and the pods whose finalizer may be removed once that is stored.

    `ending`: the Job is deleted or decided, so no pod has to be waited for. `failing`: unfinished pods count as failed.
    """
    status = counted.status
    notes = status.uncounted_terminated_pods or UncountedPods()
    won, lost = list(notes.succeeded), list(notes.failed)
    known = frozenset((*won, *lost))
    loose: list[ManagedPod] = []
    for pod in pods:
        failed = has_failed(job, pod)
        if not is_tracked(pod) or not (ending or failed or pod.status.phase == SUCCEEDED):
            continue
        if len(won) + len(lost) >= MAX_UNCOUNTED:
            break
        loose.append(pod)
        if pod.metadata.uid in known:
            continue
        if pod.status.phase == SUCCEEDED:
            if not is_indexed(job):
                won.append(pod.metadata.uid)
        elif (failed or failing) and verdict(job, pod).counts:
            lost.append(pod.metadata.uid)
    status = replace(status, uncounted_terminated_pods=UncountedPods(succeeded=tuple(won), failed=tuple(lost)))
    if is_indexed(job):
        failed_text = None if job.spec.backoff_limit_per_index is None else str(counted.failed_indexes)
        status = replace(
            status,
            succeeded=counted.done_indexes.count,
            completed_indexes=str(counted.done_indexes),
            failed_indexes=failed_text,
        )
    return status, loose
