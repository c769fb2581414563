"""Adoption: a controller adopts matching objects without a controller, and releases those that no longer match."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from situate.core.model.base import Labels
from situate.core.model.labels import LabelSelector, Selector, SelectorError, parse_selector
from situate.core.reconcile.effects import Effect, UpdateObject
from situate.core.reconcile.objects import ManagedObject, ObjectLister, controller_ref, to_json, update_metadata

K = TypeVar("K", bound=ManagedObject)


class Claimed(msgspec.Struct, Generic[K], frozen=True):
    """`mine` belong to the owner. While there are effects, the rest of the work waits for them."""

    mine: tuple[K, ...]
    effects: tuple[Effect, ...]


def selector_of(selector: LabelSelector | Labels | None) -> Selector | None:
    """None if the selector is invalid or matches everything, on which no controller acts."""
    if isinstance(selector, Mapping):
        selector = LabelSelector(match_labels=selector)
    try:
        parsed = parse_selector(selector)
    except SelectorError:
        return None
    return parsed if parsed.requirements else None


def claim(
    owner: ManagedObject,
    kind: type[K],
    selector: Selector,
    objects: ObjectLister,
    *,
    finalizers: Sequence[str] = (),
    accepts: Callable[[K], bool] | None = None,
) -> Claimed[K]:
    """Adopted objects get `finalizers`; `accepts` may refuse an object."""
    namespace, uid = owner.metadata.namespace, owner.metadata.uid
    mine: list[K] = []
    effects: list[Effect] = []
    leaving = owner.metadata.deletion_timestamp is not None
    labels: Mapping[str, str] | None = None
    matches = False
    for one in objects.controlled(kind, namespace, uid):
        if one.metadata.labels is not labels:  # else as the one before: there may be thousands, of one template
            labels = one.metadata.labels
            matches = selector.matches(labels)
        if matches:
            mine.append(one)
        elif not leaving and one.metadata.deletion_timestamp is None:
            effects.append(_release(one, uid))
    if not leaving:
        for one in objects.controlled(kind, namespace, ""):
            wanted = one.metadata.deletion_timestamp is None and selector.matches(one.metadata.labels)
            if wanted and (accepts is None or accepts(one)):
                effects.append(_adopt(one, owner, finalizers))
    return Claimed(tuple(mine), tuple(effects))


def _adopt(one: ManagedObject, owner: ManagedObject, finalizers: Sequence[str]) -> UpdateObject:
    kept = [to_json(held) for held in one.metadata.owner_references if held.uid != owner.metadata.uid]
    meta: dict[str, Any] = {"ownerReferences": [*kept, to_json(controller_ref(owner))]}
    missing = [name for name in finalizers if name not in one.metadata.finalizers]
    if missing:
        meta["finalizers"] = [*one.metadata.finalizers, *missing]
    return update_metadata(one, meta)


def _release(one: ManagedObject, uid: str) -> UpdateObject:
    kept = [to_json(held) for held in one.metadata.owner_references if held.uid != uid]
    return update_metadata(one, {"ownerReferences": kept or None})
