"""DynamicResources for pods without resource claims: refuses no node and scores every node 0.

situate does not read ResourceClaims yet. It rejects a pod that has some, as Kubernetes rejects a pod whose claims do
not exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from situate.core.contract import Reason, Refusal, Scores, Wake
from situate.core.model.duration import MINUTE, SECOND, Duration, format_duration
from situate.core.model.field_errors import child, invalid
from situate.core.model.pod import PodResourceClaim
from situate.core.plugins.support.arguments import PluginArgs
from situate.core.plugins.support.normalize import constant
from situate.core.state.classes import PodClass
from situate.core.state.view import View

NOT_CREATED: Final = "ResourceClaim not created yet"


class DynamicResourcesArgs(PluginArgs, frozen=True, kw_only=True):
    filter_timeout: Duration = 10 * SECOND
    binding_timeout: Duration = 10 * MINUTE

    def validate(self, path: str) -> list[str]:
        problems = []
        if self.filter_timeout < 0:
            shown = format_duration(self.filter_timeout)
            problems.append(invalid(child(path, "filterTimeout"), shown, "must be zero or positive"))
        if self.binding_timeout < SECOND:
            shown = format_duration(self.binding_timeout)
            problems.append(invalid(child(path, "bindingTimeout"), shown, "must be at least 1 second"))
        return problems


@dataclass(frozen=True, slots=True)
class DynamicResources:
    """Kubernetes' plugin scores every pod; without claims the score is 0."""

    name: ClassVar[str] = "DynamicResources"
    reasons: ClassVar[tuple[Reason, ...]] = ()
    wakes_on: ClassVar[frozenset[Wake]] = frozenset({Wake.NODE_ADDED, Wake.NODE_LABEL, Wake.NODE_ALLOCATABLE})

    @classmethod
    def from_args(cls, args: DynamicResourcesArgs, points: frozenset[str]) -> DynamicResources:
        return cls()

    def check(self, pod: PodClass, view: View) -> Refusal | None:
        claims = pod.spec.resource_claims
        return _missing(pod, claims[0]) if claims else None

    def score(self, pod: PodClass, view: View) -> Scores:
        return constant(0, view)


def _missing(pod: PodClass, claim: PodResourceClaim) -> Refusal:
    """The pod's status would name a claim made from a template; situate does not read that yet either."""
    if claim.resource_claim_name is None:
        return Refusal(f'pod "{pod.namespace}/{pod.pod.metadata.name}": {NOT_CREATED}')
    return Refusal(f'could not find ResourceClaim "{pod.namespace}/{claim.resource_claim_name}"')
