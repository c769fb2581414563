"""Keeps up with one kind on the API server: a list, then a watch from there, for ever. What changes is told in batches.

The list comes as the beginning of the watch where the server can do that, else in pages. A watch that ends is resumed
from the last version seen. Only if the server no longer has that version (410, as a status or as an event), or if a
watch is silent for too long twice over, everything is listed again. What goes wrong is said in one line, and tried
again: after 0.8 s, then twice as long each time up to 30 s, with jitter, and no sooner than the server asks.

A list is never older than what was told before. One that is, is not used, and the next is asked of the store itself
(without a resourceVersion). If the store says the same, the cluster was restored from a backup: then it counts.

What an API server may not let us see:
- a kind that is required: not synced, so a scheduler that waits for that does not start; said, and tried again;
- an optional kind (PodGroup): nothing waits for it. Pods that name a group of it wait, because it is not known.
  Whether the server has it is looked up every minute or two.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Protocol

from situate.core.changes import Change
from situate.kube.discovery import served_version
from situate.kube.errors import TIMEOUT, ApiError, from_status
from situate.kube.kinds import Kind
from situate.kube.object_cache import ObjectCache, older
from situate.loop.logs import Log
from situate.wire.errors import InputError
from situate.wire.watch import ADDED, BOOKMARK, DELETED, ERROR, MODIFIED, Frame, Item, ListPage, RawReader, Reader

__all__ = ["ListWatchClient", "LineBatches", "Reflector"]

_log = Log(__name__)

PAGE: Final = 500
"""Objects a page, as client-go."""
PAGED_TRIES: Final = 2
"""How often a list whose pages expired on the way is begun again; after that, it is asked for whole."""
WATCH_S: Final = (300, 600)
"""How long we ask a watch to last: at random between these, so that watches do not all end at once."""
GRACE_S: Final = 30.0
"""How much longer than asked for a watch may last before we end it ourselves."""
IDLE_S: Final = 150.0
"""How long a watch may be silent. API servers send a bookmark every minute, so two have failed to come."""
LISTING_S: Final = 120.0
"""How long the list at the beginning of a watch may take; after that, it is asked for in pages."""
LIST_S: Final = 64.0
"""How long one page may take."""
SILENT_WATCHES: Final = 2
GARBAGE_WATCHES: Final = 3
"""After so many watches in a row that told nothing, or nothing readable, everything is listed again."""
BROKEN_LISTS: Final = 3
"""After so many lists in a watch that broke off, they are asked for in pages."""
RELIST_S: Final = 5.0
"""Watches that expire one after the other, in less than this, are a problem, and we back off."""
SHORTEST_WATCH_S: Final = 1.0
"""Watches that end at once and say nothing are begun no faster than this."""
LOOK_AGAIN_S: Final = 60.0
"""How often to look whether the server has got a kind that it did not have."""

MOST_SAID: Final = 1_000
"""How many unreadable objects are remembered, so as to be said once."""

BACKOFF_S: Final = 0.8
BACKOFF_MAX_S: Final = 30.0
BACKOFF_RESET_S: Final = 120.0

UNREADABLE: Final = "Unreadable"
STALE: Final = "Stale"
TOO_MANY: Final = 429


class LineBatches(Protocol):
    """Of a stream: all whole lines that are here already, at least one; none if it has ended."""

    async def batch(self) -> list[bytes]: ...


class ListWatchClient(Protocol):
    """What is needed of situate.kube.client.Client."""

    async def request(
        self, method: str, path: str, *, params: Mapping[str, str] | None = None, timeout_s: float = LIST_S
    ) -> bytes: ...

    def stream(
        self, path: str, *, params: Mapping[str, str] | None = None, idle_s: float
    ) -> AbstractAsyncContextManager[LineBatches]: ...


class ListBackoff:
    """How long to wait before the next attempt, as client-go: longer each time, from the start again after a while."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._step_s = BACKOFF_S
        self._last = float("-inf")

    def next_s(self, now: float) -> float:
        if now - self._last > BACKOFF_RESET_S:
            self._step_s = BACKOFF_S
        wait_s = min(self._step_s * (1 + self._dice.random()), BACKOFF_MAX_S)
        self._step_s = min(self._step_s * 2, BACKOFF_MAX_S)
        self._last = now + wait_s
        return wait_s


class Reflector:
    """One kind. `run` never ends by itself; cancel it."""

    def __init__(
        self,
        client: ListWatchClient,
        kind: Kind,
        tell: Callable[[list[Change]], None],
        *,
        rest: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        dice: random.Random | None = None,
        on_contact: Callable[[], None] = lambda: None,
        reader: Reader[Any] | RawReader | None = None,
        since: str = "",
    ) -> None:
        """`since`: a version up to which everything is known already; only what came after it is told, if that can."""
        self.kind = kind
        self.mirror = ObjectCache(kind.model)
        self.synced = asyncio.Event()
        self.problem = ""
        """What keeps us from seeing this kind, in one line; empty if nothing does."""
        self.last_contact: float | None = None
        """When, on the clock, the server last said anything of this kind."""
        self.lists = self.watches = self.unreadable_frames = 0
        self._client = client
        self._reader = reader or Reader(kind.model)
        self._tell = tell
        self._rest = rest
        self._clock = clock
        self._dice = dice or random.Random()  # noqa: S311
        self._backoff = ListBackoff(self._dice)
        self._on_contact = on_contact
        self._version: str | None = None if kind.optional else kind.versions[0]
        self._listed = False
        self._streams_lists = True
        self._from_store = False
        self._expired_at = float("-inf")
        self._broken_lists = self._expired_pages = self._silent = self._garbage = 0
        self._said: set[tuple[str, str]] = set()
        self._opened = False
        self._heard = 0
        """Batches of the watch that is under way, if it was opened at all."""
        if since:
            self._listed = True
            self.mirror.reached(since)
            self.synced.set()

    @property
    def served(self) -> str | None:
        """The version of the API in which the server has this kind; None if it has it in none, or that is not known."""
        return self._version

    async def run(self) -> None:
        while True:
            began, self._heard, self._opened = self._clock(), 0, False
            try:
                await self._attempt()
            except ApiError as error:
                await self._failed(error, self._clock() - began)
            except TimeoutError:
                self._overran()
            else:
                await self._ended(self._clock() - began)

    async def _ended(self, lasted_s: float) -> None:
        """As the server wanted it, when its time was over. But some end watches at once."""
        if self._listed and (wait_s := self._left_of_shortest_watch(lasted_s)):
            await self._rest(wait_s)

    async def _attempt(self) -> None:
        """One request, or one run of pages, towards keeping up."""
        if self._version is None:
            await self._find()
        elif self._listed:
            await self._watch(self.kind.path(self._version))
        elif self._streams_lists:
            await self._list_by_watch(self.kind.path(self._version))
        else:
            await self._list_by_pages(self.kind.path(self._version))

    async def _find(self) -> None:
        self._version = await served_version(self._client, self.kind)
        if self._version is None:
            self._contact()
            self.synced.set()  # known to be absent
            await self._rest(LOOK_AGAIN_S * (1 + self._dice.random()))

    # -- lists -------------------------------------------------------------------------------------------------------

    async def _list_by_watch(self, path: str) -> None:
        """A watch that begins with everything there is, and goes on from there."""
        since = "" if self._from_store else self.mirror.version
        seconds = self._watch_seconds()
        params = {
            **self.kind.params,
            "watch": "true",
            "sendInitialEvents": "true",
            "resourceVersionMatch": "NotOlderThan",
            **({"resourceVersion": since} if since else {}),
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
        }
        self.mirror.begin_list()
        self.watches += 1
        async with (
            asyncio.timeout(LISTING_S) as deadline,
            self._client.stream(path, params=params, idle_s=IDLE_S) as lines,
        ):
            self._answered()
            while batch := await lines.batch():
                self._contact()
                if self._listed:
                    self._take(batch)
                    continue
                after = self._collect(batch, since)
                if after is not None:
                    deadline.reschedule(asyncio.get_running_loop().time() + seconds + GRACE_S)
                    self._take(after)
        if not self._listed:
            raise ApiError(0, UNREADABLE, "the watch ended before the list in it was complete")

    def _collect(self, batch: list[bytes], since: str) -> list[bytes] | None:
        """Frames of the list. Gives those after its end, if that has come; else None."""
        for number, line in enumerate(batch, 1):
            frame = self._frame(line)
            if frame.type in (ADDED, MODIFIED):
                self._readable(frame.item)
                self.mirror.collect(frame.item)
            elif frame.type == DELETED:
                self.mirror.collect_no_more(frame.item)
            elif frame.type == BOOKMARK and frame.listed:
                self._end_list(frame.item.version, since)
                return batch[number:]
        self._tell_early()
        return None

    async def _list_by_pages(self, path: str) -> None:
        """Everything there is, of the store itself, which has nothing older than what we saw."""
        self.mirror.begin_list()
        params = self.kind.params
        if self._expired_pages < PAGED_TRIES:
            params["limit"] = str(PAGE)
        while True:
            page = self._page(await self._client.request("GET", path, params=params, timeout_s=LIST_S))
            self._contact()
            for item in page.items:
                self._readable(item)
                self.mirror.collect(item)
            if not page.more:
                break
            self._tell_early()
            params["continue"] = page.more
        self._end_list(page.version, "")

    def _tell_early(self) -> None:
        """The first list is told as it comes, and is of the store itself. Later ones are told whole, or not at all."""
        if not self.mirror.version and (changes := self.mirror.collected()):
            self._tell(changes)

    def _end_list(self, version: str, since: str) -> None:
        """The list is whole: tell what it changes. Unless it is older than what was told before."""
        if not version:
            raise ApiError(0, UNREADABLE, "a list without a resourceVersion")
        if older(version, self.mirror.version):
            told, self._from_store = self.mirror.version, True
            if not since:
                self.mirror.forget_versions()
            what = "an older state" if since else "an older state of the store itself, as after a restored backup"
            raise ApiError(0, STALE, f"listed {what}: resourceVersion {version}, having seen {told}")
        changes = self.mirror.end_list(version)
        self.lists += 1
        self._listed = self._streams_lists = True
        self._from_store = False
        self._broken_lists = self._expired_pages = self._silent = self._garbage = 0
        if changes:
            self._tell(changes)
        self.synced.set()

    # -- watches -----------------------------------------------------------------------------------------------------

    async def _watch(self, path: str) -> None:
        seconds = self._watch_seconds()
        params = {
            **self.kind.params,
            "watch": "true",
            "resourceVersion": self.mirror.version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
        }
        self.watches += 1
        async with (
            asyncio.timeout(seconds + GRACE_S),
            self._client.stream(path, params=params, idle_s=IDLE_S) as lines,
        ):
            self._answered()
            while batch := await lines.batch():
                self._contact()
                self._take(batch)

    def _take(self, batch: list[bytes]) -> None:
        """Tell of all events that are here, at once; also of those before one that ends the watch."""
        changes: list[Change] = []
        happened, read = self.mirror.happened, self._reader.frame
        try:
            for line in batch:
                try:
                    frame = read(line)
                except InputError:
                    frame = self._frame(line)  # raises
                if frame.item.object is not None:
                    happened(frame.type, frame.item, changes)
                else:
                    self._odd(frame, changes)
        finally:
            if changes:
                self._tell(changes)

    def _odd(self, frame: Frame[Any], changes: list[Change]) -> None:
        if frame.type == ERROR:
            raise from_status(0, frame.status)
        if frame.type == BOOKMARK:
            self.mirror.reached(frame.item.version)
            return
        self._readable(frame.item)
        self.mirror.happened(frame.type, frame.item, changes)

    def _frame(self, line: bytes) -> Frame[Any]:
        try:
            frame = self._reader.frame(line)
        except InputError as error:
            self._garbage += 1
            self.unreadable_frames += 1
            raise ApiError(0, UNREADABLE, f"{error}: {line[:80]!r}") from None
        if frame.type == ERROR:
            raise from_status(0, frame.status)
        return frame

    def _page(self, answer: bytes) -> ListPage[Any]:
        try:
            return self._reader.page(answer)
        except InputError as error:
            raise ApiError(0, UNREADABLE, f"{error}: {answer[:80]!r}") from None

    def _readable(self, item: Item[Any]) -> None:
        if item.object is None:
            said = (item.uid, item.problem)
            log = _log.v(4).info if said in self._said else _log.warning
            log("An object is left out, because it cannot be read", kind=self.kind.name, err=item.problem)
            if len(self._said) < MOST_SAID:
                self._said.add(said)

    def _contact(self) -> None:
        """Something was told."""
        self._heard += 1
        self._silent = 0
        self._answered()

    def _answered(self) -> None:
        """Nothing need have been told, but somebody is there and lets us see this kind."""
        self._opened = True
        self.last_contact = self._clock()
        if self.problem:
            _log.info("Seen again", kind=self.kind.name)
            self.problem = ""
            self._on_contact()

    def _watch_seconds(self) -> int:
        return self._dice.randint(*WATCH_S)

    # -- what goes wrong ---------------------------------------------------------------------------------------------

    async def _failed(self, error: ApiError, lasted_s: float) -> None:
        verb = "watch" if self._listed else "list"
        wait_s = self._react(error)
        if wait_s is None and self._was_a_cut(error):
            wait_s = self._left_of_shortest_watch(lasted_s)
        if wait_s is not None:
            _log.v(4).info(f"Beginning to {verb} again", kind=self.kind.name, err=error.message)
        else:
            wait_s = max(self._backoff.next_s(self._clock()), error.retry_after_s or 0.0)
            if self.kind.optional and error.forbidden:
                wait_s = max(wait_s, LOOK_AGAIN_S)
            before, self.problem = self.problem, f"cannot {verb} {self.kind.name}: {_advice(error, self.kind)}"
            log = _log.v(2).info if self.problem == before else _log.warning
            log(f"Cannot {verb}; trying again", kind=self.kind.name, err=self.problem, seconds=round(wait_s, 1))
        if wait_s:
            await self._rest(wait_s)

    def _react(self, error: ApiError) -> float | None:
        """What to do next time, and in how many seconds, if that is foreseen; None: it is a problem, so back off."""
        listing = not self._listed
        if self.kind.optional and error.not_found:
            self._lose_kind()
            return SHORTEST_WATCH_S
        if self.kind.optional and error.forbidden:
            self._version, self._listed = None, False
            self.synced.set()
            return None
        if error.gone:
            return self._react_to_expiry(listing)
        if listing and self._streams_lists:
            return self._react_to_no_list(error)
        if not listing:
            # Kubernetes says Timeout too, in a 504; but who says anything is not silent.
            self._silent += error.status == 0 and error.reason == TIMEOUT and not self._heard
            self._listed = self._silent < SILENT_WATCHES and self._garbage < GARBAGE_WATCHES
        return None

    def _react_to_expiry(self, listing: bool) -> float | None:
        """The version from which to go on is no more: list. If it was a list that expired, ask the store itself."""
        self._listed = False
        if not listing:
            self._from_store = False
            before, self._expired_at = self._expired_at, self._clock()
            return 0.0 if self._expired_at - before > RELIST_S else None
        if self._streams_lists:
            at_once, self._from_store = not self._from_store, True
            return 0.0 if at_once else None
        self._expired_pages += 1
        return 0.0 if self._expired_pages <= PAGED_TRIES else None

    def _react_to_no_list(self, error: ApiError) -> float | None:
        """A list in a watch did not come. It may come in pages, if it was not refused altogether."""
        self._broken_lists += error.status == 0 and error.sent
        cannot = error.status > 0 and not (error.unauthorized or error.forbidden or error.not_found)
        if (cannot and error.status != TOO_MANY) or self._broken_lists >= BROKEN_LISTS:
            self._streams_lists = False
            return 0.0
        return None

    def _lose_kind(self) -> None:
        """An optional kind that is not served any more has no objects."""
        self._version, self._listed = None, False
        self.mirror.begin_list()
        changes = self.mirror.end_list("")
        if changes:
            self._tell(changes)
        self.synced.set()

    def _was_a_cut(self, error: ApiError) -> bool:
        """A watch that was under way, and broke: that happens, and is no problem."""
        broke = error.status == 0 and error.reason not in (UNREADABLE, STALE)
        return self._listed and self._opened and broke

    def _overran(self) -> None:
        """A watch that went on for longer than asked for; or a list in a watch that never came to its end."""
        if not self._listed:
            self._streams_lists = False

    def _left_of_shortest_watch(self, lasted_s: float) -> float:
        return 0.0 if self._heard else max(0.0, SHORTEST_WATCH_S - lasted_s)


def _advice(error: ApiError, kind: Kind) -> str:
    """What the server said, and what somebody can do about it."""
    if error.forbidden:
        return f'{error.message}; grant "list" and "watch" on {kind.resource} in API group "{kind.group}"'
    if error.not_found:
        return f"{error.message}; the API server does not have {kind.group_path(kind.versions[0])}/{kind.resource}"
    return error.message
