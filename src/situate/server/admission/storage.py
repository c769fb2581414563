"""DefaultStorageClass: sets the default class on a claim without one."""

from __future__ import annotations

from typing import Final

from situate.server.registry.cache import Cache
from situate.server.registry.ports import Action
from situate.server.requests import Caller, Object, Target
from situate.server.resources import BY_KIND

CLAIM: Final = BY_KIND["v1", "PersistentVolumeClaim"]
CLASS: Final = BY_KIND["storage.k8s.io/v1", "StorageClass"]
BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
IS_DEFAULT: Final = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


class DefaultStorageClass:
    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    async def admit(
        self, action: Action, target: Target, new: Object | None, old: Object | None, caller: Caller
    ) -> None:
        if new is None or target.resource is not CLAIM or action != "create":
            return
        spec = new.setdefault("spec", {})
        named = "storageClassName" in spec or BETA_CLASS in new["metadata"].get("annotations", {})
        if not named and (name := self._default()):
            spec["storageClassName"] = name

    def version(self, target: Target) -> int | None:
        return self._cache.of(CLASS).last_change if target.resource is CLAIM else None

    def _default(self) -> str:
        """The newest default class; of several in one second, the first by name."""
        found: list[tuple[str, str]] = []
        for stored in self._cache.all(CLASS):
            metadata = stored.object(CLASS)["metadata"]
            annotations = metadata.get("annotations", {})
            if any(annotations.get(name) == "true" for name in IS_DEFAULT):
                found.append((metadata["creationTimestamp"], stored.name))
        newest = max((time for time, _ in found), default="")
        return min((name for time, name in found if time == newest), default="")
