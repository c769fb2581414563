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


def by_importance(
    pods: Sequence[Evictable], *, unstarted_in_order: bool = False, order: Sequence[Evictable] | None = None
) -> list[Evictable]:
    """The most important first; among equals, as Kubernetes' sort leaves them.

    For pods that have not started, Kubernetes reads the clock. With `unstarted_in_order` it does so once, when it lists
    the node, so they keep that order: that of the pods, or of `order`, which has them and others. Without, it reads the
    clock twice for each comparison of two such pods, so the one that it reads first is the older.
    """
    if not unstarted_in_order:
        keys = [(-pod.kind.priority, pod.started) for pod in pods]
        return [pods[index] for index in order_of(keys, [pod.started == NOT_STARTED for pod in pods])]
    places = {pod.row: place for place, pod in enumerate(pods if order is None else order)}
    ages = [(-pod.kind.priority, pod.started, places[pod.row] if pod.started == NOT_STARTED else 0) for pod in pods]
    return [pods[index] for index in order_of(ages)]
