"""DefaultStorageClass: sets the default class on a claim without one. StorageObjectInUseProtection: adds the finalizers
of new claims and volumes, which stay while they are in use."""

from __future__ import annotations

from typing import Final

from situate.core.reconcile.volumes.claim import PROTECTION as CLAIM_PROTECTION
from situate.core.reconcile.volumes.volume import PROTECTION as VOLUME_PROTECTION
from situate.server.registry.cache import Cache
from situate.server.registry.ports import Action
from situate.server.requests import Caller, Object, Target
from situate.server.resources import BY_KIND

CLAIM: Final = BY_KIND["v1", "PersistentVolumeClaim"]
CLASS: Final = BY_KIND["storage.k8s.io/v1", "StorageClass"]
PROTECTED: Final = {CLAIM: CLAIM_PROTECTION, BY_KIND["v1", "PersistentVolume"]: VOLUME_PROTECTION}
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


class StorageObjectInUseProtection:
    async def admit(
        self, action: Action, target: Target, new: Object | None, old: Object | None, caller: Caller
    ) -> None:
        finalizer = PROTECTED.get(target.resource)
        if new is None or finalizer is None or action != "create" or target.subresource:
            return
        finalizers = new["metadata"].setdefault("finalizers", [])
        if finalizer not in finalizers:
            finalizers.append(finalizer)

    def version(self, target: Target) -> int | None:
        return None
