"""Transactions: if all guards hold, all writes happen at one revision; else none does. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias, assert_never

from msgspec import Struct

from situate.store.entries import ABSENT, NO_LEASE, Entry, Event, LeaseId, Revision
from situate.store.errors import InvalidRequestError
from situate.store.keys import check_key

# etcd allows 128 operations and 1.5 MiB in a request; the rest is for its envelope and our marker. For every store.
MAX_OPERATIONS: Final = 120
MAX_TRANSACTION_BYTES: Final = 1_500_000


class At(Struct, frozen=True, gc=False, tag=True):
    """The key was last written at this revision; ABSENT: it does not exist."""

    key: str
    revision: Revision


class Present(Struct, frozen=True, gc=False, tag=True):
    """The key exists."""

    key: str


class Holds(Struct, frozen=True, gc=False, tag=True):
    """The key exists, with this value."""

    key: str
    value: bytes


class Put(Struct, frozen=True, gc=False, tag=True):
    """Write this value. With a lease, the key is deleted when the lease ends; an earlier lease is dropped."""

    key: str
    value: bytes
    lease: LeaseId = NO_LEASE


class Delete(Struct, frozen=True, gc=False, tag=True):
    """Delete the key, if it exists. Use a guard to require that."""

    key: str


Guard: TypeAlias = At | Present | Holds
Write: TypeAlias = Put | Delete


class Transaction(Struct, frozen=True, gc=False):
    guards: tuple[Guard, ...]
    writes: tuple[Write, ...]


class Committed(Struct, frozen=True, gc=False):
    """The transaction is durable, at this revision."""

    revision: Revision


class Refused(Struct, frozen=True, gc=False):
    """Nothing was written, because these guards did not hold."""

    revision: Revision
    failed: tuple[Guard, ...]
    found: tuple[Entry | None, ...]
    """The entries of the guarded keys, in the order of the guards."""


Outcome: TypeAlias = Committed | Refused


def validated(guards: Iterable[Guard], writes: Iterable[Write]) -> Transaction:
    """A transaction within the limits of every store, or InvalidRequestError."""
    transaction = Transaction(tuple(guards), tuple(writes))
    if max(len(transaction.guards), len(transaction.writes)) > MAX_OPERATIONS:
        raise InvalidRequestError(f"a transaction has at most {MAX_OPERATIONS} guards and as many writes")
    size = 0
    known: dict[str, int] = {}  # most keys are both guarded and written
    for write in transaction.writes:
        known[write.key] = bytes_of_key = check_key(write.key)
        size += bytes_of_key + (len(write.value) if isinstance(write, Put) else 0)
    if len(known) != len(transaction.writes):
        raise InvalidRequestError("a transaction writes a key once")
    for guard in transaction.guards:
        size += 2 * (known.get(guard.key) or check_key(guard.key))
        if isinstance(guard, Holds):
            size += len(guard.value)
    if size > MAX_TRANSACTION_BYTES:
        raise InvalidRequestError(f"a transaction has at most {MAX_TRANSACTION_BYTES} bytes, this one has {size}")
    return transaction


def holds(guard: Guard, found: Entry | None) -> bool:
    match guard:  # attributes in the patterns would double the time
        case At():
            return guard.revision == (ABSENT if found is None else found.modified)
        case Present():
            return found is not None
        case Holds():
            return found is not None and found.value == guard.value
        case _:
            assert_never(guard)


def refusal(guards: Sequence[Guard], entries: Mapping[str, Entry], revision: Revision) -> Refused | None:
    """The refusal if a guard does not hold; else None."""
    failed = [guard for guard in guards if not holds(guard, entries.get(guard.key))]
    if not failed:
        return None
    return Refused(revision, tuple(failed), tuple(entries.get(guard.key) for guard in guards))


def changes(writes: Iterable[Write], entries: Mapping[str, Entry], revision: Revision) -> tuple[Event, ...]:
    """The events of these writes at a revision, applied to these entries."""
    events: list[Event] = []
    for write in writes:
        key = write.key
        before = entries.get(key)
        match write:
            case Put():
                created = revision if before is None else before.created
                events.append(Event(key, Entry(key, write.value, created, revision, write.lease), before))
            case Delete():
                if before is not None:
                    events.append(Event(key, None, before))
            case _:
                assert_never(write)
    return tuple(events)
