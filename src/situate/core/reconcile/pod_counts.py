"""Counts of the pods of one controller, kept up to date change by change.

A ReplicaSet asks how many of its pods are active, ready and available, and whether all of them match its selector. Each
of its pods changes several times, so reading all of them for each answer would cost the square of their number. Pods of
one template have the same labels, so there are as many counts as templates, not as pods.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, TypeAlias

from situate.core.model.managed import ManagedPod
from situate.core.reconcile.pods import is_active, is_terminating, ready_condition

LabelKey: TypeAlias = tuple[tuple[str, str], ...]
_NEVER: Final = ""
"""The time of a ready pod that does not say since when."""


class LabelledPods:
    """The counts of the pods with the same labels."""

    __slots__ = ("active", "labels", "ready", "ready_since", "staying", "terminating", "total")

    def __init__(self, labels: Mapping[str, str]) -> None:
        self.labels = labels
        self.total = 0
        self.staying = 0
        """Those that are not being deleted."""
        self.active = 0
        """Neither finished nor being deleted."""
        self.terminating = 0
        """Being deleted, and not finished yet."""
        self.ready = 0
        """Of the active ones."""
        self.ready_since: dict[str, int] = {}
        """The ready ones by the time that they became ready, in seconds: few times, for many pods."""

    def count(self, pod: ManagedPod, change: int) -> None:
        """One more, or one less."""
        self.total += change
        self.staying += change * (pod.metadata.deletion_timestamp is None)
        if not is_active(pod):
            self.terminating += change * is_terminating(pod)
            return
        self.active += change
        ready = ready_condition(pod)
        if ready is not None and ready.status == "True":
            since = ready.last_transition_time or _NEVER
            self.ready += change
            self.ready_since[since] = self.ready_since.get(since, 0) + change
            if not self.ready_since[since]:
                del self.ready_since[since]


class OwnedPodCounts:
    """Of the pods of one controller."""

    __slots__ = ("_by_labels",)

    def __init__(self) -> None:
        self._by_labels: dict[LabelKey, LabelledPods] = {}

    def replace(self, old: ManagedPod | None, new: ManagedPod | None) -> None:
        """A pod was added, changed or removed. One of the versions may be None."""
        if old is not None:
            key = tuple(old.metadata.labels.items())
            counts = self._by_labels[key]
            counts.count(old, -1)
            if not counts.total:
                del self._by_labels[key]
        if new is not None:
            key = tuple(new.metadata.labels.items())
            held = self._by_labels.get(key)
            if held is None:
                held = self._by_labels[key] = LabelledPods(new.metadata.labels)
            held.count(new, 1)

    def by_labels(self) -> Collection[LabelledPods]:
        return self._by_labels.values()

    def staying_where(self, matches: Callable[[Mapping[str, str]], bool]) -> bool:
        """Whether there is a pod with such labels that is not being deleted."""
        return any(one.staying and matches(one.labels) for one in self._by_labels.values())

    def __bool__(self) -> bool:
        return bool(self._by_labels)


NO_PODS: Final = OwnedPodCounts()
