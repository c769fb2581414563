"""Translates guards, writes and keys to etcd's messages, and responses back. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, assert_never

from situate.store.entries import Batch, Entry, Event, LeaseId, Revision
from situate.store.errors import CompactedError
from situate.store.etcd.protocol import DELETED, EQUAL, GREATER, OF_MODIFIED, OF_VALUE, message
from situate.store.keys import prefix_end
from situate.store.transactions import At, Delete, Guard, Holds, Present, Put, Write

_Compare = message("Compare")
_RequestOp = message("RequestOp")
_Put = message("PutRequest")
_Delete = message("DeleteRangeRequest")
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


def comparison(keys: Keys, guard: Guard) -> Any:
    match guard:
        case At(key=key, revision=revision):
            return _Compare(result=EQUAL, target=OF_MODIFIED, key=keys.there(key), mod_revision=revision)
        case Present(key=key):
            return _Compare(result=GREATER, target=OF_MODIFIED, key=keys.there(key), mod_revision=0)
        case Holds(key=key, value=value):
            return _Compare(result=EQUAL, target=OF_VALUE, key=keys.there(key), value=value)
        case _:
            assert_never(guard)


def operation(keys: Keys, write: Write) -> Any:
    match write:
        case Put(key=key, value=value, lease=lease):
            return _RequestOp(request_put=_Put(key=keys.there(key), value=value, lease=lease))
        case Delete(key=key):
            return _RequestOp(request_delete_range=_Delete(key=keys.there(key)))
        case _:
            assert_never(write)


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
