"""DefaultTolerationSeconds: lets a pod stay for a while on a node that is not ready or unreachable."""

from __future__ import annotations

from typing import Final

from situate.core.reconcile.admission import with_default_tolerations
from situate.core.reconcile.nodes.fencing import KUBERNETES
from situate.server.registry.ports import Action
from situate.server.requests import Caller, Object, Target
from situate.server.resources import BY_KIND

POD: Final = BY_KIND["v1", "Pod"]


class DefaultTolerations:
    def __init__(self, seconds: int = KUBERNETES.toleration_s) -> None:
        self._seconds = seconds

    async def admit(
        self, action: Action, target: Target, new: Object | None, old: Object | None, caller: Caller
    ) -> None:
        if new is not None and target.resource is POD and not target.subresource:
            new["spec"] = with_default_tolerations(new.get("spec", {}), self._seconds)

    def version(self, target: Target) -> int | None:
        return self._seconds if target.resource is POD else None
