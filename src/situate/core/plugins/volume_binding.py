"""VolumeBinding: refuse nodes that bound volumes cannot reach, or where unbound claims would get no volume.

Where the rules ask for it, score the others: the less of their storage the claims take up, the better.

A claim that waits for its first consumer gets the smallest free volume that suits it and the node; otherwise a volume
must be provisionable there. `decide` returns the choice for the caller to carry out. Nothing here reserves or binds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from msgspec.structs import replace

from situate.core.contract import Codes, Reason, Refusal, Scores, Unjudged, Wake, WakeEvent
from situate.core.model.base import Int64
from situate.core.model.claims import claim_not_found, ownership_problem
from situate.core.model.field_errors import child, invalid
from situate.core.model.storage import PersistentVolumeClaim
from situate.core.plugins.support.arguments import PluginArgs, UtilizationShapePoint, shape_problems
from situate.core.plugins.support.claims import binds_late, claim_uses
from situate.core.plugins.support.normalize import constant
from situate.core.plugins.support.resource_scoring import scaled_shape
from situate.core.plugins.support.volume_binding_hints import volume_binding_hint
from situate.core.plugins.support.volume_matching import UnboundClaims, bound_claims, unbound_claims
from situate.core.plugins.support.volume_scores import volume_scores
from situate.core.state.classes import PodClass
from situate.core.state.columns import Mask
from situate.core.state.objects import StorageObjects
from situate.core.state.view import View
from situate.core.versions import KubernetesRules

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
"""The annotation of a completed binding; its value does not matter."""

SHAPE_GATE_OFF: Final = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
UNBOUND_IMMEDIATE: Final = "pod has unbound immediate PersistentVolumeClaims"

NODE_AFFINITY: Final = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME: Final = "node(s) didn't find available persistent volumes to bind"
NO_SPACE: Final = "node(s) did not have enough free storage"
VOLUME_GONE: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
UNREADABLE: Final = "node(s) had volumes that could not be read"

LEAST_USED: Final = (
    UtilizationShapePoint(utilization=0, score=10),
    UtilizationShapePoint(utilization=100, score=0),
)
"""The default shape."""


class VolumeBindingArgs(PluginArgs, frozen=True, kw_only=True):
    """`shape` is how storage is scored. By rules that do not score it, even an empty one is an error."""

    bind_timeout_seconds: Int64 = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None

    def with_rules(self, rules: KubernetesRules) -> VolumeBindingArgs:
        if self.shape or not rules.scores_storage_capacity:
            return self
        return replace(self, shape=LEAST_USED)

    def validate(self, path: str) -> list[str]:
        if self.bind_timeout_seconds < 0:
            detail = "invalid BindTimeoutSeconds, should not be a negative value"
            return [invalid(child(path, "bindTimeoutSeconds"), self.bind_timeout_seconds, detail)]
        return []

    def rule_problems(self, path: str, rules: KubernetesRules) -> list[str]:
        if rules.scores_storage_capacity:
            return shape_problems(child(path, "shape"), self.shape or ())
        if self.shape is None:
            return []
        shown = [{"Utilization": point.utilization, "Score": point.score} for point in self.shape]
        return [invalid(child(path, "shape"), shown, SHAPE_GATE_OFF)]


@dataclass(frozen=True, slots=True)
class PodClaims:
    """The claims of a pod that may be placed, in the order of its volumes."""

    bound: tuple[PersistentVolumeClaim, ...]
    unbound: tuple[PersistentVolumeClaim, ...]
    """The claims that get their volume when the pod is placed."""


@dataclass(frozen=True, slots=True)
class VolumeDecision:
    """The bindings and provisions for the unbound claims of a pod on one node."""

    bindings: tuple[tuple[str, str], ...]
    """(claim, volume), by name."""
    provisions: tuple[str, ...]
    """The claims to provision a volume for."""


NO_VOLUMES_TO_BIND: Final = VolumeDecision((), ())


@dataclass(frozen=True, slots=True)
class VolumeBinding:
    """Checks bound and unbound claims on every node, so a node may have one reason of each.

    Refuses a node where some object cannot be read (an in-tree volume unknown to its driver, an invalid selector), with
    the reason; Kubernetes fails the whole pod there.
    """

    shape: tuple[UtilizationShapePoint, ...] = ()
    points: frozenset[str] = frozenset(("preScore", "score"))
    """Where the profile runs it."""

    name: ClassVar[str] = "VolumeBinding"
    reasons: ClassVar[tuple[Reason, ...]] = tuple(
        Reason(text, eviction_helps=False) for text in (NODE_AFFINITY, NO_VOLUME, NO_SPACE, VOLUME_GONE, UNREADABLE)
    )
    wakes_on: ClassVar[frozenset[Wake]] = frozenset(
        {
            Wake.STORAGE_CLASS_ADDED,
            Wake.STORAGE_CLASS_UPDATED,
            Wake.CLAIM_ADDED,
            Wake.CLAIM_UPDATED,
            Wake.VOLUME_ADDED,
            Wake.VOLUME_UPDATED,
            Wake.VOLUME_DELETED,
            Wake.NODE_ADDED,
            Wake.NODE_LABEL,
            Wake.CSI_NODE_ADDED,
            Wake.CSI_NODE_UPDATED,
            Wake.CSI_NODE_DELETED,
            Wake.CSI_DRIVER_UPDATED,
            Wake.CSI_DRIVER_DELETED,
            Wake.CSI_CAPACITY_ADDED,
            Wake.CSI_CAPACITY_UPDATED,
        }
    )

    @classmethod
    def from_args(cls, args: VolumeBindingArgs, points: frozenset[str]) -> VolumeBinding:
        return cls(args.shape or (), points)

    def with_rules(self, rules: KubernetesRules) -> VolumeBinding:
        """Without preScore, a plugin cannot skip scoring. Without filter, it knows no volumes to score."""
        if rules.scores_storage_capacity:
            return StorageScoring(self.shape, self.points)
        return self if "preScore" in self.points else ConstantScore(self.shape, self.points)

    def wakes(self, pod: PodClass, event: WakeEvent) -> bool:
        return volume_binding_hint(pod, event)

    def check(self, pod: PodClass, view: View) -> Codes | Refusal | None:
        if not pod.spec.volumes:
            return None
        claims = pod_claims(pod, view.storage)
        if claims is None or isinstance(claims, Refusal):
            return claims
        codes = np.zeros(view.size, np.uint8)
        for code, (_, mask) in reversed(list(enumerate(_conflicts(claims, view)[0], 1))):
            codes[mask] = min(code, len(self.reasons))
        return codes

    def details(self, pod: PodClass, view: View) -> Sequence[tuple[str, Mask]]:
        claims = pod_claims(pod, view.storage)
        return _conflicts(claims, view)[0] if isinstance(claims, PodClaims) else []


@dataclass(frozen=True, slots=True)
class ConstantScore(VolumeBinding):
    """The variant that does not skip scoring, and scores every node 0."""

    def score(self, pod: PodClass, view: View) -> Scores:
        return constant(0, view)


@dataclass(frozen=True, slots=True)
class StorageScoring(VolumeBinding):
    """The variant that scores nodes by the storage that unbound claims would take up there."""

    def score(self, pod: PodClass, view: View) -> Scores:
        claims = pod_claims(pod, view.storage) if pod.spec.volumes and "filter" in self.points else None
        if not isinstance(claims, PodClaims) or not claims.unbound:
            return constant(0, view)
        return volume_scores(unbound_claims(claims.unbound, view), scaled_shape(self.shape or LEAST_USED), view)


def decide(pod: PodClass, view: View, row: int) -> VolumeDecision | None:
    """The volume decision for a pod on the node at a row; None if it cannot go there."""
    claims = pod_claims(pod, view.storage)
    if claims is None:
        return NO_VOLUMES_TO_BIND
    if isinstance(claims, Refusal):
        return None
    conflicts, unbound = _conflicts(claims, view.at(row))
    if any(mask.any() for _, mask in conflicts):
        return None
    return VolumeDecision(
        tuple((claim.metadata.name, volume.metadata.name) for claim, volume in unbound.matches_at(0)),
        tuple(claim.metadata.name for claim in unbound.provisions_at(0)),
    )


def pod_claims(pod: PodClass, storage: StorageObjects) -> PodClaims | Refusal | None:
    """The claims of a pod; None if it has none, a Refusal if one of them is not ready to be placed."""
    uses = claim_uses(pod)
    if not uses:
        return None
    found: list[PersistentVolumeClaim] = []
    for use in uses:
        claim = storage.claims.get((pod.namespace, use.name))
        if claim is None:
            awaited = f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{use.name}"'
            return Refusal(awaited if use.generated else claim_not_found(use.name))
        if problem := _problem(claim) or (ownership_problem(pod.pod.metadata, claim) if use.generated else ""):
            return Refusal(problem)
        found.append(claim)
    bound = [claim for claim in found if _is_bound(claim)]
    unbound = [claim for claim in found if not _is_bound(claim)]
    # The volume controller binds a claim that names its volume.
    if any(claim.spec.volume_name or not binds_late(claim, storage) for claim in unbound):
        return Refusal(UNBOUND_IMMEDIATE)
    return PodClaims(tuple(bound), tuple(unbound))


def _problem(claim: PersistentVolumeClaim) -> str:
    name = claim.metadata.name
    if claim.status.phase == "Lost":
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{name}" is being deleted'
    return ""


def _is_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def _conflicts(claims: PodClaims, view: View) -> tuple[list[tuple[str, Mask]], UnboundClaims]:
    """Each reason with its rows, in the order of `reasons`, unreadable objects last; and the unbound claims."""
    bound, unbound = bound_claims(claims.bound, view), unbound_claims(claims.unbound, view)
    unreadable = [(Unjudged(text, VolumeBinding.name), mask) for text, mask in (*bound.unreadable, *unbound.unreadable)]
    readable = np.ones(view.size, np.bool_)
    for _, mask in unreadable:
        readable &= ~mask
    conflicts = [
        (NODE_AFFINITY, bound.elsewhere & readable),
        (NO_VOLUME, unbound.unmatched & readable),
        (NO_SPACE, unbound.no_space & readable),
        (VOLUME_GONE, bound.gone & readable),
        *unreadable,
    ]
    return conflicts, unbound
