"""Which pods of a running Job to create and to delete."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from situate.core.model.batch import Job
from situate.core.model.managed import ManagedPod
from situate.core.model.refs import Millis
from situate.core.reconcile.effects import BURST, CreateObject, Effect
from situate.core.reconcile.job_failures import backoff_until, only_replaces_failed
from situate.core.reconcile.job_indexes import INDEX, index_of, indexes_of
from situate.core.reconcile.job_tracking import TRACKING, JobCounts, is_indexed
from situate.core.reconcile.naming import fresh_names
from situate.core.reconcile.objects import ObjectLister, controller_ref, normal_event
from situate.core.reconcile.pods import deletion_order, is_terminating, new_pod


class PodChanges(msgspec.Struct, frozen=True):
    going: tuple[ManagedPod, ...] = ()
    coming: tuple[CreateObject, ...] = ()
    events: tuple[Effect, ...] = ()
    requeue_at: Millis | None = None


def pod_changes(
    one: Job, counted: JobCounts, pods: Sequence[ManagedPod], objects: ObjectLister, now: Millis
) -> PodChanges:
    """Either deletes or creates, deletes first."""
    want = 0 if one.spec.suspend else _wanted(one, counted)
    going = _superfluous(one, counted, want, now)[:BURST]
    if going:
        events = (normal_event(one, "SuccessfulDelete", f"Deleted pod: {pod.metadata.name}") for pod in going)
        return PodChanges(going=tuple(going), events=tuple(events))
    awaited = counted.terminating if only_replaces_failed(one) else 0
    missing = want - awaited - len(counted.active)
    if missing <= 0:
        return PodChanges()
    until = None if one.spec.backoff_limit_per_index is not None else backoff_until(one, pods)
    if until is not None and until > now:
        return PodChanges(requeue_at=until)
    coming = _new_pods(one, counted, pods, objects, min(missing, BURST))
    events = (normal_event(one, "SuccessfulCreate", f"Created pod: {create.ref.name}") for create in coming)
    return PodChanges(coming=tuple(coming), events=tuple(events))


def _wanted(one: Job, counted: JobCounts) -> int:
    if one.spec.completions is None:
        # A work queue: after the first success, running pods may finish, and no more start.
        return len(counted.active) if counted.succeeded else one.spec.parallelism
    left = one.spec.completions - counted.succeeded - counted.failed_indexes.count
    return max(min(left, one.spec.parallelism), 0)


def _superfluous(one: Job, counted: JobCounts, want: int, now: Millis) -> list[ManagedPod]:
    ordered = deletion_order(counted.active, counted.active, now)
    if not is_indexed(one):
        return ordered[: max(len(ordered) - want, 0)]
    # Keep one pod per index, the last in deletion order, and none for finished or invalid indexes.
    kept: dict[int, ManagedPod] = {}
    for pod in reversed(ordered):
        index = index_of(pod)
        if index is not None and index < (one.spec.completions or 0) and index not in counted.done_indexes:
            kept.setdefault(index, pod)
    keep = frozenset(pod.metadata.uid for pod in islice(kept.values(), want))
    return [pod for pod in ordered if pod.metadata.uid not in keep]


def _new_pods(
    one: Job, counted: JobCounts, pods: Sequence[ManagedPod], objects: ObjectLister, count: int
) -> list[CreateObject]:
    meta, owner = one.metadata, controller_ref(one)

    def taken(name: str) -> bool:
        return objects.get(ManagedPod, meta.namespace, name) is not None

    if not is_indexed(one):
        base = f"{meta.name}-"
        return [
            new_pod(meta.namespace, name, one.spec.template, owner, finalizers=(TRACKING,), generate_name=base)
            for name in islice(fresh_names(base, meta, taken), count)
        ]
    creates: list[CreateObject] = []
    for index in islice(_pending(one, counted, pods), count):
        base = f"{meta.name}-{index}-"
        creates.append(
            new_pod(
                meta.namespace,
                next(fresh_names(base, meta, taken)),
                one.spec.template,
                owner,
                labels={INDEX: str(index)},
                annotations={INDEX: str(index)},
                finalizers=(TRACKING,),
                spec=_indexed_spec(one, index),
                generate_name=base,
            )
        )
    return creates


def _pending(one: Job, counted: JobCounts, pods: Sequence[ManagedPod]) -> Iterator[int]:
    """Indexes that are not finished and have no pod, from the lowest, one by one: there may be two billion."""
    busy = [index_of(pod) for pod in counted.active]
    if only_replaces_failed(one):
        busy += [index_of(pod) for pod in pods if is_terminating(pod)]
    occupied = indexes_of(index for index in busy if index is not None)
    return (counted.done_indexes | counted.failed_indexes | occupied).missing(one.spec.completions or 0)


def _indexed_spec(one: Job, index: int) -> dict[str, Any]:
    """The hostname, and the index in the environment of each container."""
    said: dict[str, Any] = {"hostname": f"{one.metadata.name}-{index}"}
    variable = {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}}
    for key in ("initContainers", "containers"):
        if one.spec.template.spec.get(key):
            said[key] = [_with_variable(container, variable) for container in one.spec.template.spec[key]]
    return said


def _with_variable(container: dict[str, Any], variable: dict[str, Any]) -> dict[str, Any]:
    held = container.get("env") or []
    if any(each.get("name") == variable["name"] for each in held):
        return container
    return {**container, "env": [*held, variable]}
