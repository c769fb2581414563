"""The revision history of a StatefulSet or DaemonSet, as ControllerRevisions."""

from collections.abc import Callable, Container, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from situate.core.model.apps import ControllerRevision, DaemonSet, ManagedStatefulSet
from situate.core.model.integers import next_int64
from situate.core.model.stored import PodTemplateSpec
from situate.core.reconcile.effects import CreateObject, DeleteObject, Effect, ObjectRef, ReconcileResult, UpdateObject
from situate.core.reconcile.naming import data_hash, hashed_name
from situate.core.reconcile.objects import ObjectLister, controller_ref, ref_of, to_json, update_status

HASH_LABEL = "controller-revision-hash"
"""On pods: for a DaemonSet the hash of their revision, for a StatefulSet its name."""
_HASH_LABELS = {"DaemonSet": HASH_LABEL, "StatefulSet": "controller.kubernetes.io/hash"}
"""On revisions."""
_PATCH = "$patch"


class RevisionHistory(msgspec.Struct, frozen=True):
    """`update` is the revision of the present template; None until the effects have created it."""

    update: ControllerRevision | None
    effects: tuple[Effect, ...] = ()
    collision: bool = False


def _data(template: PodTemplateSpec) -> Any:
    """What `kubectl rollout undo` applies to restore this template."""
    return _sorted({"spec": {"template": {**to_json(template), _PATCH: "replace"}}})


def _sorted(value: Any) -> Any:
    """By name, as Go writes a map."""
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(one) for one in value] if isinstance(value, list | tuple) else value


def template_in(revision: ControllerRevision) -> PodTemplateSpec:
    said = (revision.data.get("spec") or {}).get("template") or {}
    return msgspec.convert({key: value for key, value in said.items() if key != _PATCH}, PodTemplateSpec)


def history(
    owner: ManagedStatefulSet | DaemonSet, held: Sequence[ControllerRevision], taken: Callable[[str], bool]
) -> RevisionHistory:
    """`held`: the owner's revisions. `taken`: whether a name is in use."""
    data = _data(owner.spec.template)
    last = max((one.revision for one in held), default=0)
    same = [one for one in held if one.data == data]
    if same:
        found = max(same, key=lambda one: (one.revision, one.metadata.name))
        if found.revision == last:
            return RevisionHistory(found)
        # Rolled back: the old revision becomes the newest.
        update = UpdateObject(ref_of(found), found.metadata.resource_version, {"revision": next_int64(last)})
        return RevisionHistory(None, (update,))
    digest = data_hash(data, owner.status.collision_count)
    name, namespace = hashed_name(owner.metadata.name, digest), owner.metadata.namespace
    if taken(name):
        return RevisionHistory(None, collision=True)
    reference = controller_ref(owner)
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "labels": {**owner.spec.template.metadata.labels, _HASH_LABELS[reference.kind]: digest},
        "ownerReferences": [to_json(reference)],
    }
    if owner.metadata.annotations:
        metadata["annotations"] = dict(owner.metadata.annotations)
    body = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": metadata,
        "data": data,
        "revision": next_int64(last),
    }
    return RevisionHistory(None, (CreateObject(ObjectRef("apps/v1", "ControllerRevision", namespace, name), body),))


def update_revision(
    owner: ManagedStatefulSet | DaemonSet, held: Sequence[ControllerRevision], objects: ObjectLister, *numbers: str
) -> ControllerRevision | ReconcileResult:
    """The revision of the present template, or what to do until there is one. `numbers` of the status are written
    even if they are 0."""
    found = history(
        owner, held, lambda name: objects.get(ControllerRevision, owner.metadata.namespace, name) is not None
    )
    if found.update is not None:
        return found.update
    if owner.metadata.deletion_timestamp is not None:
        return ReconcileResult()
    if found.collision:
        status = replace(owner.status, collision_count=(owner.status.collision_count or 0) + 1)
        return ReconcileResult(update_status(owner, status, *numbers))
    return ReconcileResult(found.effects)


def unused_revisions(held: Sequence[ControllerRevision], used: Container[str], limit: int) -> list[Effect]:
    """Unused revisions beyond the limit, oldest first."""
    idle = sorted((one for one in held if one.metadata.name not in used), key=lambda one: one.revision)
    return [DeleteObject(ref_of(one)) for one in idle[: max(len(idle) - limit, 0)]]
