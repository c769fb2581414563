"""The contract of a store. Memory, SQLite and etcd keep it, and one test suite checks them all.

- An acknowledged commit is durable, and a read returns only durable data.
- Commits and reads are strictly serializable, in the order of revisions. Revisions grow, never repeat, and may skip
  numbers.
- A watch returns every event after its revision: in order, once, without gaps, a revision never in parts. If that
  history is compacted, it raises CompactedError before any event.
- A cancelled caller does not know whether its commit happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, Self

from situate.store.entries import Batch, LeaseId, Page, ReadResult, Revision
from situate.store.errors import StoreError
from situate.store.transactions import Guard, Outcome, Write


class Watch(Protocol):
    """An endless iterator of batches. Close it, or the store keeps it forever."""

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> Batch: ...

    async def ask_progress(self) -> None:
        """Request a bookmark: a batch without events, after everything older than this call."""

    async def aclose(self) -> None: ...


class Store(Protocol):
    """The log."""

    @property
    def problem(self) -> str:
        """What is wrong with the store now, in one line; "" if nothing is. Never waits."""

    async def commit(self, guards: Iterable[Guard], writes: Iterable[Write]) -> Outcome:
        """Make all writes at one revision if all guards hold; else write nothing and return why."""

    async def commit_each(
        self, transactions: Sequence[tuple[Iterable[Guard], Iterable[Write]]]
    ) -> Sequence[Outcome | StoreError]:
        """Several commits at once, each at a revision of its own and with its own outcome, in any order."""

    async def read(self, keys: Sequence[str], at: Revision | None = None) -> ReadResult:
        """These keys at one revision: the newest, or `at`."""

    async def scan(self, prefix: str, *, at: Revision | None = None, after: str = "", limit: int = 0) -> Page:
        """The keys with a prefix, in order. To continue, pass the same revision and the last key."""

    def watch(self, prefix: str, after: Revision) -> Watch:
        """All events of keys with a prefix, with revisions greater than `after`."""

    async def revision(self) -> Revision:
        """The newest revision: no acknowledged write has a greater one."""

    async def compact(self, revision: Revision) -> None:
        """Drop history before this revision, which itself stays readable. Idempotent."""

    async def grant(self, ttl_s: int) -> LeaseId:
        """A lease that lives this long after each keep_alive. A restart of the store renews it."""

    async def keep_alive(self, lease: LeaseId) -> bool:
        """False: the lease has ended, and its keys are deleted, or about to be."""

    async def revoke(self, lease: LeaseId) -> None:
        """End the lease and delete its keys, at one revision. Idempotent."""

    async def aclose(self) -> None: ...
