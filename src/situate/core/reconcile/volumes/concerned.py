"""Which claims and volumes a change concerns."""

from __future__ import annotations

from collections.abc import Iterator

from situate.core.model.claims import claim_class, volume_class
from situate.core.model.managed import ManagedPod
from situate.core.model.managed_node import ManagedNode
from situate.core.model.managed_volumes import ManagedClaim, ManagedStorageClass, ManagedVolume
from situate.core.reconcile.objects import ObjectLister, volume_claims_of
from situate.core.reconcile.volumes.provisioner import DIRECTORY

Key = tuple[type, str, str]


def volumes_of_claim(claim: ManagedClaim, objects: ObjectLister) -> Iterator[Key]:
    """The volume that a claim names, and those that name it."""
    meta = claim.metadata
    if claim.spec.volume_name:
        yield ManagedVolume, "", claim.spec.volume_name
    for volume in objects.volumes_for(meta.namespace, meta.name):
        yield ManagedVolume, "", volume.metadata.name


def claims_of_volume(volume: ManagedVolume, objects: ObjectLister) -> Iterator[Key]:
    """The claim that a volume names. A free one may be for any claim of its class that waits, or that names it."""
    ref = volume.spec.claim_ref
    if ref is not None:
        yield ManagedClaim, ref.namespace, ref.name
        if objects.get(ManagedVolume, "", volume.metadata.name) is not None:
            return
    named = volume_class(volume)
    for claim in objects.among(ManagedClaim):
        waits = claim.status.phase == "Pending" and claim_class(claim) == named
        if waits or claim.spec.volume_name == volume.metadata.name:
            yield ManagedClaim, claim.metadata.namespace, claim.metadata.name


def claims_of_class(made: ManagedStorageClass, objects: ObjectLister) -> Iterator[Key]:
    for claim in objects.among(ManagedClaim):
        if claim.status.phase == "Pending" and claim_class(claim) == made.metadata.name:
            yield ManagedClaim, claim.metadata.namespace, claim.metadata.name


def claims_left_by(pod: ManagedPod, objects: ObjectLister) -> Iterator[Key]:
    """The claims that are being deleted, and wait for their pods to go."""
    space = pod.metadata.namespace
    for name in volume_claims_of(pod):
        claim = objects.get(ManagedClaim, space, name)
        if claim is not None and claim.metadata.deletion_timestamp is not None:
            yield ManagedClaim, space, name


def volumes_of_node(node: ManagedNode, objects: ObjectLister) -> Iterator[Key]:
    """The volumes that wait for an agent to remove their directories, if the node is gone."""
    if objects.get(ManagedNode, "", node.metadata.name) is not None:
        return
    for volume in objects.among(ManagedVolume):
        if volume.metadata.deletion_timestamp is not None and DIRECTORY in volume.metadata.finalizers:
            yield ManagedVolume, "", volume.metadata.name
