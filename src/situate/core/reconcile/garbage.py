"""Garbage collection by owner references.

An object is deleted when all its owners are gone or wait for it; one remaining owner keeps it. Call `collect` for the
uids of `concerned_uids` after each change, and for all objects that are not kept after a restart.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from situate.core.model.stored import Owner, Raw, StoredMeta
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


def concerned_uids(before: OwnedObject | None, after: OwnedObject | None, graph: Graph) -> Iterator[str]:
    """The objects to `collect` after one was added, changed or deleted. One of the versions may be None."""
    item = after or before
    if item is None:
        return
    # 1. Itself and its owners, if a change ties it in another way: its own status, say, concerns nobody.
    if before is None or after is None or not same_ties(before.meta, after.meta):
        if after is not None and not is_kept(after, graph):
            yield after.ref.uid
        for owner in item.meta.owner_references:
            above = graph.by_uid(owner.uid)
            if above is not None and above.meta.deletion_timestamp is not None:  # it may wait for this one
                yield owner.uid
    # 2. Its dependents, which wait for an owner that is going or gone, not for a new or changed one: a ReplicaSet
    # changes with each of its pods.
    if before is not None and (after is None or _is_going(before.meta) != _is_going(after.meta)):
        for dependent in graph.dependents(item.ref.uid):
            yield dependent.ref.uid


def same_ties(before: StoredMeta, after: StoredMeta) -> bool:
    """Whether a change of an object concerns nobody but itself: then `concerned_uids` has none."""
    return (
        before.deletion_timestamp == after.deletion_timestamp
        and before.finalizers == after.finalizers
        and before.owner_references == after.owner_references
    )


def _is_going(meta: StoredMeta) -> tuple[object, ...]:
    return meta.deletion_timestamp, meta.finalizers


def is_kept(item: OwnedObject, graph: Graph) -> bool:
    """Whether all its owners keep it: then `collect` has nothing to do until one of them is going or gone."""
    owners = item.meta.owner_references
    return item.meta.deletion_timestamp is None and len(_classified(item, graph)[0]) == len(owners)


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
