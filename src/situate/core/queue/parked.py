"""The parked pods, shelved by who refused them: pods of one class that the same plugins refused wait for the same."""

from __future__ import annotations

from dataclasses import dataclass, field

from situate.core.queue.waiting import Waiting
from situate.core.state.classes import PodClass


@dataclass(eq=False, slots=True)
class Refused:
    """The parked pods of one scheduler that the same plugins refused, by class."""

    scheduler: str
    by: tuple[str, ...]
    pods: dict[PodClass, dict[str, Waiting]] = field(default_factory=dict)


class Parked:
    """All parked pods. An event is asked about once for a shelf and once for a class, however many pods there are."""

    __slots__ = ("_entries", "_places", "_shelves")

    def __init__(self) -> None:
        self._entries: dict[str, Waiting] = {}
        self._places: dict[str, tuple[Refused, PodClass]] = {}
        self._shelves: dict[tuple[str, tuple[str, ...]], Refused] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def values(self) -> list[Waiting]:
        return list(self._entries.values())

    def shelves(self) -> list[Refused]:
        return list(self._shelves.values())

    def add(self, entry: Waiting) -> None:
        """Shelve a pod by what it is now; one that is here already is shelved anew."""
        self.discard(entry.key)
        scheduler = entry.pod.spec.scheduler_name
        shelf = self._shelves.get((scheduler, entry.refused_by))
        if shelf is None:
            shelf = self._shelves[(scheduler, entry.refused_by)] = Refused(scheduler, entry.refused_by)
        shelf.pods.setdefault(entry.kind, {})[entry.key] = entry
        self._entries[entry.key] = entry
        self._places[entry.key] = (shelf, entry.kind)

    def discard(self, key: str) -> None:
        found = self._places.pop(key, None)
        if found is None:
            return
        del self._entries[key]
        shelf, kind = found
        alike = shelf.pods[kind]
        del alike[key]
        if not alike:
            del shelf.pods[kind]
        if not shelf.pods:
            del self._shelves[(shelf.scheduler, shelf.by)]
