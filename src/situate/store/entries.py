"""The values of a store: entries, events, batches, pages."""

from __future__ import annotations

from typing import Final, NewType

from msgspec import Struct

Revision = NewType("Revision", int)
"""Counts the writes of the whole store. Grows with each, never repeats, and starts above 0."""
LeaseId = NewType("LeaseId", int)

ABSENT: Final = Revision(0)
"""The revision of a key that does not exist."""
NO_LEASE: Final = LeaseId(0)


class Entry(Struct, frozen=True, gc=False):
    """One key at a revision."""

    key: str
    value: bytes
    created: Revision
    modified: Revision
    lease: LeaseId = NO_LEASE


class Event(Struct, frozen=True, gc=False):
    """What one write did to one key."""

    key: str
    entry: Entry | None
    """None: it was deleted."""
    before: Entry | None
    """None: it did not exist."""


class Batch(Struct, frozen=True, gc=False):
    """The events of one revision, in the order of its writes.

    Without events it is a bookmark: the watch has returned everything up to this revision.
    """

    revision: Revision
    events: tuple[Event, ...] = ()


class ReadResult(Struct, frozen=True, gc=False):
    """Keys at one revision, in the order requested."""

    revision: Revision
    entries: tuple[Entry | None, ...]


class Page(Struct, frozen=True, gc=False):
    """The first entries of a prefix, by key, at one revision; `remaining` more come after them."""

    revision: Revision
    entries: tuple[Entry, ...]
    remaining: int = 0
