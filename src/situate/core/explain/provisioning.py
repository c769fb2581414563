"""Which claims of a pod wait for a volume, and who has to provide it."""

from __future__ import annotations

from typing import Final

from situate.core.devices.template_claims import Templates
from situate.core.model.pod import Pod
from situate.core.model.storage import PersistentVolumeClaim
from situate.core.plugins.support.volume_matching import NO_PROVISIONER, SELECTED_NODE
from situate.core.state.classes import PodClass
from situate.core.state.objects import StorageObjects
from situate.core.state.volumes import claims_of

LATE: Final = "WaitForFirstConsumer"


def waiting_claims(pod: PodClass, storage: StorageObjects, node: str = "") -> tuple[str, ...]:
    """A line for each unbound claim that somebody else has to provide a volume for.

    A claim that binds late waits for nobody until a node is selected for it. `node`: the one that is being selected.
    """
    found = [storage.claims.get((pod.namespace, name)) for name in dict.fromkeys(claims_of(pod))]
    lines = [_line(claim, storage, node) for claim in found if claim is not None and not claim.spec.volume_name]
    return tuple(line for line in lines if line)


def unmade_claims(pod: Pod, templates: Templates) -> tuple[str, ...]:
    """A line for each claim for devices that is still to be made from its template."""
    made = {one.name for one in pod.status.resource_claim_statuses}
    lines = []
    for entry in pod.spec.resource_claims:
        name = entry.resource_claim_template_name
        if name is None or entry.name in made:
            continue
        known = (pod.metadata.namespace, name) in templates
        state = "a controller has not made it yet" if known else f"ResourceClaimTemplate {name} is not there"
        lines.append(f'claim "{entry.name}" comes from template {name}: {state}')
    return tuple(lines)


def _line(claim: PersistentVolumeClaim, storage: StorageObjects, node: str) -> str:
    made = storage.classes.get(claim.spec.storage_class_name or "")
    selected = claim.metadata.annotations.get(SELECTED_NODE) or node
    late = made is not None and made.volume_binding_mode == LATE
    if late and not selected:
        return ""
    name = claim.metadata.name
    if made is None or made.provisioner in ("", NO_PROVISIONER):
        return "" if late else f'claim "{name}" waits for a volume that suits it, and nobody provisions one'
    where = f" on node {selected}" if selected else ""
    return f'claim "{name}" waits for provisioner {made.provisioner} to provide its volume{where}'
