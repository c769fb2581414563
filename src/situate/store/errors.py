"""What can go wrong with a store. A guard that does not hold is not among it: that is an answer, `Refused`."""

from __future__ import annotations

from situate.store.entries import LeaseId, Revision


class StoreError(Exception):
    """Anything that a store raises. Its text is one line, for whoever runs the server."""


class InvalidRequestError(StoreError):
    """A key, a transaction or a revision that no store takes. Nothing was written."""


class CompactedError(StoreError):
    """History is gone up to `compacted`, if not further: list again, and watch from there."""

    def __init__(self, asked: Revision, compacted: Revision) -> None:
        super().__init__(f"revision {asked} is no longer kept: history was compacted")
        self.asked = asked
        self.compacted = compacted


class FutureRevisionError(StoreError):
    """A revision that does not exist yet."""

    def __init__(self, asked: Revision, current: Revision) -> None:
        super().__init__(f"revision {asked} is not there yet: the store is at {current}")
        self.asked = asked
        self.current = current


class LeaseNotFoundError(StoreError):
    """The lease has run out, was given up, or never was. Nothing was written."""

    def __init__(self, lease: LeaseId) -> None:
        super().__init__(f"there is no lease {lease}")
        self.lease = lease


class StoreFullError(StoreError):
    """No room for the write. Nothing was written; reads go on, and so do writes once there is room."""


class UnavailableError(StoreError):
    """Nobody answered in time. Nothing was written."""


class OutcomeUnknownError(StoreError):
    """Nobody answered in time, and whether the write happened could not be found out."""


class CorruptError(StoreError):
    """What was read is not what was written. It is not served."""


class InUseError(StoreError):
    """Another server has this store open."""


class FailedError(StoreError):
    """The disk did not keep a promise. What was being written may be there or not; the process must start anew."""


class ClosedError(StoreError):
    """The store was closed."""

    def __init__(self) -> None:
        super().__init__("the store is closed")
