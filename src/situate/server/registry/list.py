"""Lists: the newest state from the cache, an older one from the store, in pages that belong together.

All pages of a list are of the revision at which it was begun. While nothing of the resource has changed since, the
cache has it; else the store is asked for the past, until that is compacted away.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import islice
from typing import Final

from situate.server.errors import StatusError, expired
from situate.server.registry.cache import Cache
from situate.server.registry.keys import prefix_of
from situate.server.registry.list_options import (
    EXACT,
    LATEST,
    ContinueToken,
    continue_token,
    parse_continue_token,
    parse_resource_version,
    resource_version_too_large,
    validate_list_options,
)
from situate.server.registry.selectors import Selection, selection
from situate.server.registry.store_errors import status_error
from situate.server.registry.stored_object import ListResult, StoredObject, read_stored
from situate.server.requests import ListOptions, Target
from situate.store.contract import Store
from situate.store.entries import Revision
from situate.store.errors import CompactedError, FutureRevisionError, StoreError

__all__ = ["WAIT_S", "list_objects", "wait_for"]

WAIT_S: Final = 3.0
"""How long to wait for a revision that is not there yet."""
PAGE: Final = 500
"""Entries of the past read at once."""
TOO_OLD: Final = "The resourceVersion for the provided list is too old."
CONTINUE_TOO_OLD: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


async def list_objects(
    cache: Cache, store: Store, target: Target, options: ListOptions, wait_s: float = WAIT_S
) -> ListResult:
    validate_list_options(options)
    resource = target.resource
    chosen = selection(resource, target.namespace, target.name, options.labels, options.fields)
    if options.continue_from:
        begun = parse_continue_token(options.continue_from)
        if begun.revision == LATEST:
            await cache.wait_until_fresh()
        elif begun.revision != cache.revision:
            return await _paged_past(cache, store, target, chosen, begun, options.limit, wait_s)
        return _present(cache, target, chosen, begun.after, options.limit)
    revision = parse_resource_version(options.resource_version)
    if options.resource_version_match == EXACT:
        return await _exact(cache, store, target, chosen, revision, options.limit, wait_s)
    if not options.resource_version:
        await cache.wait_until_fresh()
    else:
        await wait_for(cache, revision, wait_s)
    # Any state will do: the whole of it costs us no more than a page would.
    limit = 0 if options.resource_version == "0" else options.limit
    return _present(cache, target, chosen, "", limit)


async def wait_for(cache: Cache, revision: int, wait_s: float = WAIT_S) -> None:
    """Until the cache has it; 504 if that takes too long."""
    try:
        await cache.catch_up(revision, wait_s)
    except TimeoutError:
        raise resource_version_too_large(revision, cache.revision) from None


def _present(cache: Cache, target: Target, chosen: Selection, after: str, limit: int, revision: int = 0) -> ListResult:
    """From the cache, as it is now; said to be of an older revision if nothing has changed since."""
    cached = cache.of(target.resource)
    revision = revision or cache.revision
    prefix = prefix_of(target.resource, chosen.namespace if target.resource.namespaced else "")
    start = f"{cached.prefix}{after}" if after else ""
    found: Iterator[StoredObject] = cached.search(chosen, prefix, start)
    if limit <= 0:
        return ListResult(revision, list(found))
    items = list(islice(found, limit))
    if len(items) < limit or next(found, None) is None:
        return ListResult(revision, items)
    last = items[-1].key
    remaining = None if chosen.filters else cached.count(prefix, last)
    return ListResult(revision, items, continue_token(last.removeprefix(cached.prefix), revision).text(), remaining)


async def _exact(
    cache: Cache, store: Store, target: Target, chosen: Selection, revision: int, limit: int, wait_s: float
) -> ListResult:
    await wait_for(cache, revision, wait_s)
    if cache.of(target.resource).last_change <= revision:
        return _present(cache, target, chosen, "", limit, revision)
    try:
        return await _past(store, target, chosen, revision, "", limit)
    except CompactedError:
        raise expired(TOO_OLD) from None
    except FutureRevisionError as error:
        raise resource_version_too_large(revision, error.current) from None
    except StoreError as error:
        raise status_error(error) from error


async def _paged_past(
    cache: Cache, store: Store, target: Target, chosen: Selection, begun: ContinueToken, limit: int, wait_s: float
) -> ListResult:
    """The next page of a list that was begun at a revision which is not the newest."""
    await wait_for(cache, begun.revision, wait_s)
    if cache.of(target.resource).last_change <= begun.revision:
        return _present(cache, target, chosen, begun.after, limit, begun.revision)
    try:
        return await _past(store, target, chosen, begun.revision, begun.after, limit)
    except CompactedError:
        raise _continue_too_old(begun) from None
    except StoreError as error:
        raise status_error(error) from error


def _continue_too_old(begun: ContinueToken) -> StatusError:
    error = expired(CONTINUE_TOO_OLD)
    error.continue_to = continue_token(begun.after, LATEST).text()
    return error


async def _past(store: Store, target: Target, chosen: Selection, revision: int, after: str, limit: int) -> ListResult:
    whole = prefix_of(target.resource)
    items: list[StoredObject] = []
    async for one, remaining in _walk_past(store, target, chosen, revision, f"{whole}{after}" if after else ""):
        if 0 < limit == len(items):
            last = items[-1].key.removeprefix(whole)
            return ListResult(
                revision, items, continue_token(last, revision).text(), None if chosen.filters else remaining + 1
            )
        items.append(one)
    return ListResult(revision, items)


async def _walk_past(
    store: Store, target: Target, chosen: Selection, revision: int, after: str
) -> AsyncIterator[tuple[StoredObject, int]]:
    """What was selected at a revision, each with how many come after it, selected or not."""
    prefix = prefix_of(target.resource, chosen.namespace if target.resource.namespaced else "")
    while True:
        page = await store.scan(prefix, at=Revision(revision), after=after, limit=PAGE)
        for place, entry in enumerate(page.entries, 1):
            one = read_stored(entry.key, entry.value, entry.modified)
            if chosen.matches(one):
                yield one, len(page.entries) - place + page.remaining
        if not page.remaining:
            return
        after = page.entries[-1].key
