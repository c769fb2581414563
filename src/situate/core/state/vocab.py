"""Vocabularies: strings as small integers, in the order they were first seen."""

from __future__ import annotations

from typing import Final

ABSENT: Final = -1
"""The id of what is absent. Tables indexed by id have one slot more than the vocabulary: index -1 is its last."""


class Vocab:
    """Gives each string an id, 0 upwards. Ids are never reused."""

    __slots__ = ("_ids", "names")

    def __init__(self, names: tuple[str, ...] = ()) -> None:
        self.names: list[str] = list(names)
        self._ids: dict[str, int] = {name: at for at, name in enumerate(names)}

    def __len__(self) -> int:
        return len(self.names)

    def intern(self, name: str) -> int:
        found = self._ids.get(name)
        if found is None:
            found = self._ids[name] = len(self.names)
            self.names.append(name)
        return found

    def find(self, name: str) -> int:
        return self._ids.get(name, ABSENT)
