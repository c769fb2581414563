"""A reflector for one kind: lists it, watches it from there, and reports changes in batches, for ever.

It streams the list as the beginning of the watch where the server supports that, else it pages. It resumes a watch that
ends from the last version seen. It lists again only if the server no longer has that version (410), or if two watches
in a row stay silent. It logs each problem in one line and retries with backoff: 0.8 s, doubled up to 30 s, with jitter,
and no sooner than the server asks.

A list that is older than what was reported before is not used; the next one reads the store itself (no
resourceVersion). If the store agrees, the cluster was restored from a backup, and the list counts.

If the server does not let us see a kind:
- a required kind is not synced, so the scheduler does not start; the reflector retries;
- nothing waits for an optional kind (PodGroup). Pods that name a group of it stay pending. The reflector looks for the
  kind every minute or two.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Protocol

from situate.core.changes import Change
from situate.core.model.meta import is_older
from situate.kube.discovery import served_version
from situate.kube.errors import TIMEOUT, ApiError, from_status
from situate.kube.kinds import WatchedKind
from situate.kube.object_cache import ObjectCache
from situate.loop.logs import Log
from situate.wire.errors import InputError
from situate.wire.watch import ADDED, BOOKMARK, DELETED, ERROR, MODIFIED, Frame, Item, ListPage, RawReader, Reader

_log = Log(__name__)

PAGE: Final = 500
"""Objects a page, as client-go."""
PAGED_TRIES: Final = 2
"""How often to restart a list whose pages expired; after that, ask for it in one page."""
WATCH_S: Final = (300, 600)
"""The length of a watch: random between these, so that watches do not all end at once."""
GRACE_S: Final = 30.0
"""How much longer a watch may last before we end it ourselves."""
IDLE_S: Final = 150.0
"""How long a watch may be silent. API servers send a bookmark every minute, so two are missing."""
LISTING_S: Final = 120.0
"""The limit for a list at the beginning of a watch; after that, page."""
LIST_S: Final = 64.0
SILENT_WATCHES: Final = 2
GARBAGE_WATCHES: Final = 3
"""List again after so many watches in a row without an event, or without a readable one."""
BROKEN_LISTS: Final = 3
"""Page after so many streamed lists that broke off."""
RELIST_S: Final = 5.0
"""Back off when watches expire faster than this."""
SHORTEST_WATCH_S: Final = 1.0
"""The pause between watches that end at once without an event."""
LOOK_AGAIN_S: Final = 60.0
"""How often to look for a kind that the server does not have."""

MOST_SAID: Final = 1_000
"""How many unreadable objects are remembered, to log each once."""

BACKOFF_S: Final = 0.8
BACKOFF_MAX_S: Final = 30.0
BACKOFF_RESET_S: Final = 120.0

UNREADABLE: Final = "Unreadable"
STALE: Final = "Stale"
TOO_MANY: Final = 429


class LineBatches(Protocol):
    """A stream: all complete lines that have arrived, at least one; none at its end."""

    async def batch(self) -> list[bytes]: ...


class ListWatchClient(Protocol):
    """The part of situate.kube.client.Client that a reflector needs."""

    async def request(
        self, method: str, path: str, *, params: Mapping[str, str] | None = None, timeout_s: float = LIST_S
    ) -> bytes: ...

    def stream(
        self, path: str, *, params: Mapping[str, str] | None = None, idle_s: float
    ) -> AbstractAsyncContextManager[LineBatches]: ...


class ListBackoff:
    """client-go's backoff: longer each time, reset after a while."""

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
    """`run` it until it is cancelled."""

    def __init__(
        self,
        client: ListWatchClient,
        kind: WatchedKind,
        tell: Callable[[list[Change]], None],
        *,
        rest: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        dice: random.Random | None = None,
        on_contact: Callable[[], None] = lambda: None,
        reader: Reader[Any] | RawReader | None = None,
        since: str = "",
    ) -> None:
        """`since`: a version up to which the caller knows everything; the reflector resumes from there if it can."""
        self.kind = kind
        self.cache = ObjectCache(kind.model)
        self.synced = asyncio.Event()
        self.problem = ""
        """What keeps us from seeing this kind, in one line; or empty."""
        self.last_contact: float | None = None
        """When the server last sent anything about this kind."""
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
        """Batches of the current watch."""
        if since:
            self._listed = True
            self.cache.reached(since)
            self.synced.set()

    @property
    def served(self) -> str | None:
        """The API version in which the server has this kind; None if it has none, or that is unknown."""
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
        """The server ended the watch in time. Some servers end watches at once."""
        if self._listed and (wait_s := self._left_of_shortest_watch(lasted_s)):
            await self._rest(wait_s)

    async def _attempt(self) -> None:
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
            self.synced.set()  # the server does not have it
            await self._rest(LOOK_AGAIN_S * (1 + self._dice.random()))

    # -- lists -------------------------------------------------------------------------------------------------------

    async def _list_by_watch(self, path: str) -> None:
        """A watch that begins with the list."""
        since = "" if self._from_store else self.cache.version
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
        self.cache.begin_list()
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
        """Take frames of the list; the lines after its end, or None before that."""
        for number, line in enumerate(batch, 1):
            frame = self._frame(line)
            if frame.type in (ADDED, MODIFIED):
                self._readable(frame.item)
                self.cache.collect(frame.item)
            elif frame.type == DELETED:
                self.cache.collect_no_more(frame.item)
            elif frame.type == BOOKMARK and frame.listed:
                self._end_list(frame.item.version, since)
                return batch[number:]
        self._tell_early()
        return None

    async def _list_by_pages(self, path: str) -> None:
        """A list of the store itself, which cannot be older than what we saw."""
        self.cache.begin_list()
        params = self.kind.params
        if self._expired_pages < PAGED_TRIES:
            params["limit"] = str(PAGE)
        while True:
            page = self._page(await self._client.request("GET", path, params=params, timeout_s=LIST_S))
            self._contact()
            for item in page.items:
                self._readable(item)
                self.cache.collect(item)
            if not page.more:
                break
            self._tell_early()
            params["continue"] = page.more
        self._end_list(page.version, "")

    def _tell_early(self) -> None:
        """Report the first list as it comes: it is of the store itself. Report later lists whole or not at all."""
        if not self.cache.version and (changes := self.cache.collected()):
            self._tell(changes)

    def _end_list(self, version: str, since: str) -> None:
        """Report what the complete list changes, unless it is older than what was reported before."""
        if not version:
            raise ApiError(0, UNREADABLE, "a list without a resourceVersion")
        if is_older(version, self.cache.version):
            told, self._from_store = self.cache.version, True
            if not since:
                self.cache.forget_versions()
            what = "an older state" if since else "an older state of the store itself, as after a restored backup"
            raise ApiError(0, STALE, f"listed {what}: resourceVersion {version}, having seen {told}")
        changes = self.cache.end_list(version)
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
            "resourceVersion": self.cache.version,
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
        """Report all events of a batch at once, also those before one that ends the watch."""
        changes: list[Change] = []
        happened, read = self.cache.happened, self._reader.frame
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
            self.cache.reached(frame.item.version)
            return
        self._readable(frame.item)
        self.cache.happened(frame.type, frame.item, changes)

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
            log("Ignoring an object that cannot be decoded", kind=self.kind.name, err=item.problem)
            if len(self._said) < MOST_SAID:
                self._said.add(said)

    def _contact(self) -> None:
        """The server sent something."""
        self._heard += 1
        self._silent = 0
        self._answered()

    def _answered(self) -> None:
        """The server responded, and lets us see this kind."""
        self._opened = True
        self.last_contact = self._clock()
        if self.problem:
            _log.info("Seen again", kind=self.kind.name)
            self.problem = ""
            self._on_contact()

    def _watch_seconds(self) -> int:
        return self._dice.randint(*WATCH_S)

    # -- errors ------------------------------------------------------------------------------------------------------

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
        """Choose what to do next; the pause before it in seconds, or None to back off."""
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
            # A 504 also has the reason Timeout, but a server that sends one is not silent.
            self._silent += error.status == 0 and error.reason == TIMEOUT and not self._heard
            self._listed = self._silent < SILENT_WATCHES and self._garbage < GARBAGE_WATCHES
        return None

    def _react_to_expiry(self, listing: bool) -> float | None:
        """Our version is too old: list. If a list expired, read the store itself."""
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
        """A streamed list failed. Page instead, unless the server refuses lists altogether."""
        self._broken_lists += error.status == 0 and error.sent
        cannot = error.status > 0 and not (error.unauthorized or error.forbidden or error.not_found)
        if (cannot and error.status != TOO_MANY) or self._broken_lists >= BROKEN_LISTS:
            self._streams_lists = False
            return 0.0
        return None

    def _lose_kind(self) -> None:
        """A kind that the server no longer has has no objects."""
        self._version, self._listed = None, False
        self.cache.begin_list()
        changes = self.cache.end_list("")
        if changes:
            self._tell(changes)
        self.synced.set()

    def _was_a_cut(self, error: ApiError) -> bool:
        """Whether an open watch broke: that happens, and is no problem."""
        broke = error.status == 0 and error.reason not in (UNREADABLE, STALE)
        return self._listed and self._opened and broke

    def _overran(self) -> None:
        """A watch outlasted its time, or a streamed list never completed."""
        if not self._listed:
            self._streams_lists = False

    def _left_of_shortest_watch(self, lasted_s: float) -> float:
        return 0.0 if self._heard else max(0.0, SHORTEST_WATCH_S - lasted_s)


def _advice(error: ApiError, kind: WatchedKind) -> str:
    """The server's message, and what to do about it."""
    if error.forbidden:
        return f'{error.message}; grant "list" and "watch" on {kind.resource} in API group "{kind.group}"'
    if error.not_found:
        return f"{error.message}; the API server does not have {kind.group_path(kind.versions[0])}/{kind.resource}"
    return error.message
