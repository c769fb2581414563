"""Feeds an engine from the store: all objects first, then the changes of each revision, in order.

The engine never knows more than the registry's cache, so that its binds find there what they were decided on. An object
that does not decode is left out; if an earlier version did decode, the engine keeps that one: a pod that cannot be read
any more still takes room.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any, Final

import msgspec

from situate.core.changes import Change, NodeGone, NodeSeen, ObjectGone, ObjectSeen, PodGone, PodRef, PodSeen
from situate.core.model.base import Model
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.server.registry.cache import Cache
from situate.server.registry.keys import OBJECTS, prefix_of
from situate.server.resources import RESOURCES, Resource
from situate.store.contract import Store
from situate.store.entries import Batch, Revision
from situate.wire.errors import InputError
from situate.wire.objects import KINDS, NAMESAKES, decode, decode_node, decode_pod

NOT_READ: Final = ("scheduling.k8s.io", "PriorityClass")
"""Admission has put a pod's priority into its spec."""
AT_ONCE: Final = 4_096
"""How many changes to tell together at first."""


class _Meta(msgspec.Struct):
    uid: str = ""
    name: str = ""
    namespace: str = ""


class _Identified(msgspec.Struct):
    metadata: _Meta


_identified: Final = msgspec.json.Decoder(_Identified).decode


class EngineFeed:
    """Feeds one engine from one store. `unreadable` counts objects that did not decode."""

    def __init__(self, store: Store, cache: Cache, tell: Callable[[Sequence[Change]], None]) -> None:
        self._store = store
        self._cache = cache
        self._tell = tell
        self._kinds = engine_kinds()
        self._models = {_folder(resource): model for resource, model in self._kinds}
        self.unreadable = 0
        self.revision = 0
        """The last revision that was fed to the engine."""

    def begin(self) -> None:
        """Feed all objects as of one revision. This does not await, so nothing changes in between."""
        changes: list[Change] = []
        for resource, model in self._kinds:
            for stored in self._cache.all(resource):
                self._add(model, stored.value, changes)
                if len(changes) >= AT_ONCE:
                    self._tell(changes)
                    changes = []
        self._tell(changes)
        self.revision = self._cache.revision

    async def follow(self) -> None:
        """Tell later changes, until cancelled. Raises StoreError if the store cannot be followed."""
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
                self._add(model, event.entry.value, changes)
            elif event.before is not None:
                self._remove(model, event.before.value, changes)
        return changes

    def _add(self, model: type[Model], value: bytes, changes: list[Change]) -> None:
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

    def _remove(self, model: type[Model], value: bytes, changes: list[Change]) -> None:
        meta = _identified(value).metadata
        if model is Pod:
            changes.append(PodGone(PodRef(meta.namespace, meta.name, meta.uid)))
        elif model is Node:
            changes.append(NodeGone(meta.name))
        else:
            try:
                gone: Any = decode(model, value)
            except InputError:
                return  # the engine was not told of this version, and keeps the one before
            changes.append(ObjectGone(gone))


def engine_kinds() -> list[tuple[Resource, type[Model]]]:
    """All that an engine reads, pods last: when it decides on them, it knows everything else."""
    resources = {(one.group, one.kind): one for one in RESOURCES}
    models = {(group, kind): model for kind, (group, model) in (*KINDS.items(), *NAMESAKES.items())}
    del models[NOT_READ]
    return sorted(((resources[key], model) for key, model in models.items()), key=lambda one: one[1] is Pod)


def _folder(resource: Resource) -> tuple[str, str]:
    """The two parts of a key that name its resource."""
    _, _, group, plural, _ = prefix_of(resource).split("/", 4)
    return group, plural
