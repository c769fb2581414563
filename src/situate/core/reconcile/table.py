"""The controllers, and which of them a change concerns: the interface of this package.

Call `reconcile` for every key of `concerned_by_change`, for each object that was added, changed or deleted; again at
`requeue_at`; and for everything after a restart. `garbage.collect` handles objects of every kind: call it for
`garbage.concerned_uids`. `namespace.namespace` handles a namespace that
is being deleted: call it when it or its contents change. Nodes and the pods on them need `Heartbeats`; call the keys of
`concerned_by_node` for nodes, and `zones.taint_lost_nodes` and `cleanup.clean_up` when they ask for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final, TypeAlias

from situate.core.model.apps import (
    ControllerRevision,
    DaemonSet,
    Deployment,
    ManagedReplicaSet,
    ManagedReplicationController,
    ManagedStatefulSet,
)
from situate.core.model.batch import CronJob, Job
from situate.core.model.managed import (
    Budget,
    ManagedAccount,
    ManagedConfigMap,
    ManagedNamespace,
    ManagedPod,
)
from situate.core.model.managed_devices import (
    ManagedDeviceTaintRule,
    ManagedResourceClaim,
    ManagedResourceClaimTemplate,
    ManagedResourceSlice,
)
from situate.core.model.managed_node import ManagedNode
from situate.core.model.managed_volumes import ManagedClaim, ManagedStorageClass, ManagedVolume
from situate.core.model.refs import Millis
from situate.core.model.services import ManagedEndpoints, ManagedService
from situate.core.model.stored import StoredMeta, controller_of
from situate.core.reconcile.adoption import selector_of
from situate.core.reconcile.cron import Zones, only_utc
from situate.core.reconcile.cronjob import cron_job
from situate.core.reconcile.daemonset import daemon_set
from situate.core.reconcile.deployment import deployment
from situate.core.reconcile.device_taints import (
    device_taint_rule,
    leave_devices,
    pods_of_rule,
    pods_of_slice,
    rules_of_pod,
)
from situate.core.reconcile.disruption import budget, budgets_of
from situate.core.reconcile.effects import CreateObject, ReconcileResult
from situate.core.reconcile.endpoints import mirrored_endpoints, selects, service_endpoints
from situate.core.reconcile.job import job, orphan_pod
from situate.core.reconcile.job_tracking import is_tracked
from situate.core.reconcile.namespace import namespace_contents
from situate.core.reconcile.nodes.eviction import reconcile_pod_on_node
from situate.core.reconcile.nodes.health import reconcile_node
from situate.core.reconcile.nodes.heartbeats import Heartbeats
from situate.core.reconcile.nodes.taints import OUT_OF_SERVICE, ready_report, repelled
from situate.core.reconcile.objects import KINDS, ObjectLister
from situate.core.reconcile.replicaset import replica_set
from situate.core.reconcile.resourceclaim import claim_names, is_done, pod_claims, resource_claim
from situate.core.reconcile.rollout import is_rolling
from situate.core.reconcile.root_certificates import PUBLISHED, ROOT_CERTIFICATES
from situate.core.reconcile.statefulset import stateful_set
from situate.core.reconcile.volumes.claim import persistent_volume_claim
from situate.core.reconcile.volumes.concerned import (
    claims_left_by,
    claims_of_class,
    claims_of_volume,
    volumes_of_claim,
    volumes_of_node,
)
from situate.core.reconcile.volumes.volume import persistent_volume

Controller: TypeAlias = Callable[[Any, ObjectLister, Millis], ReconcileResult]
Key: TypeAlias = tuple[type, str, str]
"""Kind, namespace, name."""

CONTROLLERS: Final[Mapping[type, Controller]] = {
    Deployment: deployment,
    ManagedReplicaSet: replica_set,
    ManagedReplicationController: replica_set,
    ManagedStatefulSet: stateful_set,
    DaemonSet: daemon_set,
    Job: job,
    CronJob: cron_job,
    Budget: budget,
    ManagedPod: orphan_pod,
    ManagedNamespace: namespace_contents,
    ManagedResourceClaim: resource_claim,
    ManagedService: service_endpoints,
    ManagedEndpoints: mirrored_endpoints,
    ManagedDeviceTaintRule: device_taint_rule,
    ManagedClaim: persistent_volume_claim,
    ManagedVolume: persistent_volume,
}

# Which controllers may adopt an object without one.
_TAKERS: Final[Mapping[type, tuple[type, ...]]] = {
    ManagedPod: (ManagedReplicaSet, ManagedReplicationController, ManagedStatefulSet, DaemonSet, Job),
    ManagedReplicaSet: (Deployment,),
    ControllerRevision: (ManagedStatefulSet, DaemonSet),
}
_STRUCTS: Final = {name: kind for kind, name in KINDS.items()}


def reconcile(
    one: Any,
    objects: ObjectLister,
    now: Millis,
    *,
    refused: str = "",
    zones: Zones = only_utc,
    heartbeats: Heartbeats | None = None,
) -> ReconcileResult:
    """The effects of the object's controller.

    `refused`: why its last create or delete failed. `zones`: offsets of time zones. `heartbeats`: when nodes were last
    heard from; without it, nodes are ignored. In a namespace that is being deleted, a list ends before its first
    create.
    """
    if isinstance(one, ManagedNode):
        return ReconcileResult() if heartbeats is None else reconcile_node(one, heartbeats, now)
    if isinstance(one, ManagedPod):
        outcome = orphan_pod(one, objects, now)
        if not outcome.effects and heartbeats is not None:
            outcome = reconcile_pod_on_node(one, objects, heartbeats, now)
        if not outcome.effects:
            outcome = ReconcileResult(pod_claims(one, objects).effects, outcome.requeue_at)
        if not outcome.effects and one.spec.resource_claims:
            leaving = leave_devices(one, objects, now)
            outcome = ReconcileResult(leaving.effects, _sooner(outcome.requeue_at, leaving.requeue_at))
    elif isinstance(one, ManagedReplicaSet | ManagedReplicationController):
        outcome = replica_set(one, objects, now, refused)
    elif isinstance(one, CronJob):
        outcome = cron_job(one, objects, now, zones)
    else:
        outcome = CONTROLLERS[type(one)](one, objects, now)
    space = objects.get(ManagedNamespace, "", one.metadata.namespace)
    if space is None or space.metadata.deletion_timestamp is None:
        return outcome
    return ReconcileResult(
        tuple(takewhile(lambda effect: not isinstance(effect, CreateObject), outcome.effects)), outcome.requeue_at
    )


def _sooner(one: Millis | None, other: Millis | None) -> Millis | None:
    return min((at for at in (one, other) if at is not None), default=None)


def concerned(changed: Any, objects: ObjectLister) -> list[Key]:
    """The controllers to call after this object was added, changed or deleted."""
    return list(dict.fromkeys(_concerned(changed, objects)))


def concerned_by_change(old: Any, new: Any, objects: ObjectLister) -> list[Key]:
    """The controllers to call after an object was added, changed or deleted. One of the versions may be None."""
    keys = [] if new is None else concerned(new, objects)
    if old is not None and (new is None or _references(old) != _references(new)):
        keys += concerned(old, objects)
    return keys


def _references(one: Any) -> tuple[object, ...]:
    """All that `concerned` reads of an object and that may change."""
    meta: StoredMeta = one.metadata
    volume = one.spec.claim_ref if isinstance(one, ManagedVolume) else None
    return meta.labels, meta.owner_references, meta.finalizers, volume


def _concerned(changed: Any, objects: ObjectLister) -> Iterator[Key]:
    kind = type(changed)
    if kind is ManagedNode:
        for daemons in objects.among(DaemonSet):
            yield DaemonSet, daemons.metadata.namespace, daemons.metadata.name
        yield from volumes_of_node(changed, objects)
        return
    meta: StoredMeta = changed.metadata
    if kind in CONTROLLERS and (kind is not ManagedPod or is_tracked(changed) or changed.spec.resource_claims):
        yield kind, meta.namespace, meta.name
    yield from _managers(kind, meta, objects)
    yield from _concerned_by_claims(changed, objects)
    others = _OTHERS.get(kind)
    if others is not None:
        yield from others(changed, objects)


def _beside_pod(pod: ManagedPod, objects: ObjectLister) -> Iterator[Key]:
    space = pod.metadata.namespace
    for one in budgets_of(pod, objects):
        yield Budget, space, one.metadata.name
    for service in objects.among(ManagedService, space):
        if selects(service, pod):
            yield ManagedService, space, service.metadata.name
    yield from claims_left_by(pod, objects)


def _of_its_name(one: ManagedService | ManagedEndpoints, objects: ObjectLister) -> Iterator[Key]:
    """A Service and its Endpoints."""
    meta = one.metadata
    yield ManagedEndpoints if isinstance(one, ManagedService) else ManagedService, meta.namespace, meta.name


def _budgets_beside(sized: Any, objects: ObjectLister) -> Iterator[Key]:
    """A budget may be a share of what its pods' owner wants."""
    for one in objects.among(Budget, sized.metadata.namespace):
        yield Budget, sized.metadata.namespace, one.metadata.name


def _orphans(one: Job, objects: ObjectLister) -> Iterator[Key]:
    meta = one.metadata
    if objects.get(Job, meta.namespace, meta.name) is None:
        for pod in objects.controlled(ManagedPod, meta.namespace, meta.uid):
            yield ManagedPod, meta.namespace, pod.metadata.name


def _namespace(one: ManagedAccount, objects: ObjectLister) -> Iterator[Key]:
    yield ManagedNamespace, "", one.metadata.namespace


def _namespaces(one: ManagedConfigMap, objects: ObjectLister) -> Iterator[Key]:
    meta = one.metadata
    if meta.name == ROOT_CERTIFICATES:
        yield ManagedNamespace, "", meta.namespace
    if (meta.namespace, meta.name) == PUBLISHED:
        for space in objects.among(ManagedNamespace):
            yield ManagedNamespace, "", space.metadata.name


def _beside_claim(one: ManagedClaim, objects: ObjectLister) -> Iterator[Key]:
    for reference in one.metadata.owner_references:
        if reference.kind == "StatefulSet":
            yield ManagedStatefulSet, one.metadata.namespace, reference.name
    yield from volumes_of_claim(one, objects)


_OTHERS: Final[Mapping[type, Callable[[Any, ObjectLister], Iterator[Key]]]] = {
    ManagedPod: _beside_pod,
    ManagedService: _of_its_name,
    ManagedEndpoints: _of_its_name,
    Deployment: _budgets_beside,
    ManagedReplicaSet: _budgets_beside,
    ManagedStatefulSet: _budgets_beside,
    ManagedReplicationController: _budgets_beside,
    Job: _orphans,
    ManagedAccount: _namespace,
    ManagedConfigMap: _namespaces,
    ManagedClaim: _beside_claim,
    ManagedVolume: claims_of_volume,
    ManagedStorageClass: claims_of_class,
}
"""Whom a change of an object concerns besides its own controller and its owner's."""


def _concerned_by_claims(changed: Any, objects: ObjectLister) -> Iterator[Key]:
    kind, meta = type(changed), changed.metadata
    if kind is ManagedPod:
        yield from _released_claims(changed, objects)
        for rule in rules_of_pod(changed, objects):
            yield ManagedDeviceTaintRule, "", rule.metadata.name
    elif kind is ManagedResourceSlice or kind is ManagedDeviceTaintRule:
        pods = pods_of_slice if kind is ManagedResourceSlice else pods_of_rule
        for pod in pods(changed, objects):
            yield ManagedPod, pod.metadata.namespace, pod.metadata.name
    elif kind is ManagedResourceClaim or kind is ManagedResourceClaimTemplate:
        for pod in objects.naming(kind, meta.namespace, meta.name):
            yield ManagedPod, meta.namespace, pod.metadata.name


def _released_claims(pod: ManagedPod, objects: ObjectLister) -> Iterator[Key]:
    """The claims of a pod that is over."""
    meta, extended = pod.metadata, pod.status.extended_resource_claim_status
    if not pod.spec.resource_claims and extended is None:
        return
    current = objects.get(ManagedPod, meta.namespace, meta.name)
    if current is None or current.metadata.uid != meta.uid or is_done(pod):
        names = [*claim_names(pod), *([] if extended is None else [extended.resource_claim_name])]
        names += (one.metadata.name for one in objects.controlled(ManagedResourceClaim, meta.namespace, meta.uid))
        for name in names:
            yield ManagedResourceClaim, meta.namespace, name


def concerned_by_node(old: ManagedNode | None, new: ManagedNode | None, objects: ObjectLister) -> list[Key]:
    """The controllers to call after a node was added, changed or deleted, if they may have work."""
    changed = new or old
    if changed is None:
        return []
    name, keys = changed.metadata.name, list[Key]()
    if old is None or new is None or (old.metadata.labels, old.spec) != (new.metadata.labels, new.spec):
        keys += concerned(changed, objects)
    if new is not None and (old is None or old.spec != new.spec or _states(old) != _states(new)):
        keys.append((ManagedNode, "", name))
    if old is None or new is None or _repels(old) != _repels(new):
        keys += ((ManagedPod, pod.metadata.namespace, pod.metadata.name) for pod in objects.on_node(name))
    return keys


def concerns_zones(old: ManagedNode | None, new: ManagedNode | None) -> bool:
    """Whether `zones.taint_lost_nodes` must be called for a change of a node."""
    return old is None or new is None or _repels(old) != _repels(new) or old.metadata.labels != new.metadata.labels


def _states(one: ManagedNode) -> list[tuple[str, str]]:
    """Without heartbeats."""
    return [(report.type, report.status) for report in one.status.conditions]


def _repels(one: ManagedNode) -> tuple[object, ...]:
    """The fields of a node that matter to its pods."""
    report = ready_report(one)
    gone = any(taint.key == OUT_OF_SERVICE for taint in one.spec.taints)
    return repelled(one), None if report is None else report.status, gone


def _managers(kind: type, meta: StoredMeta, objects: ObjectLister) -> Iterator[Key]:
    owner = controller_of(meta)
    if owner is None:
        for taker in _TAKERS.get(kind, ()):
            taken: Sequence[Any] = objects.among(taker, meta.namespace)
            for one in taken:
                selector = selector_of(one.spec.selector)
                if selector is not None and selector.matches(meta.labels):
                    yield taker, meta.namespace, one.metadata.name
        return
    manager = _STRUCTS.get((owner.api_version, owner.kind))
    if manager is None or manager not in CONTROLLERS:
        return
    yield manager, meta.namespace, owner.name
    # A recreating Deployment waits for the pods of its ReplicaSets.
    above = objects.get(ManagedReplicaSet, meta.namespace, owner.name) if manager is ManagedReplicaSet else None
    if above is not None and kind is ManagedPod:
        for key in _managers(ManagedReplicaSet, above.metadata, objects):
            top = objects.get(Deployment, key[1], key[2]) if key[0] is Deployment else None
            if top is None or not is_rolling(top):
                yield key
