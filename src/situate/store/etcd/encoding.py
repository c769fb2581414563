"""A transaction as bytes of etcd's TxnRequest. Pure.

Every write goes through here, and protobuf's runtime takes more than twice as long for the same message: 28 µs against
12 for two guards and two writes.
Numbers are those of `protocol.py`; a test compares the two.
"""

from __future__ import annotations

from typing import Final, assert_never

from situate.store.entries import NO_LEASE
from situate.store.etcd.protocol import EQUAL, GREATER, OF_MODIFIED, OF_VALUE
from situate.store.etcd.translation import Keys
from situate.store.transactions import At, Delete, Guard, Holds, Present, Put, Transaction, Write

# The tag of a field is its number, times eight, plus two for bytes and messages, and zero for numbers.
_COMPARE, _SUCCESS, _FAILURE = b"\x0a", b"\x12", b"\x1a"
_RANGE, _PUT, _DELETE = b"\x0a", b"\x12", b"\x1a"
_KEY, _VALUE, _LEASE = b"\x0a", b"\x12", b"\x18"
_COMPARED_KEY, _MODIFIED, _COMPARED_VALUE = b"\x1a", b"\x30", b"\x3a"


def _compared(result: int, target: int) -> bytes:
    return bytes((0x08, result, 0x10, target))


_AT: Final = _compared(EQUAL, OF_MODIFIED)
_PRESENT: Final = _compared(GREATER, OF_MODIFIED)
_HOLDS: Final = _compared(EQUAL, OF_VALUE)
_SHORT: Final = tuple(bytes((number,)) for number in range(128))


class Encoded(bytes):
    """A request that needs no more serializing."""

    def SerializeToString(self) -> bytes:  # noqa: N802 -- protobuf's name
        return self


def encoded(keys: Keys, asked: Transaction, marker: bytes, modified: int, lease: int, token: bytes) -> Encoded:
    """If the marker and all guards are as required, write everything and the marker; else read the marker and the
    guarded keys."""
    marked = _field(_KEY, marker)
    parts = [_field(_COMPARE, _guard(_AT, marker, _MODIFIED + _number(modified)))]
    failure = [_field(_FAILURE, _field(_RANGE, marked))]
    for guard in asked.guards:
        key = keys.there(guard.key)
        parts.append(_field(_COMPARE, _comparison(guard, key)))
        failure.append(_field(_FAILURE, _field(_RANGE, _field(_KEY, key))))
    parts += [_field(_SUCCESS, _operation(write, keys.there(write.key))) for write in asked.writes]
    parts.append(_field(_SUCCESS, _field(_PUT, marked + _field(_VALUE, token) + _LEASE + _number(lease))))
    return Encoded(b"".join(parts + failure))


def _comparison(guard: Guard, key: bytes) -> bytes:
    match guard:
        case At():
            return _guard(_AT, key, _MODIFIED + _number(guard.revision))
        case Present():
            return _guard(_PRESENT, key, _MODIFIED + _number(0))
        case Holds():
            return _guard(_HOLDS, key, _field(_COMPARED_VALUE, guard.value))
        case _:
            assert_never(guard)


def _guard(head: bytes, key: bytes, required: bytes) -> bytes:
    return head + _field(_COMPARED_KEY, key) + required


def _operation(write: Write, key: bytes) -> bytes:
    match write:
        case Put():
            body = _field(_KEY, key) + _field(_VALUE, write.value)
            if write.lease != NO_LEASE:
                body += _LEASE + _number(write.lease)
            return _field(_PUT, body)
        case Delete():
            return _field(_DELETE, _field(_KEY, key))
        case _:
            assert_never(write)


def _field(tag: bytes, body: bytes) -> bytes:
    return tag + _number(len(body)) + body


def _number(value: int) -> bytes:
    if value < 128:
        return _SHORT[value]
    made = bytearray()
    while value >= 128:
        made.append(value & 127 | 128)
        value >>= 7
    made.append(value)
    return bytes(made)
