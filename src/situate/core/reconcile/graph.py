"""All objects by owner and namespace, reduced to their metadata."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import msgspec

from situate.core.model.stored import StoredMeta
from situate.core.reconcile.effects import ObjectRef


class OwnedObject(msgspec.Struct, frozen=True):
    """`resource` is the plural in paths: "pods"."""

    ref: ObjectRef
    meta: StoredMeta
    resource: str

    @property
    def group(self) -> str:
        return self.ref.api_version.rpartition("/")[0]


class Graph(Protocol):
    """A consistent, read-only view of the objects of all kinds."""

    def by_uid(self, uid: str) -> OwnedObject | None: ...

    def dependents(self, uid: str) -> Sequence[OwnedObject]:
        """The objects with this owner, ordered by kind, namespace and name."""

    def contents(self, namespace: str) -> Sequence[OwnedObject]:
        """All objects in a namespace, in the same order."""

    def serves(self, api_version: str, kind: str) -> bool:
        """Whether this kind is known. An owner of an unknown kind is taken to exist."""


class ObjectGraph:
    __slots__ = ("_by_namespace", "_by_owner", "_by_uid", "_kinds")

    def __init__(self, kinds: Iterable[tuple[str, str]] = (), items: Iterable[OwnedObject] = ()) -> None:
        self._kinds = frozenset(kinds)
        self._by_uid: dict[str, OwnedObject] = {}
        self._by_owner: dict[str, dict[str, OwnedObject]] = {}
        self._by_namespace: dict[str, dict[str, OwnedObject]] = {}
        for item in items:
            self.put(item)

    def put(self, item: OwnedObject) -> None:
        """Add or replace an object by its uid."""
        uid = item.ref.uid
        self.drop(uid)
        self._by_uid[uid] = item
        for index, key in self._places(item):
            index.setdefault(key, {})[uid] = item

    def drop(self, uid: str) -> None:
        """Remove an object, if it exists."""
        item = self._by_uid.pop(uid, None)
        if item is None:
            return
        for index, key in self._places(item):
            index[key].pop(uid, None)
            if not index[key]:
                del index[key]

    def _places(self, item: OwnedObject) -> list[tuple[dict[str, dict[str, OwnedObject]], Any]]:
        owners = dict.fromkeys(owner.uid for owner in item.meta.owner_references)
        places: list[tuple[dict[str, dict[str, OwnedObject]], Any]] = [(self._by_owner, uid) for uid in owners]
        if item.ref.namespace:
            places.append((self._by_namespace, item.ref.namespace))
        return places

    def by_uid(self, uid: str) -> OwnedObject | None:
        return self._by_uid.get(uid)

    def dependents(self, uid: str) -> Sequence[OwnedObject]:
        return _in_order(self._by_owner.get(uid, {}).values())

    def contents(self, namespace: str) -> Sequence[OwnedObject]:
        return _in_order(self._by_namespace.get(namespace, {}).values())

    def serves(self, api_version: str, kind: str) -> bool:
        return (api_version, kind) in self._kinds


def _in_order(items: Iterable[OwnedObject]) -> list[OwnedObject]:
    return sorted(items, key=lambda item: (item.ref.api_version, item.ref.kind, item.ref.namespace, item.ref.name))
