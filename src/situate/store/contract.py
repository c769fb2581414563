"""What a store is: the promises that memory, SQLite and etcd all keep, and that one test suite asks of each.

- A commit that was answered is durable, and a read returns nothing that is not.
- Commits and reads are strictly serialisable; the order is that of revisions, which never go back and never repeat.
  They may skip numbers.
- A watch tells every event after its revision: in order, once, without gaps, a revision never in parts. One that asks
  for what is compacted away ends with CompactedError, and tells nothing before that.
- A caller that is cancelled does not know whether its commit happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, Self

from situate.store.entries import Batch, LeaseId, Page, ReadResult, Revision
from situate.store.transactions import Guard, Outcome, Write


class Watch(Protocol):
    """Batches, one after another, for as long as somebody asks. Close it, or it is kept for ever."""

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> Batch: ...

    async def ask_progress(self) -> None:
        """Have a bookmark sent: a batch without events, after all that is older than this call."""

    async def aclose(self) -> None: ...


class Store(Protocol):
    """The log."""

    async def commit(self, guards: Iterable[Guard], writes: Iterable[Write]) -> Outcome:
        """All writes at one revision if all guards hold, else nothing and the reason."""

    async def read(self, keys: Sequence[str], at: Revision | None = None) -> ReadResult:
        """These keys at one revision: the newest, or the one asked for."""

    async def scan(self, prefix: str, *, at: Revision | None = None, after: str = "", limit: int = 0) -> Page:
        """What begins with `prefix`, ordered by key. To go on: the same revision, after the last key."""

    def watch(self, prefix: str, after: Revision) -> Watch:
        """All events of keys that begin with `prefix` whose revision is greater than `after`."""

    async def revision(self) -> Revision:
        """The newest there is, no older than any that was answered to anybody."""

    async def compact(self, revision: Revision) -> None:
        """Forget history before this revision; what stands at it can still be read. Again: no effect."""

    async def grant(self, ttl_s: int) -> LeaseId:
        """A lease that lives this long after each keep_alive. A store that was down gives it the whole time again."""

    async def keep_alive(self, lease: LeaseId) -> bool:
        """False: it is gone, and its keys are, or will be in a moment."""

    async def revoke(self, lease: LeaseId) -> None:
        """End it, and delete its keys, at one revision. Again: no effect."""

    async def aclose(self) -> None: ...
