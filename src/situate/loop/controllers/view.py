"""What controllers read: all objects, reduced to what is asked of them, and whom each change concerns. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from situate.core.model.base import Model
from situate.core.model.managed import ManagedNamespace
from situate.core.model.node import Node
from situate.core.model.stored import StoredMeta
from situate.core.reconcile.effects import ObjectRef
from situate.core.reconcile.graph import HeldGraph, Item
from situate.core.reconcile.objects import KINDS, Held
from situate.core.reconcile.table import CONTROLLERS, concerned

__all__ = ["Collect", "Empty", "Reconcile", "Served", "Task", "View"]


class Served(NamedTuple):
    """A kind that the API has; `resource` is its plural in paths."""

    api_version: str
    kind: str
    resource: str


class Reconcile(NamedTuple):
    """Call the controller of an object."""

    kind: type
    namespace: str
    name: str


class Collect(NamedTuple):
    """See whether an object is garbage."""

    uid: str


class Empty(NamedTuple):
    """Go on with the deletion of a namespace."""

    namespace: str


Task: TypeAlias = Reconcile | Collect | Empty


class _Any(Model, frozen=True, kw_only=True):
    metadata: StoredMeta = StoredMeta()


_decode_any: Final = msgspec.json.Decoder(_Any).decode
_STRUCTS: Final[dict[tuple[str, str], type[Model]]] = {name: kind for kind, name in KINDS.items()}
_DECODERS: Final = {name: msgspec.json.Decoder(kind).decode for name, kind in _STRUCTS.items()}


class View:
    """All objects as they were last seen."""

    def __init__(self, served: Iterable[Served]) -> None:
        self.objects = Held()
        self.graph = HeldGraph([(one.api_version, one.kind) for one in served])
        self._uids: dict[tuple[str, str, str, str], str] = {}
        self._ending: dict[str, None] = {}
        self._progress: dict[tuple[str, str], int] = {}

    def put(self, served: Served, body: bytes) -> list[Task]:
        """An object was added or changed. Who has to be called now?"""
        meta = _decode_any(body).metadata
        self._moved(served, int(meta.resource_version or 0))
        where = (served.api_version, served.kind, meta.namespace, meta.name)
        had = self._uids.get(where)
        tasks: list[Task] = []
        if had is not None and had != meta.uid:  # another of its name
            tasks += self.drop(served, meta.namespace, meta.name, 0)
        before = self.graph.by_uid(meta.uid)
        ref = ObjectRef(served.api_version, served.kind, meta.namespace, meta.name, meta.uid)
        item = Item(ref, meta, served.resource)
        self._uids[where] = meta.uid
        self.graph.put(item)
        tasks += self._reconciles(served, meta, body)
        if served.kind == "Namespace" and meta.deletion_timestamp is not None:
            self._ending[meta.name] = None
            tasks.append(Empty(meta.name))
        tasks += self._collects(item, before)
        return tasks

    def drop(self, served: Served, namespace: str, name: str, revision: int) -> list[Task]:
        """An object is gone. Who has to be called now?"""
        self._moved(served, revision)
        uid = self._uids.pop((served.api_version, served.kind, namespace, name), None)
        item = None if uid is None else self.graph.by_uid(uid)
        if uid is None or item is None:
            return []
        self.graph.drop(uid)
        tasks: list[Task] = []
        struct = _STRUCTS.get((served.api_version, served.kind))
        if struct is not None:
            old: Any = self.objects.get(struct, namespace, name)
            self.objects.drop(struct, namespace, name)
            tasks += _called(concerned(old, self.objects))
        if served.kind == "Namespace":
            self._ending.pop(name, None)
        tasks += self._collects(item, item)
        return tasks

    def has(self, ref: ObjectRef) -> Item | None:
        """The object as it was last seen."""
        uid = self._uids.get((ref.api_version, ref.kind, ref.namespace, ref.name))
        return None if uid is None else self.graph.by_uid(uid)

    def progress(self, ref: ObjectRef) -> int:
        """The newest revision of objects of its kind that was seen: those of a kind are told in order."""
        return self._progress.get((ref.api_version, ref.kind), 0)

    def everything(self) -> Iterator[Task]:
        """Whom to call after a restart: everybody."""
        for kind in CONTROLLERS:
            managed: Sequence[Any] = self.objects.among(kind)
            for one in managed:
                yield Reconcile(kind, one.metadata.namespace, one.metadata.name)
        for uid in self._uids.values():
            item = self.graph.by_uid(uid)
            if item is not None and (item.meta.owner_references or item.meta.deletion_timestamp is not None):
                yield Collect(uid)
        for name in self._ending:
            yield Empty(name)

    def _moved(self, served: Served, revision: int) -> None:
        kind = (served.api_version, served.kind)
        self._progress[kind] = max(self._progress.get(kind, 0), revision)

    def _reconciles(self, served: Served, meta: StoredMeta, body: bytes) -> list[Task]:
        struct = _STRUCTS.get((served.api_version, served.kind))
        if struct is None:
            return []
        new: Any = _DECODERS[served.api_version, served.kind](body)
        old: Any = self.objects.get(struct, meta.namespace, meta.name)
        self.objects.put(new)
        if struct is Node and old is not None and _says_the_same(old, new):
            return []
        keys = concerned(new, self.objects)
        if old is not None:
            keys += concerned(old, self.objects)
        return _called(keys)

    def _collects(self, item: Item, before: Item | None) -> Iterator[Task]:
        """It, what it owns and who owns it, where that may matter: most objects have nothing to do with others."""
        meta = item.meta
        if meta.owner_references or meta.deletion_timestamp is not None:
            yield Collect(item.ref.uid)
            for owner in meta.owner_references:
                yield Collect(owner.uid)
        # New owners are waited for by nobody; what is changed or gone may be.
        if before is not None:
            for dependent in self.graph.dependents(item.ref.uid):
                yield Collect(dependent.ref.uid)
        if item.ref.namespace in self._ending:
            yield Empty(item.ref.namespace)


def _called(keys: Iterable[tuple[type, str, str]]) -> list[Task]:
    return [Reconcile(*key) for key in dict.fromkeys(keys)]


def _says_the_same(old: Any, new: Any) -> bool:
    """A heartbeat of a node is no reason to look at every DaemonSet."""
    same: bool = old.metadata == new.metadata and old.spec == new.spec and old.status == new.status
    return same


def namespace_of(view: View, name: str) -> ManagedNamespace | None:
    return view.objects.get(ManagedNamespace, "", name)
