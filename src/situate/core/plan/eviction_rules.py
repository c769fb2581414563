"""Which pods would come again elsewhere if they were evicted, and which would not; as `kubectl drain` tells them apart.

Says nothing of budgets, which are a matter of the moment: see `allowances`.
"""

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
    """What eviction would mean for a pod."""

    MOVES = "moves"
    """Its controller makes it again, and a scheduler places it."""
    STAYS = "stays"
    """A node's own pod: of a DaemonSet, or a static one. It is passed over, and gone with the node."""
    ENDS = "ends"
    """It would be deleted for good."""
    REFUSED = "refused"
    """It is not to be evicted as things are."""


@dataclass(frozen=True, slots=True)
class PodEviction:
    outcome: EvictionOutcome
    why: str = ""


MOVES: Final = PodEviction(EvictionOutcome.MOVES)
STATIC: Final = PodEviction(EvictionOutcome.STAYS, "a static pod: the kubelet's own")
DAEMON: Final = PodEviction(EvictionOutcome.STAYS, "managed by a DaemonSet (kubectl drain needs --ignore-daemonsets)")
UNMANAGED: Final = PodEviction(
    EvictionOutcome.REFUSED, "cannot delete Pods that declare no controller (use --force to override)"
)
LOCAL: Final = PodEviction(
    EvictionOutcome.REFUSED, "cannot delete Pods with local storage (use --delete-emptydir-data to override)"
)
PINNED: Final = PodEviction(EvictionOutcome.REFUSED, f"is annotated {SAFE_TO_EVICT}: false")
FORCED: Final = PodEviction(EvictionOutcome.ENDS, "declares no controller: nobody makes it again")
LEAVING: Final = PodEviction(EvictionOutcome.STAYS, "is being deleted already")


@dataclass(frozen=True, slots=True)
class DrainRules:
    """What somebody allows, by the names of kubectl's flags; and the pods that have local storage."""

    local: Collection[str] = ()
    force: bool = False
    delete_emptydir_data: bool = False
    honours_annotation: bool = False
    """Whether pods that say that they are not safe to evict are left alone: kubectl drain does not ask."""

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
    """Of a pod that belongs to its node and is nobody's to move; None of any other."""
    if MIRROR in pod.metadata.annotations:
        return STATIC
    owner = controller_of(pod.metadata)
    return DAEMON if owner is not None and owner.kind == "DaemonSet" else None
