"""Random uids of new objects (UUID version 4).

A write needs several. uuid.uuid4() takes four times as long, and each call of os.urandom releases the interpreter lock.
So this reads random bytes for many uids at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

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
    """Call it on the event loop's thread only."""
    return next(_made)
