"""Garbage collection by owner references.

An object is deleted when all its owners are gone or wait for it; one remaining owner keeps it. Call `collect` for an
object that changed, and for its dependents when it changes or is gone.
"""

from collections.abc import Sequence
from typing import Any

from situate.core.model.stored import Owner, Raw
from situate.core.reconcile.effects import DeleteObject, Effect, Propagation, ReconcileResult, UpdateObject
from situate.core.reconcile.graph import Graph, OwnedObject
from situate.core.reconcile.objects import to_json

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
"""Finalizers: the object waits until its dependents are gone, or do not refer to it any more."""


def collect(item: OwnedObject, graph: Graph) -> ReconcileResult:
    if item.meta.deletion_timestamp is not None:
        # 1. Being deleted: handle its dependents first.
        if ORPHAN in item.meta.finalizers:
            return ReconcileResult(_orphaned(item, graph))
        if _waits(item) and not _blocking(item, graph):
            return ReconcileResult((_without_finalizer(item, FOREGROUND),))
        return ReconcileResult()
    if not item.meta.owner_references:
        return ReconcileResult()
    # 2. A remaining owner keeps it; references to the others are removed.
    solid, going = _classified(item, graph)
    if solid:
        gone = [each for each in item.meta.owner_references if each not in solid]
        return ReconcileResult((_without_owners(item, gone),) if gone else ())
    # 3. No owner is left.
    if going and graph.dependents(item.ref.uid):
        return ReconcileResult(_in_foreground(item, graph))
    return ReconcileResult((DeleteObject(item.ref, item.meta.resource_version, _propagation(item)),))


def _waits(item: OwnedObject) -> bool:
    return item.meta.deletion_timestamp is not None and FOREGROUND in item.meta.finalizers


def _classified(item: OwnedObject, graph: Graph) -> tuple[list[Owner], list[Owner]]:
    """The owners that stay, and those that wait for this object. The rest do not exist."""
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


def _is_meant(reference: Owner, owner: OwnedObject, item: OwnedObject) -> bool:
    """An owner is in the same namespace or cluster-scoped. Versions of a group are the same kind."""
    ref = owner.ref
    return (
        (ref.kind, ref.name) == (reference.kind, reference.name)
        and owner.group == reference.api_version.rpartition("/")[0]
        and ref.namespace in ("", item.ref.namespace)
    )


def _blocking(item: OwnedObject, graph: Graph) -> bool:
    return any(
        reference.uid == item.ref.uid and reference.block_owner_deletion
        for dependent in graph.dependents(item.ref.uid)
        for reference in dependent.meta.owner_references
    )


def _orphaned(item: OwnedObject, graph: Graph) -> tuple[Effect, ...]:
    """Remove the dependents' references to it, then its finalizer."""
    freed = [
        _without_owners(dependent, [each for each in dependent.meta.owner_references if each.uid == item.ref.uid])
        for dependent in graph.dependents(item.ref.uid)
        if dependent.ref.uid != item.ref.uid
    ]
    return (*freed, _without_finalizer(item, ORPHAN))


def _in_foreground(item: OwnedObject, graph: Graph) -> tuple[Effect, ...]:
    delete = DeleteObject(item.ref, item.meta.resource_version, "Foreground")
    if not any(_waits(dependent) for dependent in graph.dependents(item.ref.uid)):
        return (delete,)
    if not any(reference.block_owner_deletion for reference in item.meta.owner_references):
        return (delete,)
    # It and a dependent wait for each other, perhaps in a cycle. Stop blocking; the next call deletes it.
    owners = [{**to_json(each), "blockOwnerDeletion": False} for each in item.meta.owner_references]
    return (_patch(item, {"ownerReferences": owners}),)


def _propagation(item: OwnedObject) -> Propagation:
    """Existing finalizers decide."""
    if ORPHAN in item.meta.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in item.meta.finalizers else "Background"


def _without_owners(item: OwnedObject, gone: Sequence[Owner]) -> UpdateObject:
    kept: list[Any] = [to_json(each) for each in item.meta.owner_references if each not in gone]
    return _patch(item, {"ownerReferences": kept or None})


def _without_finalizer(item: OwnedObject, name: str) -> UpdateObject:
    kept = [each for each in item.meta.finalizers if each != name]
    return _patch(item, {"finalizers": kept or None})


def _patch(item: OwnedObject, metadata: Raw) -> UpdateObject:
    return UpdateObject(item.ref, item.meta.resource_version, {"metadata": metadata})
