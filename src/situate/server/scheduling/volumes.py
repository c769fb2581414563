"""How a registry's volumes and claims change when they are bound.

The scheduler writes both sides of a binding, as the volume controller does, which may not run: the volume names its
claim first, which settles whose it is, then the claim names its volume. Either finds done what the other did.
"""

from __future__ import annotations

from typing import Final

from situate.core.model.storage import PersistentVolumeClaim
from situate.core.plugins.volume_binding import BIND_COMPLETED
from situate.loop.scheduling.port import VolumeError
from situate.loop.scheduling.volumes import NO_CLAIM, TAKEN
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import Object
from situate.server.resources import BY_KIND
from situate.wire.patches import BOUND_BY_CONTROLLER, SELECTED_NODE

VOLUMES: Final = BY_KIND["v1", "PersistentVolume"]
CLAIMS: Final = BY_KIND["v1", "PersistentVolumeClaim"]


def reserve(volume: Object, held: StoredObject | None, claim: PersistentVolumeClaim) -> Object:
    """Have a volume name a claim, as it is stored now. Raises VolumeError if it is not."""
    meta = claim.metadata
    if held is None or held.uid != meta.uid:
        raise VolumeError(NO_CLAIM.format(meta.name))
    if "claimRef" not in volume["spec"]:
        volume["metadata"].setdefault("annotations", {})[BOUND_BY_CONTROLLER] = "yes"
    volume["spec"]["claimRef"] = {
        "kind": CLAIMS.kind,
        "namespace": meta.namespace,
        "name": meta.name,
        "uid": meta.uid,
        "apiVersion": CLAIMS.api_version,
        "resourceVersion": str(held.revision),
    }
    return volume


def release(volume: Object) -> Object:
    """Take the claim off a volume, and the annotation that came with it."""
    volume["spec"].pop("claimRef", None)
    volume["metadata"].get("annotations", {}).pop(BOUND_BY_CONTROLLER, None)
    return volume


def bind_claim(claim: Object, volume: Object) -> Object:
    """Have a claim name its volume. Raises VolumeError if it has another."""
    name = volume["metadata"]["name"]
    if claim["spec"].get("volumeName", name) != name:
        raise VolumeError(TAKEN.format(name))
    claim["spec"]["volumeName"] = name
    annotations = claim["metadata"].setdefault("annotations", {})
    annotations[BIND_COMPLETED] = annotations[BOUND_BY_CONTROLLER] = "yes"
    status = claim.setdefault("status", {})
    status["phase"] = "Bound"
    for field in ("accessModes", "capacity"):
        if field in volume["spec"]:
            status[field] = volume["spec"][field]
    return claim


def mark_bound(volume: Object) -> Object:
    volume.setdefault("status", {})["phase"] = "Bound"
    return volume


def select_node(claim: Object, node: str) -> Object:
    claim["metadata"].setdefault("annotations", {})[SELECTED_NODE] = node
    return claim
