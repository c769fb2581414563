"""WorkloadViews, NodeViews and NamespaceViews: summaries computed when they are read.

A WorkloadView is named `<kind>.<name>` after what it is about, as `deployment.web`; the pods of a Deployment's
ReplicaSets are the Deployment's. A pod that nobody controls is a workload of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from situate.core.model.ledger import Amounts, allocatable_of, quantity
from situate.core.model.meta import ObjectMeta, controller_of
from situate.core.model.node import Node
from situate.server.placing import decisions
from situate.server.placing.decisions import PLACEMENT_DECISIONS
from situate.server.placing.snapshots import NODE_SNAPSHOTS
from situate.server.placing.snapshots import decoded as snapshot_of
from situate.server.registry.cache import Cache
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import Object
from situate.server.resources import BY_KIND, Resource
from situate.server.views.pod_counts import STATES, PodCounter, PodTotals, WorkloadRef, WorkloadTotals
from situate.wire.objects import decode_node

NODES: Final = BY_KIND["v1", "Node"]
NAMESPACES: Final = BY_KIND["v1", "Namespace"]
DEPLOYMENTS: Final = BY_KIND["apps/v1", "Deployment"]
REPLICA_SETS: Final = BY_KIND["apps/v1", "ReplicaSet"]
STATEFUL_SETS: Final = BY_KIND["apps/v1", "StatefulSet"]
DAEMON_SETS: Final = BY_KIND["apps/v1", "DaemonSet"]
JOBS: Final = BY_KIND["batch/v1", "Job"]
CONTROLLERS: Final = BY_KIND["v1", "ReplicationController"]
WORKLOADS: Final = (DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, JOBS, CONTROLLERS)
GROUPS_PER_STEP: Final = 25
"""Workloads to add up before a pause."""

View: TypeAlias = Callable[[Cache, PodCounter, str, str], Iterator[Object | None]]
"""Yields the summaries of a namespace and a name, or all; None is a point to pause. It reads its sources before the
first pause."""


class _Owned(msgspec.Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


_decode_owned: Final = msgspec.json.Decoder(_Owned).decode


# -- workloads ---------------------------------------------------------------------------------------------------------


def workload_views(cache: Cache, counts: PodCounter, namespace: str, name: str) -> Iterator[Object | None]:
    """Of one namespace or all, and of one name or all."""
    kind, _, own = name.partition(".")
    there: dict[WorkloadRef, tuple[Resource, StoredObject]] = {}
    for resource in WORKLOADS:
        if not name or resource.kind.lower() == kind:
            for stored in cache.all(resource, namespace):
                owner = WorkloadRef(stored.namespace, resource.api_version, resource.kind, stored.name, stored.uid)
                there[owner] = resource, stored
    totals_by_workload: dict[WorkloadRef, WorkloadTotals] = {}
    for number, (owner, totals) in enumerate(counts.workloads.items()):
        if not namespace or owner.namespace == namespace:
            _join(totals_by_workload.setdefault(_top(cache, owner), WorkloadTotals()), totals)
        if number % GROUPS_PER_STEP == 0:
            yield None
    for owner in sorted(
        {**there, **totals_by_workload}, key=lambda one: (one.namespace, one.kind.lower(), one.name, one.uid)
    ):
        asked = not name or (owner.kind.lower(), owner.name) == (kind, own)
        if asked and _top(cache, owner) == owner:
            found = there.get(owner)
            obj = None if found is None else found[1].object(found[0])
            yield _workload(cache, owner, obj, totals_by_workload.get(owner) or WorkloadTotals())


def _join(whole: WorkloadTotals, part: WorkloadTotals) -> None:
    whole.merge(part)
    whole.nodes.update(part.nodes)
    whole.waiting.update(part.waiting)


def _top(cache: Cache, owner: WorkloadRef) -> WorkloadRef:
    """The Deployment of a ReplicaSet that has one; else the workload itself."""
    if owner.kind != REPLICA_SETS.kind:
        return owner
    stored = cache.get(REPLICA_SETS, owner.namespace, owner.name)
    if stored is None or stored.uid != owner.uid:
        return owner
    above = controller_of(_decode_owned(stored.value).metadata)
    return (
        owner if above is None else WorkloadRef(owner.namespace, above.api_version, above.kind, above.name, above.uid)
    )


def _workload(cache: Cache, owner: WorkloadRef, obj: Object | None, totals: WorkloadTotals) -> Object:
    meta = (obj or {}).get("metadata", {})
    status: Object = {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "desired": _desired(owner.kind, obj, totals),
        **_counts(totals),
        "nodes": len(totals.nodes),
    }
    first = next(iter(totals.waiting), None)
    if first is not None:
        stored = cache.get(PLACEMENT_DECISIONS, owner.namespace, first)
        if stored is not None:
            told = decisions.decoded(stored.value).status
            status |= {"reason": told.reason, "message": told.message} if told.reason else {}
    return _object(f"{owner.kind.lower()}.{owner.name}", owner.namespace, meta, owner.uid, status)


def _desired(kind: str, obj: Object | None, totals: WorkloadTotals) -> int:
    spec, status = (obj or {}).get("spec", {}), (obj or {}).get("status", {})
    if obj is None:
        return totals.pods - totals.states["leaving"]
    if kind == DAEMON_SETS.kind:
        return int(status.get("desiredNumberScheduled", 0))
    if kind == JOBS.kind:
        return 0 if spec.get("suspend") else int(spec.get("completions", spec.get("parallelism", 1)))
    return int(spec.get("replicas", 1))


# -- nodes -------------------------------------------------------------------------------------------------------------


def node_views(cache: Cache, counts: PodCounter, _namespace: str, name: str) -> Iterator[Object | None]:
    for stored, snapshot in [(one, cache.get(NODE_SNAPSHOTS, "", one.name)) for one in _named(cache, NODES, name)]:
        node = decode_node(stored.value)
        allocated = {} if snapshot is None else snapshot_of(snapshot.value)[1].allocated
        room = allocatable_of(node)
        status: Object = {
            "ready": _is_ready(node),
            "schedulable": not node.spec.unschedulable,
            "taints": [f"{one.key}={one.value}:{one.effect}" for one in node.spec.taints],
            **_counts(counts.on_node(stored.name), requested=allocated),
            "allocatable": _quantities({resource: amount for resource, amount in room.items() if amount}),
            "snapshotVersion": "" if snapshot is None else str(snapshot.revision),
        }
        meta = {"creationTimestamp": node.metadata.creation_timestamp, "labels": dict(node.metadata.labels)}
        yield _object(stored.name, "", meta, stored.uid, status)


def _is_ready(node: Node) -> bool:
    return any(one.type == "Ready" and one.status == "True" for one in node.status.conditions)


# -- namespaces --------------------------------------------------------------------------------------------------------


def namespace_views(cache: Cache, counts: PodCounter, _namespace: str, name: str) -> Iterator[Object | None]:
    there = list(_named(cache, NAMESPACES, name))
    owners: dict[str, set[WorkloadRef]] = {}
    for number, owner in enumerate(counts.workloads):
        owners.setdefault(owner.namespace, set()).add(_top(cache, owner))
        if number % GROUPS_PER_STEP == 0:
            yield None
    for stored in there:
        obj = stored.object(NAMESPACES)
        status: Object = {
            "phase": obj.get("status", {}).get("phase", ""),
            "workloads": len(owners.get(stored.name, ())),
            **_counts(counts.in_namespace(stored.name)),
        }
        yield _object(stored.name, "", obj["metadata"], stored.uid, status)


# -- shared -----------------------------------------------------------------------------------------------------------


def _named(cache: Cache, resource: Resource, name: str) -> Iterable[StoredObject]:
    if not name:
        return cache.all(resource)
    stored = cache.get(resource, "", name)
    return () if stored is None else (stored,)


def _counts(some: PodTotals, requested: Amounts | None = None) -> Object:
    return {
        "pods": some.pods,
        **{state: some.states[state] for state in STATES},
        "readyPods": some.ready,
        "requested": _quantities(some.requested if requested is None else requested),
    }


def _quantities(amounts: Amounts) -> dict[str, str]:
    return {resource: quantity(resource, amount) for resource, amount in sorted(amounts.items()) if amount}


def _object(name: str, namespace: str, meta: Mapping[str, Any], uid: str, status: Object) -> Object:
    made: Object = {"name": name}
    if namespace:
        made["namespace"] = namespace
    made["uid"] = uid
    for key in ("creationTimestamp", "labels"):
        if meta.get(key):
            made[key] = meta[key]
    return {"metadata": made, "status": status}


VIEWS: Final[Mapping[str, View]] = {
    "workloadviews": workload_views,
    "nodeviews": node_views,
    "namespaceviews": namespace_views,
}
"""By plural."""
