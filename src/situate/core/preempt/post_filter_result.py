"""What can be done for a pod that fits nowhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from situate.core.state.pods import BoundPod

SUCCESS: Final = "Success"
UNSCHEDULABLE: Final = "Unschedulable"
ERROR: Final = "Error"


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """The node that is to be the pod's once the victims are gone; or why there is none."""

    node_row: int | None
    victims: tuple[BoundPod, ...]
    """Who is to be evicted, by namespace/name. Pods that are being deleted already are not here, though they must go
    too; so there may be a node without victims."""
    code: str
    """Kubernetes' word for the outcome; empty if there was nothing to try."""
    message: str
    """Empty with a node."""
    withdraws: bool = False
    """Whether a node that the pod was promised earlier is of no use to it any more. Not so while it waits for its
    victims to leave, or if something failed."""


NOTHING_TO_TRY: Final = PostFilterResult(None, (), "", "", withdraws=True)


def refused(message: str, code: str = UNSCHEDULABLE, *, withdraws: bool = False) -> PostFilterResult:
    return PostFilterResult(None, (), code, message, withdraws)
