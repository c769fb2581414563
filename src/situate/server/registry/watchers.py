"""Watches, and the broadcaster that sends them events.

All watches share one event value, and its bytes are encoded once. The broadcaster indexes watches by namespace, name or
node, so that the agents of a thousand nodes cost each other nothing. A watch that nobody reads from is closed when its
queue is full, of events or of bytes; it never skips an event.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Literal, Self, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from situate.server.registry.selectable_fields import NODE_COLUMN
from situate.server.registry.selectors import Selection
from situate.server.registry.stored_object import StoredObject
from situate.server.resources import Resource

BACKLOG: Final = 16_384
"""The length of a watch's queue. A burst of commits arrives at once, so this is not small."""
BACKLOG_BYTES: Final = 64 << 20
"""Of the objects in a watch's queue. As many events of ordinary objects as `BACKLOG` allows have less."""
READY_LIMIT: Final = 512
"""Events that `ready` returns at most."""
INITIAL_END: Final = "k8s.io/initial-events-end"

EventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
WatchScope: TypeAlias = tuple[str, str]
"""What a watch is limited to: a namespace, a name in one namespace or in any, or a node."""


class Change(Struct, frozen=True, gc=False, eq=False):
    """What one revision did to one object."""

    revision: int
    before: StoredObject | None
    after: StoredObject | None
    """None: it was deleted."""


class WatchEvent(Struct, gc=False, eq=False):
    """One event of the watches of one resource. Immutable but for the cache of its encoded lines."""

    type: EventType
    revision: int
    stored: StoredObject | None = None
    """The object; for DELETED its last state, at the revision of the deletion. None for BOOKMARK and ERROR."""
    status: dict[str, Any] | None = None
    """For ERROR only."""
    initial_end: bool = False
    """For a BOOKMARK: it ends the initial events and has the annotation k8s.io/initial-events-end."""
    lines: dict[str, bytes] | None = None
    """By API version. Use `line`."""
    before: StoredObject | None = None
    """Of MODIFIED: what the object was."""
    conversions: dict[str, asyncio.Future[WatchEvent | None]] | None = None
    """The event in other versions, by the version and the rest that decides it. For converted_watch.py."""

    @property
    def size(self) -> int:
        """Bytes of its object, as stored."""
        return 0 if self.stored is None else len(self.stored.value)

    def line(self, resource: Resource) -> bytes:
        r"""`{"type":"ADDED","object":{...}}` and a line feed; encoded once for all watches of that version."""
        if self.lines is None:
            self.lines = {}
        line = self.lines.get(resource.api_version)
        if line is None:
            line = b'{"type":"%b","object":%b}\n' % (self.type.encode(), self._object_json(resource))
            self.lines[resource.api_version] = line
        return line

    def _object_json(self, resource: Resource) -> bytes:
        if self.stored is not None:
            return self.stored.to_json(resource)
        if self.status is not None:
            return msgspec.json.encode(self.status)
        metadata: dict[str, Any] = {"resourceVersion": str(self.revision)}
        if self.initial_end:
            metadata["annotations"] = {INITIAL_END: "true"}
        return msgspec.json.encode({"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata})


class ObjectWatch:
    """An async iterator of WatchEvent: the initial events, if requested, then the changes.

    It ends after its timeout, after an ERROR, or when its queue is full. Close it.
    """

    def __init__(
        self,
        resource: Resource,
        selection: Selection,
        leave: Callable[[ObjectWatch], None],
        *,
        bookmarks: bool = False,
        backlog: int = BACKLOG,
        backlog_bytes: int = BACKLOG_BYTES,
    ) -> None:
        self.resource: Final = resource
        self.selection: Final = selection
        self.bookmarks: Final = bookmarks
        self._initial: Iterator[WatchEvent] | None = None
        self._queue: deque[WatchEvent] = deque()
        self._backlog = backlog
        self._backlog_bytes = backlog_bytes
        self._queued_bytes = 0
        self._ended = False
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._leave = leave

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchEvent:
        while True:
            event = self._next()
            if event is not None:
                return event
            if self._ended:
                raise StopAsyncIteration
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    def ready(self, limit: int = READY_LIMIT) -> Iterator[WatchEvent]:
        """The events available without waiting, so that a burst is sent in one write. It holds none of them: each of
        a thousand watches that send their initial events would hold hundreds, encoded."""
        for _ in range(limit):
            event = self._next()
            if event is None:
                return
            yield event

    def _next(self) -> WatchEvent | None:
        if self._initial is not None:
            event = next(self._initial, None)
            if event is not None:
                return event
            self._initial = None
        if not self._queue:
            return None
        event = self._queue.popleft()
        self._queued_bytes -= event.size
        return event

    def begin_with(self, events: Iterable[WatchEvent]) -> None:
        """Before the first is read."""
        self._initial = iter(events)

    @property
    def ended(self) -> bool:
        """Whether no more events will be queued."""
        return self._ended

    # -- for the broadcaster -------------------------------------------------------------------------------------------

    def send(self, event: WatchEvent) -> None:
        if len(self._queue) >= self._backlog or self._queued_bytes > self._backlog_bytes:
            self.end()
        if not self._ended:
            self._queue.append(event)
            self._queued_bytes += event.size
            if self._waiter is not None:
                self._wake()

    def end(self, last: WatchEvent | None = None) -> None:
        """Queue no more events after this one."""
        if self._ended:
            return
        if last is not None:
            self._queue.append(last)
            self._queued_bytes += last.size
        self._ended = True
        self._leave(self)
        if self._timer is not None:
            self._timer.cancel()
        self._wake()

    def end_after(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self.end)

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def aclose(self) -> None:
        self._queue.clear()
        self._queued_bytes = 0
        self._initial = None
        self.end()


class Broadcaster:
    """The watches of one resource, indexed by scope."""

    __slots__ = ("_by_name", "_by_namespace", "_by_node", "_of_all")

    def __init__(self) -> None:
        self._of_all: _Watches = {}
        self._by_namespace: _Watches = {}
        self._by_name: _Watches = {}
        self._by_node: _Watches = {}

    def __len__(self) -> int:
        return len(self.watches())

    def add(self, watch: ObjectWatch) -> None:
        watches, narrowing = self._index_of(watch.selection)
        watches.setdefault(narrowing, {})[watch] = None

    def remove(self, watch: ObjectWatch) -> None:
        watches, narrowing = self._index_of(watch.selection)
        same = watches.get(narrowing, {})
        same.pop(watch, None)
        if not same:
            watches.pop(narrowing, None)

    def _index_of(self, selection: Selection) -> tuple[_Watches, WatchScope]:
        if selection.node:
            return self._by_node, (selection.node, "")
        if selection.name:
            return self._by_name, (selection.namespace, selection.name)
        if selection.namespace:
            return self._by_namespace, (selection.namespace, "")
        return self._of_all, _EVERYTHING

    def watches(self) -> list[ObjectWatch]:
        narrowed = (self._of_all, self._by_namespace, self._by_name, self._by_node)
        return [watch for watches in narrowed for same in watches.values() for watch in same]

    def broadcast(self, change: Change) -> None:
        """Send a change to the watches it matches. They share one event for each type."""
        made: dict[EventType, WatchEvent] = {}
        for watch in self._watches_of(change):
            event_type = event_type_of(change, watch.selection)
            if event_type is not None:
                event = made.get(event_type)
                if event is None:
                    event = made[event_type] = event_of(change, event_type)
                watch.send(event)

    def _watches_of(self, change: Change) -> list[ObjectWatch]:
        """Watches that may match. Skips empty indexes, since most are."""
        found: list[ObjectWatch] = []
        one = change.after or change.before
        if one is None:
            return found
        if self._of_all:
            found += self._of_all[_EVERYTHING]
        if self._by_namespace:
            found += self._by_namespace.get((one.namespace, ""), ())
        if self._by_name:
            found += self._by_name.get((one.namespace, one.name), ())
            if one.namespace:
                found += self._by_name.get(("", one.name), ())
        if self._by_node:  # pods only
            nodes = [stored.values[NODE_COLUMN] for stored in (change.before, change.after) if stored is not None]
            for node in dict.fromkeys(nodes):
                found += self._by_node.get((node, ""), ())
        return found


_Watches: TypeAlias = dict[WatchScope, dict[ObjectWatch, None]]
_EVERYTHING: Final[WatchScope] = ("", "")


def event_type_of(change: Change, selection: Selection) -> EventType | None:
    """The event that a change is to a watch with this selection; None: none."""
    was = change.before is not None and selection.matches(change.before)
    now = change.after is not None and selection.matches(change.after)
    if now:
        return "MODIFIED" if was else "ADDED"
    return "DELETED" if was else None


def event_of(change: Change, event_type: EventType) -> WatchEvent:
    """DELETED, also of an object that no longer matches, has its last matching state, at the revision of the change."""
    stored = change.after
    if event_type == "DELETED" and change.before is not None:
        stored = replace(change.before, revision=change.revision)
    return WatchEvent(event_type, change.revision, stored, before=change.before if event_type == "MODIFIED" else None)
