"""Stand-in claims: what a pod's claims are going to be, before a controller has made them from their templates."""

from __future__ import annotations

from collections.abc import Container, Mapping
from itertools import count
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from situate.core.model.claim_templates import ResourceClaimTemplate
from situate.core.model.devices import ResourceClaim, ResourceClaimSpec
from situate.core.model.meta import ObjectMeta, OwnerReference
from situate.core.model.pod import Pod, PodResourceClaimStatus

Templates = Mapping[tuple[str, str], ResourceClaimTemplate]
"""(namespace, name) -> template."""
NO_TEMPLATES: Final[Templates] = MappingProxyType({})


def lacks_claims(pod: Pod) -> bool:
    """Whether a claim of the pod is still to be made from its template."""
    made = {one.name for one in pod.status.resource_claim_statuses}
    return any(
        entry.resource_claim_template_name is not None and entry.name not in made for entry in pod.spec.resource_claims
    )


def with_template_claims(
    pod: Pod,
    templates: Templates,
    taken: Container[tuple[str, str]],
    others: Mapping[str, ResourceClaimSpec] | None = None,
) -> tuple[Pod, list[ResourceClaim]]:
    """The pod with the claims that its templates ask for, and these claims. An entry without a template stays as it is.

    `taken` has the names of existing claims. `others` has specs by entry, for templates that are not known.
    """
    if not lacks_claims(pod):
        return pod, []
    meta = pod.metadata
    statuses = {one.name: one for one in pod.status.resource_claim_statuses}
    owner = OwnerReference(api_version="v1", kind="Pod", name=meta.name, uid=meta.uid, controller=True)
    made: dict[str, ResourceClaim] = {}
    for entry in pod.spec.resource_claims:
        if entry.resource_claim_template_name is None or entry.name in statuses:
            continue
        template = templates.get((meta.namespace, entry.resource_claim_template_name))
        spec = (others or {}).get(entry.name) if template is None else template.spec.spec
        if spec is None:
            continue
        base = f"{meta.name}-{entry.name}"
        names = (base if not number else f"{base}-{number}" for number in count())
        name = next(one for one in names if one not in made and (meta.namespace, one) not in taken)
        claimed = ObjectMeta(name=name, namespace=meta.namespace, uid=f"{meta.uid}/{name}", owner_references=(owner,))
        made[name] = ResourceClaim(metadata=claimed, spec=spec)
        statuses[entry.name] = PodResourceClaimStatus(name=entry.name, resource_claim_name=name)
    status = replace(pod.status, resource_claim_statuses=tuple(statuses.values()))
    return replace(pod, status=status), list(made.values())
