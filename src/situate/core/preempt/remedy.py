"""What can be done for a pod that fits nowhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from situate.core.state.pods import BoundPod

SUCCESS: Final = "Success"
UNSCHEDULABLE: Final = "Unschedulable"
ERROR: Final = "Error"


@dataclass(frozen=True, slots=True)
class Remedy:
    """The node that is to be the pod's once the victims are gone; or why there is none."""

    node_row: int | None
    victims: tuple[BoundPod, ...]
    """Who is to be evicted, by namespace/name. Pods that are being deleted already are not here, though they must go
    too; so there may be a node without victims."""
    code: str
    """Kubernetes' word for the outcome; empty if there was nothing to try."""
    message: str
    """Empty with a node."""


NOTHING_TO_TRY: Final = Remedy(None, (), "", "")


def refused(message: str, code: str = UNSCHEDULABLE) -> Remedy:
    return Remedy(None, (), code, message)
