"""All that an agent asks of the control plane, whether over HTTP or in its own process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple, Protocol

__all__ = ["Plane", "PlaneError", "PodRead", "StaleError"]


class PodRead(NamedTuple):
    """A pod that is bound to a node was seen; `body` None: it is gone. `listed` alone: all that there is was told."""

    namespace: str
    name: str
    body: bytes | None
    listed: bool = False


class PlaneError(Exception):
    """The control plane did not do it; trying again may help."""


class StaleError(PlaneError):
    """It was about a pod that is gone, or bound anew: trying again cannot help."""


class Plane(Protocol):
    """Every call raises PlaneError."""

    async def register(self, node: dict[str, Any]) -> None:
        """Create the node; one that is there keeps what is not the agent's to say."""

    async def renew(self, node: str) -> None:
        """The node is alive."""

    def pods(self, node: str = "") -> AsyncIterator[PodRead]:
        """All pods that are bound, to this node or to any; then what changes, for ever."""

    async def report(self, pod: dict[str, Any], status: dict[str, Any], version: int | None = None) -> None:
        """What became of a pod, as it was last seen; `version`: of the binding that this is about."""

    async def read(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        """A ConfigMap, a Secret, a Node or a NodeSnapshot; None: there is none, or this server has no such kind."""

    async def tell(self, event: dict[str, Any]) -> None:
        """Keep an Event of core/v1; one that is there by that name counts one more."""

    async def remove(self, pod: dict[str, Any]) -> None:
        """A pod that was being deleted has ended."""
