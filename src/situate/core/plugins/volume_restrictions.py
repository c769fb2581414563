"""VolumeRestrictions: refuse a node where a disk that cannot be shared is mounted, and every node while a
ReadWriteOncePod claim is in use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from situate.core.contract import Codes, Reason, Refusal, Wake, WakeEvent
from situate.core.model.base import Model
from situate.core.model.claims import READ_WRITE_ONCE_POD, claim_not_found
from situate.core.model.storage import PersistentVolumeClaim
from situate.core.model.volumes import Volume
from situate.core.plugins.support.claims import named_claims, names_claim
from situate.core.state.classes import PodClass
from situate.core.state.holders import claim_users, overlay_classes, volume_holders
from situate.core.state.view import View

DISK_TAKEN: Final = 1
CLAIM_TAKEN: Final = 2


@dataclass(frozen=True, slots=True)
class VolumeRestrictions:
    """Inline disks conflict on one node; a ReadWriteOncePod claim conflicts in the whole cluster."""

    name: ClassVar[str] = "VolumeRestrictions"
    reasons: ClassVar[tuple[Reason, ...]] = (
        Reason("node(s) had no available disk", eviction_helps=True),
        Reason(
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
            "another pod",
            eviction_helps=True,
        ),
    )
    wakes_on: ClassVar[frozenset[Wake]] = frozenset(
        {Wake.POD_DELETED, Wake.NODE_ADDED, Wake.CLAIM_ADDED, Wake.CLAIM_UPDATED}
    )

    def wakes(self, pod: PodClass, event: WakeEvent) -> bool:
        """Any new node helps, a claim of the pod, or a pod that shared a disk or a claim with it."""
        match event.kind:
            case Wake.CLAIM_ADDED:
                return names_claim(pod, event.item)
            case Wake.CLAIM_UPDATED:  # access modes are immutable, so the claim was recreated
                return names_claim(pod, event.item) and _modes(event.item) != _modes(event.item_before)
            case Wake.POD_DELETED if event.pod is not None:
                return _share(pod, event.pod)
            case _:
                return True

    def check(self, pod: PodClass, view: View) -> Codes | Refusal | None:
        if not pod.spec.volumes:
            return None
        exclusive = _exclusive_claims(pod, view)
        if isinstance(exclusive, Refusal):
            return exclusive
        disks = [volume for volume in pod.spec.volumes if _is_disk(volume)]
        in_use = _in_use(exclusive, pod, view) if exclusive else 0
        if not disks and in_use == 0:
            return None
        taken = bool(exclusive) and in_use + _moved(exclusive, view) > 0
        codes = np.full(view.size, CLAIM_TAKEN if taken else 0, np.uint8)
        if disks:
            for row in _conflicting_rows(disks, view):
                codes[row] = DISK_TAKEN
        return codes


def _exclusive_claims(pod: PodClass, view: View) -> tuple[str, ...] | Refusal:
    """The ReadWriteOncePod claims of the pod, each once."""
    found: dict[str, None] = {}
    for name in named_claims(pod):
        claim = view.storage.claims.get((pod.namespace, name))
        if claim is None:
            return Refusal(claim_not_found(name))
        if READ_WRITE_ONCE_POD in claim.spec.access_modes:
            found[name] = None
    return tuple(found)


def _in_use(exclusive: Sequence[str], pod: PodClass, view: View) -> int:
    """How many of the claims bound pods name, including pods that an overlay removed."""
    gone = [kind for kind, sign in overlay_classes(view) if sign < 0 and kind.namespace == pod.namespace]
    in_use = 0
    for claim in exclusive:
        users = [user.kind for user in claim_users(view, pod.namespace, claim)]
        in_use += any(claim in named_claims(kind) for kind in (*users, *gone))
    return in_use


def _moved(exclusive: Sequence[str], view: View) -> int:
    """What an overlay adds to the uses of the claims.

    As in Kubernetes, this counts each reference by the claim's bare name, whatever the pod's namespace; `_in_use`
    counts a claim once however many pods name it.
    """
    return sum(sign * sum(name in exclusive for name in named_claims(kind)) for kind, sign in overlay_classes(view))


def _conflicting_rows(disks: Sequence[Volume], view: View) -> list[int]:
    answers: dict[int, bool] = {}

    def conflicts(kind: PodClass) -> bool:
        if kind.id not in answers:
            answers[kind.id] = any(_conflict(disk, other) for disk in disks for other in kind.spec.volumes)
        return answers[kind.id]

    return [row for row, kinds in volume_holders(view).items() if any(map(conflicts, kinds))]


def _modes(item: Model | None) -> tuple[str, ...]:
    return item.spec.access_modes if isinstance(item, PersistentVolumeClaim) else ()


def _share(pod: PodClass, other: PodClass) -> bool:
    """Whether two pods share a claim, or a disk that cannot be shared. Disks have no namespace."""
    claims = named_claims(pod) if pod.namespace == other.namespace else ()
    if any(name in claims for name in named_claims(other)):
        return True
    return any(_conflict(one, another) for one in pod.spec.volumes for another in other.spec.volumes)


def _is_disk(volume: Volume) -> bool:
    return (
        volume.gce_persistent_disk is not None
        or volume.aws_elastic_block_store is not None
        or volume.rbd is not None
        or volume.iscsi is not None
    )


def _conflict(one: Volume, other: Volume) -> bool:
    """Whether two volumes are the same disk and not both read-only. EBS cannot be shared even read-only."""
    gce, other_gce = one.gce_persistent_disk, other.gce_persistent_disk
    if gce is not None and other_gce is not None and gce.pd_name == other_gce.pd_name:
        return not (gce.read_only and other_gce.read_only)
    ebs, other_ebs = one.aws_elastic_block_store, other.aws_elastic_block_store
    if ebs is not None and other_ebs is not None and ebs.volume_id == other_ebs.volume_id:
        return True
    iscsi, other_iscsi = one.iscsi, other.iscsi
    if iscsi is not None and other_iscsi is not None and iscsi.iqn == other_iscsi.iqn:
        return not (iscsi.read_only and other_iscsi.read_only)
    rbd, other_rbd = one.rbd, other.rbd
    if rbd is None or other_rbd is None or (rbd.pool, rbd.image) != (other_rbd.pool, other_rbd.image):
        return False
    shares_monitor = any(monitor in other_rbd.monitors for monitor in rbd.monitors)
    return shares_monitor and not (rbd.read_only and other_rbd.read_only)
