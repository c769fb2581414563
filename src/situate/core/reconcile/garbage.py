"""Garbage collection by owner: what becomes of an object when those that own it go.

An object goes when all its owners are gone or wait for it to go; one owner that stays keeps it. Called for one object,
and to be called for its dependents whenever it changes or is gone.
"""

from collections.abc import Sequence
from typing import Any

from situate.core.model.stored import Owner
from situate.core.reconcile.effects import DeleteObject, Effect, Outcome, Propagation, UpdateObject
from situate.core.reconcile.graph import Graph, Item
from situate.core.reconcile.objects import patch_of, written

__all__ = ["FOREGROUND", "ORPHAN", "collect"]

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
"""Finalizers: the object waits until its dependents are gone, or know it no more."""


def collect(item: Item, graph: Graph) -> Outcome:
    if item.meta.deletion_timestamp is not None:
        # 1. On its way out, it may have to see to its dependents first.
        if ORPHAN in item.meta.finalizers:
            return Outcome(_orphaned(item, graph))
        if _waits(item) and not _blocking(item, graph):
            return Outcome((_without_finalizer(item, FOREGROUND),))
        return Outcome()
    if not item.meta.owner_references:
        return Outcome()
    # 2. An owner that stays keeps it, and the others are struck off.
    solid, going = _classified(item, graph)
    if solid:
        gone = [each for each in item.meta.owner_references if each not in solid]
        return Outcome((_without_owners(item, gone),) if gone else ())
    # 3. Nobody keeps it.
    if going and graph.dependents(item.ref.uid):
        return Outcome(_in_foreground(item, graph))
    return Outcome((DeleteObject(item.ref, item.meta.resource_version, _propagation(item)),))


def _waits(item: Item) -> bool:
    return item.meta.deletion_timestamp is not None and FOREGROUND in item.meta.finalizers


def _classified(item: Item, graph: Graph) -> tuple[list[Owner], list[Owner]]:
    """The owners that stay, and those that wait for this object to go. The rest are not there."""
    solid: list[Owner] = []
    going: list[Owner] = []
    for reference in item.meta.owner_references:
        owner = graph.by_uid(reference.uid)
        if owner is None or not _is_meant(reference, owner, item):
            if not graph.serves(reference.api_version, reference.kind):
                solid.append(reference)
        elif _waits(owner):
            going.append(reference)
        else:
            solid.append(reference)
    return solid, going


def _is_meant(reference: Owner, owner: Item, item: Item) -> bool:
    """An owner is in the same namespace as what it owns, or in none. Versions of a group are the same kind."""
    ref = owner.ref
    return (
        (ref.kind, ref.name) == (reference.kind, reference.name)
        and owner.group == reference.api_version.rpartition("/")[0]
        and ref.namespace in ("", item.ref.namespace)
    )


def _blocking(item: Item, graph: Graph) -> bool:
    return any(
        reference.uid == item.ref.uid and reference.block_owner_deletion
        for dependent in graph.dependents(item.ref.uid)
        for reference in dependent.meta.owner_references
    )


def _orphaned(item: Item, graph: Graph) -> tuple[Effect, ...]:
    """Its dependents forget it; then it may go."""
    freed = [
        _without_owners(dependent, [each for each in dependent.meta.owner_references if each.uid == item.ref.uid])
        for dependent in graph.dependents(item.ref.uid)
        if dependent.ref.uid != item.ref.uid
    ]
    return (*freed, _without_finalizer(item, ORPHAN))


def _in_foreground(item: Item, graph: Graph) -> tuple[Effect, ...]:
    delete = DeleteObject(item.ref, item.meta.resource_version, "Foreground")
    if not any(_waits(dependent) for dependent in graph.dependents(item.ref.uid)):
        return (delete,)
    if not any(reference.block_owner_deletion for reference in item.meta.owner_references):
        return (delete,)
    # It and one below it wait for each other, perhaps in a circle. It stops blocking; the delete is for the next call.
    owners = [{**written(each), "blockOwnerDeletion": False} for each in item.meta.owner_references]
    return (UpdateObject(item.ref, item.meta.resource_version, patch_of({"ownerReferences": owners})),)


def _propagation(item: Item) -> Propagation:
    """Finalizers that are there already say how."""
    if ORPHAN in item.meta.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in item.meta.finalizers else "Background"


def _without_owners(item: Item, gone: Sequence[Owner]) -> UpdateObject:
    kept: list[Any] = [written(each) for each in item.meta.owner_references if each not in gone]
    return UpdateObject(item.ref, item.meta.resource_version, patch_of({"ownerReferences": kept or None}))


def _without_finalizer(item: Item, name: str) -> UpdateObject:
    kept = [each for each in item.meta.finalizers if each != name]
    return UpdateObject(item.ref, item.meta.resource_version, patch_of({"finalizers": kept or None}))
