"""Changes several objects at once, which costs less than as many calls of `modify`.

Each object has a transaction and an outcome of its own. They do not share one: no two objects of a kind have the same
resourceVersion, or a watch that breaks between them could not go on after the first without missing the second. What
they share is the way to the store and back, and the wait for the cache.

A change that cannot be made in this way is made by `modify`: if it was refused, needs a lock, deletes the object,
leaves it as it is, or if another writer was faster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from msgspec import Struct

from situate.server.registry.context import RegistryContext
from situate.server.registry.keys import key_of
from situate.server.registry.selectable_fields import EVENTS, values_after
from situate.server.registry.store_errors import status_error
from situate.server.registry.stored_object import StoredObject
from situate.server.registry.transaction import EXTENDED, stored_value
from situate.server.registry.update import last_finalizer_removed, modify
from situate.server.requests import Object, Target
from situate.store.entries import Revision
from situate.store.errors import StoreError
from situate.store.transactions import At, Guard, Put, Refused, Write


class Modification(Struct, frozen=True, gc=False):
    """A change of one object. `change` leaves its argument alone and returns a new object."""

    target: Target
    change: Callable[[Object, StoredObject], Object]
    request: object | None = None


async def modify_each(context: RegistryContext, changes: Sequence[Modification]) -> list[Exception | None]:
    """What went wrong with each change; None: it is durable and in the cache."""
    outcomes: list[Exception | None] = [None] * len(changes)
    alone: list[int] = []
    places: list[int] = []
    transactions: list[tuple[list[Guard], list[Write]]] = []
    for at, one in enumerate(changes):
        prepared = _prepare(context, one)
        if prepared is None:
            alone.append(at)
        else:
            places.append(at)
            transactions.append(prepared)
    try:
        found = await context.store.commit_each(transactions)
    except StoreError as error:
        raise status_error(error) from error
    newest = 0
    for at, outcome in zip(places, found, strict=True):
        if isinstance(outcome, Exception):
            outcomes[at] = status_error(outcome)
        elif isinstance(outcome, Refused):
            alone.append(at)
        else:
            newest = max(newest, outcome.revision)
    await context.cache.wait_for(newest)
    if alone:
        failures = await asyncio.gather(*(_alone(context, changes[at]) for at in alone), return_exceptions=True)
        for at, failure in zip(alone, failures, strict=True):
            if isinstance(failure, Exception):
                outcomes[at] = failure
            elif failure is not None:
                raise failure
    return outcomes


async def _alone(context: RegistryContext, one: Modification) -> None:
    await modify(context, one.target, one.change, altered=False, request=one.request)


def _prepare(context: RegistryContext, one: Modification) -> tuple[list[Guard], list[Write]] | None:
    """The transaction of a change; None: `modify` has to make it."""
    target, request = one.target, one.request
    resource = target.resource
    stored = context.cache.get(resource, target.namespace, target.name)
    if stored is None or resource.stored_as == EVENTS:  # events expire: each write needs a lease of the store
        return None
    old = context.recent_pods.take(stored) or stored.object(resource)
    try:
        new = one.change(old, stored)
        if new == old or last_finalizer_removed(new, old, resource.kind):
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
    return guards, writes
