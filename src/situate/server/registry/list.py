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
    Token,
    check_list,
    read_token,
    revision_of,
    token,
    too_large_revision,
)
from situate.server.registry.selectors import Selection, selection
from situate.server.registry.store_errors import failed
from situate.server.registry.stored_object import Held, Listing, hold
from situate.server.requests import ListOptions, Target
from situate.store.contract import Store
from situate.store.entries import Revision
from situate.store.errors import CompactedError, FutureRevisionError, StoreError

__all__ = ["WAIT_S", "listed", "wait_for"]

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


async def listed(cache: Cache, store: Store, target: Target, options: ListOptions, wait_s: float = WAIT_S) -> Listing:
    check_list(options)
    resource = target.resource
    chosen = selection(resource, target.namespace, target.name, options.labels, options.fields)
    if options.continue_from:
        begun = read_token(options.continue_from)
        if begun.revision == LATEST:
            await cache.fresh()
        elif begun.revision != cache.revision:
            return await _paged_past(cache, store, target, chosen, begun, options.limit, wait_s)
        return _present(cache, target, chosen, begun.after, options.limit)
    revision = revision_of(options.resource_version)
    if options.resource_version_match == EXACT:
        return await _exact(cache, store, target, chosen, revision, options.limit, wait_s)
    if not options.resource_version:
        await cache.fresh()
    else:
        await wait_for(cache, revision, wait_s)
    # Any state will do: the whole of it costs us no more than a page would.
    limit = 0 if options.resource_version == "0" else options.limit
    return _present(cache, target, chosen, "", limit)


async def wait_for(cache: Cache, revision: int, wait_s: float = WAIT_S) -> None:
    """Until the cache has it; 504 if that takes too long."""
    try:
        await cache.reach(revision, wait_s)
    except TimeoutError:
        raise too_large_revision(revision, cache.revision) from None


def _present(cache: Cache, target: Target, chosen: Selection, after: str, limit: int, revision: int = 0) -> Listing:
    """From the cache, as it is now; said to be of an older revision if nothing has changed since."""
    shelf = cache.shelf(target.resource)
    revision = revision or cache.revision
    prefix = prefix_of(target.resource, chosen.namespace if target.resource.namespaced else "")
    start = f"{shelf.prefix}{after}" if after else ""
    found: Iterator[Held] = shelf.search(chosen, prefix, start)
    if limit <= 0:
        return Listing(revision, list(found))
    items = list(islice(found, limit))
    if len(items) < limit or next(found, None) is None:
        return Listing(revision, items)
    last = items[-1].key
    remaining = None if chosen.filters else shelf.count(prefix, last)
    return Listing(revision, items, token(last.removeprefix(shelf.prefix), revision).text(), remaining)


async def _exact(
    cache: Cache, store: Store, target: Target, chosen: Selection, revision: int, limit: int, wait_s: float
) -> Listing:
    await wait_for(cache, revision, wait_s)
    if cache.shelf(target.resource).changed <= revision:
        return _present(cache, target, chosen, "", limit, revision)
    try:
        return await _past(store, target, chosen, revision, "", limit)
    except CompactedError:
        raise expired(TOO_OLD) from None
    except FutureRevisionError as error:
        raise too_large_revision(revision, error.current) from None
    except StoreError as error:
        raise failed(error) from error


async def _paged_past(
    cache: Cache, store: Store, target: Target, chosen: Selection, begun: Token, limit: int, wait_s: float
) -> Listing:
    """The next page of a list that was begun at a revision which is not the newest."""
    await wait_for(cache, begun.revision, wait_s)
    if cache.shelf(target.resource).changed <= begun.revision:
        return _present(cache, target, chosen, begun.after, limit, begun.revision)
    try:
        return await _past(store, target, chosen, begun.revision, begun.after, limit)
    except CompactedError:
        raise _continue_too_old(begun) from None
    except StoreError as error:
        raise failed(error) from error


def _continue_too_old(begun: Token) -> StatusError:
    error = expired(CONTINUE_TOO_OLD)
    error.continue_to = token(begun.after, LATEST).text()
    return error


async def _past(store: Store, target: Target, chosen: Selection, revision: int, after: str, limit: int) -> Listing:
    whole = prefix_of(target.resource)
    items: list[Held] = []
    async for one, remaining in _walk_past(store, target, chosen, revision, f"{whole}{after}" if after else ""):
        if 0 < limit == len(items):
            last = items[-1].key.removeprefix(whole)
            return Listing(revision, items, token(last, revision).text(), None if chosen.filters else remaining + 1)
        items.append(one)
    return Listing(revision, items)


async def _walk_past(
    store: Store, target: Target, chosen: Selection, revision: int, after: str
) -> AsyncIterator[tuple[Held, int]]:
    """What was selected at a revision, each with how many come after it, selected or not."""
    prefix = prefix_of(target.resource, chosen.namespace if target.resource.namespaced else "")
    while True:
        page = await store.scan(prefix, at=Revision(revision), after=after, limit=PAGE)
        for place, entry in enumerate(page.entries, 1):
            one = hold(entry.key, entry.value, entry.modified)
            if chosen.matches(one):
                yield one, len(page.entries) - place + page.remaining
        if not page.remaining:
            return
        after = page.entries[-1].key
