"""A watch whose newest objects are kept, in our words: what was decided, as it happens. Resumes when it breaks."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from situate.kube.client import Client
from situate.kube.errors import ApiError, from_status

IDLE_S: Final = 150.0
RETRY_S: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_GONE: Final = 410

Told = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FeedSource:
    """What to watch, and what to make of each object; None: nothing that is shown."""

    path: str
    tell: Callable[[Mapping[str, Any]], Told | None]
    begin: str = ""
    """The version after which the watch begins; empty: with all that exists."""
    params: Mapping[str, str] = field(default_factory=dict)


class DecisionFeed:
    """`run` it until it is cancelled. A source that the server does not have gives way to the next."""

    def __init__(
        self, client: Client, sources: Sequence[FeedSource], limit: int, subject: str, moved: Callable[[], None]
    ) -> None:
        self._client = client
        self._sources = list(sources)
        self._limit = limit
        self._subject = subject
        self._moved = moved
        self._kept: deque[tuple[int, Told]] = deque(maxlen=limit)
        self._at = sources[0].begin
        self._seen: dict[str, None] = {}
        self.last = 0
        """The number of the newest."""
        self.problem = ""

    def after(self, number: int) -> list[Told]:
        """Those after a number, the oldest first."""
        return [one for at, one in self._kept if at > number]

    async def run(self) -> None:
        failures = 0
        while True:
            try:
                await self._watch(self._sources[0])
                failures, self.problem = 0, ""
            except ApiError as error:
                if error.not_found and len(self._sources) > 1:
                    self._sources.pop(0)
                    self._at = self._sources[0].begin
                    continue
                if error.gone or error.status == _GONE:
                    self._at = self._sources[0].begin
                self.problem = f"{self._subject} cannot be followed: {error.message}"
                self._moved()
                failures += 1
                await asyncio.sleep(RETRY_S[min(failures, len(RETRY_S)) - 1])

    async def _watch(self, source: FeedSource) -> None:
        """One connection, until it ends."""
        params = {"watch": "true", "allowWatchBookmarks": "true", **source.params}
        if self._at:
            params["resourceVersion"] = self._at
        async with self._client.stream(source.path, params=params, idle_s=IDLE_S) as lines:
            while batch := await lines.batch():
                for line in batch:
                    self._take(source, msgspec.json.decode(line))
                self.problem = ""
                self._moved()

    def _take(self, source: FeedSource, frame: dict[str, Any]) -> None:
        """Raises ApiError for an error in the stream."""
        found = frame["object"]
        if frame["type"] == "ERROR":
            raise from_status(0, msgspec.json.encode(found))
        self._at = str(found["metadata"].get("resourceVersion") or self._at)
        if frame["type"] in ("BOOKMARK", "DELETED") or self._at in self._seen:
            return
        told = source.tell(found)
        if told is None:
            return
        self._seen[self._at] = None
        if len(self._seen) > 2 * self._limit:
            del self._seen[next(iter(self._seen))]
        self.last += 1
        self._kept.append((self.last, told))
