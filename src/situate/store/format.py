"""The format of a store: a number that grows with each change that an older release could not read, and who wrote it.

A store that is newer than this release is refused. An older one is brought up to date when it is opened, step by step.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from situate import __version__
from situate.store.errors import FormatError

FORMAT: Final = 2
"""The format of this release. 1: no marker in etcd, no identity. 2: both."""
NEWER: Final = (
    "the store was written by situate {release}, which is newer: it has format {found}, and this release, {ours}, reads"
    " up to {format}; use that release, or restore a backup into another directory"
)
UNFINISHED: Final = "the restore of a backup into this prefix did not finish; delete its keys, and restore again"


class StoreMarker(Struct, frozen=True):
    """Metadata of a store."""

    format: int
    release: str
    identity: str
    """Random, created with the store. Backups contain it, so that a restore recognizes another cluster."""
    restoring: bool = False
    """A restore has begun and not finished."""


def checked(marker: StoreMarker) -> StoreMarker:
    """FormatError if this release cannot use the store."""
    if marker.format > FORMAT:
        text = NEWER.format(release=marker.release or "?", found=marker.format, ours=__version__, format=FORMAT)
        raise FormatError(text)
    if marker.restoring:
        raise FormatError(UNFINISHED)
    return marker


def encode(marker: StoreMarker) -> bytes:
    return msgspec.json.encode(marker)


def decode(value: bytes) -> StoreMarker:
    try:
        return msgspec.json.decode(value, type=StoreMarker)
    except msgspec.DecodeError as error:
        raise FormatError(f"the marker of the store's format cannot be read: {error}") from None
