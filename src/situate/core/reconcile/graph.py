"""All objects by owner and namespace, reduced to their metadata."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from situate.core.model.stored import StoredMeta
from situate.core.reconcile.effects import ObjectRef


class OwnedObject(msgspec.Struct, frozen=True, gc=False):
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
        self._kinds = dict.fromkeys(kinds)
        self._by_uid: dict[str, OwnedObject] = {}
        self._by_owner: dict[str, dict[str, None]] = {}
        """Uids, so that a new version of an object is one more entry of `_by_uid` and nothing else."""
        self._by_namespace: dict[str, dict[str, None]] = {}
        for item in items:
            self.put(item)

    def add_kinds(self, kinds: Iterable[tuple[str, str]]) -> None:
        """Serve more kinds, as (api_version, kind)."""
        self._kinds.update(dict.fromkeys(kinds))

    def remove_kinds(self, kinds: Iterable[tuple[str, str]]) -> None:
        for one in kinds:
            self._kinds.pop(one, None)

    def put(self, item: OwnedObject) -> None:
        """Add or replace an object by its uid."""
        uid, namespace, owners = item.ref.uid, item.ref.namespace, item.meta.owner_references
        held = self._by_uid.get(uid)
        if held is not None and (held.ref.namespace != namespace or held.meta.owner_references != owners):
            self.drop(uid)
        self._by_uid[uid] = item
        for owner in owners:
            self._by_owner.setdefault(owner.uid, {})[uid] = None
        if namespace:
            self._by_namespace.setdefault(namespace, {})[uid] = None

    def renew(self, item: OwnedObject) -> None:
        """Replace an object by a version with the same owners and namespace."""
        self._by_uid[item.ref.uid] = item

    def drop(self, uid: str) -> None:
        """Remove an object, if it exists."""
        item = self._by_uid.pop(uid, None)
        if item is None:
            return
        for owner in item.meta.owner_references:
            _remove(self._by_owner, owner.uid, uid)
        _remove(self._by_namespace, item.ref.namespace, uid)

    def by_uid(self, uid: str) -> OwnedObject | None:
        return self._by_uid.get(uid)

    def dependents(self, uid: str) -> Sequence[OwnedObject]:
        return self._in_order(self._by_owner.get(uid, {}))

    def contents(self, namespace: str) -> Sequence[OwnedObject]:
        return self._in_order(self._by_namespace.get(namespace, {}))

    def serves(self, api_version: str, kind: str) -> bool:
        return (api_version, kind) in self._kinds

    def _in_order(self, uids: Iterable[str]) -> list[OwnedObject]:
        return sorted((self._by_uid[uid] for uid in uids), key=_place)


def _remove(index: dict[str, dict[str, None]], key: str, uid: str) -> None:
    uids = index.get(key, {})
    uids.pop(uid, None)
    if not uids:
        index.pop(key, None)


def _place(item: OwnedObject) -> tuple[str, str, str, str]:
    ref = item.ref
    return ref.api_version, ref.kind, ref.namespace, ref.name
