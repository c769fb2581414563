"""Which pods matter most: by priority, then by how long they have been running."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from situate.core.preempt.quicksort import order_of
from situate.core.state.pods import BoundPod

NOT_STARTED: Final = 1 << 62
"""The start of a pod that has not started: later than any other. Kubernetes takes the time of the question."""


def started(pod: BoundPod) -> int:
    return NOT_STARTED if pod.start_ms is None else pod.start_ms


def by_importance(pods: Sequence[BoundPod]) -> list[BoundPod]:
    """The most important first; among equals, as Kubernetes' sort leaves them."""
    return [pods[index] for index in order_of([(-pod.kind.priority, started(pod)) for pod in pods])]
