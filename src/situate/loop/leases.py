"""A Lease as a lock: what one process knows of it, what it writes there, and where the Lease is stored.

Nothing trusts the times in a Lease, which are for people. A process times what others wrote from when it saw it, on its
own clock. Every write carries the resourceVersion that was read, so of two writers one gets a conflict.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol, TypeAlias

from situate.loop.logs import Log
from situate.wire.bodies import micro_time

LeaseObject: TypeAlias = dict[str, Any]

API: Final = "coordination.k8s.io/v1"
RELEASED_S: Final = 1
"""The duration of a released lease, as client-go writes it."""
RELEASE_TRIES: Final = 3
_OTHERS: Final = ("preferredHolder", "strategy")
"""Fields of the spec that a holder keeps as they are."""
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

_log = Log(__name__)


def steady_seconds() -> float:
    """A clock that nobody can set and, where the system has one, that also runs while the machine is suspended."""
    return time.clock_gettime(_CLOCK)


class LeaseError(Exception):
    """A read or write of a Lease that failed. `reason` is that of a Kubernetes Status."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message

    @property
    def conflict(self) -> bool:
        return self.reason in ("Conflict", "AlreadyExists")

    @property
    def forbidden(self) -> bool:
        return self.reason == "Forbidden"


@contextmanager
def lease_errors(failure: type[Exception]) -> Iterator[None]:
    """Raise a LeaseError for a failure that has the reason and message of a Kubernetes Status."""
    try:
        yield
    except failure as error:
        raise LeaseError(getattr(error, "reason", ""), getattr(error, "message", "")) from error


class LeaseStore(Protocol):
    """One Lease, wherever it is stored. Every method may raise LeaseError."""

    namespace: str
    name: str

    async def read(self) -> LeaseObject | None: ...

    async def create(self, lease: LeaseObject) -> LeaseObject: ...

    async def update(self, lease: LeaseObject) -> LeaseObject:
        """A conflict unless the stored Lease still has the resourceVersion of this one."""

    def watch(self) -> AsyncIterator[LeaseObject]:
        """The Lease as it is, then after each change. It may end at any time."""

    async def announce(self, lease: LeaseObject, note: str) -> None:
        """Record an event about the Lease, if events of elections are recorded here. Never raises."""


class LeaseRecord:
    """What one process knows of a Lease, and the Lease as that process would write it. Pure: times come in.

    `term` is the `leaseTransitions` under which we hold the Lease; None while we do not. A process that was restarted
    under the same identity does not hold what its predecessor held: it begins a new term.
    """

    __slots__ = ("_claimed", "_first_term", "changes", "duration_s", "identity", "lease", "since", "term")

    def __init__(self, identity: str, duration_s: int, first_term: int = 0) -> None:
        self.identity = identity
        self.duration_s = duration_s
        self.lease: LeaseObject = {}
        self.since = 0.0
        """When we first saw the Lease as it is now."""
        self.changes = 0
        """How often the Lease was seen to differ."""
        self.term: int | None = None
        self._first_term = first_term
        self._claimed: int | None = None
        """The term that we last tried to write: if the answer was lost, reading the Lease shows whether we did."""

    @property
    def spec(self) -> dict[str, Any]:
        found: dict[str, Any] = self.lease.get("spec") or {}
        return found

    @property
    def holder(self) -> str:
        return str(self.spec.get("holderIdentity") or "")

    @property
    def held_by_other(self) -> bool:
        return self.holder not in ("", self.identity)

    @property
    def expires(self) -> float:
        """When others may take the Lease."""
        return self.since + float(self.spec.get("leaseDurationSeconds") or 0)

    def see(self, lease: LeaseObject, now: float) -> bool:
        """Note the Lease as it is; whether it says something new. Only news restart its time."""
        news = not self.lease or (lease.get("spec") or {}) != self.spec
        self.lease = lease
        if news:
            self.since = now
            self.changes += 1
        transitions = self._transitions()
        self.term = transitions if self.holder == self.identity and transitions == self._claimed else None
        return news

    def claim(self, wall_ns: int, metadata: LeaseObject) -> LeaseObject:
        """The Lease with us as its holder: renewed if we hold it, else in a new term."""
        now, renews = micro_time(wall_ns), self.term is not None
        if not renews:
            self._claimed = self._transitions() + 1 if self.lease else self._first_term
        acquired = (self.spec.get("acquireTime") or now) if renews else now
        return self._written(self.identity, self.duration_s, acquired, now, self._claimed or 0, metadata)

    def released(self, wall_ns: int) -> LeaseObject:
        now = micro_time(wall_ns)
        return self._written("", RELEASED_S, now, now, self._transitions(), {})

    def _transitions(self) -> int:
        return int(self.spec.get("leaseTransitions") or 0)

    def _written(
        self, holder: str, duration_s: int, acquired: str, renewed: str, transitions: int, metadata: LeaseObject
    ) -> LeaseObject:
        spec: dict[str, Any] = {
            **{key: self.spec[key] for key in _OTHERS if key in self.spec},
            "holderIdentity": holder,
            "leaseDurationSeconds": duration_s,
            "acquireTime": acquired,
            "renewTime": renewed,
            "leaseTransitions": transitions,
        }
        metadata = {**(self.lease.get("metadata") or {}), **metadata}
        return {**self.lease, "apiVersion": API, "kind": "Lease", "metadata": metadata, "spec": spec}


class LeaseWriter:
    """Reads and writes one Lease, and keeps its record. All methods raise LeaseError."""

    def __init__(
        self, store: LeaseStore, record: LeaseRecord, clock: Callable[[], float], wall_ns: Callable[[], int]
    ) -> None:
        self.metadata: LeaseObject = {}
        """Metadata to write with each claim, over what is there."""
        self.taken = 0
        """How often we tried to acquire a Lease that was free, expired, or held by an earlier process."""
        self._store = store
        self._record = record
        self._clock = clock
        self._wall_ns = wall_ns

    async def claim(self, may_take: Callable[[], bool]) -> bool:
        """Renew or take the Lease; whether it is ours. `may_take` judges the record of a Lease that we do not hold."""
        record = self._record
        if record.term is not None and self._clock() < record.expires:
            try:
                return await self._write()
            except LeaseError as error:
                lock = f"{self._store.namespace}/{self._store.name}"
                _log.v(2).info("Failed to update lease, reading it first", lock=lock, err=error.message)
        found = await self._store.read()
        if found is None:
            return await self._create()
        record.see(found, self._clock())
        if record.term is None:
            if not may_take():
                return False
            self.taken += 1
        return await self._write()

    async def _create(self) -> bool:
        self._record.lease, self._record.term = {}, None
        self.metadata.update(name=self._store.name, namespace=self._store.namespace)
        lease = await self._store.create(self._record.claim(self._wall_ns(), self.metadata))
        self._record.see(lease, self._clock())
        return True

    async def _write(self) -> bool:
        lease = await self._store.update(self._record.claim(self._wall_ns(), self.metadata))
        self._record.see(lease, self._clock())
        return True

    async def release(self) -> bool:
        """Let go of the Lease; whether it was still ours. A renewal may have been under way: then it is read again."""
        record = self._record
        for tries_left in range(RELEASE_TRIES - 1, -1, -1):
            found = await self._store.read()
            if found is None:
                return False
            record.see(found, self._clock())
            if record.holder != record.identity:
                return False
            try:
                record.see(await self._store.update(record.released(self._wall_ns())), self._clock())
                return True
            except LeaseError as error:
                if not (error.conflict and tries_left):
                    raise
        return False
