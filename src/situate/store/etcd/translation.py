"""Translates keys and reads to etcd's messages, and responses back. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from situate.store.entries import Batch, Entry, Event, LeaseId, Revision
from situate.store.errors import CompactedError
from situate.store.etcd.protocol import DELETED, message
from situate.store.keys import prefix_end

_RequestOp = message("RequestOp")
_Range = message("RangeRequest")


class Keys:
    """Maps our keys below a prefix of etcd. It ends in `/`, so that no other prefix starts with it."""

    def __init__(self, prefix: str) -> None:
        self._root = prefix.rstrip("/") + "/"
        self._skip = len(self._root)
        self.markers = prefix.rstrip("/") + ".marks/"
        self.format = (prefix.rstrip("/") + ".format").encode()

    def there(self, key: str) -> bytes:
        return (self._root + key).encode()

    def here(self, key: bytes) -> str:
        return key.decode()[self._skip :]

    def end(self, prefix: str) -> bytes:
        """The end of the range of a prefix."""
        return (prefix_end(self._root + prefix) or "").encode()

    def entry(self, found: Any) -> Entry:
        return Entry(
            self.here(found.key),
            found.value,
            Revision(found.create_revision),
            Revision(found.mod_revision),
            LeaseId(found.lease),
        )


def reading(key: bytes, revision: int = 0) -> Any:
    return _RequestOp(request_range=_Range(key=key, revision=revision))


def found_in(keys: Keys, responses: Iterable[Any]) -> list[Entry | None]:
    """The entries of a read-only transaction with one key an operation."""
    ranges = [response.response_range.kvs for response in responses]
    return [keys.entry(kvs[0]) if kvs else None for kvs in ranges]


def batches(keys: Keys, events: Iterable[Any]) -> list[Batch]:
    """The events of a response, by revision. etcd never splits a revision over two."""
    by_revision: dict[int, list[Event]] = {}
    for event in events:
        by_revision.setdefault(event.kv.mod_revision, []).append(_event(keys, event))
    return [Batch(Revision(revision), tuple(told)) for revision, told in by_revision.items()]


def _event(keys: Keys, event: Any) -> Event:
    """CompactedError if the previous value was compacted while the watch was behind."""
    kv = event.kv
    before = keys.entry(event.prev_kv) if event.HasField("prev_kv") else None
    entry = None if event.type == DELETED else keys.entry(kv)
    if before is None and (entry is None or entry.created != entry.modified):
        raise CompactedError(Revision(kv.mod_revision - 1), Revision(kv.mod_revision))
    return Event(keys.here(kv.key), entry, before)
