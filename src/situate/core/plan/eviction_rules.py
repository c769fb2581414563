"""What an eviction means for a pod, by the rules of `kubectl drain`. Budgets are in `disruptions`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum, unique
from typing import Final

from situate.core.model.meta import controller_of, key_of
from situate.core.model.pod import Pod

MIRROR: Final = "kubernetes.io/config.mirror"
SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"


@unique
class EvictionOutcome(Enum):
    """The outcome of an eviction."""

    MOVES = "moves"
    """Its controller recreates it, and a scheduler places it."""
    STAYS = "stays"
    """A DaemonSet's or a static pod: the drain skips it, and it goes with the node."""
    ENDS = "ends"
    """It would be deleted for good."""
    REFUSED = "refused"
    """The rules forbid its eviction."""


@dataclass(frozen=True, slots=True)
class PodEviction:
    outcome: EvictionOutcome
    why: str = ""


MOVES: Final = PodEviction(EvictionOutcome.MOVES)
STATIC: Final = PodEviction(EvictionOutcome.STAYS, "a static pod, which the kubelet manages")
DAEMON: Final = PodEviction(EvictionOutcome.STAYS, "managed by a DaemonSet (kubectl drain needs --ignore-daemonsets)")
UNMANAGED: Final = PodEviction(
    EvictionOutcome.REFUSED, "cannot delete Pods that declare no controller (use --force to override)"
)
LOCAL: Final = PodEviction(
    EvictionOutcome.REFUSED, "cannot delete Pods with local storage (use --delete-emptydir-data to override)"
)
PINNED: Final = PodEviction(EvictionOutcome.REFUSED, f"is annotated {SAFE_TO_EVICT}: false")
FORCED: Final = PodEviction(EvictionOutcome.ENDS, "declares no controller: nothing recreates it")
LEAVING: Final = PodEviction(EvictionOutcome.STAYS, "is being deleted already")


@dataclass(frozen=True, slots=True)
class DrainRules:
    """The options of `kubectl drain`; and the pods that have local storage."""

    local: Collection[str] = ()
    force: bool = False
    delete_emptydir_data: bool = False
    honours_annotation: bool = False
    """Whether to spare pods annotated as not safe to evict. kubectl drain ignores the annotation."""

    def judge(self, pod: Pod) -> PodEviction:
        own = node_pod_verdict(pod)
        if own is not None:
            return own
        if pod.metadata.deletion_timestamp is not None:
            return LEAVING
        if controller_of(pod.metadata) is None:
            return FORCED if self.force else UNMANAGED
        if not self.delete_emptydir_data and key_of(pod.metadata) in self.local:
            return LOCAL
        if self.honours_annotation and pod.metadata.annotations.get(SAFE_TO_EVICT) == "false":
            return PINNED
        return MOVES


def node_pod_verdict(pod: Pod) -> PodEviction | None:
    """The eviction of a DaemonSet's or static pod; None for any other."""
    if MIRROR in pod.metadata.annotations:
        return STATIC
    owner = controller_of(pod.metadata)
    return DAEMON if owner is not None and owner.kind == "DaemonSet" else None
