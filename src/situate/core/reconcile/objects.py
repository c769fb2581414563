"""The objects that controllers read, by kind, namespace and owner.

`ObjectLister` is the interface; `ObjectIndex` implements it in memory. Lists are ordered by namespace and name, so that
the same objects give the same effects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from operator import itemgetter
from typing import Any, Final, Protocol, TypeAlias, TypeVar, cast

import msgspec
from msgspec.structs import fields, replace

from situate.core.model.apps import (
    ControllerRevision,
    DaemonSet,
    Deployment,
    ManagedReplicaSet,
    ManagedReplicationController,
    ManagedStatefulSet,
)
from situate.core.model.base import INT32_MAX, Int32, Model
from situate.core.model.batch import CronJob, Job
from situate.core.model.claims import generated_name
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
from situate.core.model.services import ManagedEndpoints, ManagedService, ManagedSlice
from situate.core.model.stored import Owner, Raw, StoredMeta, controller_of
from situate.core.reconcile.effects import ObjectRef, RecordEvent, UpdateObject, UpdateStatus
from situate.core.reconcile.pod_counts import NO_PODS, OwnedPodCounts
from situate.core.reconcile.volume_index import VolumeIndex


class ManagedObject(Protocol):
    """An object of one of KINDS."""

    @property
    def metadata(self) -> StoredMeta: ...


T = TypeVar("T")
K = TypeVar("K", bound=ManagedObject)
P = TypeVar("P", ManagedResourceClaim, ManagedResourceSlice)
NamedByPods: TypeAlias = ManagedResourceClaim | ManagedResourceClaimTemplate | ManagedClaim

KINDS: Final[Mapping[type[Model], tuple[str, str]]] = {
    Deployment: ("apps/v1", "Deployment"),
    ManagedReplicaSet: ("apps/v1", "ReplicaSet"),
    ManagedStatefulSet: ("apps/v1", "StatefulSet"),
    DaemonSet: ("apps/v1", "DaemonSet"),
    ControllerRevision: ("apps/v1", "ControllerRevision"),
    ManagedReplicationController: ("v1", "ReplicationController"),
    Job: ("batch/v1", "Job"),
    CronJob: ("batch/v1", "CronJob"),
    ManagedPod: ("v1", "Pod"),
    ManagedClaim: ("v1", "PersistentVolumeClaim"),
    ManagedVolume: ("v1", "PersistentVolume"),
    ManagedStorageClass: ("storage.k8s.io/v1", "StorageClass"),
    ManagedNamespace: ("v1", "Namespace"),
    ManagedAccount: ("v1", "ServiceAccount"),
    ManagedConfigMap: ("v1", "ConfigMap"),
    ManagedService: ("v1", "Service"),
    ManagedEndpoints: ("v1", "Endpoints"),
    ManagedSlice: ("discovery.k8s.io/v1", "EndpointSlice"),
    Budget: ("policy/v1", "PodDisruptionBudget"),
    ManagedNode: ("v1", "Node"),
    ManagedResourceClaim: ("resource.k8s.io/v1", "ResourceClaim"),
    ManagedResourceClaimTemplate: ("resource.k8s.io/v1", "ResourceClaimTemplate"),
    ManagedResourceSlice: ("resource.k8s.io/v1", "ResourceSlice"),
    ManagedDeviceTaintRule: ("resource.k8s.io/v1", "DeviceTaintRule"),
}
"""The API version and kind of each struct."""


class ObjectLister(Protocol):
    """A consistent, read-only view."""

    def get(self, kind: type[T], namespace: str, name: str) -> T | None: ...

    def among(self, kind: type[T], namespace: str | None = None) -> Sequence[T]:
        """All objects of a kind, or those in a namespace."""

    def controlled(self, kind: type[K], namespace: str, uid: str) -> Sequence[K]:
        """The objects in a namespace whose controller has this uid; with "", those without a controller."""

    def pod_counts(self, namespace: str, uid: str) -> OwnedPodCounts:
        """The counts of the pods that `controlled` has."""

    def on_node(self, node: str) -> Sequence[ManagedPod]:
        """The pods bound to a node."""

    def naming(self, kind: type[NamedByPods], namespace: str, name: str) -> Sequence[ManagedPod]:
        """The pods whose `resourceClaims` name this claim or template, or whose volumes use this claim."""

    def volumes_for(self, namespace: str, name: str) -> Sequence[ManagedVolume]:
        """The volumes that name this claim."""

    def free_volumes(self, storage_class: str) -> Sequence[ManagedVolume]:
        """The volumes of a class that name no claim."""

    def in_pool(self, kind: type[P], driver: str, pool: str) -> Sequence[P]:
        """The slices of a pool, or the claims that have devices of it."""


def ref_of(obj: ManagedObject) -> ObjectRef:
    api_version, kind = KINDS[cast(type[Model], type(obj))]
    meta = obj.metadata
    return ObjectRef(api_version, kind, meta.namespace, meta.name, meta.uid)


def controller_ref(owner: ManagedObject) -> Owner:
    """The owner reference to this controller."""
    ref = ref_of(owner)
    return Owner(
        api_version=ref.api_version,
        kind=ref.kind,
        name=ref.name,
        uid=ref.uid,
        controller=True,
        block_owner_deletion=True,
    )


def to_json(part: Model, *always: str) -> dict[str, Any]:
    """A struct as JSON with Kubernetes' names. Numbers in `always` are written even if they are 0."""
    body: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(part))
    for name in always:
        body.setdefault(name, 0)
    return body


class _Sorted:
    """Objects by name. They are sorted when somebody reads them: most changes come between two reads."""

    __slots__ = ("_in_order", "by_name")

    def __init__(self) -> None:
        self.by_name: dict[str, Any] = {}
        self._in_order = True

    def put(self, name: str, obj: Any) -> None:
        if name not in self.by_name:
            self._in_order = False
        self.by_name[name] = obj

    def drop(self, name: str) -> None:
        del self.by_name[name]

    def all(self) -> list[Any]:
        if not self._in_order:
            self.by_name = dict(sorted(self.by_name.items(), key=itemgetter(0)))
            self._in_order = True
        return list(self.by_name.values())


class ObjectIndex:
    __slots__ = ("_by_claim", "_by_namespace", "_by_node", "_by_owner", "_by_pool", "_counts", "_volumes")

    def __init__(self, objects: Iterable[Any] = ()) -> None:
        self._by_namespace: dict[type, dict[str, _Sorted]] = {}
        self._by_owner: dict[tuple[type, str, str], _Sorted] = {}
        self._by_node: dict[str, dict[tuple[str, str], ManagedPod]] = {}
        self._by_claim: dict[tuple[type, str, str], dict[str, None]] = {}
        """Names of pods, by the claims and templates that they name."""
        self._by_pool: dict[tuple[type, str, str], dict[tuple[str, str], None]] = {}
        """Slices and allocated claims, by kind, driver and pool."""
        self._counts: dict[tuple[str, str], OwnedPodCounts] = {}
        """Of the pods in a namespace, by the uid of their controller."""
        self._volumes = VolumeIndex()
        for one in objects:
            self.put(one)

    def put(self, obj: Any) -> None:
        """Add or replace an object by kind, namespace and name."""
        kind, namespace, name = type(obj), obj.metadata.namespace, obj.metadata.name
        owner = _owner_key(obj)
        old: Any = self.get(kind, namespace, name)
        if old is not None and _owner_key(old) != owner:
            self.drop(kind, namespace, name)
            old = None
        _sorted_at(self._by_namespace.setdefault(kind, {}), namespace).put(name, obj)
        _sorted_at(self._by_owner, owner).put(name, obj)
        if kind is ManagedPod:
            self._count(owner[2], old, obj)
            self._place(old, obj)
            self._name_claims(old, obj)
        elif kind in _IN_POOLS:
            self._put_in_pools(old, obj)
        elif kind is ManagedVolume:
            self._volumes.replace(old, obj)

    def _count(self, uid: str, old: ManagedPod | None, new: ManagedPod | None) -> None:
        """Update the counts of the pods of one controller."""
        pod = new or old
        if pod is None:
            return
        where = (pod.metadata.namespace, uid)
        counts = self._counts.get(where)
        if counts is None:
            counts = self._counts[where] = OwnedPodCounts()
        counts.replace(old, new)
        if not counts:
            del self._counts[where]

    def _place(self, old: ManagedPod | None, new: ManagedPod | None) -> None:
        """Update the index of pods by node."""
        if old is not None and old.spec.node_name and (new is None or new.spec.node_name != old.spec.node_name):
            pods = self._by_node.get(old.spec.node_name, {})
            pods.pop((old.metadata.namespace, old.metadata.name), None)
            if not pods:
                self._by_node.pop(old.spec.node_name, None)
        if new is not None and new.spec.node_name:
            where = (new.metadata.namespace, new.metadata.name)
            self._by_node.setdefault(new.spec.node_name, {})[where] = new

    def _name_claims(self, old: ManagedPod | None, new: ManagedPod | None) -> None:
        """Update the index of pods by claim."""
        if old is not None:
            for key in _claim_keys(old):
                names = self._by_claim.get(key, {})
                names.pop(old.metadata.name, None)
                if not names:
                    self._by_claim.pop(key, None)
        if new is not None:
            for key in _claim_keys(new):
                self._by_claim.setdefault(key, {})[new.metadata.name] = None

    def _put_in_pools(self, old: Any, new: Any) -> None:
        """Update the index of slices and claims by pool."""
        before, after = _pools(old), _pools(new)
        for key in before:
            if key not in after:
                members = self._by_pool[key]
                del members[old.metadata.namespace, old.metadata.name]
                if not members:
                    del self._by_pool[key]
        for key in after:
            self._by_pool.setdefault(key, {})[new.metadata.namespace, new.metadata.name] = None

    def drop(self, kind: type, namespace: str, name: str) -> None:
        """Remove an object, if it exists."""
        old: Any = self.get(kind, namespace, name)
        if old is None:
            return
        spaces, owner = self._by_namespace[kind], _owner_key(old)
        if kind is ManagedPod:
            self._count(owner[2], old, None)
            self._place(old, None)
            self._name_claims(old, None)
        elif kind in _IN_POOLS:
            self._put_in_pools(old, None)
        elif kind is ManagedVolume:
            self._volumes.replace(old, None)
        spaces[namespace].drop(name)
        self._by_owner[owner].drop(name)
        if not spaces[namespace].by_name:
            del spaces[namespace]
        if not self._by_owner[owner].by_name:
            del self._by_owner[owner]

    def get(self, kind: type[T], namespace: str, name: str) -> T | None:
        found = self._by_namespace.get(kind, {}).get(namespace)
        return None if found is None else cast("T | None", found.by_name.get(name))

    def among(self, kind: type[T], namespace: str | None = None) -> Sequence[T]:
        spaces = self._by_namespace.get(kind, {})
        if namespace is not None:
            return spaces[namespace].all() if namespace in spaces else []
        return [one for space in sorted(spaces) for one in spaces[space].all()]

    def controlled(self, kind: type[K], namespace: str, uid: str) -> Sequence[K]:
        found = self._by_owner.get((kind, namespace, uid))
        return [] if found is None else found.all()

    def pod_counts(self, namespace: str, uid: str) -> OwnedPodCounts:
        return self._counts.get((namespace, uid), NO_PODS)

    def on_node(self, node: str) -> Sequence[ManagedPod]:
        return [pod for _, pod in sorted(self._by_node.get(node, {}).items())]

    def naming(self, kind: type[NamedByPods], namespace: str, name: str) -> Sequence[ManagedPod]:
        found = (
            self.get(ManagedPod, namespace, pod) for pod in sorted(self._by_claim.get((kind, namespace, name), ()))
        )
        return [pod for pod in found if pod is not None]

    def volumes_for(self, namespace: str, name: str) -> Sequence[ManagedVolume]:
        return self._volumes.of_claim(namespace, name)

    def free_volumes(self, storage_class: str) -> Sequence[ManagedVolume]:
        return self._volumes.free(storage_class)

    def in_pool(self, kind: type[P], driver: str, pool: str) -> Sequence[P]:
        found = (self.get(kind, *where) for where in sorted(self._by_pool.get((kind, driver, pool), ())))
        return [one for one in found if one is not None]


_IN_POOLS: Final = (ManagedResourceClaim, ManagedResourceSlice)


def _pools(one: ManagedResourceClaim | ManagedResourceSlice | None) -> dict[tuple[type, str, str], None]:
    """The keys of the pools that a claim has devices of, or of the pool that a slice is of."""
    match one:
        case ManagedResourceSlice(spec=spec):
            return {(ManagedResourceSlice, spec.driver, spec.pool.name): None}
        case ManagedResourceClaim(status=status) if status.allocation is not None:
            devices = status.allocation.devices.results
            return dict.fromkeys((ManagedResourceClaim, device.driver, device.pool) for device in devices)
        case _:
            return {}


def _claim_keys(pod: ManagedPod) -> Iterator[tuple[type, str, str]]:
    for claim in pod.spec.resource_claims:
        if claim.resource_claim_name:
            yield ManagedResourceClaim, pod.metadata.namespace, claim.resource_claim_name
        elif claim.resource_claim_template_name:
            yield ManagedResourceClaimTemplate, pod.metadata.namespace, claim.resource_claim_template_name
    for name in volume_claims_of(pod):
        yield ManagedClaim, pod.metadata.namespace, name


def volume_claims_of(pod: ManagedPod) -> Iterator[str]:
    """The names of the claims that the pod's volumes use."""
    for volume in pod.spec.volumes:
        if "persistentVolumeClaim" in volume:
            yield str(volume["persistentVolumeClaim"].get("claimName", ""))
        elif "ephemeral" in volume:
            yield generated_name(pod.metadata, volume.get("name", ""))


def _sorted_at(index: dict[T, _Sorted], key: T) -> _Sorted:
    found = index.get(key)
    if found is None:
        found = index[key] = _Sorted()
    return found


def _owner_key(obj: Any) -> tuple[type, str, str]:
    meta = obj.metadata
    owner = controller_of(meta)
    return type(obj), meta.namespace, "" if owner is None else owner.uid


def update_metadata(one: ManagedObject, changes: Raw) -> UpdateObject:
    """Change the metadata by a merge patch."""
    return UpdateObject(ref_of(one), one.metadata.resource_version, {"metadata": changes})


def update_status(
    one: Any, status: Model, *always: str, annotations: Mapping[str, str] | None = None
) -> tuple[UpdateStatus, ...]:
    """Write the status if it has changed, or with new annotations. `always` as for `to_json`.

    Sums of what clients may write, as of replicas, end where an int32 does: beyond it, nobody could read the status.
    """
    beyond = {name: INT32_MAX for name in _int32_fields(type(status)) if (getattr(status, name) or 0) > INT32_MAX}
    if beyond:
        status = replace(status, **beyond)
    if status == one.status and annotations is None:
        return ()
    return (UpdateStatus(ref_of(one), one.metadata.resource_version, to_json(status, *always), annotations),)


@cache
def _int32_fields(kind: type[Model]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.type in (Int32, Int32 | None))


def normal_event(one: ManagedObject, reason: str, message: str) -> RecordEvent:
    return RecordEvent(ref_of(one), "Normal", reason, message)
