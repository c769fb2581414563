"""CronJob: creates a Job at every scheduled time and limits the history of finished Jobs."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from situate.core.model.batch import CronJob, CronJobStatus, Job, JobReference
from situate.core.model.refs import Millis
from situate.core.reconcile.api_values import SECOND, format_time, parse_time
from situate.core.reconcile.cron import ScheduleError, Zones, latest, only_utc, parse_schedule, upcoming
from situate.core.reconcile.effects import (
    CreateObject,
    DeleteObject,
    Effect,
    ObjectRef,
    ReconcileResult,
    RecordEvent,
)
from situate.core.reconcile.job import COMPLETE, finished_condition
from situate.core.reconcile.objects import ObjectLister, controller_ref, normal_event, ref_of, to_json, update_status

NEVER = "time difference between two schedules is less than 1 second"
"""What Kubernetes says of a schedule that never comes."""
SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"


def cron_job(one: CronJob, objects: ObjectLister, now: Millis, zones: Zones = only_utc) -> ReconcileResult:
    """An invalid schedule or time zone starts nothing; the API server rejects both."""
    # 1. The state of the Jobs.
    jobs = objects.controlled(Job, one.metadata.namespace, one.metadata.uid)
    active = [job for job in jobs if finished_condition(job) is None]
    status = _status(one, jobs, active)
    events = _events(one, jobs)
    old = _forgotten(one, jobs)
    # 2. Is a Job due?
    due, requeue_at = (None, None)
    if one.metadata.deletion_timestamp is None and not one.spec.suspend:
        due, requeue_at = _due(one, now, zones)
        if due is None and requeue_at is None and _can_be_read(one, now, zones):
            text = f"invalid schedule: {one.spec.schedule} : {NEVER}"
            events.append(RecordEvent(ref_of(one), "Warning", "InvalidSchedule", text))
    effects: list[Effect] = []
    if due is not None and not (one.spec.concurrency_policy == "Forbid" and active):
        create = _new_job(one, due)
        if objects.get(Job, one.metadata.namespace, create.ref.name) is None:
            if one.spec.concurrency_policy == "Replace":  # first, so that nobody sees two
                replaced = [job for job in active if job.metadata.deletion_timestamp is None]
                effects += [DeleteObject(ref_of(job)) for job in replaced]
                events += [
                    normal_event(one, "SuccessfulDelete", f"Deleted job {job.metadata.name}") for job in replaced
                ]
            effects.append(create)
            events.append(normal_event(one, "SuccessfulCreate", f"Created job {create.ref.name}"))
        status = replace(status, last_schedule_time=format_time(due * SECOND))
    # 3. Update the status. Create the Job first: its name keeps it from being created twice.
    effects += update_status(one, status)
    effects += [DeleteObject(ref_of(job)) for job in old]
    events += [normal_event(one, "SuccessfulDelete", f"Deleted job {job.metadata.name}") for job in old]
    return ReconcileResult((*effects, *events), requeue_at)


def _status(one: CronJob, jobs: Sequence[Job], active: Sequence[Job]) -> CronJobStatus:
    held = {entry.uid: entry for entry in one.status.active}
    ordered = sorted(active, key=lambda job: (job.metadata.creation_timestamp or "", job.metadata.name))
    won = [job.status.completion_time for job in jobs if job.status.completion_time is not None]
    entries = tuple(held.get(job.metadata.uid) or _reference(job) for job in ordered)
    return replace(one.status, active=entries, last_successful_time=max(won, default=None))


def _reference(job: Job) -> JobReference:
    ref = ref_of(job)
    return JobReference(
        api_version=ref.api_version,
        kind=ref.kind,
        namespace=ref.namespace,
        name=ref.name,
        uid=ref.uid,
        resource_version=job.metadata.resource_version,
    )


def _events(one: CronJob, jobs: Sequence[Job]) -> list[Effect]:
    """Events for Jobs that were active in the last status and are not any more."""
    found: list[Effect] = []
    by_uid = {job.metadata.uid: job for job in jobs}
    for entry in one.status.active:
        job = by_uid.get(entry.uid)
        if job is None:
            found.append(normal_event(one, "MissingJob", f"Active job went missing: {entry.name}"))
            continue
        done = finished_condition(job)
        if done is not None:
            text = f"Saw completed job: {entry.name}, condition: {done.type}"
            found.append(normal_event(one, "SawCompletedJob", text))
    return found


def _forgotten(one: CronJob, jobs: Sequence[Job]) -> list[Job]:
    """Finished Jobs beyond the history limits, oldest first."""
    found: list[Job] = []
    for won, limit in ((True, one.spec.successful_jobs_history_limit), (False, one.spec.failed_jobs_history_limit)):
        ended = [job for job in jobs if (done := finished_condition(job)) and (done.type == COMPLETE) == won]
        ended.sort(key=lambda job: (job.status.start_time or "", job.metadata.name))
        found += ended[: max(len(ended) - limit, 0)]
    return [job for job in found if job.metadata.deletion_timestamp is None]


def _due(one: CronJob, now: Millis, zones: Zones) -> tuple[int | None, Millis | None]:
    """The scheduled time of the Job to start now, in seconds, and when to look again."""
    zone = one.spec.time_zone or ""
    if zones(zone, now // SECOND) is None:
        return None, None
    try:
        schedule = parse_schedule(one.spec.schedule)
    except ScheduleError:
        return None, None
    since = parse_time(one.status.last_schedule_time) or parse_time(one.metadata.creation_timestamp) or 0
    after, until = since // SECOND, now // SECOND
    if one.spec.starting_deadline_seconds is not None:
        after = max(after, until - one.spec.starting_deadline_seconds - 1)
    due = latest(schedule, after, until, zone, zones)
    upcoming_at = upcoming(schedule, until if not schedule.every else due or after, zone, zones)
    return due, None if upcoming_at is None else upcoming_at * SECOND


def _can_be_read(one: CronJob, now: Millis, zones: Zones) -> bool:
    """Whether the schedule and the time zone are valid. No time may fit them nevertheless, such as 31 February."""
    try:
        parse_schedule(one.spec.schedule)
    except ScheduleError:
        return False
    return zones(one.spec.time_zone or "", now // SECOND) is not None


def _new_job(one: CronJob, due: int) -> CreateObject:
    """The name contains the scheduled time, so a Job cannot start twice."""
    said, namespace = one.spec.job_template, one.metadata.namespace
    name = f"{one.metadata.name}-{due // 60}"
    meta: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "annotations": {**said.metadata.annotations, SCHEDULED: format_time(due * SECOND)},
        "ownerReferences": [to_json(controller_ref(one))],
    }
    if said.metadata.labels:
        meta["labels"] = dict(said.metadata.labels)
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": dict(said.spec)}
    return CreateObject(ObjectRef("batch/v1", "Job", namespace, name), body)
