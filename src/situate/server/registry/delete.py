"""Deleting an object: at once, or by asking it to go and waiting for whoever has to let it.

What keeps an object: its grace (of pods, until the node says it has ended), and its finalizers, among which are ours
for what shall become of its dependents.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final

from situate.server.errors import StatusError, conflict, not_found
from situate.server.registry.context import Means
from situate.server.registry.list import listed
from situate.server.registry.stored_object import Deleted, Held, Listing
from situate.server.registry.transaction import Lost, commit, retried
from situate.server.registry.warning import warn
from situate.server.requests import Caller, DeleteOptions, ListOptions, Object, Target
from situate.server.resources import Resource

__all__ = ["collection_deleted", "deleted"]

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
TERMINATING: Final = "Terminating"
OTHER_UID: Final = (
    "the UID in the precondition ({asked}) does not match the UID in record ({found}). The object might have been "
    "deleted and then recreated"
)
OTHER_VERSION: Final = (
    "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record ({found}). The "
    "object might have been modified"
)
# Kinds that leave their dependents alone unless told otherwise, from a time when nobody collected them.
_ORPHANING: Final = ("batch/Job", "/ReplicationController")
_WITHOUT_DEPENDENTS: Final = ("/Event", "events.k8s.io/Event")
PODS_STAY: Final = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)


async def deleted(means: Means, target: Target, caller: Caller, options: DeleteOptions) -> Deleted:
    async def attempt() -> Deleted | Lost:
        held = means.cache.get(target.resource, target.namespace, target.name)
        if held is None:
            raise not_found(target.resource.plural, target.resource.group, target.name)
        return await _delete_once(means, target, held, caller, options)

    return await retried(means, target, attempt)


async def _delete_once(
    means: Means, target: Target, held: Held, caller: Caller, options: DeleteOptions
) -> Deleted | Lost:
    _check_preconditions(target.resource, held, options)
    old = held.object(target.resource)
    for each in means.admission:
        await each.admit("delete", target, None, old, caller)
    waiting = _waiting(means, target.resource, old, options)
    if waiting is old:
        return Deleted(held, gone=False)
    done = await commit(means, target, held.name, held, old, waiting, options.dry_run)
    return done if isinstance(done, Lost) else Deleted(done, gone=waiting is None)


def _check_preconditions(resource: Resource, held: Held, options: DeleteOptions) -> None:
    why = ""
    if options.uid and options.uid != held.uid:
        why = OTHER_UID.format(asked=options.uid, found=held.uid)
    elif options.resource_version and options.resource_version != str(held.revision):
        why = OTHER_VERSION.format(asked=options.resource_version, found=held.revision)
    if why:
        raise conflict(resource.kind, resource.group, held.name, why)


def _waiting(means: Means, resource: Resource, old: Object, options: DeleteOptions) -> Object | None:
    """The object as it waits to go; the old one if nothing changes by asking; None: it goes now."""
    metadata = old["metadata"]
    finalizers = _finalizers(resource, metadata.get("finalizers", []), options)
    asked = options.grace_s if options.grace_s is None or options.grace_s >= 0 else 1
    if "deletionTimestamp" in metadata:
        left = metadata.get("deletionGracePeriodSeconds") or 0
        grace = left if asked is None else min(asked, left)
    else:
        left, grace = None, means.strategy(resource).grace(old, asked)
    kept = bool(finalizers) or bool(resource.kind == "Namespace" and old.get("spec", {}).get("finalizers"))
    if not grace and not kept:
        return None
    if grace == left and finalizers == metadata.get("finalizers", []):
        return old
    return _marked(means, resource, old, finalizers, grace)


def _marked(means: Means, resource: Resource, old: Object, finalizers: list[str], grace: int) -> Object:
    metadata = {name: value for name, value in old["metadata"].items() if name != "finalizers"}
    if finalizers:
        metadata["finalizers"] = finalizers
    new = {**old, "metadata": metadata}
    if "deletionTimestamp" in metadata:
        metadata["deletionTimestamp"] = _sooner(means, metadata, grace)
    else:
        metadata["deletionTimestamp"] = means.now(grace)
        if generation := metadata.get("generation"):
            metadata["generation"] = generation + 1
    if resource.kind == "Namespace":
        new["status"] = {**old.get("status", {}), "phase": TERMINATING}
    else:
        metadata["deletionGracePeriodSeconds"] = grace
    return new


def _sooner(means: Means, metadata: Object, grace: int) -> str:
    """When it goes if its grace is shortened: counted from when it was first asked to go, but not in the past."""
    end = datetime.fromisoformat(metadata["deletionTimestamp"])
    less = (metadata.get("deletionGracePeriodSeconds") or 0) - grace
    text = (end - timedelta(seconds=less)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return max(text, means.now())


def _finalizers(resource: Resource, held: list[str], options: DeleteOptions) -> list[str]:
    """What the object waits for, with what was asked for its dependents."""
    kind = f"{resource.group}/{resource.kind}"
    if kind in _WITHOUT_DEPENDENTS:
        return held
    wanted = ""
    match options.propagation:
        case "Orphan":
            wanted = ORPHAN
        case "Foreground":
            wanted = FOREGROUND
        case "Background":
            pass
        case "":
            said = [one for one in held if one in (ORPHAN, FOREGROUND)]
            wanted = said[0] if said else ORPHAN if kind in _ORPHANING else ""
            if not said and kind == _ORPHANING[0]:
                warn([PODS_STAY])
    if wanted in held:
        return [one for one in held if one == wanted or one not in (ORPHAN, FOREGROUND)]
    rest = [one for one in held if one not in (ORPHAN, FOREGROUND)]
    return [*rest, wanted] if wanted else rest


async def collection_deleted(
    means: Means, target: Target, caller: Caller, list_options: ListOptions, options: DeleteOptions
) -> Listing:
    """One after another, each by itself: what was deleted before one is refused stays deleted."""
    found = await listed(means.cache, means.store, target, list_options)
    gone: list[Held] = []
    for one in found.items:
        each = Target(target.resource, one.namespace, one.name)
        try:
            gone.append((await deleted(means, each, caller, options)).held)
        except StatusError as no:
            if no.code != HTTPStatus.NOT_FOUND:
                raise
    return Listing(means.cache.revision, gone, found.continue_to, found.remaining)
