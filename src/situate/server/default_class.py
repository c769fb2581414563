"""The StorageClass `standard` of a new cluster: volumes are directories of the node of a claim's first pod."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from situate.core.model.claims import WAIT_FOR_FIRST_CONSUMER
from situate.core.reconcile.volumes.provisioner import PROVISIONER
from situate.server.errors import StatusError
from situate.server.kinds.storage.storageclass import DEFAULT_CLASS
from situate.server.registry.registry import Registry
from situate.server.requests import SYSTEM, Target
from situate.server.resources import BY_KIND

CLASS: Final = BY_KIND["storage.k8s.io/v1", "StorageClass"]
NAME: Final = "standard"


async def ensure_default_class(registry: Registry) -> None:
    """Create it where there is no class at all: whoever has others decides which one is the default."""
    if any(registry.cache.all(CLASS)):
        return
    made = {
        "apiVersion": CLASS.api_version,
        "kind": CLASS.kind,
        "metadata": {"name": NAME, "annotations": {DEFAULT_CLASS[0]: "true"}},
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": WAIT_FOR_FIRST_CONSUMER,
    }
    try:
        await registry.create(Target(CLASS), made, SYSTEM)
    except StatusError as error:
        if error.code != HTTPStatus.CONFLICT:  # another server was faster
            raise
