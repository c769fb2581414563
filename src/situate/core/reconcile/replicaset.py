"""ReplicaSet: keeps the desired number of active pods."""

from collections.abc import Sequence
from itertools import islice

from msgspec.structs import replace

from situate.core.model.apps import ManagedReplicaSet, ReplicaSetStatus
from situate.core.model.managed import ManagedPod
from situate.core.model.refs import Millis
from situate.core.model.stored import Condition, condition_of, controller_of
from situate.core.reconcile.adoption import claim, selector_of
from situate.core.reconcile.api_values import format_time, without_condition
from situate.core.reconcile.effects import (
    BURST,
    DeleteObject,
    Effect,
    ReconcileResult,
    ResultBuilder,
)
from situate.core.reconcile.naming import fresh_names
from situate.core.reconcile.objects import ObjectLister, controller_ref, normal_event, ref_of, update_status
from situate.core.reconcile.pods import (
    deletion_order,
    is_active,
    is_available,
    is_ready,
    is_terminating,
    new_pod,
    requeue_when_available,
)

REPLICA_FAILURE = "ReplicaFailure"


def replica_set(one: ManagedReplicaSet, objects: ObjectLister, now: Millis, refused: str = "") -> ReconcileResult:
    """`refused`: why the last create or delete of this ReplicaSet failed, if none has succeeded since."""
    selector = selector_of(one.spec.selector)
    if selector is None:
        return ReconcileResult()
    # 1. Adopt and release.
    claimed = claim(one, ManagedPod, selector, objects)
    if claimed.effects:
        return ReconcileResult(claimed.effects)
    active = [pod for pod in claimed.mine if is_active(pod)]
    # 2. Update the status, then create or delete.
    terminating = sum(map(is_terminating, claimed.mine)) if len(active) < len(claimed.mine) else 0
    status = _status(one, active, terminating, now, refused)
    result = ResultBuilder(list(update_status(one, status, "replicas")))
    if one.metadata.deletion_timestamp is None:
        result.effects.extend(_manage(one, active, objects, now))
    requeue_when_available(result, active, one.spec.min_ready_seconds, now)
    return result.done()


def _manage(one: ManagedReplicaSet, active: Sequence[ManagedPod], objects: ObjectLister, now: Millis) -> list[Effect]:
    missing = one.spec.replicas - len(active)
    effects: list[Effect] = []
    if missing > 0:
        owner, meta = controller_ref(one), one.metadata
        base = f"{meta.name}-"
        names = fresh_names(base, meta, lambda name: objects.get(ManagedPod, meta.namespace, name) is not None)
        for name in islice(names, min(missing, BURST)):
            effects.append(new_pod(meta.namespace, name, one.spec.template, owner, generate_name=base))
            effects.append(normal_event(one, "SuccessfulCreate", f"Created pod: {name}"))
    elif missing < 0:
        leaving = deletion_order(active, _related(one, objects), now)[: min(-missing, BURST)]
        for pod in leaving:
            effects.append(DeleteObject(ref_of(pod)))
            effects.append(normal_event(one, "SuccessfulDelete", f"Deleted pod: {pod.metadata.name}"))
    return effects


def _related(one: ManagedReplicaSet, objects: ObjectLister) -> list[ManagedPod]:
    """The pods of all ReplicaSets with the same owner; its own if it has none."""
    owner = controller_of(one.metadata)
    namespace = one.metadata.namespace
    siblings = [one] if owner is None else objects.controlled(ManagedReplicaSet, namespace, owner.uid)
    return [pod for each in siblings for pod in objects.controlled(ManagedPod, namespace, each.metadata.uid)]


def _status(
    one: ManagedReplicaSet, active: Sequence[ManagedPod], terminating: int, now: Millis, refused: str
) -> ReplicaSetStatus:
    ready = [pod for pod in active if is_ready(pod)]
    wait_s = one.spec.min_ready_seconds
    return replace(
        one.status,
        replicas=len(active),
        fully_labeled_replicas=_fully_labeled(one, active),
        ready_replicas=len(ready),
        available_replicas=sum(is_available(pod, wait_s, now) for pod in ready) if wait_s else len(ready),
        terminating_replicas=terminating,
        observed_generation=one.metadata.generation,
        conditions=_conditions(one, len(active), now, refused),
    )


def _fully_labeled(one: ManagedReplicaSet, active: Sequence[ManagedPod]) -> int:
    """How many have all labels of the template."""
    wanted = one.spec.template.metadata.labels.items()
    count, labels, has_all = 0, None, False
    for pod in active:
        if pod.metadata.labels is not labels:  # else as the one before
            labels = pod.metadata.labels
            has_all = wanted <= labels.items()
        count += has_all
    return count


def _conditions(one: ManagedReplicaSet, active: int, now: Millis, refused: str) -> tuple[Condition, ...]:
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
