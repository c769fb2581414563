"""Pods with claims of their own share verdicts where their claims ask for the same: one class stands in for all.

A claim that is made from a template belongs to one pod, so each such pod is a class of its own. While their claims are
not allocated, pods of one template cannot be told apart by any node. A class without claims of its own, but with the
specs of theirs, is judged in their place; it serves only to choose a node.
"""

from __future__ import annotations

from typing import Final

import msgspec

from situate.core.devices.claims import ClaimProblemError, pod_claims
from situate.core.model.meta import ObjectMeta
from situate.core.state.classes import PodClass, unlabelled_signature
from situate.core.state.device_objects import DeviceObjects

LIMIT: Final = 1024
"""How many classes that stand in are kept."""

_encode: Final = msgspec.json.Encoder().encode


class ClaimStandIns:
    __slots__ = ("_devices", "_made")

    def __init__(self, devices: DeviceObjects) -> None:
        self._devices = devices
        self._made: dict[bytes, PodClass] = {}

    def of(self, pod_class: PodClass) -> PodClass:
        """The class that is judged in place of a class with claims; itself if its claims are a matter of their own."""
        spec = pod_class.spec
        if pod_class.requested_names or any(volume.ephemeral is not None for volume in spec.volumes):
            return pod_class
        devices = self._devices
        try:
            claims = pod_claims(pod_class.pod, devices.claims)
        except ClaimProblemError:
            return pod_class
        if not claims or any(claim.status.allocation is not None for claim in claims):
            return pod_class
        specs = tuple(devices.spec_id(claim.spec) for claim in claims)
        bare = msgspec.structs.replace(pod_class.pod, spec=msgspec.structs.replace(spec, resource_claims=()))
        key = unlabelled_signature(bare) + _encode(specs) + _encode(dict(pod_class.labels))
        found = self._made.get(key)
        if found is None or found.group is not pod_class.group:
            if len(self._made) >= LIMIT:
                self._made.clear()
            nameless = ObjectMeta(namespace=pod_class.namespace)
            found = self._made[key] = msgspec.structs.replace(
                pod_class,
                signature=key,
                carried=(),
                placed={},
                leaving={},
                total=0,
                stand_in=None,
                stand_in_version=-1,
                demand=tuple(msgspec.structs.replace(claim, metadata=nameless) for claim in claims),
                demand_specs=specs,
                compiled=None,
            )
        return found
