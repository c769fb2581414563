"""Deletes old finished pods, pods without a node whose deletion was begun and not ended, and leases of deleted nodes.

The NodeSnapshot of a deleted node goes with its last pod, in the same transaction.
"""

from __future__ import annotations

from typing import Final

from situate.core.model.managed import ManagedPod
from situate.core.model.managed_node import ManagedNode
from situate.core.model.refs import Millis
from situate.core.reconcile.api_values import SECOND
from situate.core.reconcile.effects import BURST, DeleteObject, ObjectRef, ReconcileResult, ResultBuilder
from situate.core.reconcile.nodes.heartbeats import Heartbeats
from situate.core.reconcile.objects import ObjectLister, ref_of
from situate.core.reconcile.pods import is_finished, is_stranded

PERIOD_MS: Final[Millis] = 20 * SECOND
LEASES: Final = "kube-node-lease"
"""The namespace of the nodes' leases."""


def clean_up(objects: ObjectLister, heartbeats: Heartbeats, now: Millis) -> ReconcileResult:
    result = ResultBuilder()
    result.requeue(now + PERIOD_MS)
    _finished(objects, heartbeats, result)
    _stranded(objects, heartbeats, result)
    _leases(objects, heartbeats, now, result)
    return result.done()


def _finished(objects: ObjectLister, heartbeats: Heartbeats, result: ResultBuilder) -> None:
    """The heartbeats count finished pods, so they are listed only if there are too many."""
    if heartbeats.finished <= heartbeats.profile.finished_pods:
        return
    ended = [pod for pod in objects.among(ManagedPod) if is_finished(pod) and pod.metadata.deletion_timestamp is None]
    many = min(len(ended) - heartbeats.profile.finished_pods, BURST)
    for pod in sorted(ended, key=_age)[: max(many, 0)]:
        result.effects.append(DeleteObject(ref_of(pod), grace_s=0))


def _stranded(objects: ObjectLister, heartbeats: Heartbeats, result: ResultBuilder) -> None:
    """As for finished pods, they are listed only if there are some."""
    if heartbeats.stranded:
        found = [pod for pod in objects.among(ManagedPod) if is_stranded(pod)]
        result.effects += [DeleteObject(ref_of(pod), grace_s=0) for pod in found[:BURST]]


def _age(pod: ManagedPod) -> tuple[bool, str, str, str]:
    """Evicted pods first."""
    meta = pod.metadata
    return pod.status.reason != "Evicted", meta.creation_timestamp or "", meta.name, meta.namespace


def _leases(objects: ObjectLister, heartbeats: Heartbeats, now: Millis, result: ResultBuilder) -> None:
    """Leases of nodes that do not exist and whose agents are silent."""
    if heartbeats.since is None:
        return
    profile = heartbeats.profile
    for name, lease in heartbeats.leases():
        if objects.get(ManagedNode, "", name) is not None or len(result.effects) >= BURST:
            continue
        if max(lease.at, heartbeats.since) + max(profile.grace_ms, profile.absent_ms) <= now:
            ref = ObjectRef("coordination.k8s.io/v1", "Lease", LEASES, name, lease.uid)
            result.effects.append(DeleteObject(ref, lease.version))
