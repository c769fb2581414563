"""A sorted set of keys: cheap to add to and remove from, to iterate from any key, and to count by range.

It is a list of short lists. A single list would move half of its elements for each new key.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from typing import Final

MAX_CHUNK: Final = 1_024


class SortedKeys:
    __slots__ = ("_lasts", "_parts")

    def __init__(self, ordered: Iterable[str] = ()) -> None:
        """`ordered`: sorted and unique."""
        keys = list(ordered)
        half = MAX_CHUNK // 2
        self._parts = [keys[start : start + half] for start in range(0, len(keys), half)]
        self._lasts = [part[-1] for part in self._parts]

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def add(self, key: str) -> None:
        """Add a key that is not in the set."""
        index = bisect_left(self._lasts, key)
        if index < len(self._parts):
            part = self._parts[index]
            insort(part, key)
        elif index:  # after all others
            index -= 1
            part = self._parts[index]
            part.append(key)
            self._lasts[index] = key
        else:
            self._parts.append([key])
            self._lasts.append(key)
            return
        if len(part) > MAX_CHUNK:
            half = len(part) // 2
            self._parts.insert(index + 1, part[half:])
            del part[half:]
            self._lasts.insert(index, part[-1])

    def remove(self, key: str) -> None:
        """Remove a key that is in the set."""
        index = bisect_left(self._lasts, key)
        part = self._parts[index]
        del part[bisect_left(part, key)]
        if part:
            self._lasts[index] = part[-1]
        else:
            del self._parts[index], self._lasts[index]

    def between(self, start: str, end: str) -> Iterator[str]:
        """Keys from `start` up to, but not including, `end`. Do not change the set while iterating."""
        index = bisect_left(self._lasts, start)
        for part in self._parts[index:]:
            first = bisect_left(part, start) if part[0] < start else 0
            if part[-1] < end:
                yield from part[first:] if first else part
            else:
                yield from part[first : bisect_left(part, end)]
                return

    def count(self, start: str, end: str) -> int:
        """How many keys `between` would yield."""
        return self._rank(end) - self._rank(start)

    def _rank(self, key: str) -> int:
        """How many keys are less than this one."""
        index = bisect_left(self._lasts, key)
        before = sum(map(len, self._parts[:index]))
        return before + (bisect_left(self._parts[index], key) if index < len(self._parts) else 0)
