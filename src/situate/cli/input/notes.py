"""Notes: what a command ignored or could not know, because the input does not have it. One wording for all commands."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from situate.cli.input.cluster import ClusterObjects
from situate.cli.output.text import plural
from situate.core.devices.template_claims import Templates, lacks_claims
from situate.core.model.custom_groups.kind import CustomPodGroup
from situate.core.model.custom_groups.table import ignored_fields, kind_of
from situate.core.model.meta import key_of
from situate.core.model.pod import Pod, PodSpec
from situate.core.state.cluster import FINISHED_PHASES

CLAIM: Final = "ResourceClaim"
DEVICES: Final = (CLAIM, "ResourceSlice", "DeviceClass")


def notes_on(objects: ClusterObjects, needed: Sequence[tuple[str, str]], known: Iterable[str] = ()) -> list[str]:
    """`needed` are the kinds that the answer depends on, each with what follows if the input has none of them.

    `known` are kinds that came from elsewhere.
    """
    notes = [*objects.notes, *refused_notes(objects.refused)]
    given = {*objects.kinds, *known}
    missing: dict[str, list[str]] = {}
    if objects.device_problem and any(kind in DEVICES for kind, _ in needed):
        notes.append(f"{objects.device_problem}: claims for devices count as missing")
        given |= {*DEVICES}
    for kind, consequence in needed:
        if kind not in given and not objects.refused:
            missing.setdefault(consequence, []).append(kind)
    notes += [f"the input has no {_either(kinds)}: {consequence}" for consequence, kinds in missing.items()]
    nodes = {node.metadata.name for node in objects.nodes}
    if homeless := sum(bool(pod.spec.node_name) and pod.spec.node_name not in nodes for pod in _running(objects.pods)):
        them, it = ("is on a node", "it is") if homeless == 1 else ("are on nodes", "they are")
        notes.append(f"{plural(homeless, 'bound pod')} {them} that the input does not have; {it} not counted")
    return notes


def ignored_field_notes(objects: Iterable[object]) -> list[str]:
    """The fields of custom PodGroups that have no effect here: a line for each kind."""
    fields: dict[str, dict[str, None]] = {}
    names: dict[str, list[str]] = {}
    for one in objects:
        if isinstance(one, CustomPodGroup) and (ignored := ignored_fields(one)):
            group = kind_of(one).group
            fields.setdefault(group, {}).update(dict.fromkeys(map(str, ignored)))
            names.setdefault(group, []).append(key_of(one.metadata))
    return [
        f"{f'PodGroup {found[0]}' if len(found) == 1 else f'{len(found)} PodGroups'} of {group}: "
        f"no effect: {'; '.join(fields[group])}"
        for group, found in names.items()
    ]


def _running(pods: Sequence[Pod]) -> Iterable[Pod]:
    return (pod for pod in pods if pod.status.phase not in FINISHED_PHASES)


def refused_notes(refused: Mapping[str, str]) -> list[str]:
    return [f"cannot list {name}: {why}" for name, why in sorted(refused.items())]


def ignored_note(ignored: Mapping[str, int], reads: str) -> list[str]:
    """`reads` says what the command reads instead: "`simulate` reads Pods and their controllers"."""
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(ignored.items()))
    return [f"ignored {kinds}: {reads}"] if ignored else []


def _either(kinds: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(kinds[:-1]), kinds[-1])))


def device_needs(pods: Iterable[Pod]) -> list[tuple[str, str]]:
    """The kinds that the answer depends on if one of these pods claims devices, and what follows without them."""
    entries = [entry for pod in pods for entry in pod.spec.resource_claims]
    if not entries:
        return []
    # The claims of pods to come are made from templates.
    existing = any(entry.resource_claim_name is not None for entry in entries)
    consequence = "claims for devices count as missing or as impossible"
    return [(kind, consequence) for kind in DEVICES if kind != CLAIM or existing]


def template_notes(pods: Iterable[Pod], templates: Templates) -> list[str]:
    """The templates that pods to come name, and that are not there."""
    missing = {
        entry.resource_claim_template_name: None
        for pod in pods
        if not pod.spec.node_name and lacks_claims(pod)
        for entry in pod.spec.resource_claims
        if entry.resource_claim_template_name is not None
        and (pod.metadata.namespace, entry.resource_claim_template_name) not in templates
    }
    names = ", ".join(missing)
    return [f"the input has no ResourceClaimTemplate {names}: its claims count as not made yet"] if missing else []


def uses_claims(spec: PodSpec) -> bool:
    return any(volume.persistent_volume_claim or volume.ephemeral for volume in spec.volumes)


def pod_affinity_selects_namespaces(spec: PodSpec) -> bool:
    sides = [] if spec.affinity is None else [spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity]
    terms = [
        term for side in sides if side is not None for term in side.required_during_scheduling_ignored_during_execution
    ]
    return any(term.namespace_selector is not None for term in terms)
