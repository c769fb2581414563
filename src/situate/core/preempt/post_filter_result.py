"""The result of PostFilter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from situate.core.model.devices import ResourceClaim
from situate.core.state.pods import BoundPod

SUCCESS: Final = "Success"
UNSCHEDULABLE: Final = "Unschedulable"
ERROR: Final = "Error"


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """The node that is nominated for the pod, and its victims; or why there is none."""

    node_row: int | None
    victims: tuple[BoundPod, ...]
    """The pods to evict, by namespace/name. Pods that are being deleted already are not among them, so a node may have
    no victims."""
    code: str
    """Kubernetes' status code; empty if there was nothing to try."""
    message: str
    """In Kubernetes' words. Empty if there is nothing to say."""
    withdraws: bool = False
    """Whether an earlier nomination of the pod is of no use any more. It is while its victims leave, or if something
    failed."""
    released: ResourceClaim | None = None
    """A claim whose devices are given back, so that the pod may get others."""


NOTHING_TO_TRY: Final = PostFilterResult(None, (), "", "", withdraws=True)


def refused(message: str, code: str = UNSCHEDULABLE, *, withdraws: bool = False) -> PostFilterResult:
    return PostFilterResult(None, (), code, message, withdraws)
