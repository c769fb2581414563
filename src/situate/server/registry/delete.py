"""Deletes an object: at once, or by marking it as terminating.

A terminating object stays for its grace period (a pod until its node reports the end) and while it has finalizers. The
propagation policy adds one: orphan or foregroundDeletion. A pod is marked even if it goes at once: controllers wait for
the mark. If the server stops before the pod is gone, the clean-up of nodes and pods deletes it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final

from situate.core.model.duration import MAX_SECONDS
from situate.core.model.integers import next_int64
from situate.server.errors import StatusError, conflict
from situate.server.registry import codec
from situate.server.registry.context import RegistryContext
from situate.server.registry.converted import shown
from situate.server.registry.list import list_objects
from situate.server.registry.stored_object import DeleteResult, ListResult, StoredObject, read_stored
from situate.server.registry.transaction import Conflicted, commit, commit_deletion, retry_conflicts
from situate.server.registry.unreadable import UnreadableObject
from situate.server.registry.user_admission import AdmissionRequest, delete_options
from situate.server.registry.warning import warn
from situate.server.requests import Caller, DeleteOptions, ListOptions, Object, Target
from situate.server.resources import BY_KIND, Resource

POD: Final = BY_KIND["v1", "Pod"]
ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
TERMINATING: Final = "Terminating"
OTHER_UID: Final = (
    "the UID in the precondition ({requested}) does not match the UID in record ({found}). The object might have been "
    "deleted and then recreated"
)
OTHER_VERSION: Final = (
    "the ResourceVersion in the precondition ({requested}) does not match the ResourceVersion in record ({found}). The "
    "object might have been modified"
)
# Kinds whose default is to orphan their dependents.
_ORPHANING: Final = ("batch/Job", "/ReplicationController")
_WITHOUT_DEPENDENTS: Final = ("/Event", "events.k8s.io/Event")
PODS_STAY: Final = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)


async def delete(context: RegistryContext, target: Target, caller: Caller, options: DeleteOptions) -> DeleteResult:
    async def attempt() -> DeleteResult | Conflicted:
        stored = context.cache.get(target.resource, target.namespace, target.name)
        if stored is not None:
            return await _delete_once(context, target, stored, caller, options)
        unreadable = context.cache.unreadable_at(target.resource, target.namespace, target.name)
        if unreadable is not None:
            return await _delete_unreadable(context, target, unreadable, caller, options)
        raise context.cache.missing(target.resource, target.namespace, target.name)

    return await retry_conflicts(context, target, attempt)


async def _delete_unreadable(
    context: RegistryContext, target: Target, found: UnreadableObject, caller: Caller, options: DeleteOptions
) -> DeleteResult | Conflicted:
    """Delete at once: finalizers and uid cannot be read. Admission sees only the name."""
    meta = {"name": found.name, **({"namespace": found.namespace} if found.namespace else {})}
    nothing = read_stored(found.key, codec.encode({"metadata": meta}), found.revision)
    _check_preconditions(target.resource, nothing, options)
    await _admit(context, target, nothing.object(target.resource), caller, options)
    done = await commit_deletion(context, target, nothing, options.dry_run)
    return done if isinstance(done, Conflicted) else DeleteResult(done, gone=True)


async def _delete_once(
    context: RegistryContext, target: Target, stored: StoredObject, caller: Caller, options: DeleteOptions
) -> DeleteResult | Conflicted:
    _check_preconditions(target.resource, stored, options)
    stored = await shown(target.resource, stored)
    old = stored.object(target.resource)
    await _admit(context, target, old, caller, options)
    terminating = _terminating(context, target.resource, old, options)
    if terminating is old:
        return DeleteResult(stored, gone=False)
    if terminating is None and not options.dry_run and _is_marked_first(target.resource, old):
        mark = _mark_terminating(context, target.resource, old, [], 0)
        marked = await commit(context, target, stored.name, stored, old, mark, dry_run=False)
        if isinstance(marked, Conflicted):
            return marked
        stored, old = marked, marked.object(target.resource)
    done = await commit(context, target, stored.name, stored, old, terminating, options.dry_run)
    return done if isinstance(done, Conflicted) else DeleteResult(done, gone=terminating is None)


def _is_marked_first(resource: Resource, old: Object) -> bool:
    return resource is POD and "deletionTimestamp" not in old["metadata"]


async def _admit(context: RegistryContext, target: Target, old: Object, caller: Caller, options: DeleteOptions) -> None:
    for each in context.admission:
        await each.admit("delete", target, None, old, caller)
    if context.users.concerns(target.resource, target.subresource, "DELETE"):
        asked = AdmissionRequest("DELETE", target, None, old, caller, delete_options(options), options.dry_run)
        await context.users.check(asked)


def _check_preconditions(resource: Resource, stored: StoredObject, options: DeleteOptions) -> None:
    why = ""
    if options.uid and options.uid != stored.uid:
        why = OTHER_UID.format(requested=options.uid, found=stored.uid)
    elif options.resource_version and options.resource_version != str(stored.revision):
        why = OTHER_VERSION.format(requested=options.resource_version, found=stored.revision)
    if why:
        raise conflict(resource.kind, resource.group, stored.name, why)


def _terminating(context: RegistryContext, resource: Resource, old: Object, options: DeleteOptions) -> Object | None:
    """The terminating object; the old one if the delete changes nothing; None to delete it now."""
    metadata = old["metadata"]
    finalizers = _finalizers(resource, metadata.get("finalizers", []), options)
    requested = options.grace_s if options.grace_s is None or options.grace_s >= 0 else 1
    if "deletionTimestamp" in metadata:
        left = metadata.get("deletionGracePeriodSeconds") or 0
        grace = left if requested is None else min(requested, left)
    else:
        left, grace = None, context.strategy(resource).grace(old, requested)
    has_finalizers = bool(finalizers) or bool(resource.kind == "Namespace" and old.get("spec", {}).get("finalizers"))
    if not grace and not has_finalizers:
        return None
    if grace == left and finalizers == metadata.get("finalizers", []):
        return old
    return _mark_terminating(context, resource, old, finalizers, grace)


def _mark_terminating(
    context: RegistryContext, resource: Resource, old: Object, finalizers: list[str], grace: int
) -> Object:
    metadata = {name: value for name, value in old["metadata"].items() if name != "finalizers"}
    if finalizers:
        metadata["finalizers"] = finalizers
    new = {**old, "metadata": metadata}
    if "deletionTimestamp" in metadata:
        metadata["deletionTimestamp"] = _shorter_deadline(context, metadata, grace)
    else:
        metadata["deletionTimestamp"] = context.now(grace)
        if generation := metadata.get("generation"):
            metadata["generation"] = next_int64(generation)
    if resource.kind == "Namespace":
        new["status"] = {**old.get("status", {}), "phase": TERMINATING}
    else:
        metadata["deletionGracePeriodSeconds"] = grace
    return new


def _shorter_deadline(context: RegistryContext, metadata: Object, grace: int) -> str:
    """The new deletionTimestamp for a shorter grace period: counted from the first delete, but not in the past."""
    end = datetime.fromisoformat(metadata["deletionTimestamp"])
    less = min(metadata.get("deletionGracePeriodSeconds") or 0, MAX_SECONDS) - min(grace, MAX_SECONDS)
    text = (end - timedelta(seconds=less)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return max(text, context.now())


def _finalizers(resource: Resource, current: list[str], options: DeleteOptions) -> list[str]:
    """The finalizers with the one that the propagation policy adds."""
    kind = f"{resource.group}/{resource.kind}"
    if kind in _WITHOUT_DEPENDENTS:
        return current
    wanted = ""
    match options.propagation:
        case "Orphan":
            wanted = ORPHAN
        case "Foreground":
            wanted = FOREGROUND
        case "Background":
            pass
        case "":
            present = [one for one in current if one in (ORPHAN, FOREGROUND)]
            wanted = present[0] if present else ORPHAN if kind in _ORPHANING else ""
            if not present and kind == _ORPHANING[0]:
                warn([PODS_STAY])
    if wanted in current:
        return [one for one in current if one == wanted or one not in (ORPHAN, FOREGROUND)]
    rest = [one for one in current if one not in (ORPHAN, FOREGROUND)]
    return [*rest, wanted] if wanted else rest


async def delete_collection(
    context: RegistryContext, target: Target, caller: Caller, list_options: ListOptions, options: DeleteOptions
) -> ListResult:
    """Delete one object after another. Objects deleted before one is refused stay deleted."""
    found = await list_objects(context.cache, context.store, target, list_options)
    gone: list[StoredObject] = []
    for one in found.items:
        each = Target(target.resource, one.namespace, one.name)
        try:
            gone.append((await delete(context, each, caller, options)).stored)
        except StatusError as no:
            if no.code != HTTPStatus.NOT_FOUND:
                raise
    return ListResult(context.cache.revision, gone, found.continue_to, found.remaining)
