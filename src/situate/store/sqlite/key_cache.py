"""Where keys stand, as far as the thread that writes knows without asking SQLite.

What is written was most often written or guarded a moment ago; to ask for it takes longer than to draft the commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from situate.store.entries import Entry
from situate.store.sqlite.rows import Row

GENERATION_KEYS: Final = 16_384
GENERATION_BYTES: Final = 32 << 20
"""After so many keys, or bytes of values, a generation ends, with the commit that was too much. Two of them are kept:
whatever was asked for since the last one ended, and what was asked for before that and not since."""


class KeyCache:
    """Entries that are there for certain, and the numbers of their rows. What is not here may be there or not.

    A commit is drafted right here, and forgotten if it comes to nothing. Keys that nobody asks for any more are
    forgotten by the generation: to keep all in the order in which they were asked for took longer than to use them.
    """

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.numbers: dict[str, int] = {}
        self._bytes = 0
        self._old_entries: dict[str, Entry] = {}
        self._old_numbers: dict[str, int] = {}

    def unknown(self, keys: Iterable[str]) -> set[str]:
        """Those that it does not know. The others are in `entries` and `numbers` now, and nowhere else."""
        entries = self.entries
        missing = {key for key in keys if key not in entries}
        back = self._old_entries.keys() & missing
        for key in back:
            self._know(self._old_entries.pop(key), self._old_numbers.pop(key))
        return missing - back

    def learn(self, rows: Mapping[str, Row]) -> None:
        """Of keys that were unknown, those that are there."""
        for row in rows.values():
            if row.entry is not None:
                self._know(row.entry, row.id)

    def _know(self, entry: Entry, number: int) -> None:
        self.entries[entry.key] = entry
        self.numbers[entry.key] = number
        self._bytes += len(entry.value)

    def forget(self, keys: Iterable[str]) -> None:
        """They are unknown from now on."""
        for key in keys:
            for known in (self.entries, self.numbers, self._old_entries, self._old_numbers):
                known.pop(key, None)

    @contextmanager
    def drafting(self, keys: Iterable[str]) -> Iterator[None]:
        """What a draft does to these keys meanwhile holds, unless something is raised: what is rolled back did not
        happen."""
        try:
            yield
        except BaseException:
            self.forget(keys)
            raise

    def grow(self, size: int) -> None:
        """A commit has written so many bytes of values."""
        self._bytes += size
        if len(self.entries) > GENERATION_KEYS or self._bytes > GENERATION_BYTES:
            self._old_entries, self._old_numbers = self.entries, self.numbers
            self.entries, self.numbers, self._bytes = {}, {}, 0
