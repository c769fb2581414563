"""ReplicaSet and ReplicationController: keep the desired number of active pods."""

from collections.abc import Sequence
from itertools import islice
from typing import Any, TypeAlias

from msgspec.structs import replace

from situate.core.model.apps import (
    ManagedReplicaSet,
    ManagedReplicationController,
    ManagedReplicationControllerStatus,
    ReplicaSetStatus,
)
from situate.core.model.labels import Selector
from situate.core.model.managed import ManagedPod
from situate.core.model.refs import Millis
from situate.core.model.stored import Condition, condition_of, controller_of
from situate.core.reconcile.adoption import claim, selector_of
from situate.core.reconcile.api_values import SECOND, format_time, parse_time, without_condition
from situate.core.reconcile.effects import (
    BURST,
    DeleteObject,
    Effect,
    ReconcileResult,
    ResultBuilder,
)
from situate.core.reconcile.naming import fresh_names
from situate.core.reconcile.objects import ObjectLister, controller_ref, normal_event, ref_of, update_status
from situate.core.reconcile.pod_counts import LabelledPods
from situate.core.reconcile.pods import deletion_order, is_active, new_pod

REPLICA_FAILURE = "ReplicaFailure"
ReplicaOwner: TypeAlias = ManagedReplicaSet | ManagedReplicationController


def replica_set(one: ReplicaOwner, objects: ObjectLister, now: Millis, refused: str = "") -> ReconcileResult:
    """`refused`: why the last create or delete of this ReplicaSet failed, if none has succeeded since.

    It counts its pods and reads none of them, unless some have to be adopted, released or deleted.
    """
    selector = selector_of(one.spec.selector)
    if selector is None:
        return ReconcileResult()
    # 1. Adopt and release.
    if _claims(one, selector, objects):
        effects = claim(one, ManagedPod, selector, objects).effects
        if effects:
            return ReconcileResult(effects)
    counts = objects.pod_counts(one.metadata.namespace, one.metadata.uid).by_labels()
    mine = [each for each in counts if selector.matches(each.labels)]
    # 2. Update the status, then create or delete.
    result = ResultBuilder()
    status = _status(one, mine, now, refused, result)
    result.effects.extend(update_status(one, status, "replicas"))
    if one.metadata.deletion_timestamp is None:
        result.effects.extend(_manage(one, selector, status.replicas, objects, now))
    return result.done()


def _claims(one: ReplicaOwner, selector: Selector, objects: ObjectLister) -> bool:
    """Whether a pod is to be released or adopted."""
    meta = one.metadata
    if meta.deletion_timestamp is not None:
        return False
    own, orphans = objects.pod_counts(meta.namespace, meta.uid), objects.pod_counts(meta.namespace, "")
    return own.staying_where(lambda labels: not selector.matches(labels)) or orphans.staying_where(selector.matches)


def _manage(one: ReplicaOwner, selector: Selector, active: int, objects: ObjectLister, now: Millis) -> list[Effect]:
    missing = one.spec.replicas - active
    effects: list[Effect] = []
    if missing > 0:
        owner, meta = controller_ref(one), one.metadata
        base = f"{meta.name}-"
        names = fresh_names(base, meta, lambda name: objects.get(ManagedPod, meta.namespace, name) is not None)
        for name in islice(names, min(missing, BURST)):
            effects.append(new_pod(meta.namespace, name, one.spec.template, owner, generate_name=base))
            effects.append(normal_event(one, "SuccessfulCreate", f"Created pod: {name}"))
    elif missing < 0:
        mine = [pod for pod in claim(one, ManagedPod, selector, objects).mine if is_active(pod)]
        leaving = deletion_order(mine, _related(one, objects), now, min(-missing, BURST))
        for pod in leaving:
            effects.append(DeleteObject(ref_of(pod)))
            effects.append(normal_event(one, "SuccessfulDelete", f"Deleted pod: {pod.metadata.name}"))
    return effects


def _related(one: ReplicaOwner, objects: ObjectLister) -> list[ManagedPod]:
    """The pods of all ReplicaSets with the same owner; its own if it has none."""
    owner = controller_of(one.metadata)
    namespace = one.metadata.namespace
    if owner is None or isinstance(one, ManagedReplicationController):
        return list(objects.controlled(ManagedPod, namespace, one.metadata.uid))
    siblings = objects.controlled(ManagedReplicaSet, namespace, owner.uid)
    return [pod for each in siblings for pod in objects.controlled(ManagedPod, namespace, each.metadata.uid)]


def _status(
    one: ReplicaOwner, mine: Sequence[LabelledPods], now: Millis, refused: str, result: ResultBuilder
) -> ReplicaSetStatus | ManagedReplicationControllerStatus:
    """`result` learns when the next pod becomes available: there is no event about that."""
    wanted = one.spec.template.metadata.labels.items()
    active, ready = sum(each.active for each in mine), sum(each.ready for each in mine)
    more: dict[str, Any] = {}
    if isinstance(one, ManagedReplicaSet):
        more = {"terminating_replicas": sum(each.terminating for each in mine)}
    return replace(
        one.status,
        replicas=active,
        fully_labeled_replicas=sum(each.active for each in mine if wanted <= each.labels.items()),
        ready_replicas=ready,
        available_replicas=_available(mine, one.spec.min_ready_seconds, now, result)
        if one.spec.min_ready_seconds
        else ready,
        observed_generation=one.metadata.generation,
        conditions=_conditions(one, active, now, refused),
        **more,
    )


def _available(mine: Sequence[LabelledPods], min_ready_s: int, now: Millis, result: ResultBuilder) -> int:
    found = 0
    for each in mine:
        for since, count in each.ready_since.items():
            begun = parse_time(since)
            if begun is None:
                continue  # it does not say since when it is ready
            at = begun + min_ready_s * SECOND
            if at <= now:
                found += count
            else:
                result.requeue(at)
    return found


def _conditions(one: ReplicaOwner, active: int, now: Millis, refused: str) -> tuple[Condition, ...]:
    held = one.status.conditions
    if not refused:
        return without_condition(held, REPLICA_FAILURE)
    if condition_of(held, REPLICA_FAILURE) is not None:
        return held
    failure = Condition(
        type=REPLICA_FAILURE,
        status="True",
        last_transition_time=format_time(now),
        reason="FailedCreate" if active < one.spec.replicas else "FailedDelete",
        message=refused,
    )
    return (*held, failure)
