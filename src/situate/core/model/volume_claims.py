"""Whether a volume suits a claim, as far as neither needs a node. The scheduler and the volume controller ask alike."""

from __future__ import annotations

from typing import Final, Protocol

from situate.core.model.base import Labels
from situate.core.model.quantity import parse_quantity
from situate.core.model.storage import PersistentVolumeClaimSpec, PersistentVolumeSpec

STORAGE: Final = "storage"
"""The resource that volumes have and claims ask for."""


class AnyMetadata(Protocol):
    @property
    def namespace(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def uid(self) -> str: ...

    @property
    def labels(self) -> Labels: ...

    @property
    def annotations(self) -> Labels: ...

    @property
    def deletion_timestamp(self) -> str | None: ...


class AnyVolume(Protocol):
    """A PersistentVolume, as any part reads it."""

    @property
    def metadata(self) -> AnyMetadata: ...

    @property
    def spec(self) -> PersistentVolumeSpec: ...


class AnyClaim(Protocol):
    """A PersistentVolumeClaim, as any part reads it."""

    @property
    def metadata(self) -> AnyMetadata: ...

    @property
    def spec(self) -> PersistentVolumeClaimSpec: ...


def volume_capacity(volume: AnyVolume) -> int:
    return parse_quantity(volume.spec.capacity.get(STORAGE, 0))


def claim_size(claim: AnyClaim) -> int:
    return parse_quantity(claim.spec.resources.requests.get(STORAGE, 0))


def is_usable(volume: AnyVolume, claim: AnyClaim) -> bool:
    """The requirements even for a volume provisioned for the claim."""
    return (
        volume.metadata.deletion_timestamp is None
        and volume.spec.volume_mode == claim.spec.volume_mode
        and (volume.spec.volume_attributes_class_name or "") == (claim.spec.volume_attributes_class_name or "")
        and volume_capacity(volume) >= claim_size(claim)
    )


def is_made_for(volume: AnyVolume, claim: AnyClaim) -> bool:
    ref = volume.spec.claim_ref
    return (
        ref is not None
        and (ref.namespace, ref.name) == (claim.metadata.namespace, claim.metadata.name)
        and ref.uid in ("", claim.metadata.uid)
    )
