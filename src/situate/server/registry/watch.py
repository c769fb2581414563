"""Opens a watch: from now, from a revision, or with the current objects first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from situate.server.registry.cache import Cache
from situate.server.registry.converted import has_webhook
from situate.server.registry.converted_watch import ConvertedWatch
from situate.server.registry.keys import prefix_of
from situate.server.registry.list import WAIT_S, wait_for
from situate.server.registry.list_options import parse_resource_version, validate_watch_options
from situate.server.registry.selectors import Selection, selection
from situate.server.registry.stored_object import StoredObject
from situate.server.registry.turns import each_in_turn
from situate.server.registry.watchers import (
    BACKLOG,
    BACKLOG_BYTES,
    Change,
    ObjectWatch,
    WatchEvent,
    event_of,
    event_type_of,
)
from situate.server.requests import Target, WatchOptions


async def open_watch(
    cache: Cache,
    target: Target,
    options: WatchOptions,
    *,
    wait_s: float = WAIT_S,
    backlog: int = BACKLOG,
    backlog_bytes: int = BACKLOG_BYTES,
) -> ObjectWatch:
    """A watch of all events after a revision; 410 if the revision is too old.

    Without a revision, or from 0, the watch starts with an ADDED event for each object, unless the options say no.
    """
    validate_watch_options(options)
    chosen = _selection(target, options)
    if has_webhook(target.resource):  # then labels and fields select an object once it is converted
        chosen = chosen.without_content()
    revision = parse_resource_version(options.resource_version)
    if options.resource_version:
        await wait_for(cache, revision, wait_s)
    else:
        await cache.wait_until_fresh()
    # Nothing awaits from here to `add`, so no change can fall between the initial events and the live ones.
    cached = cache.of(target.resource)
    at = cache.revision
    current: Sequence[StoredObject] | None = None
    missed: Iterable[Change] = ()
    if options.initial_events if options.initial_events is not None else revision == 0:
        prefix = prefix_of(target.resource, chosen.namespace if target.resource.namespaced else "")
        current = list(cached.search(chosen.without_paths(), prefix))
    else:
        missed = cached.since(revision or at, at)
    watch = ObjectWatch(
        target.resource,
        chosen,
        cached.broadcaster.remove,
        bookmarks=options.bookmarks,
        backlog=backlog,
        backlog_bytes=backlog_bytes,
    )
    cached.broadcaster.add(watch)
    try:
        if current is not None:
            if chosen.paths:
                current = await each_in_turn(current, chosen.keep)
            watch.begin_with(_initial(current, at, options.bookmarks and options.initial_events is True))
        elif chosen.paths:
            watch.begin_with(await each_in_turn(missed, lambda change: _event(change, chosen)))
        else:
            watch.begin_with(_missed(missed, chosen))
    except BaseException:  # cancelled: the client has left
        await watch.aclose()
        raise
    if options.timeout_s:
        watch.end_after(options.timeout_s)
    return watch


async def open_shown_watch(cache: Cache, target: Target, options: WatchOptions) -> ObjectWatch | ConvertedWatch:
    """`open_watch`, with the objects in the version of the target, to which a webhook may have to convert them."""
    watch = await open_watch(cache, target, options)
    if not has_webhook(target.resource):
        return watch
    return ConvertedWatch(watch, _selection(target, options))


def _selection(target: Target, options: WatchOptions) -> Selection:
    return selection(target.resource, target.namespace, target.name, options.labels, options.fields)


def _initial(current: Iterable[StoredObject], revision: int, bookmark: bool) -> Iterator[WatchEvent]:
    for stored in current:
        yield WatchEvent("ADDED", stored.revision, stored)
    if bookmark:
        yield WatchEvent("BOOKMARK", revision, initial_end=True)


def _missed(changes: Iterable[Change], chosen: Selection) -> Iterator[WatchEvent]:
    for change in changes:
        event = _event(change, chosen)
        if event is not None:
            yield event


def _event(change: Change, chosen: Selection) -> WatchEvent | None:
    event_type = event_type_of(change, chosen)
    return None if event_type is None else event_of(change, event_type)
