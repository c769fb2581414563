"""What is stored, as changes for an engine: all that there is, then what each revision does, in order.

Reads the store's own bytes, once. What an engine is told is never newer than what the registry's cache has, so that
whoever decides on it finds it there. An object that does not decode is not there; if an earlier version of it did, that
one stands: a pod that we cannot read any more still holds its room.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final

import msgspec

from situate.core.changes import Change, NodeGone, NodeSeen, ObjectGone, ObjectSeen, PodGone, PodRef, PodSeen
from situate.core.model.base import Model
from situate.core.model.group import CoschedulingPodGroup, PodGroup
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.policy import Namespace, PodDisruptionBudget
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
from situate.server.registry.cache import Cache
from situate.server.registry.keys import OBJECTS, prefix_of
from situate.server.resources import BY_KIND, Resource
from situate.store.contract import Store
from situate.store.entries import Batch, Revision
from situate.wire.errors import InputError
from situate.wire.objects import decode, decode_node, decode_pod

__all__ = ["KINDS", "EngineFeed"]

KINDS: Final[Mapping[tuple[str, str], type[Model]]] = {
    ("v1", "Node"): Node,
    ("v1", "Namespace"): Namespace,
    ("v1", "Service"): Service,
    ("v1", "ReplicationController"): ReplicationController,
    ("apps/v1", "ReplicaSet"): ReplicaSet,
    ("apps/v1", "StatefulSet"): StatefulSet,
    ("v1", "PersistentVolume"): PersistentVolume,
    ("v1", "PersistentVolumeClaim"): PersistentVolumeClaim,
    ("storage.k8s.io/v1", "StorageClass"): StorageClass,
    ("storage.k8s.io/v1", "CSINode"): CSINode,
    ("storage.k8s.io/v1", "CSIDriver"): CSIDriver,
    ("storage.k8s.io/v1", "CSIStorageCapacity"): CSIStorageCapacity,
    ("storage.k8s.io/v1", "VolumeAttachment"): VolumeAttachment,
    ("policy/v1", "PodDisruptionBudget"): PodDisruptionBudget,
    ("scheduling.k8s.io/v1beta1", "PodGroup"): PodGroup,
    ("scheduling.x-k8s.io/v1alpha1", "PodGroup"): CoschedulingPodGroup,
    ("v1", "Pod"): Pod,
}
"""All that an engine reads, pods last: those it decides on find everything else there."""
AT_ONCE: Final = 4_096
"""How many changes are told together while everything is read for the first time."""


class _Meta(msgspec.Struct):
    uid: str = ""
    name: str = ""
    namespace: str = ""


class _Identified(msgspec.Struct):
    metadata: _Meta


_identified: Final = msgspec.json.Decoder(_Identified).decode


class EngineFeed:
    """Tells of one store. `unreadable` counts objects that did not decode."""

    def __init__(self, store: Store, cache: Cache, tell: Callable[[Sequence[Change]], None]) -> None:
        self._store = store
        self._cache = cache
        self._tell = tell
        self._models = {_folder(BY_KIND[kind]): model for kind, model in KINDS.items()}
        self.unreadable = 0
        self.revision = 0
        """Up to here, everything has been told."""

    def begin(self) -> None:
        """Tell all that there is, as of one revision. Does not wait, so that nothing happens meanwhile."""
        told: list[Change] = []
        for kind, model in KINDS.items():
            for held in self._cache.all(BY_KIND[kind]):
                self._come(model, held.value, told)
                if len(told) >= AT_ONCE:
                    self._tell(told)
                    told = []
        self._tell(told)
        self.revision = self._cache.revision

    async def follow(self) -> None:
        """Tell what happens after that. Until cancelled; raises StoreError if the store cannot tell any more."""
        async with aclosing(self._store.watch(OBJECTS, Revision(self.revision))) as watch:
            async for batch in watch:
                changes = self._changes(batch)
                if changes:
                    await self._cache.wait_for(batch.revision)
                    self._tell(changes)
                self.revision = batch.revision

    def _changes(self, batch: Batch) -> list[Change]:
        changes: list[Change] = []
        for event in batch.events:
            _, _, group, plural, _ = event.key.split("/", 4)
            model = self._models.get((group, plural))
            if model is None:
                continue
            if event.entry is not None:
                self._come(model, event.entry.value, changes)
            elif event.before is not None:
                self._go(model, event.before.value, changes)
        return changes

    def _come(self, model: type[Model], value: bytes, changes: list[Change]) -> None:
        try:
            if model is Pod:
                changes.append(PodSeen(decode_pod(value)))
            elif model is Node:
                changes.append(NodeSeen(decode_node(value)))
            else:
                found: Any = decode(model, value)
                changes.append(ObjectSeen(found))
        except InputError:
            self.unreadable += 1

    def _go(self, model: type[Model], value: bytes, changes: list[Change]) -> None:
        meta = _identified(value).metadata
        if model is Pod:
            changes.append(PodGone(PodRef(meta.namespace, meta.name, meta.uid)))
        elif model is Node:
            changes.append(NodeGone(meta.name))
        else:
            try:
                gone: Any = decode(model, value)
            except InputError:
                return  # nobody was told of it in this form; an earlier one stands until it comes back readable
            changes.append(ObjectGone(gone))


def _folder(resource: Resource) -> tuple[str, str]:
    """The two parts of a key that say which resource it is of."""
    _, _, group, plural, _ = prefix_of(resource).split("/", 4)
    return group, plural
