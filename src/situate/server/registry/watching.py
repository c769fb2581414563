"""Watches: what happens to the objects that each asks about, one event after another.

An event is one value for all who hear of it, and its bytes are made once. Who hears of it is found by the resource and
by what the watch is narrowed to, so that the agents of a thousand nodes cost each other nothing. A watch that nobody
reads from is closed when its backlog is full; it never misses an event in the middle.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Literal, Self, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from situate.server.registry.held import Held
from situate.server.registry.selectable import PODS
from situate.server.registry.selectors import Selection
from situate.server.resources import Resource

__all__ = ["BACKLOG", "Change", "EventType", "Hub", "WatchEvent", "Watching"]

BACKLOG: Final = 16_384
"""Events kept for a watch that nobody reads from. A burst of commits comes in one piece, so this is not small."""
AT_ONCE: Final = 512
"""Events that `ready` hands out together."""
INITIAL_END: Final = "k8s.io/initial-events-end"

EventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
Narrowing: TypeAlias = tuple[str, str, str]
"""What a watch is found by: how it is narrowed, and to what."""


class Change(Struct, frozen=True, gc=False, eq=False):
    """What one revision did to one object."""

    revision: int
    before: Held | None
    after: Held | None
    """None: it was deleted."""


class WatchEvent:
    """One thing that a watch tells."""

    __slots__ = ("_lines", "held", "initial_end", "revision", "status", "type")

    def __init__(
        self,
        event_type: EventType,
        revision: int,
        held: Held | None = None,
        status: dict[str, Any] | None = None,
        initial_end: bool = False,
    ) -> None:
        self.type: Final = event_type
        self.revision: Final = revision
        self.held: Final = held
        """The object; of DELETED, as it was last, at the revision of its end. None for BOOKMARK and ERROR."""
        self.status: Final = status
        """Of ERROR."""
        self.initial_end: Final = initial_end
        """Of a BOOKMARK: the initial events are over, as the annotation k8s.io/initial-events-end says."""
        self._lines: dict[str, bytes] | None = None

    def line(self, resource: Resource) -> bytes:
        r"""`{"type":"ADDED","object":{...}}` and a line feed; made once for all who watch that version."""
        if self._lines is None:
            self._lines = {}
        line = self._lines.get(resource.api_version)
        if line is None:
            line = b'{"type":"%b","object":%b}\n' % (self.type.encode(), self._shown(resource))
            self._lines[resource.api_version] = line
        return line

    def _shown(self, resource: Resource) -> bytes:
        if self.held is not None:
            return self.held.shown(resource)
        if self.status is not None:
            return msgspec.json.encode(self.status)
        metadata: dict[str, Any] = {"resourceVersion": str(self.revision)}
        if self.initial_end:
            metadata["annotations"] = {INITIAL_END: "true"}
        return msgspec.json.encode({"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata})


class Watching:
    """An async iterator of WatchEvent: what is there, if that was asked for, then what happens.

    Ends after its timeout, after an ERROR, and when it was not read from for too long. Close it.
    """

    def __init__(
        self,
        resource: Resource,
        selection: Selection,
        leave: Callable[[Watching], None],
        *,
        bookmarks: bool = False,
        initial: Iterable[WatchEvent] = (),
        backlog: int = BACKLOG,
    ) -> None:
        self.resource: Final = resource
        self.selection: Final = selection
        self.bookmarks: Final = bookmarks
        self._initial: Iterator[WatchEvent] | None = iter(initial)
        self._heard: deque[WatchEvent] = deque()
        self._backlog = backlog
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

    def ready(self, limit: int = AT_ONCE) -> list[WatchEvent]:
        """What can be told without waiting, so that a burst is sent in one piece."""
        events: list[WatchEvent] = []
        while len(events) < limit and (event := self._next()) is not None:
            events.append(event)
        return events

    def _next(self) -> WatchEvent | None:
        if self._initial is not None:
            event = next(self._initial, None)
            if event is not None:
                return event
            self._initial = None
        return self._heard.popleft() if self._heard else None

    @property
    def ended(self) -> bool:
        """Whether nothing comes after what can be told already."""
        return self._ended

    # -- for the hub ---------------------------------------------------------------------------------------------------

    def hear(self, event: WatchEvent) -> None:
        if len(self._heard) >= self._backlog:
            self.end()
        if not self._ended:
            self._heard.append(event)
            if self._waiter is not None:
                self._wake()

    def end(self, last: WatchEvent | None = None) -> None:
        """No more events after those that are there already, and this one."""
        if self._ended:
            return
        if last is not None:
            self._heard.append(last)
        self._ended = True
        self._leave(self)
        if self._timer is not None:
            self._timer.cancel()
        self._wake()

    def end_in(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self.end)

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def aclose(self) -> None:
        self._heard.clear()
        self._initial = None
        self.end()


class Hub:
    """Who watches one resource, found by what each watch is narrowed to."""

    __slots__ = ("_node_column", "_watches")

    def __init__(self, stored_as: str) -> None:
        self._watches: dict[Narrowing, dict[Watching, None]] = {}
        self._node_column = 0 if stored_as == PODS else None

    def __len__(self) -> int:
        return sum(map(len, self._watches.values()))

    def join(self, watch: Watching) -> None:
        self._watches.setdefault(_narrowing(watch.selection), {})[watch] = None

    def leave(self, watch: Watching) -> None:
        narrowing = _narrowing(watch.selection)
        watches = self._watches.get(narrowing, {})
        watches.pop(watch, None)
        if not watches:
            self._watches.pop(narrowing, None)

    def everybody(self) -> list[Watching]:
        return [watch for watches in self._watches.values() for watch in watches]

    def tell(self, change: Change) -> None:
        """Everybody who asked about it. An event is made once for each way it can look."""
        if not self._watches:
            return
        made: dict[EventType, WatchEvent] = {}
        everybody = self._watches.get(_EVERYTHING)
        found = [] if everybody is None else [everybody]
        if len(self._watches) > len(found):  # most often nobody's watch is narrowed to less
            found += [watches for one in self._concerned(change) if (watches := self._watches.get(one)) is not None]
        for watches in found:
            for watch in tuple(watches):
                event_type = looks(change, watch.selection)
                if event_type is not None:
                    event = made.get(event_type)
                    if event is None:
                        event = made[event_type] = event_of(change, event_type)
                    watch.hear(event)

    def _concerned(self, change: Change) -> Iterator[Narrowing]:
        """How a watch may be narrowed that is to hear of this."""
        one = change.after or change.before
        if one is None:
            return
        yield ("namespace", one.namespace, "")
        yield ("name", one.namespace, one.name)
        if one.namespace:
            yield ("name", "", one.name)
        if self._node_column is not None:
            nodes = [held.values[self._node_column] for held in (change.before, change.after) if held is not None]
            for node in dict.fromkeys(nodes):
                yield ("node", node, "")


_EVERYTHING: Final[Narrowing] = ("everything", "", "")


def _narrowing(selection: Selection) -> Narrowing:
    if selection.node:
        return ("node", selection.node, "")
    if selection.name:
        return ("name", selection.namespace, selection.name)
    if selection.namespace:
        return ("namespace", selection.namespace, "")
    return _EVERYTHING


def looks(change: Change, selection: Selection) -> EventType | None:
    """How a change looks to somebody who sees only what is selected; None: it does not."""
    was = change.before is not None and selection.matches(change.before)
    now = change.after is not None and selection.matches(change.after)
    if now:
        return "MODIFIED" if was else "ADDED"
    return "DELETED" if was else None


def event_of(change: Change, event_type: EventType) -> WatchEvent:
    """What goes, or goes out of sight, is shown as it was last seen, at the revision of the change."""
    held = change.after
    if event_type == "DELETED" and change.before is not None:
        held = replace(change.before, revision=change.revision)
    return WatchEvent(event_type, change.revision, held)
