"""What nobody else clears away: pods that ended long ago, and leases of nodes that are gone.

The ledger of a node that is gone (its NodeSnapshot) goes with the last pod that was there, in the same transaction.
"""

from __future__ import annotations

from typing import Final

from situate.core.model.managed import ManagedPod
from situate.core.model.managed_node import ManagedNode
from situate.core.model.refs import Millis
from situate.core.reconcile.effects import BURST, DeleteObject, Draft, ObjectRef, Outcome
from situate.core.reconcile.nodes.sightings import Sightings
from situate.core.reconcile.objects import Objects, ref_of
from situate.core.reconcile.pods import is_finished
from situate.core.reconcile.reckon import SECOND

__all__ = ["LEASES", "PERIOD_MS", "leftovers"]

PERIOD_MS: Final[Millis] = 20 * SECOND
"""How often to look."""
LEASES: Final = "kube-node-lease"
"""The namespace of the nodes' leases."""


def leftovers(objects: Objects, sightings: Sightings, now: Millis) -> Outcome:
    draft = Draft()
    draft.look_again(now + PERIOD_MS)
    _finished(objects, sightings, draft)
    _leases(objects, sightings, now, draft)
    return draft.done()


def _finished(objects: Objects, sightings: Sightings, draft: Draft) -> None:
    """Counted elsewhere, so that they are looked through only if there are too many."""
    if sightings.finished <= sightings.profile.finished_pods:
        return
    ended = [pod for pod in objects.among(ManagedPod) if is_finished(pod) and pod.metadata.deletion_timestamp is None]
    many = min(len(ended) - sightings.profile.finished_pods, BURST)
    for pod in sorted(ended, key=_age)[: max(many, 0)]:
        draft.effects.append(DeleteObject(ref_of(pod), grace_s=0))


def _age(pod: ManagedPod) -> tuple[bool, str, str, str]:
    """Those that a node threw out go first: nobody made them end."""
    meta = pod.metadata
    return pod.status.reason != "Evicted", meta.creation_timestamp or "", meta.name, meta.namespace


def _leases(objects: Objects, sightings: Sightings, now: Millis, draft: Draft) -> None:
    """Of nodes that are not there, and whose agents are not heard of."""
    if sightings.since is None:
        return
    profile = sightings.profile
    for name, lease in sightings.leases():
        if objects.get(ManagedNode, "", name) is not None or len(draft.effects) >= BURST:
            continue
        if max(lease.at, sightings.since) + max(profile.grace_ms, profile.absent_ms) <= now:
            ref = ObjectRef("coordination.k8s.io/v1", "Lease", LEASES, name, lease.uid)
            draft.effects.append(DeleteObject(ref, lease.version))
