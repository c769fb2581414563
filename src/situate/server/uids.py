"""Uids of new objects: random, as version 4 of RFC 9562 has them.

A write needs several. To ask the kernel for each of them, and to make a UUID of it only to write it as text, took four
times as long; and each question lets go of the interpreter. So randomness is fetched for many at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

__all__ = ["new_uid"]

AT_ONCE: Final = 256
DIGITS: Final = 32
_VARIANTS: Final = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


def _uids() -> Iterator[str]:
    while True:
        random = os.urandom(AT_ONCE * DIGITS // 2).hex()
        for start in range(0, len(random), DIGITS):
            one = random[start : start + DIGITS]
            yield f"{one[:8]}-{one[8:12]}-4{one[13:16]}-{_VARIANTS[one[16]]}{one[17:20]}-{one[20:]}"


_made: Final = _uids()


def new_uid() -> str:
    """On the thread of the event loop only."""
    return next(_made)
