"""Opening a watch: from now, from a revision, or from what is there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from situate.server.registry.cache import Cache
from situate.server.registry.keys import prefix_of
from situate.server.registry.list import WAIT_S, wait_for
from situate.server.registry.list_options import check_watch, revision_of
from situate.server.registry.selectors import Selection, selection
from situate.server.registry.stored_object import Held
from situate.server.registry.watchers import BACKLOG, Change, WatchEvent, Watching, event_of, looks
from situate.server.requests import Target, WatchOptions

__all__ = ["watched"]


async def watched(
    cache: Cache, target: Target, options: WatchOptions, *, wait_s: float = WAIT_S, backlog: int = BACKLOG
) -> Watching:
    """410 if the revision is too old. All events after it are told, or none.

    Without a revision, or from 0, what is there is told first as ADDED, unless that is not wanted.
    """
    check_watch(options)
    chosen = selection(target.resource, target.namespace, target.name, options.labels, options.fields)
    revision = revision_of(options.resource_version)
    if options.resource_version:
        await wait_for(cache, revision, wait_s)
    else:
        await cache.fresh()
    # From here to `join` nothing waits, so nothing can happen between what was there and what comes.
    shelf = cache.shelf(target.resource)
    initial = options.initial_events if options.initial_events is not None else revision == 0
    if initial:
        prefix = prefix_of(target.resource, chosen.namespace if target.resource.namespaced else "")
        there = list(shelf.search(chosen, prefix))
        told = _initial(there, cache.revision, options.bookmarks and options.initial_events is True)
    else:
        told = _missed(shelf.since(revision or cache.revision, cache.revision), chosen)
    watching = Watching(
        target.resource, chosen, shelf.hub.leave, bookmarks=options.bookmarks, initial=told, backlog=backlog
    )
    shelf.hub.join(watching)
    if options.timeout_s:
        watching.end_in(options.timeout_s)
    return watching


def _initial(there: Iterable[Held], revision: int, bookmark: bool) -> Iterator[WatchEvent]:
    for held in there:
        yield WatchEvent("ADDED", held.revision, held)
    if bookmark:
        yield WatchEvent("BOOKMARK", revision, initial_end=True)


def _missed(changes: Iterable[Change], chosen: Selection) -> Iterator[WatchEvent]:
    for change in changes:
        event_type = looks(change, chosen)
        if event_type is not None:
            yield event_of(change, event_type)
