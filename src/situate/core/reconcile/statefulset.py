"""StatefulSet: pods with ordinals, stable names and claims, created, updated and deleted in order."""

from collections.abc import Sequence

from msgspec.structs import replace

from situate.core.model.apps import ControllerRevision, ManagedStatefulSet, StatefulSetStatus
from situate.core.model.managed import ManagedPod
from situate.core.model.refs import Millis
from situate.core.reconcile.adoption import claim, selector_of
from situate.core.reconcile.api_values import scaled_value
from situate.core.reconcile.effects import (
    BURST,
    DeleteObject,
    Effect,
    ReconcileResult,
    RecordEvent,
    ResultBuilder,
)
from situate.core.reconcile.history import HASH_LABEL, unused_revisions, update_revision
from situate.core.reconcile.objects import ObjectLister, normal_event, ref_of, update_status
from situate.core.reconcile.pods import is_available, is_finished, is_ready, requeue_when_available
from situate.core.reconcile.statefulset_pods import (
    claims_awaited,
    identity_repair,
    member_ordinal,
    missing_claims,
    retention_repairs,
    stateful_pod,
)

_NUMBERS = ("replicas", "availableReplicas")


def stateful_set(one: ManagedStatefulSet, objects: ObjectLister, now: Millis) -> ReconcileResult:
    # 1. Adopt and release pods and revisions.
    selector = selector_of(one.spec.selector)
    if selector is None:
        return ReconcileResult()
    pods = claim(
        one, ManagedPod, selector, objects, accepts=lambda pod: member_ordinal(one, pod.metadata.name) is not None
    )
    held = claim(one, ControllerRevision, selector, objects)
    if pods.effects or held.effects:
        return ReconcileResult((*pods.effects, *held.effects))
    # 2. The revisions: the present template's, and the current one.
    update = update_revision(one, held.mine, objects, *_NUMBERS)
    if isinstance(update, ReconcileResult):
        return update
    current = next((each for each in held.mine if each.metadata.name == one.status.current_revision), update)
    # 3. Status, and the next steps in order.
    by_ordinal = {ordinal: pod for pod in pods.mine if (ordinal := member_ordinal(one, pod.metadata.name)) is not None}
    status = _status(one, list(by_ordinal.values()), current, update, now)
    result = ResultBuilder(list(update_status(one, status, *_NUMBERS)))
    if one.metadata.deletion_timestamp is None:
        result.effects += _next(one, by_ordinal, current, update, objects, now)
        used = [pod.metadata.labels.get(HASH_LABEL, "") for pod in pods.mine]
        used += [current.metadata.name, update.metadata.name, status.current_revision]
        result.effects += unused_revisions(held.mine, used, one.spec.revision_history_limit)
    requeue_when_available(result, pods.mine, one.spec.min_ready_seconds, now)
    return result.done()


def _status(
    one: ManagedStatefulSet,
    pods: Sequence[ManagedPod],
    current: ControllerRevision,
    update: ControllerRevision,
    now: Millis,
) -> StatefulSetStatus:
    staying = [pod.metadata.labels.get(HASH_LABEL) for pod in pods if pod.metadata.deletion_timestamp is None]
    status = StatefulSetStatus(
        observed_generation=one.metadata.generation,
        replicas=len(pods),
        ready_replicas=sum(pod.status.phase == "Running" and is_ready(pod) for pod in pods),
        current_replicas=staying.count(current.metadata.name),
        updated_replicas=staying.count(update.metadata.name),
        available_replicas=sum(_is_available(one, pod, now) for pod in pods),
        current_revision=current.metadata.name,
        update_revision=update.metadata.name,
        collision_count=one.status.collision_count or 0,
        conditions=one.status.conditions,
    )
    want = one.spec.replicas
    done = status.updated_replicas == status.ready_replicas == status.replicas == want
    if done and one.spec.update_strategy.type == "RollingUpdate":
        return replace(status, current_revision=update.metadata.name, current_replicas=status.updated_replicas)
    return status


def _is_available(one: ManagedStatefulSet, pod: ManagedPod, now: Millis) -> bool:
    return pod.status.phase == "Running" and is_available(pod, one.spec.min_ready_seconds, now)


def _is_well(one: ManagedStatefulSet, pod: ManagedPod, now: Millis) -> bool:
    return pod.metadata.deletion_timestamp is None and _is_available(one, pod, now)


def _next(
    one: ManagedStatefulSet,
    pods: dict[int, ManagedPod],
    current: ControllerRevision,
    update: ControllerRevision,
    objects: ObjectLister,
    now: Millis,
) -> list[Effect]:
    """First the desired ordinals, then the others, then those of an old revision."""
    in_order = one.spec.pod_management_policy != "Parallel"
    start = one.spec.ordinals.start if one.spec.ordinals is not None else 0
    wanted = range(start, start + one.spec.replicas)
    effects: list[Effect] = []
    partition = one.spec.update_strategy.rolling_update.partition if one.spec.update_strategy.rolling_update else 0
    missing = 0
    for ordinal in wanted:
        missing += ordinal not in pods
        if missing > BURST:
            return effects
        revision = current if ordinal - start < partition else update
        work, blocked = _replica(one, ordinal, pods.get(ordinal), revision, objects, now)
        effects += work
        if blocked and in_order:
            return effects
    condemned = [ordinal for ordinal in sorted(pods, reverse=True) if ordinal not in wanted]
    for ordinal in condemned:
        effects += retention_repairs(one, ordinal, pods[ordinal], objects, condemned=True)
    effects += _let_go(one, pods, condemned, now, in_order=in_order)
    if effects or (condemned and in_order) or one.spec.update_strategy.type != "RollingUpdate":
        return effects
    return _renewed(
        one, [pods[ordinal] for ordinal in sorted(pods) if ordinal in wanted], update, start + partition, now
    )


def _replica(
    one: ManagedStatefulSet,
    ordinal: int,
    pod: ManagedPod | None,
    revision: ControllerRevision,
    objects: ObjectLister,
    now: Millis,
) -> tuple[list[Effect], bool]:
    """The effects for one ordinal, and whether later ones have to wait for it."""
    if pod is None:
        if claims_awaited(one, ordinal, objects):
            return [], True
        create = stateful_pod(one, ordinal, revision)
        event = _event(one, "SuccessfulCreate", "create", create.ref.name)
        return [*missing_claims(one, ordinal, objects), create, event], True
    if is_finished(pod):
        # Replace a finished pod, however it finished.
        going = pod.metadata.deletion_timestamp is not None
        return [] if going else _deleted(one, pod), True
    effects = missing_claims(one, ordinal, objects) if pod.status.phase == "Pending" else []
    if not _is_well(one, pod, now):
        return effects, True
    repair = identity_repair(one, ordinal, pod)
    effects += [] if repair is None else [repair]
    effects += retention_repairs(one, ordinal, pod, objects, condemned=False)
    return effects, False


def _let_go(
    one: ManagedStatefulSet, pods: dict[int, ManagedPod], condemned: Sequence[int], now: Millis, *, in_order: bool
) -> list[Effect]:
    """Delete from the highest ordinal down. In order: one at a time, and none while a lower one is not healthy."""
    effects: list[Effect] = []
    unwell = [ordinal for ordinal in sorted(pods) if not _is_well(one, pods[ordinal], now)]
    for ordinal in condemned:
        pod = pods[ordinal]
        going = pod.metadata.deletion_timestamp is not None
        if not in_order:
            effects += [] if going else _deleted(one, pod)
            continue
        well = _is_well(one, pod, now)
        return [] if going or not (well or unwell[0] == ordinal) else _deleted(one, pod)
    return effects


def _renewed(
    one: ManagedStatefulSet, replicas: Sequence[ManagedPod], update: ControllerRevision, least: int, now: Millis
) -> list[Effect]:
    """Delete pods of an old revision from the highest ordinal down, limited by maxUnavailable."""
    rule = one.spec.update_strategy.rolling_update
    most = 1 if rule is None or rule.max_unavailable is None else rule.max_unavailable
    room = max(scaled_value(most, one.spec.replicas, up=True), 1) - sum(not _is_well(one, pod, now) for pod in replicas)
    effects: list[Effect] = []
    for pod in reversed(replicas):
        ordinal = member_ordinal(one, pod.metadata.name)
        if room <= 0 or ordinal is None or ordinal < least:
            break
        old = pod.metadata.labels.get(HASH_LABEL) != update.metadata.name
        if old and pod.metadata.deletion_timestamp is None:
            effects += _deleted(one, pod)
            room -= 1
    return effects


def _deleted(one: ManagedStatefulSet, pod: ManagedPod) -> list[Effect]:
    return [DeleteObject(ref_of(pod)), _event(one, "SuccessfulDelete", "delete", pod.metadata.name)]


def _event(one: ManagedStatefulSet, reason: str, verb: str, pod: str) -> RecordEvent:
    return normal_event(one, reason, f"{verb} Pod {pod} in StatefulSet {one.metadata.name} successful")
