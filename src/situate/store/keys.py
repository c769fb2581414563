"""Keys are text in code point order, which is also the order of their UTF-8 bytes: all stores sort alike."""

from __future__ import annotations

from typing import Final

from situate.store.errors import InvalidRequestError

MAX_KEY_BYTES: Final = 2_048
_LAST: Final = 0x10FFFF
_BEFORE_SURROGATES: Final = 0xD7FF
_AFTER_SURROGATES: Final = 0xE000


def check_key(key: str) -> int:
    """The size of a key in bytes. InvalidRequestError for a key that not every store can hold."""
    if not key or "\0" in key:
        raise InvalidRequestError(f"{key!r} is not a key: it is empty or contains NUL")
    try:
        size = len(key) if key.isascii() else len(key.encode())
    except UnicodeEncodeError:
        raise InvalidRequestError(f"{key!r} is not a key: it is not text") from None
    if size > MAX_KEY_BYTES:
        raise InvalidRequestError(f"a key has at most {MAX_KEY_BYTES} bytes, this one has {size}: {key[:40]!r}...")
    return size


def prefix_end(prefix: str) -> str | None:
    """The first text after all texts with this prefix; None: there is none."""
    while prefix:
        last = ord(prefix[-1])
        if last < _LAST:
            return prefix[:-1] + chr(_AFTER_SURROGATES if last == _BEFORE_SURROGATES else last + 1)
        prefix = prefix[:-1]
    return None


def first_after(key: str) -> str:
    """The least text greater than `key`; keys do not contain NUL."""
    return key + "\0"
