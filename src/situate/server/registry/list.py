"""Lists: the newest state from the cache, an older one from the store, in consistent pages.

All pages of a list are of the revision of its first page. As long as the resource has not changed since, the cache
serves them; else the store does, until it compacts that revision.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from itertools import islice
from typing import Final

from msgspec import structs

from situate.server.errors import StatusError, expired
from situate.server.registry.cache import Cache
from situate.server.registry.converted import all_shown, has_webhook
from situate.server.registry.keys import parse_key, prefix_of
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
from situate.server.registry.stored_object import ListResult, StoredObject
from situate.server.registry.turns import Turns, each_in_turn
from situate.server.registry.unreadable import read_value, unreadable_warning
from situate.server.registry.warning import warn
from situate.server.requests import ListOptions, Target
from situate.store.contract import Store
from situate.store.entries import Revision
from situate.store.errors import CompactedError, FutureRevisionError, StoreError

WAIT_S: Final = 3.0
"""How long to wait for a future revision."""
PAGE: Final = 500
"""Entries to read from the store at a time."""
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
    selected = selection(resource, target.namespace, target.name, options.labels, options.fields)
    if not has_webhook(resource):
        return await _listed(cache, store, target, options, selected, wait_s)
    if not selected.has_content:
        found = await _listed(cache, store, target, options, selected, wait_s)
        return structs.replace(found, items=await all_shown(resource, found.items))
    return await _selected_once_shown(cache, store, target, options, selected, wait_s)


async def _selected_once_shown(
    cache: Cache, store: Store, target: Target, options: ListOptions, selected: Selection, wait_s: float
) -> ListResult:
    """Whether an object is selected is known once the webhook has converted it."""
    whole = await _listed(cache, store, target, replace(options, limit=0), selected.without_content(), wait_s)
    limit = 0 if options.resource_version == "0" else max(0, options.limit)
    items = await all_shown(target.resource, whole.items, selected.matches_content, limit + 1 if limit else 0)
    if not limit or len(items) <= limit:
        return structs.replace(whole, items=items)
    after = items[limit - 1].key.removeprefix(prefix_of(target.resource))
    return ListResult(whole.revision, items[:limit], continue_token(after, whole.revision).text())


async def _listed(
    cache: Cache, store: Store, target: Target, options: ListOptions, selected: Selection, wait_s: float
) -> ListResult:
    """As stored: a webhook may have to convert the objects."""
    _warn_of_unreadable(cache, target, selected)
    if options.continue_from:
        token = parse_continue_token(options.continue_from)
        if token.revision == LATEST:
            await cache.wait_until_fresh()
        elif token.revision != cache.revision:
            return await _next_page(cache, store, target, selected, token, options.limit, wait_s)
        return await _from_cache(cache, target, selected, token.after, options.limit)
    revision = parse_resource_version(options.resource_version)
    if options.resource_version_match == EXACT:
        return await _exact(cache, store, target, selected, revision, options.limit, wait_s)
    if not options.resource_version:
        await cache.wait_until_fresh()
    else:
        await wait_for(cache, revision, wait_s)
    # Any state will do, and the whole list costs no more than a page.
    limit = 0 if options.resource_version == "0" else options.limit
    return await _from_cache(cache, target, selected, "", limit)


def _warn_of_unreadable(cache: Cache, target: Target, selected: Selection) -> None:
    """Warn about what a list leaves out. Selectors cannot be applied to unreadable values, so all are named."""
    unreadable = cache.of(target.resource).unreadable
    if unreadable:
        found = [one for one in unreadable.values() if selected.namespace in ("", one.namespace)]
        if found:
            warn([unreadable_warning(target.resource, found)])


async def wait_for(cache: Cache, revision: int, wait_s: float = WAIT_S) -> None:
    """Wait until the cache has a revision; 504 if that takes too long."""
    try:
        await cache.catch_up(revision, wait_s)
    except TimeoutError:
        raise resource_version_too_large(revision, cache.revision) from None


async def _from_cache(
    cache: Cache, target: Target, selected: Selection, after: str, limit: int, revision: int = 0
) -> ListResult:
    """A page from the cache. `revision`: an older one to report, if nothing has changed since."""
    cached = cache.of(target.resource)
    revision = revision or cache.revision
    prefix = prefix_of(target.resource, selected.namespace if target.resource.namespaced else "")
    start = f"{cached.prefix}{after}" if after else ""
    found: Iterator[StoredObject] = cached.search(selected.without_paths(), prefix, start)
    if selected.paths:  # objects are decoded: all of one revision are taken now, and others have their turn meanwhile
        found = iter(await each_in_turn(list(found), selected.keep, limit + 1 if limit > 0 else 0))
    if limit <= 0:
        return ListResult(revision, list(found))
    items = list(islice(found, limit))
    if len(items) < limit or next(found, None) is None:
        return ListResult(revision, items)
    last = items[-1].key
    remaining = None if selected.filters else cached.count(prefix, last)
    return ListResult(revision, items, continue_token(last.removeprefix(cached.prefix), revision).text(), remaining)


async def _exact(
    cache: Cache, store: Store, target: Target, selected: Selection, revision: int, limit: int, wait_s: float
) -> ListResult:
    await wait_for(cache, revision, wait_s)
    if cache.of(target.resource).last_change <= revision:
        return await _from_cache(cache, target, selected, "", limit, revision)
    try:
        return await _from_store(store, target, selected, revision, "", limit)
    except CompactedError:
        raise expired(TOO_OLD) from None
    except FutureRevisionError as error:
        raise resource_version_too_large(revision, error.current) from None
    except StoreError as error:
        raise status_error(error) from error


async def _next_page(
    cache: Cache, store: Store, target: Target, selected: Selection, token: ContinueToken, limit: int, wait_s: float
) -> ListResult:
    """The next page of a list whose revision is not the newest."""
    await wait_for(cache, token.revision, wait_s)
    try:
        if cache.of(target.resource).last_change <= token.revision:
            # Tokens expire when the store compacts their revision, whether the resource has changed or not.
            await store.scan(prefix_of(target.resource), at=Revision(token.revision), limit=1)
            return await _from_cache(cache, target, selected, token.after, limit, token.revision)
        return await _from_store(store, target, selected, token.revision, token.after, limit)
    except CompactedError:
        raise _continue_too_old(token) from None
    except StoreError as error:
        raise status_error(error) from error


def _continue_too_old(token: ContinueToken) -> StatusError:
    error = expired(CONTINUE_TOO_OLD)
    error.continue_to = continue_token(token.after, LATEST).text()
    return error


async def _from_store(
    store: Store, target: Target, selected: Selection, revision: int, after: str, limit: int
) -> ListResult:
    whole = prefix_of(target.resource)
    items: list[StoredObject] = []
    async for one, remaining in _scan_store(store, target, selected, revision, f"{whole}{after}" if after else ""):
        if 0 < limit == len(items):
            last = items[-1].key.removeprefix(whole)
            return ListResult(
                revision, items, continue_token(last, revision).text(), None if selected.filters else remaining + 1
            )
        items.append(one)
    return ListResult(revision, items)


async def _scan_store(
    store: Store, target: Target, selected: Selection, revision: int, after: str
) -> AsyncIterator[tuple[StoredObject, int]]:
    """The objects selected at a revision, each with the number of objects after it, selected or not."""
    prefix = prefix_of(target.resource, selected.namespace if target.resource.namespaced else "")
    turns = Turns()
    while True:
        page = await store.scan(prefix, at=Revision(revision), after=after, limit=PAGE)
        for number, entry in enumerate(page.entries, 1):
            one = read_value(parse_key(entry.key), entry.key, entry.value, entry.modified)
            if isinstance(one, StoredObject) and selected.matches(one):
                yield one, len(page.entries) - number + page.remaining
            if selected.paths:
                await turns.others()
        if not page.remaining:
            return
        after = page.entries[-1].key
