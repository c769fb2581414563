"""EphemeralContainers: warns where nobody will run one. Only kubelets do."""

from __future__ import annotations

from typing import Final

from situate.core.reconcile.volumes.provisioner import AGENTS
from situate.server.registry.cache import Cache
from situate.server.registry.ports import Action
from situate.server.registry.warning import warn
from situate.server.requests import Caller, Object, Target
from situate.server.resources import BY_KIND

NODE: Final = BY_KIND["v1", "Node"]
POD: Final = BY_KIND["v1", "Pod"]
NOT_RUN: Final = "the ephemeral container is stored and has no effect: node {} has no kubelet, which would run it"


class EphemeralContainers:
    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    async def admit(
        self, action: Action, target: Target, new: Object | None, old: Object | None, caller: Caller
    ) -> None:
        if new is None or target.resource is not POD or target.subresource != "ephemeralcontainers":
            return
        name = new["spec"].get("nodeName", "")
        held = self._cache.get(NODE, "", name) if name else None
        info = {} if held is None else held.object(NODE).get("status", {}).get("nodeInfo", {})
        if info.get("containerRuntimeVersion", "").startswith(AGENTS):
            warn([NOT_RUN.format(name)])

    def version(self, target: Target) -> int | None:
        return None
