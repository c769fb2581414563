"""Feeds an engine from the store: all objects first, then the changes of each revision, in order.

The engine never knows more than the registry's cache, so that its binds find there what they were decided on. An object
that does not decode is left out, logged and counted; if an earlier version did decode, the engine keeps that one: a pod
that cannot be read any more still takes room, until it is deleted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from situate.core.changes import Change, NodeGone, NodeSeen, ObjectGone, ObjectSeen, PodGone, PodRef, PodSeen
from situate.core.model.base import Model
from situate.core.model.custom_groups.table import CUSTOM_GROUP_KINDS
from situate.core.model.devices import ResourceClaim
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.loop.drive import describe_error
from situate.loop.logs import Log
from situate.server.registry.cache import Cache
from situate.server.registry.keys import OBJECTS, prefix_of
from situate.server.resources import RESOURCES, Resource
from situate.server.scheduling.quarantine import Quarantine
from situate.store.contract import Store
from situate.store.entries import Batch, Revision
from situate.wire.objects import KINDS, NAMESAKES, decode, decode_node, decode_pod

NOT_READ: Final = (("scheduling.k8s.io", "PriorityClass"),)
"""Admission has put a pod's priority into its spec."""
_CUSTOM: Final = {
    (one.group, "PodGroup"): Resource(
        one.group, one.versions[0], "podgroups", "PodGroup", "podgroup", True, (), stored_as=f"{one.group}/podgroups"
    )
    for one in CUSTOM_GROUP_KINDS
}
"""The custom kinds that an engine reads, by the keys of their objects: there are none before a definition."""
LONG_ENOUGH: Final = 4
"""Parts of a key before that of an object in its resource."""
AT_ONCE: Final = 4_096
"""How many changes to tell together at first."""
RELEASE_S: Final = 5.0
"""How often to look for objects that have been withheld for long enough."""


class _Meta(msgspec.Struct):
    uid: str = ""
    name: str = ""
    namespace: str = ""


class _Identified(msgspec.Struct):
    metadata: _Meta


_identified: Final = msgspec.json.Decoder(_Identified).decode


MOST_KEPT: Final = 10_000
"""How many objects that did not decode are remembered, to be removed when they go."""

_log = Log(__name__)


class EngineFeed:
    """Feeds one engine from one store. `unreadable` counts objects that did not decode."""

    def __init__(
        self,
        store: Store,
        cache: Cache,
        tell: Callable[[Sequence[Change]], None],
        quarantine: Quarantine | None = None,
    ) -> None:
        """`quarantine`: the objects that are withheld from the engine."""
        self._store = store
        self._quarantine = quarantine
        self._cache = cache
        self._tell = tell
        self._kinds = engine_kinds()
        self._models = {_folder(resource): model for resource, model in self._kinds}
        self.unreadable = 0
        self._kept: dict[str, bytes] = {}
        """By key, the version that the engine keeps of an object that no longer decodes."""
        self.revision = 0
        """The last revision that was fed to the engine."""

    def begin(self) -> None:
        """Feed all objects as of one revision. This does not await, so nothing changes in between."""
        changes: list[Change] = []
        for resource, model in self._kinds:
            for stored in self._cache.all(resource):
                self._add(model, stored.key, stored.value, stored.revision, None, changes)
                if len(changes) >= AT_ONCE:
                    self._tell(self._allowed(changes))
                    changes = []
        self._tell(self._allowed(changes))
        self.revision = self._cache.revision

    def objects(self) -> list[Change]:
        """All objects that the engine would get."""
        seen = [
            _seen(model, stored.value, stored.revision)
            for resource, model in self._kinds
            for stored in self._cache.all(resource)
        ]
        return self._allowed([one for one in seen if not isinstance(one, str)])

    def _allowed(self, changes: list[Change]) -> list[Change]:
        held = self._quarantine
        return [one for one in changes if not held.withholds(one)] if held else changes

    async def follow(self) -> None:
        """Tell later changes, until cancelled. Raises StoreError if the store cannot be followed."""
        async with aclosing(self._store.watch(OBJECTS, Revision(self.revision))) as watch:
            async for batch in watch:
                changes = self._changes(batch)
                if changes:
                    await self._cache.wait_for(batch.revision)
                    self._tell(self._allowed(changes))
                self.revision = batch.revision

    async def release(self, quarantine: Quarantine, every_s: float = RELEASE_S) -> None:
        """Give the engine objects that are no longer withheld, until cancelled: there may never be a change of them.
        An object with a change that is still to come arrives with that change."""
        while True:
            await asyncio.sleep(every_s)
            for kind, namespace, name in quarantine.released():
                for resource, model in self._kinds:
                    stored = self._cache.get(resource, namespace, name) if model.__name__ == kind else None
                    if stored is not None and stored.revision <= self.revision:
                        changes: list[Change] = []
                        self._add(model, stored.key, stored.value, stored.revision, None, changes)
                        self._tell(changes)

    def _changes(self, batch: Batch) -> list[Change]:
        changes: list[Change] = []
        for event in batch.events:
            model = self._models.get(_folder_of(event.key))
            if model is None:
                continue
            before = None if event.before is None else event.before.value
            if event.entry is not None:
                self._add(model, event.key, event.entry.value, event.entry.modified, before, changes)
            elif before is not None:
                self._remove(model, event.key, before, changes)
        return changes

    def _add(
        self, model: type[Model], key: str, value: bytes, revision: int, before: bytes | None, changes: list[Change]
    ) -> None:
        seen = _seen(model, value, revision)
        if not isinstance(seen, str):
            changes.append(seen)
            if self._kept:
                self._kept.pop(key, None)
            return
        self.unreadable += 1
        _log.error("The scheduler cannot read an object; continuing without it", key=key, err=seen)
        if before is not None and key not in self._kept and len(self._kept) < MOST_KEPT:
            self._kept[key] = before

    def _remove(self, model: type[Model], key: str, value: bytes, changes: list[Change]) -> None:
        """If the engine has an earlier version, that one is removed."""
        change = _gone(model, self._kept.pop(key, value))
        if change is not None:
            changes.append(change)


def _seen(model: type[Model], value: bytes, revision: int) -> Change | str:
    """The change, or why there is none. Claims have their resourceVersion: they are written in the version that the
    engine decided on, and older news of them is told from newer."""
    try:
        if model is Pod:
            return PodSeen(decode_pod(value))
        if model is Node:
            return NodeSeen(decode_node(value))
        found: Any = decode(model, value)
        if model is ResourceClaim:
            found = replace(found, metadata=replace(found.metadata, resource_version=str(revision)))
        return ObjectSeen(found)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is about this object
        return describe_error(error)


def _gone(model: type[Model], value: bytes) -> Change | None:
    """None: the engine never had it."""
    try:
        if model is not Pod and model is not Node:
            found: Any = decode(model, value)
            return ObjectGone(found)
        meta = _identified(value).metadata
        return PodGone(PodRef(meta.namespace, meta.name, meta.uid)) if model is Pod else NodeGone(meta.name)
    except Exception:  # noqa: BLE001 - as above; it was logged when it came
        return None


def engine_kinds() -> list[tuple[Resource, type[Model]]]:
    """All that an engine reads, pods last: when it decides on them, it knows everything else."""
    resources = _CUSTOM | {(one.group, one.kind): one for one in RESOURCES}
    models = {(group, kind): model for kind, (group, model) in KINDS.items()}
    models |= {(group, kind): model for (kind, group), model in NAMESAKES.items()}
    read = [(resources[key], model) for key, model in models.items() if key not in NOT_READ]
    return sorted(read, key=lambda one: one[1] is Pod)


def _folder(resource: Resource) -> tuple[str, str]:
    return _folder_of(prefix_of(resource))


def _folder_of(key: str) -> tuple[str, str]:
    """The two parts of a key that name its resource."""
    parts = key.split("/", 4)
    return (parts[2], parts[3]) if len(parts) > LONG_ENOUGH else ("", "")
