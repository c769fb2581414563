"""Keys in order: added and removed in small steps, walked from any place, counted without walking.

A list of short lists. One long list would move half of its elements for each new key.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from typing import Final

__all__ = ["SortedKeys"]

MAX_CHUNK: Final = 1_024


class SortedKeys:
    """A set of texts that knows their order."""

    __slots__ = ("_lasts", "_parts")

    def __init__(self, ordered: Iterable[str] = ()) -> None:
        """From keys that are in order already, each once."""
        keys = list(ordered)
        half = MAX_CHUNK // 2
        self._parts = [keys[start : start + half] for start in range(0, len(keys), half)]
        self._lasts = [part[-1] for part in self._parts]

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def add(self, key: str) -> None:
        """A key that is not there."""
        place = bisect_left(self._lasts, key)
        if place < len(self._parts):
            part = self._parts[place]
            insort(part, key)
        elif place:  # behind all others
            place -= 1
            part = self._parts[place]
            part.append(key)
            self._lasts[place] = key
        else:
            self._parts.append([key])
            self._lasts.append(key)
            return
        if len(part) > MAX_CHUNK:
            half = len(part) // 2
            self._parts.insert(place + 1, part[half:])
            del part[half:]
            self._lasts.insert(place, part[-1])

    def remove(self, key: str) -> None:
        """A key that is there."""
        place = bisect_left(self._lasts, key)
        part = self._parts[place]
        del part[bisect_left(part, key)]
        if part:
            self._lasts[place] = part[-1]
        else:
            del self._parts[place], self._lasts[place]

    def between(self, start: str, end: str) -> Iterator[str]:
        """Keys from `start` on and before `end`. Do not change anything while walking."""
        place = bisect_left(self._lasts, start)
        for part in self._parts[place:]:
            first = bisect_left(part, start) if part[0] < start else 0
            if part[-1] < end:
                yield from part[first:] if first else part
            else:
                yield from part[first : bisect_left(part, end)]
                return

    def count(self, start: str, end: str) -> int:
        """How many there are between."""
        return self._rank(end) - self._rank(start)

    def _rank(self, key: str) -> int:
        """How many there are before."""
        place = bisect_left(self._lasts, key)
        before = sum(map(len, self._parts[:place]))
        return before + (bisect_left(self._parts[place], key) if place < len(self._parts) else 0)
