"""Changes or creates several objects at once, which costs less than as many calls of `modify` or `create`.

Each object has a transaction and an outcome of its own. They do not share one: no two objects of a kind have the same
resourceVersion, or a watch that breaks between them could not go on after the first without missing the second. What
they share is the way to the store and back, and the wait for the cache.

A change that cannot be made in this way is made by `modify`: if it was refused, needs a lock, deletes the object,
leaves it as it is, changes what a quota counts, or if another writer was faster. An object that has no template yet, is
counted by a quota, concerns an admission plugin of a user, or was refused, is created by `create`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from msgspec import Struct

from situate.server.errors import StatusError
from situate.server.registry.context import RegistryContext
from situate.server.registry.converted import has_webhook
from situate.server.registry.create import Instance, create, find_template, instantiate
from situate.server.registry.create_cache import split_body
from situate.server.registry.keys import key_of
from situate.server.registry.normalize import encode, normalize
from situate.server.registry.selectable_fields import EVENTS, values_after
from situate.server.registry.store_errors import status_error
from situate.server.registry.stored_object import StoredObject
from situate.server.registry.transaction import EXTENDED, cached_or_decoded, remember_pending, stored_value
from situate.server.registry.update import last_finalizer_removed, modify
from situate.server.requests import Caller, Object, Target, WriteOptions
from situate.store.entries import ABSENT, Revision
from situate.store.errors import StoreError
from situate.store.transactions import At, Committed, Guard, Put, Refused, Write

Prepared: TypeAlias = tuple[list[Guard], list[Write]]
"""A transaction."""
Changed: TypeAlias = tuple[str, bytes, Object]
"""A changed object: its key, its stored form, and the object."""


class Modification(Struct, frozen=True, gc=False):
    """A change of one object. `change` leaves its argument alone and returns a new object."""

    target: Target
    change: Callable[[Object, StoredObject], Object]
    request: object | None = None


async def modify_each(context: RegistryContext, changes: Sequence[Modification]) -> list[Exception | None]:
    """What went wrong with each change; None: it is durable and in the cache."""
    outcomes: list[Exception | None] = [None] * len(changes)
    alone: list[int] = []
    places: list[tuple[int, Changed]] = []
    transactions: list[Prepared] = []
    for at, one in enumerate(changes):
        prepared = _prepare(context, one)
        if prepared is None:
            alone.append(at)
        else:
            places.append((at, prepared[0]))
            transactions.append(prepared[1])
    for (at, new), outcome in zip(places, await _commit_each(context, transactions), strict=True):
        if isinstance(outcome, Exception):
            outcomes[at] = outcome
        elif isinstance(outcome, Refused):
            alone.append(at)
        else:
            remember_pending(context, changes[at].target, *new)
    if alone:
        failures = await asyncio.gather(*(_alone(context, changes[at]) for at in alone), return_exceptions=True)
        for at, failure in zip(alone, failures, strict=True):
            if isinstance(failure, Exception):
                outcomes[at] = failure
            elif failure is not None:
                raise failure
    return outcomes


async def _commit_each(
    context: RegistryContext, transactions: Sequence[Prepared]
) -> Sequence[Committed | Refused | StatusError]:
    """The outcomes, when the cache has all that was written."""
    try:
        found = await context.store.commit_each(transactions)
    except StoreError as error:
        raise status_error(error) from error
    await context.cache.wait_for(max((one.revision for one in found if isinstance(one, Committed)), default=0))
    return [status_error(one) if isinstance(one, StoreError) else one for one in found]


async def _alone(context: RegistryContext, one: Modification) -> None:
    await modify(context, one.target, one.change, altered=False, request=one.request)


def _prepare(context: RegistryContext, one: Modification) -> tuple[Changed, Prepared] | None:
    """A changed object and its transaction; None: `modify` has to make it."""
    target, request = one.target, one.request
    resource = target.resource
    stored = context.cache.get(resource, target.namespace, target.name)
    # Events expire, so that each write needs a lease of the store; a webhook takes its time.
    if stored is None or resource.stored_as == EVENTS or has_webhook(resource):
        return None
    old = context.recent_pods.take(stored) or stored.object(resource)
    try:
        new = one.change(old, stored)
        if new == old or last_finalizer_removed(new, old, resource.kind):
            return None
        if context.quotas.limits(target) and context.quotas.charges(target, old, new):
            return None
        key = key_of(resource, target.namespace, target.name)
        value = stored_value(target, new)
        guards: list[Guard] = [At(key, Revision(stored.revision))]
        for fence in context.fences:
            guards.append(fence())
        writes: list[Write] = [Put(key, value)]
        seen = values_after(resource.stored_as, (stored.uid, stored.labels, stored.values), new)
        if seen is not None:
            context.cache.expect(key, value, seen)
        extension = context.extension if resource.stored_as in EXTENDED else None
        if extension is not None:
            if extension.lock(resource, old, new, request) is not None:
                return None
            extension.extend(context.cache, resource, old, new, request, guards, writes)
    except Exception:  # noqa: BLE001 - whatever it is, it is about this object: `modify` raises it again, or retries
        return None
    return (key, value, new), (guards, writes)


class Creation(Struct, frozen=True, gc=False):
    """An object to create. Nobody changes it."""

    target: Target
    object: Object


async def create_each(
    context: RegistryContext, creations: Sequence[Creation], caller: Caller, options: WriteOptions
) -> list[StoredObject | Exception]:
    """Each object as it was stored, or what went wrong with it."""
    outcomes: list[StoredObject | Exception | None] = [None] * len(creations)
    places: list[tuple[int, Instance]] = []
    transactions: list[Prepared] = []
    bodies = [encode(one.object) for one in creations]
    for at, (one, body) in enumerate(zip(creations, bodies, strict=True)):
        try:
            prepared = await _prepare_new(context, one.target, body, caller, options)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is about this object
            outcomes[at] = error
            continue
        if prepared is not None:
            places.append((at, prepared[0]))
            transactions.append(prepared[1])
    for (at, made), outcome in zip(places, await _commit_each(context, transactions), strict=True):
        if isinstance(outcome, Exception):
            outcomes[at] = outcome
        elif isinstance(outcome, Committed):
            outcomes[at] = _created(context, creations[at].target, made, outcome.revision)
    alone = [at for at, outcome in enumerate(outcomes) if outcome is None]
    made_alone = await asyncio.gather(
        *(_created_alone(context, creations[at].target, bodies[at], caller, options) for at in alone)
    )
    outcomes_of_alone = dict(zip(alone, made_alone, strict=True))
    return [outcomes_of_alone[at] if outcome is None else outcome for at, outcome in enumerate(outcomes)]


async def _prepare_new(
    context: RegistryContext, target: Target, body: bytes, caller: Caller, options: WriteOptions
) -> tuple[Instance, Prepared] | None:
    """None: `create` has to do it."""
    resource = target.resource
    split = None
    nameless = context.strategy(resource).is_nameless is not None
    counted = context.quotas.limits(target)  # each charge needs the one before
    if nameless and not options.dry_run and not counted and not context.users.concerns(resource, "", "CREATE"):
        split = split_body(target, body, caller, options)
    template = None if split is None else find_template(context, target, split)
    if split is None or template is None:
        return None
    made = await instantiate(context, target, split, template, caller)
    extension = context.extension if resource.stored_as in EXTENDED else None
    if extension is not None and extension.lock(resource, None, made.object, None) is not None:
        return None
    key = key_of(resource, target.namespace, made.object["metadata"]["name"])
    guards: list[Guard] = [At(key, ABSENT)]
    if made.namespace is not None:
        guards.append(At(made.namespace.key, Revision(made.namespace.revision)))
    guards += [fence() for fence in context.fences]
    writes: list[Write] = [Put(key, made.value)]
    if extension is not None:
        extension.extend(context.cache, resource, None, made.object, None, guards, writes)
    return made, (guards, writes)


def _created(context: RegistryContext, target: Target, made: Instance, revision: Revision) -> StoredObject:
    name = made.object["metadata"]["name"]
    key = key_of(target.resource, target.namespace, name)
    remember_pending(context, target, key, made.value, made.object)
    return cached_or_decoded(context, target, name, key, made.value, revision)


async def _created_alone(
    context: RegistryContext, target: Target, body: bytes, caller: Caller, options: WriteOptions
) -> StoredObject | Exception:
    try:
        return await create(context, target, body, partial(normalize, target.resource, body), caller, options)
    except Exception as error:  # noqa: BLE001 - as above
        return error
