"""The status of a Deployment: counts, availability and progress."""

from collections.abc import Sequence

from msgspec.structs import replace

from situate.core.model.apps import Deployment, DeploymentStatus, ManagedReplicaSet
from situate.core.model.base import INT32_MAX
from situate.core.model.refs import Millis
from situate.core.model.stored import Condition, condition_of
from situate.core.reconcile.api_values import SECOND, format_time, parse_time, with_condition, without_condition
from situate.core.reconcile.rollout import max_unavailable

PROGRESSING, AVAILABLE, REPLICA_FAILURE = "Progressing", "Available", "ReplicaFailure"
NEW_AVAILABLE, TIMED_OUT, PAUSED = "NewReplicaSetAvailable", "ProgressDeadlineExceeded", "DeploymentPaused"


def _condition(kind: str, status: str, reason: str, message: str, now: Millis) -> Condition:
    at = format_time(now)
    return Condition(
        type=kind, status=status, last_update_time=at, last_transition_time=at, reason=reason, message=message
    )


def has_deadline(one: Deployment) -> bool:
    return one.spec.progress_deadline_seconds != INT32_MAX


def counted(
    one: Deployment, new: ManagedReplicaSet | None, old: Sequence[ManagedReplicaSet], now: Millis
) -> DeploymentStatus:
    """The counts and the Available condition; the other conditions stay."""
    every = [*old] if new is None else [*old, new]
    available = sum(each.status.available_replicas for each in every)
    if available >= one.spec.replicas - max_unavailable(one):
        text = "Deployment has minimum availability."
        condition = _condition(AVAILABLE, "True", "MinimumReplicasAvailable", text, now)
    else:
        text = "Deployment does not have minimum availability."
        condition = _condition(AVAILABLE, "False", "MinimumReplicasUnavailable", text, now)
    return DeploymentStatus(
        observed_generation=one.metadata.generation,
        replicas=sum(each.status.replicas for each in every),
        updated_replicas=0 if new is None else new.status.replicas,
        ready_replicas=sum(each.status.ready_replicas for each in every),
        available_replicas=available,
        unavailable_replicas=max(sum(each.spec.replicas for each in every) - available, 0),
        terminating_replicas=sum(each.status.terminating_replicas or 0 for each in every),
        conditions=with_condition(one.status.conditions, condition),
        collision_count=one.status.collision_count,
    )


def is_complete(one: Deployment, status: DeploymentStatus) -> bool:
    want = one.spec.replicas
    return (
        status.updated_replicas == want
        and status.replicas == want
        and status.available_replicas == want
        and status.observed_generation >= one.metadata.generation
    )


def paused_or_resumed(one: Deployment, status: DeploymentStatus, now: Millis) -> DeploymentStatus:
    """Paused time does not count against the deadline."""
    held = condition_of(status.conditions, PROGRESSING)
    was_paused = held is not None and held.reason == PAUSED
    if not has_deadline(one) or (held is not None and held.reason == TIMED_OUT) or one.spec.paused == was_paused:
        return status
    if one.spec.paused:
        return _progressing(status, "Unknown", PAUSED, "Deployment is paused", now)
    return _progressing(status, "Unknown", "DeploymentResumed", "Deployment is resumed", now)


def _progressing(status: DeploymentStatus, value: str, reason: str, message: str, now: Millis) -> DeploymentStatus:
    new = _condition(PROGRESSING, value, reason, message, now)
    return replace(status, conditions=with_condition(status.conditions, new))


def created(one: Deployment, status: DeploymentStatus, name: str, now: Millis) -> DeploymentStatus:
    if not has_deadline(one):
        return status
    return _progressing(status, "True", "NewReplicaSetCreated", f'Created new replica set "{name}"', now)


def with_progress(
    one: Deployment, status: DeploymentStatus, new: ManagedReplicaSet | None, now: Millis
) -> DeploymentStatus:
    """Whether the rollout progresses, is complete, or has timed out."""
    if not has_deadline(one):
        return replace(status, conditions=without_condition(status.conditions, PROGRESSING))
    held = condition_of(status.conditions, PROGRESSING)
    if status.replicas == status.updated_replicas and held is not None and held.reason == NEW_AVAILABLE:
        return status
    subject = f'Deployment "{one.metadata.name}"' if new is None else f'ReplicaSet "{new.metadata.name}"'
    if is_complete(one, status):
        return _progressing(status, "True", NEW_AVAILABLE, f"{subject} has successfully progressed.", now)
    if _got_ahead(one.status, status):
        ahead = _condition(PROGRESSING, "True", "ReplicaSetUpdated", f"{subject} is progressing.", now)
        if held is not None and held.status == "True":
            ahead = replace(ahead, last_transition_time=held.last_transition_time)
        # Replace it always, unlike other conditions: the deadline counts from its update time.
        return replace(status, conditions=(*without_condition(status.conditions, PROGRESSING), ahead))
    if _is_overdue(one, held, now):
        return _progressing(status, "False", TIMED_OUT, f"{subject} has timed out progressing.", now)
    if held is None and new is not None:
        found = f'Found new replica set "{new.metadata.name}"'
        return _progressing(status, "True", "FoundNewReplicaSet", found, now)
    return status


def _got_ahead(before: DeploymentStatus, after: DeploymentStatus) -> bool:
    return (
        after.updated_replicas > before.updated_replicas
        or after.replicas - after.updated_replicas < before.replicas - before.updated_replicas
        or after.ready_replicas > before.ready_replicas
        or after.available_replicas > before.available_replicas
    )


def _is_overdue(one: Deployment, held: Condition | None, now: Millis) -> bool:
    if held is None or held.reason == NEW_AVAILABLE:
        return False
    since = parse_time(held.last_update_time)
    return since is not None and since + one.spec.progress_deadline_seconds * SECOND < now


def progress_check_at(one: Deployment, status: DeploymentStatus) -> Millis | None:
    """When the progress deadline expires."""
    held = condition_of(status.conditions, PROGRESSING)
    if held is None or not has_deadline(one) or one.spec.paused:
        return None
    if is_complete(one, status) or held.reason in (TIMED_OUT, NEW_AVAILABLE):
        return None
    since = parse_time(held.last_update_time)
    return None if since is None else since + (one.spec.progress_deadline_seconds + 1) * SECOND


def with_failures(
    status: DeploymentStatus, new: ManagedReplicaSet | None, old: Sequence[ManagedReplicaSet], now: Millis
) -> DeploymentStatus:
    """Copy the ReplicaFailure of a ReplicaSet, the newest one's first."""
    for each in [*([] if new is None else [new]), *old]:
        failure = condition_of(each.status.conditions, REPLICA_FAILURE)
        if failure is not None:
            copied = replace(failure, last_update_time=failure.last_transition_time or format_time(now))
            return replace(status, conditions=with_condition(status.conditions, copied))
    return replace(status, conditions=without_condition(status.conditions, REPLICA_FAILURE))
