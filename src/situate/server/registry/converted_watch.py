"""A watch of a custom kind whose objects a webhook converts.

The webhook is asked about the events that have come since, before they are sent: other watches do not wait for it. If
it fails, the watch ends with an ERROR, and its client lists again, as after any other error.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, Self

from msgspec.structs import replace

from situate.server.errors import StatusError
from situate.server.registry.converted import all_shown
from situate.server.registry.selectors import Selection
from situate.server.registry.stored_object import StoredObject
from situate.server.registry.watchers import READY_LIMIT, ObjectWatch, WatchEvent

EVENTS_AT_ONCE: Final = 100
"""Events whose objects are converted together."""


class ConvertedWatch:
    """An ObjectWatch that shows converted objects."""

    def __init__(self, watch: ObjectWatch, wanted: Selection) -> None:
        """`wanted`: what `watch` selects, and labels and fields of converted objects."""
        self._watch = watch
        self._wanted = wanted
        self._converted: deque[WatchEvent] = deque()
        self._failed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchEvent:
        while not self._converted:
            if self._failed:
                raise StopAsyncIteration
            events = [await anext(self._watch), *self._watch.ready(EVENTS_AT_ONCE - 1)]
            try:
                self._converted.extend(await self._shown(events))
            except StatusError as error:
                self._failed = True
                await self._watch.aclose()
                self._converted.append(WatchEvent("ERROR", 0, status=error.status()))
        return self._converted.popleft()

    def ready(self, limit: int = READY_LIMIT) -> Iterator[WatchEvent]:
        """The events that are converted."""
        for _ in range(min(limit, len(self._converted))):
            yield self._converted.popleft()

    @property
    def ended(self) -> bool:
        return self._watch.ended

    async def aclose(self) -> None:
        self._converted.clear()
        await self._watch.aclose()

    async def _shown(self, events: Sequence[WatchEvent]) -> list[WatchEvent]:
        """The events that this watch has, in its version. Each is converted once for all watches of the version. Raises
        StatusError."""
        resource = self._watch.resource
        generation = resource.custom.generation if resource.custom is not None else 0
        form = f"{resource.api_version} {generation} {self._wanted.has_content}"
        own: list[WatchEvent] = []
        for one in events:
            if one.conversions is None:
                one.conversions = {}
            if form not in one.conversions:
                one.conversions[form] = asyncio.get_running_loop().create_future()
                own.append(one)
        made: Sequence[WatchEvent | None] = [None] * len(own)
        try:
            made = await self._convert(own)
        finally:  # without a result, whoever waits for it asks the webhook itself
            for event, done in zip(own, made, strict=True):
                waiting = (event.conversions or {}).pop(form) if done is None else (event.conversions or {})[form]
                waiting.set_result(done)
        found = [await self._known(one, form) for one in events]
        return [one for one in map(self._selected, found) if one is not None]

    async def _known(self, event: WatchEvent, form: str) -> WatchEvent:
        known = (event.conversions or {}).get(form)
        done = None if known is None else await asyncio.shield(known)
        return (await self._convert([event]))[0] if done is None else done

    async def _convert(self, events: Sequence[WatchEvent]) -> list[WatchEvent]:
        """Raises StatusError."""
        objects: list[StoredObject] = []
        for one in events:
            objects += [each for each in (one.stored, self._before(one)) if each is not None]
        converted = iter(await all_shown(self._watch.resource, objects))
        made: list[WatchEvent] = []
        for one in events:
            stored = None if one.stored is None else next(converted)
            before = None if self._before(one) is None else next(converted)
            made.append(replace(one, stored=stored, before=before, lines=None, conversions=None))
        return made

    def _before(self, event: WatchEvent) -> StoredObject | None:
        """What an object was, if that decides what the event is to this watch."""
        return event.before if self._wanted.has_content else None

    def _selected(self, event: WatchEvent) -> WatchEvent | None:
        """The event as a watch of these labels and fields has it; None: it has none."""
        stored, before = event.stored, event.before
        if stored is None or not self._wanted.has_content:
            return event
        now = self._wanted.matches_content(stored)
        if before is None:
            return event if now else None
        if self._wanted.matches_content(before):
            return event if now else WatchEvent("DELETED", event.revision, replace(before, revision=event.revision))
        return replace(event, type="ADDED", lines=None) if now else None
