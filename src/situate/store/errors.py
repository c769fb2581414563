"""The errors of a store. A guard that does not hold is no error, but an outcome: `Refused`."""

from __future__ import annotations

from situate.store.entries import LeaseId, Revision


class StoreError(Exception):
    """Base of all errors of a store. The text is one line, for the administrator."""


class InvalidRequestError(StoreError):
    """An invalid key, transaction or revision. Nothing was written."""


class CompactedError(StoreError):
    """History up to `compacted`, or further, is gone: list again, and watch from there."""

    def __init__(self, asked: Revision, compacted: Revision) -> None:
        super().__init__(f"revision {asked} has been compacted")
        self.asked = asked
        self.compacted = compacted


class FutureRevisionError(StoreError):
    """A revision that does not exist yet."""

    def __init__(self, asked: Revision, current: Revision) -> None:
        super().__init__(f"revision {asked} is in the future: the store is at {current}")
        self.current = current


class LeaseNotFoundError(StoreError):
    """The lease has expired, was revoked, or never existed. Nothing was written."""

    def __init__(self, lease: LeaseId) -> None:
        super().__init__(f"there is no lease {lease}")


class StoreFullError(StoreError):
    """The store is full. Nothing was written; reads work, and so do writes once there is room."""


class UnavailableError(StoreError):
    """The store did not answer in time. Nothing was written."""


class OutcomeUnknownError(StoreError):
    """The store did not answer in time, and the write may or may not have happened."""


class CorruptError(StoreError):
    """The data read differs from the data written. It is not served."""


class FormatError(StoreError):
    """The store has a format that this release does not read. Nothing was changed."""


class BackupError(StoreError):
    """The backup cannot be written, read or restored. Existing data is unchanged."""


class InUseError(StoreError):
    """Another server has this store open."""


class FailedError(StoreError):
    """The disk failed. The last writes may be there or not; restart the process."""


class ClosedError(StoreError):
    """The store was closed."""

    def __init__(self) -> None:
        super().__init__("the store is closed")
