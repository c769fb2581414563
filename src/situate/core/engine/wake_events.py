"""Changes as wake events: what an unschedulable pod may wait for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from msgspec.structs import replace

from situate.core.contract import Wake, WakeEvent
from situate.core.devices.claims import has_shares
from situate.core.model.base import EMPTY, Labels
from situate.core.model.devices import AllocationResult, DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from situate.core.model.latency import LatencyTable
from situate.core.model.named import NamedObject
from situate.core.model.node import Node
from situate.core.model.policy import Namespace
from situate.core.model.requests import allocatable
from situate.core.model.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from situate.core.model.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from situate.core.state.classes import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, PodClass
from situate.core.state.objects import ObjectTable
from situate.core.state.vocab import Vocab

ObjectWakes: TypeAlias = tuple[Wake | None, Wake | None, Wake | None]
"""The events for an object that was added, that changed, and that was deleted."""

OBJECT_WAKES: Final[Mapping[type, ObjectWakes]] = MappingProxyType(
    {
        PersistentVolumeClaim: (Wake.CLAIM_ADDED, Wake.CLAIM_UPDATED, Wake.CLAIM_DELETED),
        PersistentVolume: (Wake.VOLUME_ADDED, Wake.VOLUME_UPDATED, Wake.VOLUME_DELETED),
        StorageClass: (Wake.STORAGE_CLASS_ADDED, Wake.STORAGE_CLASS_UPDATED, Wake.STORAGE_CLASS_DELETED),
        CSINode: (Wake.CSI_NODE_ADDED, Wake.CSI_NODE_UPDATED, Wake.CSI_NODE_DELETED),
        CSIDriver: (None, Wake.CSI_DRIVER_UPDATED, Wake.CSI_DRIVER_DELETED),
        CSIStorageCapacity: (Wake.CSI_CAPACITY_ADDED, Wake.CSI_CAPACITY_UPDATED, None),
        VolumeAttachment: (None, None, Wake.VOLUME_ATTACHMENT_DELETED),
        LatencyTable: (Wake.LATENCY_CHANGED,) * 3,
        ResourceClaim: (Wake.RESOURCE_CLAIM_ADDED, Wake.RESOURCE_CLAIM_UPDATED, Wake.RESOURCE_CLAIM_DELETED),
        ResourceSlice: (Wake.RESOURCE_SLICE_ADDED, Wake.RESOURCE_SLICE_UPDATED, Wake.RESOURCE_SLICE_DELETED),
        DeviceClass: (Wake.DEVICE_CLASS_ADDED, Wake.DEVICE_CLASS_UPDATED, Wake.DEVICE_CLASS_DELETED),
        DeviceTaintRule: (Wake.RESOURCE_SLICE_UPDATED,) * 3,  # it changes the taints in slices
        **dict.fromkeys((Service, ReplicationController, ReplicaSet, StatefulSet), (Wake.WORKLOAD_CHANGED,) * 3),
    }
)
"""Other objects help no pod: a budget only limits preemption, and does not bind it."""

Counted: TypeAlias = tuple[PodClass, str, bool]
"""A pod that is counted on a node: its class, the node, and whether it is being deleted."""

# -- nodes -----------------------------------------------------------------------------------------------------------


def node_events(
    before: Node | None, after: Node, resources: Vocab, objects: ObjectTable | None = None
) -> Iterator[WakeEvent]:
    """A new node is one event; a changed one, an event for each aspect that changed."""
    if before is None:
        yield WakeEvent(Wake.NODE_ADDED, node=after, room=_room(after, resources), objects=objects)
        return
    if before.status.allocatable != after.status.allocatable:
        room, room_before = _room(after, resources), _room(before, resources)
        yield WakeEvent(Wake.NODE_ALLOCATABLE, after, before, room=room, room_before=room_before, objects=objects)
    if before.metadata.labels != after.metadata.labels:
        yield WakeEvent(Wake.NODE_LABEL, after, before)
    if before.spec.taints != after.spec.taints or before.spec.unschedulable != after.spec.unschedulable:
        yield WakeEvent(Wake.NODE_TAINT, after, before)
    if before.status.declared_features != after.status.declared_features:
        yield WakeEvent(Wake.NODE_DECLARED_FEATURE, after, before)


def _room(node: Node, resources: Vocab) -> dict[int, int]:
    """What a node can allocate, by resource column."""
    room = allocatable(node)
    return {
        CPU: room.milli_cpu,
        MEMORY: room.memory,
        EPHEMERAL_STORAGE: room.ephemeral_storage,
        PODS: room.pods,
        **{resources.find(name): amount for name, amount in room.scalar.items()},
    }


def node_left(node: Node, kinds: Iterable[PodClass], objects: ObjectTable) -> Iterator[WakeEvent]:
    """A node left, and with it its pods: they do not count any more, though they were not seen to leave."""
    yield WakeEvent(Wake.NODE_DELETED, node_before=node, node_name=node.metadata.name, objects=objects)
    for kind in dict.fromkeys(kinds):
        yield pod_left(kind, "", objects)


# -- pods ------------------------------------------------------------------------------------------------------------


def pod_came(kind: PodClass, node: str, objects: ObjectTable) -> WakeEvent:
    return WakeEvent(Wake.POD_ADDED, pod=kind, node_name=node, objects=objects)


def pod_left(kind: PodClass, node: str, objects: ObjectTable) -> WakeEvent:
    return WakeEvent(Wake.POD_DELETED, pod=kind, node_name=node, objects=objects)


def nomination_ended(kind: PodClass, node: str, objects: ObjectTable) -> WakeEvent:
    """A nomination ended. For pods that it did not outrank, that is as if the pod had left the node."""
    return WakeEvent(Wake.POD_DELETED, pod=kind, node_name=node, up_to=kind.priority, objects=objects)


def bound_pod_events(before: Counted | None, after: Counted | None, objects: ObjectTable) -> Iterator[WakeEvent]:
    """A pod came to a node, left one, or changed there. If an immutable field changed, it is another pod."""
    if before is not None and (after is None or before[1] != after[1] or _holds(before[0]) != _holds(after[0])):
        yield pod_left(before[0], before[1], objects)
        before = None
    if after is None:
        return
    if before is None:
        yield pod_came(after[0], after[1], objects)
        return
    yield from _changed_in_place(before[0], after[0], after[1], objects, starts_to_leave=after[2] and not before[2])


def _changed_in_place(
    before: PodClass, after: PodClass, node: str, objects: ObjectTable, *, starts_to_leave: bool
) -> Iterator[WakeEvent]:
    """A bound pod changed its labels, requests less than it did, or is being deleted."""
    if before.labels != after.labels:
        yield WakeEvent(Wake.POD_LABEL, pod=after, pod_before=before, node_name=node, objects=objects)
    if _less(dict(before.takes), dict(after.takes)):
        yield WakeEvent(Wake.POD_SCALED_DOWN, pod=after, pod_before=before, node_name=node, objects=objects)
    if starts_to_leave:
        yield WakeEvent(Wake.POD_LEAVING, pod=after, pod_before=before, node_name=node, objects=objects)


def _holds(pod: PodClass) -> tuple[object, ...]:
    """What a bound pod keeps from others as long as it is there."""
    return pod.host_ports, pod.spec.volumes, [term for term in pod.terms if not term.weight]


def own_events(before: PodClass, after: PodClass, objects: ObjectTable) -> list[WakeEvent] | None:
    """A waiting pod changed: the events for this pod alone; None if no plugin need be asked whether that helps.

    Kubernetes lets little of a waiting pod change: labels, added tolerations, images.
    """
    if _demands(before) != _demands(after):
        return None
    kinds = []
    if before.labels != after.labels:
        kinds.append(Wake.POD_LABEL)
    if before.tolerations_key != after.tolerations_key:
        kinds.append(Wake.POD_TOLERATION)
    if _less(dict(before.asks), dict(after.asks)):
        kinds.append(Wake.POD_SCALED_DOWN)
    if before.pod.status.resource_claim_statuses != after.pod.status.resource_claim_statuses:
        kinds.append(Wake.POD_RESOURCE_CLAIMS)
    return [WakeEvent(kind, pod=after, pod_before=before, own=True, objects=objects) for kind in kinds]


def _demands(pod: PodClass) -> tuple[object, ...]:
    """What else filters read of a waiting pod, and what its order in the queue and its right to preempt depend on."""
    spec = pod.spec
    needs = (spec.host_network, spec.host_users, spec.resource_claims, spec.priority, spec.preemption_policy)
    rules = [container.restart_policy_rules for container in (*spec.containers, *spec.init_containers)]
    terms = [term for term in pod.terms if not term.weight]
    constraints = spec.topology_spread_constraints
    notes = pod.annotations
    return (pod.affinity_key, terms, pod.host_ports, spec.volumes, constraints, pod.owner, needs, rules, notes)


def _less(before: Mapping[int, int], after: Mapping[int, int]) -> bool:
    return any(after.get(column, 0) < amount for column, amount in before.items())


# -- all other objects -----------------------------------------------------------------------------------------------


def object_events(before: NamedObject | None, after: NamedObject | None, objects: ObjectTable) -> Iterator[WakeEvent]:
    """An object was added (no `before`), changed, or was deleted (no `after`)."""
    item = before if after is None else after
    if isinstance(item, Namespace):
        if _labels(before) != _labels(after):
            yield WakeEvent(Wake.NAMESPACE_LABEL, item=item, item_before=before, objects=objects)
        return
    if isinstance(before, VolumeAttachment) and isinstance(after, VolumeAttachment):
        if before.spec != after.spec:  # it is immutable, so this is another: the one that we knew is gone
            yield WakeEvent(Wake.VOLUME_ATTACHMENT_DELETED, item=before, objects=objects)
        return
    added, changed, deleted = OBJECT_WAKES.get(type(item), (None, None, None))
    kind = deleted if after is None else added if before is None else changed
    if kind is not None:
        yield WakeEvent(kind, item=item, item_before=None if after is None else before, objects=objects)


def shares_taken(
    allocations: Iterable[tuple[ResourceClaim, AllocationResult]], objects: ObjectTable
) -> Iterator[WakeEvent]:
    """Claims get shares of devices, which are not written yet. Nobody waits for devices that are taken whole."""
    for before, allocation in allocations:
        after = replace(before, status=replace(before.status, allocation=allocation))
        if has_shares(after):
            yield WakeEvent(Wake.RESOURCE_CLAIM_UPDATED, item=after, item_before=before, objects=objects)


def _labels(item: NamedObject | None) -> Labels:
    return EMPTY if item is None else item.metadata.labels
