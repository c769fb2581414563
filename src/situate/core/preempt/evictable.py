"""Pods that may be evicted, by importance: by priority, then by how long they have been running."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from situate.core.preempt.quicksort import order_of
from situate.core.state.classes import PodClass
from situate.core.state.pods import NO_TIME
from situate.core.state.view import View

NOT_STARTED: Final = 1 << 62
"""The start of a pod that has not started: later than any other. Kubernetes takes the current time."""


class Evictable(NamedTuple):
    """What preemption reads of a bound pod. It looks at thousands to find a few victims, so this is little."""

    row: int
    kind: PodClass
    started: int
    key: str


def lower_on(view: View, row: int, priority: int) -> list[Evictable]:
    pods = view.cluster.pods
    found = []
    for pod in view.pod_rows_on(row):
        kind = pods.kind(pod)
        if kind.priority < priority:
            start = pods.start_ms[pod]
            found.append(Evictable(pod, kind, NOT_STARTED if start == NO_TIME else start, pods.keys[pod]))
    return found


def by_importance(pods: Sequence[Evictable]) -> list[Evictable]:
    """The most important first; among equals, as Kubernetes' sort leaves them.

    For two pods that have not started, Kubernetes reads the clock twice, so the one that it reads first is the older.
    """
    keys = [(-pod.kind.priority, pod.started) for pod in pods]
    return [pods[index] for index in order_of(keys, [pod.started == NOT_STARTED for pod in pods])]
