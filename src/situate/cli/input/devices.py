"""The objects of dynamic resource allocation in a live cluster, and what to say if it does not show them."""

from collections.abc import Sequence
from typing import Final

from situate.core.model.claim_templates import ResourceClaimTemplate
from situate.core.model.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from situate.kube.kinds import WatchedKind

GROUP: Final = "resource.k8s.io"
DEVICE_KINDS: Final = tuple(
    WatchedKind(model, resource, GROUP, optional=True)
    for model, resource in (
        (DeviceClass, "deviceclasses"),
        (ResourceSlice, "resourceslices"),
        (ResourceClaim, "resourceclaims"),
        (ResourceClaimTemplate, "resourceclaimtemplates"),
        (DeviceTaintRule, "devicetaintrules"),
    )
)
"""DeviceTaintRules are served from 1.37 on."""
ALWAYS_SERVED: Final = ("deviceclasses", "resourceslices", "resourceclaims")
"""Whoever serves devices serves these."""


def also_devices(kinds: Sequence[WatchedKind]) -> list[WatchedKind]:
    """These kinds, and those of devices that are not among them."""
    known = {kind.name for kind in kinds}
    return [*kinds, *(kind for kind in DEVICE_KINDS if kind.name not in known)]


def device_problem(served: Sequence[str], refused: Sequence[tuple[str, str]]) -> str:
    """Why claims for devices cannot be judged, in one line; empty if they can. `refused` has (kind, message)."""
    if refused:
        return f"cannot list {', '.join(kind for kind, _ in refused)}: {refused[0][1]}"
    missing = [name for name in ALWAYS_SERVED if f"{name}.{GROUP}" not in served]
    return f"the cluster does not serve {', '.join(missing)} of {GROUP}" if missing else ""
