"""Deployment: one ReplicaSet per template, and the rollout between them."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from situate.core.model.apps import Deployment, DeploymentStatus, ManagedReplicaSet, ReplicaSetSpec
from situate.core.model.base import INT32_MAX
from situate.core.model.labels import LabelSelector
from situate.core.model.managed import ManagedPod
from situate.core.model.refs import Millis
from situate.core.model.stored import StoredMeta
from situate.core.reconcile.adoption import claim, selector_of
from situate.core.reconcile.deployment_status import (
    counted,
    created,
    is_complete,
    paused_or_resumed,
    progress_check_at,
    with_failures,
    with_progress,
)
from situate.core.reconcile.effects import (
    CreateObject,
    DeleteObject,
    Effect,
    ObjectRef,
    ReconcileResult,
    RecordEvent,
    ResultBuilder,
    UpdateObject,
)
from situate.core.reconcile.naming import TEMPLATE_HASH, hashed_name, same_template, template_hash
from situate.core.reconcile.objects import (
    ObjectLister,
    controller_ref,
    normal_event,
    ref_of,
    to_json,
    update_status,
)
from situate.core.reconcile.pods import is_finished
from situate.core.reconcile.revisions import REVISION, forgotten, new_annotations, replica_annotations
from situate.core.reconcile.rollout import Sizes, by_age, is_rolling, is_scaling, new_size, recreated, rolled, scaled

SELECTING_ALL = "This deployment is selecting all pods. A non-empty selector is required."


def deployment(one: Deployment, objects: ObjectLister, now: Millis) -> ReconcileResult:
    # 1. Adopt and release; find the ReplicaSet of the present template.
    selector = selector_of(one.spec.selector)
    if selector is None:
        return _selecting_all(one)
    claimed = claim(one, ManagedReplicaSet, selector, objects)
    if claimed.effects:
        return ReconcileResult(claimed.effects)
    new, old = _new_and_old(one, claimed.mine)
    status = counted(one, new, old, now)
    if one.metadata.deletion_timestamp is not None:
        return ReconcileResult(update_status(one, status))

    # 2. Sizes, and a new ReplicaSet if one is due.
    status = paused_or_resumed(one, status, now)
    scaling = one.spec.paused or is_scaling(one, claimed.mine)
    create: CreateObject | None = None
    if scaling:
        sizes = scaled(one, new, old)
    else:
        old_pods = not is_rolling(one) and _old_pods(old, objects)
        sizes = recreated(one, new, old, old_pods) if not is_rolling(one) else {}
        if new is None and not sizes and not old_pods:
            create = _new_replica_set(one, old)
            if objects.get(ManagedReplicaSet, one.metadata.namespace, create.ref.name) is not None:
                # Another ReplicaSet has the new one's name: count the collision, which changes the name.
                collided = replace(one.status, collision_count=(one.status.collision_count or 0) + 1)
                return ReconcileResult(update_status(one, collided))
        elif is_rolling(one) and new is not None:
            sizes = rolled(one, new, old)

    # 3. Status.
    if create is not None:
        status = created(one, status, create.ref.name, now)
    elif not scaling:
        status = with_failures(with_progress(one, status, new, now), new, old, now)
    result = ResultBuilder()
    if create is not None:
        size = create.body["spec"]["replicas"]
        result.effects += [create, *([_scaling(one, create.ref.name, 0, size)] if size else [])]
    result.effects.extend(_resized(one, new, old, sizes, annotate=scaling))
    if one.spec.paused or (not sizes and is_complete(one, status)):
        result.effects.extend(DeleteObject(ref_of(each)) for each in forgotten(one, old))
    result.effects.extend(_own_effects(one, new, status))
    result.requeue(progress_check_at(one, status))
    return result.done()


def _selecting_all(one: Deployment) -> ReconcileResult:
    if one.status.observed_generation >= one.metadata.generation:
        return ReconcileResult()
    status = replace(one.status, observed_generation=one.metadata.generation)
    event = RecordEvent(ref_of(one), "Warning", "SelectingAll", SELECTING_ALL)
    return ReconcileResult((*update_status(one, status), event))


def _new_and_old(
    one: Deployment, sets: Sequence[ManagedReplicaSet]
) -> tuple[ManagedReplicaSet | None, list[ManagedReplicaSet]]:
    """The oldest ReplicaSet with the present template, and all others."""
    ordered = by_age(sets)
    new = next((each for each in ordered if same_template(each.spec.template, one.spec.template)), None)
    return new, [each for each in ordered if each is not new]


def _old_pods(old: Sequence[ManagedReplicaSet], objects: ObjectLister) -> bool:
    """Whether an old ReplicaSet has a pod that may still run, including those being deleted."""
    return any(
        not is_finished(pod)
        for each in old
        for pod in objects.controlled(ManagedPod, each.metadata.namespace, each.metadata.uid)
    ) or any(each.status.replicas for each in old)


def _new_replica_set(one: Deployment, old: Sequence[ManagedReplicaSet]) -> CreateObject:
    digest = template_hash(one.spec.template, one.status.collision_count)
    template, selector = one.spec.template, one.spec.selector or LabelSelector()
    labels = {**template.metadata.labels, TEMPLATE_HASH: digest}
    spec = ReplicaSetSpec(
        replicas=0,
        min_ready_seconds=one.spec.min_ready_seconds,
        selector=replace(selector, match_labels={**selector.match_labels, TEMPLATE_HASH: digest}),
        template=replace(template, metadata=replace(template.metadata, labels=labels)),
    )
    name, namespace = hashed_name(one.metadata.name, digest), one.metadata.namespace
    empty = ManagedReplicaSet(metadata=StoredMeta(name=name, namespace=namespace), spec=spec)
    size = new_size(one, empty, old)
    meta: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "labels": labels,
        "annotations": {**new_annotations(one, None, old), **replica_annotations(one)},
        "ownerReferences": [to_json(controller_ref(one))],
    }
    body = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": meta,
        "spec": {**to_json(spec), "replicas": size},
    }
    return CreateObject(ObjectRef("apps/v1", "ReplicaSet", namespace, name), body)


def _resized(
    one: Deployment, new: ManagedReplicaSet | None, old: Sequence[ManagedReplicaSet], sizes: Sizes, *, annotate: bool
) -> list[Effect]:
    """One patch for each ReplicaSet whose size or annotations change.

    `annotate`: also update the Deployment's size in the annotations of ReplicaSets that keep their size.
    """
    effects: list[Effect] = []
    for each in [*old] if new is None else [*old, new]:
        size = min(sizes.get(each.metadata.name, each.spec.replicas), INT32_MAX)
        notes = new_annotations(one, each, old) if each is new else {}
        if size != each.spec.replicas or (annotate and each.spec.replicas):
            held = each.metadata.annotations
            notes |= {key: text for key, text in replica_annotations(one).items() if held.get(key) != text}
        spec: dict[str, Any] = {}
        if size != each.spec.replicas:
            spec["replicas"] = size
            effects.append(_scaling(one, each.metadata.name, each.spec.replicas, size))
        if each is new and each.spec.min_ready_seconds != one.spec.min_ready_seconds:
            spec["minReadySeconds"] = one.spec.min_ready_seconds
        patch = {**({"metadata": {"annotations": notes}} if notes else {}), **({"spec": spec} if spec else {})}
        if patch:
            effects.append(UpdateObject(ref_of(each), each.metadata.resource_version, patch))
    return effects


def _scaling(one: Deployment, name: str, before: int, after: int) -> RecordEvent:
    way = "up" if before < after else "down"
    return normal_event(one, "ScalingReplicaSet", f"Scaled {way} replica set {name} from {before} to {after}")


def _own_effects(one: Deployment, new: ManagedReplicaSet | None, status: DeploymentStatus) -> list[Effect]:
    """Update the Deployment's status and revision."""
    number = "" if new is None else new.metadata.annotations.get(REVISION, "")
    held = one.metadata.annotations
    changed = number and held.get(REVISION) != number
    return list(update_status(one, status, annotations={**held, REVISION: number} if changed else None))
