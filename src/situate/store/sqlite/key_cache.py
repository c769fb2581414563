"""The writer thread's cache of keys: their entries and row numbers.

Most writes are of keys that were written or guarded a moment ago, and a query for them takes longer than drafting the
commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from situate.store.entries import Entry
from situate.store.sqlite.rows import Row

GENERATION_KEYS: Final = 16_384
GENERATION_BYTES: Final = 32 << 20
"""A commit that exceeds these limits ends a generation. The cache has two: keys used since the last generation ended,
and keys used in the one before and not since."""


class KeyCache:
    """Entries of keys that exist, and the numbers of their rows. A key that is not cached may exist or not.

    A commit is drafted in the cache, and its keys are dropped if it fails. Unused keys are dropped by generation, since
    an LRU order took longer to maintain than to use.
    """

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.numbers: dict[str, int] = {}
        self._bytes = 0
        self._old_entries: dict[str, Entry] = {}
        self._old_numbers: dict[str, int] = {}

    def unknown(self, keys: Iterable[str]) -> set[str]:
        """The keys that are not cached. The others are in `entries` and `numbers` now."""
        entries = self.entries
        missing = {key for key in keys if key not in entries}
        back = self._old_entries.keys() & missing
        for key in back:
            self._know(self._old_entries.pop(key), self._old_numbers.pop(key))
        return missing - back

    def learn(self, rows: Mapping[str, Row]) -> None:
        """Cache these rows of unknown keys."""
        for row in rows.values():
            if row.entry is not None:
                self._know(row.entry, row.id)

    def _know(self, entry: Entry, number: int) -> None:
        self.entries[entry.key] = entry
        self.numbers[entry.key] = number
        self._bytes += len(entry.value)

    def forget(self, keys: Iterable[str]) -> None:
        """Drop keys."""
        for key in keys:
            for known in (self.entries, self.numbers, self._old_entries, self._old_numbers):
                known.pop(key, None)

    @contextmanager
    def drafting(self, keys: Iterable[str]) -> Iterator[None]:
        """Keep what the block changes of these keys, unless it raises: then the transaction is rolled back."""
        try:
            yield
        except BaseException:
            self.forget(keys)
            raise

    def grow(self, size: int) -> None:
        """Account for a commit with so many bytes of values."""
        self._bytes += size
        if len(self.entries) > GENERATION_KEYS or self._bytes > GENERATION_BYTES:
            self._old_entries, self._old_numbers = self.entries, self.numbers
            self.entries, self.numbers, self._bytes = {}, {}, 0
