"""The unschedulable pods, grouped by the plugins that refused them."""

from __future__ import annotations

from dataclasses import dataclass, field

from situate.core.queue.queued_pod import QueuedPod
from situate.core.state.classes import PodClass


@dataclass(eq=False, slots=True)
class RejectedPods:
    """The unschedulable pods of one scheduler that the same plugins refused, by class. They wait for the same
    events."""

    scheduler: str
    by: tuple[str, ...]
    pods: dict[PodClass, dict[str, QueuedPod]] = field(default_factory=dict)


class UnschedulablePods:
    """All unschedulable pods. An event is checked once per group and class, however many pods there are."""

    __slots__ = ("_entries", "_groups", "_places")

    def __init__(self) -> None:
        self._entries: dict[str, QueuedPod] = {}
        self._places: dict[str, tuple[RejectedPods, PodClass]] = {}
        self._groups: dict[tuple[str, tuple[str, ...]], RejectedPods] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def values(self) -> list[QueuedPod]:
        return list(self._entries.values())

    def groups(self) -> list[RejectedPods]:
        return list(self._groups.values())

    def add(self, entry: QueuedPod) -> None:
        """Group a pod by what it is now, even if it is here already."""
        self.discard(entry.key)
        scheduler = entry.pod.spec.scheduler_name
        group = self._groups.get((scheduler, entry.unschedulable_plugins))
        if group is None:
            group = self._groups[(scheduler, entry.unschedulable_plugins)] = RejectedPods(
                scheduler, entry.unschedulable_plugins
            )
        group.pods.setdefault(entry.kind, {})[entry.key] = entry
        self._entries[entry.key] = entry
        self._places[entry.key] = (group, entry.kind)

    def discard(self, key: str) -> None:
        found = self._places.pop(key, None)
        if found is None:
            return
        del self._entries[key]
        group, kind = found
        alike = group.pods[kind]
        del alike[key]
        if not alike:
            del group.pods[kind]
        if not group.pods:
            del self._groups[(group.scheduler, group.by)]
