"""Commits a write: guarded by the revision that was read, in one transaction with what the extension adds.

A write reads, decides, and commits on the condition that nothing has changed. After a conflict it starts again, a
limited number of times.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias, TypeVar

from msgspec.structs import replace

from situate.server.errors import StatusError, conflict
from situate.server.registry import codec, conversion
from situate.server.registry.context import RegistryContext
from situate.server.registry.converted import has_webhook, shown
from situate.server.registry.keys import key_of
from situate.server.registry.selectable_fields import PODS, values_after
from situate.server.registry.store_errors import status_error
from situate.server.registry.stored_object import StoredObject, read_stored
from situate.server.requests import Object, Target
from situate.store.entries import ABSENT, LeaseId, Revision
from situate.store.errors import StoreError
from situate.store.transactions import At, Committed, Delete, Guard, Outcome, Put, Refused, Write

PENDING: Final = "Pending"
MAX_ATTEMPTS: Final = 5
"""Attempts of a write that conflicts, as for patches in Kubernetes."""
EXTENDED: Final = (PODS, "/nodes", "resource.k8s.io/resourceclaims")
"""The resources whose transactions have an extension."""
_MAYBE_OUTDATED: Final = ("NotFound", "Conflict")
"""Reasons of errors that come from the cache, which may be old. AlreadyExists comes from the store."""

T = TypeVar("T")
Conflicted: TypeAlias = Refused
"""Another write came first."""


async def commit(
    context: RegistryContext,
    target: Target,
    name: str,
    before: StoredObject | None,
    old: Object | None,
    new: Object | None,
    dry_run: bool = False,
    unchanged: StoredObject | None = None,
    value: bytes | None = None,
    request: object | None = None,
) -> StoredObject | Conflicted:
    """Replace `before` by `new`, or delete it if `new` is None. Returns once that is durable and in the cache.

    The object is returned in the version of the target; a deleted one in its last state, at the revision of the
    deletion, so that `before` must be in that version too. `unchanged`: another object that
    must not have changed. `value`: the stored form of `new`, if known. `request`: see `TransactionExtension`.
    """
    key = key_of(target.resource, target.namespace, name)
    if new is not None and context.extension is not None and target.resource.stored_as in EXTENDED:
        settled = context.extension.settled(context.cache, target.resource, old, new)
        if settled is not new:  # a quota has no say in what it has become, but in what was asked for
            if old is None and context.quotas.limits(target):
                context.quotas.check(target, new)
            new, value = settled, None
    guards: list[Guard] = [At(key, Revision(before.revision) if before else ABSENT)]
    if unchanged is not None:
        guards.append(At(unchanged.key, Revision(unchanged.revision)))
    for fence in context.fences:
        guards.append(fence())
    if value is None:
        value = b"" if new is None else await stored_form(target, new)
    writes: list[Write] = [Delete(key) if new is None else Put(key, value, await _lease(context, target))]
    if before is not None and new is not None and not dry_run and not has_webhook(target.resource):
        seen = values_after(target.resource.stored_as, (before.uid, before.labels, before.values), new)
        if seen is not None:
            context.cache.expect(key, value, seen)
    quotas = context.quotas
    charges = quotas.charges(target, old, new) if quotas.limits(target) else None
    if charges:
        async with quotas.lock(target.namespace):
            quotas.write(target, charges, new or old or {}, guards, writes, checked=_is_checked(target, old, new))
            outcome = await _commit_extended(context, target, old, new, request, guards, writes, dry_run)
    else:
        outcome = await _commit_extended(context, target, old, new, request, guards, writes, dry_run)
    if isinstance(outcome, Refused):
        return outcome
    revision = outcome.revision
    if dry_run:
        revision = Revision(before.revision) if before else ABSENT
    if new is None and before is not None:
        return replace(before, revision=revision)
    if dry_run or new is None:
        return await shown(target.resource, read_stored(key, value, revision))
    remember_pending(context, target, key, value, new)
    return await shown(target.resource, cached_or_decoded(context, target, name, key, value, revision))


def _is_checked(target: Target, old: Object | None, new: Object | None) -> bool:
    """Whether quotas may refuse this write. Pods are checked when they are created, and when they are resized."""
    return new is not None and (old is None or target.resource.stored_as != PODS or target.subresource == "resize")


async def _commit_extended(
    context: RegistryContext,
    target: Target,
    old: Object | None,
    new: Object | None,
    request: object | None,
    guards: list[Guard],
    writes: list[Write],
    dry_run: bool,
) -> Outcome:
    extension = context.extension if target.resource.stored_as in EXTENDED else None
    if extension is None:
        return await _commit(context, guards, writes, dry_run)
    lock = extension.lock(target.resource, old, new, request)
    if lock is None:
        extension.extend(context.cache, target.resource, old, new, request, guards, writes)
        return await _commit(context, guards, writes, dry_run)
    async with lock:
        extension.extend(context.cache, target.resource, old, new, request, guards, writes)
        return await _commit(context, guards, writes, dry_run)


def remember_pending(context: RegistryContext, target: Target, key: str, value: bytes, new: Object) -> None:
    """A pending pod will be bound, or run: whoever writes it next need not decode it."""
    if target.resource.stored_as == PODS and new.get("status", {}).get("phase", PENDING) == PENDING:
        context.recent_pods.put(key, value, new)


async def commit_deletion(
    context: RegistryContext, target: Target, found: StoredObject, dry_run: bool
) -> StoredObject | Conflicted:
    """Delete an unreadable value, with what the extension has stored for it."""
    guards: list[Guard] = [At(found.key, Revision(found.revision))]
    for fence in context.fences:
        guards.append(fence())
    writes: list[Write] = [Delete(found.key)]
    if context.extension is not None and target.resource.stored_as in EXTENDED:
        context.extension.forget(context.cache, target.resource, target.namespace, target.name, guards, writes)
    outcome = await _commit(context, guards, writes, dry_run)
    return outcome if isinstance(outcome, Refused) else replace(found, revision=outcome.revision)


async def _commit(context: RegistryContext, guards: list[Guard], writes: list[Write], dry_run: bool) -> Outcome:
    """Commit, then wait until the cache has the write; or, if it was refused, the writes that refused it."""
    if dry_run:
        return Committed(ABSENT)
    try:
        outcome = await context.store.commit(guards, writes)
    except StoreError as error:
        raise status_error(error) from error
    if isinstance(outcome, Refused):
        await context.cache.wait_until_fresh()
    else:
        await context.cache.wait_for(outcome.revision)
    return outcome


async def _lease(context: RegistryContext, target: Target) -> LeaseId:
    try:
        return await context.event_leases.lease(target.resource.stored_as, context.now_s())
    except StoreError as error:
        raise status_error(error) from error


async def stored_form(target: Target, new: Object) -> bytes:
    """What is stored of an object. Raises StatusError if a webhook that has to convert it fails."""
    if target.resource.custom is not None:
        return await target.resource.custom.stored.encoded(new)
    return stored_value(target, new)


def stored_value(target: Target, new: Object) -> bytes:
    """`stored_form` of a kind that no webhook converts."""
    if target.resource.custom is not None:
        return target.resource.custom.stored.encode(new)
    convert = conversion.to_stored(target.resource)
    return codec.encode(convert(new) if convert else new)


def cached_or_decoded(
    context: RegistryContext, target: Target, name: str, key: str, value: bytes, revision: int
) -> StoredObject:
    """Most often the cache has decoded it already."""
    cached = context.cache.get(target.resource, target.namespace, name)
    return cached if cached is not None and cached.revision == revision else read_stored(key, value, revision)


async def retry_conflicts(
    context: RegistryContext, target: Target, attempt: Callable[[], Awaitable[T | Conflicted]]
) -> T:
    """Call `attempt` until it does not conflict.

    Several servers may share the store, so an error may come from an old state of the cache. Then `attempt` is called
    again with the newest state.
    """
    for tried in range(1, MAX_ATTEMPTS + 1):
        seen = context.cache.revision
        try:
            result = await attempt()
        except StatusError as error:
            if error.reason not in _MAYBE_OUTDATED or tried == MAX_ATTEMPTS or not await _outdated(context, seen):
                raise
            continue
        if not isinstance(result, Refused):
            return result
    raise conflict(target.resource.plural, target.resource.group, target.name)


async def _outdated(context: RegistryContext, seen: int) -> bool:
    """Whether the store has a revision newer than this; if so, wait until the cache has it."""
    try:
        newest = await context.store.revision()
    except StoreError as error:
        raise status_error(error) from error
    if newest <= seen:
        return False
    await context.cache.wait_until_fresh()
    return True
