"""What is simulated: a snapshot from files or a cluster, workloads, a trace, and configurations. Decides nothing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from situate.cli import BadInput
from situate.cli.commands.place.rehearsal import in_order
from situate.cli.input.cluster import ClusterObjects
from situate.cli.input.files import read_file
from situate.cli.input.manifests import Manifest, at_path, read_manifests, unique
from situate.cli.input.notes import (
    device_needs,
    ignored_field_notes,
    ignored_note,
    notes_on,
    pod_affinity_selects_namespaces,
    uses_claims,
)
from situate.cli.input.profiles import plugins_of_others, read_profiles
from situate.core.config.defaults import default_configuration
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.engine.framework import Framework
from situate.core.model.claim_templates import ResourceClaimTemplate
from situate.core.model.meta import key_of
from situate.core.model.named import NamedObject
from situate.core.model.pod import Pod
from situate.core.model.policy import PriorityClass
from situate.core.model.priority import PriorityClasses, priority_classes
from situate.core.state.cluster import FINISHED_PHASES
from situate.core.versions import KubernetesRules
from situate.sim.whatif.distributions import Distribution
from situate.sim.whatif.expansion import WORKLOADS, SourceLocation, WorkloadExpander
from situate.sim.whatif.script import ClusterSnapshot, PodSet
from situate.sim.whatif.trace import Trace, read_trace
from situate.wire.config import load_config
from situate.wire.errors import InputError
from situate.wire.objects import decode_checked, objects_of

DEFAULT: Final = "default"
CLASS: Final = ("scheduling.k8s.io", "PriorityClass")
_GROUPS: Final = {"Pod": "", "Job": "batch"}


@dataclass(slots=True)
class SimulatedWorkloads:
    """The content of the files of workloads."""

    groups: list[PodSet] = field(default_factory=list)
    named: list[NamedObject] = field(default_factory=list)
    templates: dict[tuple[str, str], ResourceClaimTemplate] = field(default_factory=dict)
    ignored: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NamedConfiguration:
    """One of the configurations that are compared."""

    name: str
    config: KubeSchedulerConfiguration
    others: Mapping[str, type]
    profiles: Mapping[str, Framework]


def snapshot_of(objects: ClusterObjects) -> tuple[ClusterSnapshot, list[Pod]]:
    """The cluster without its pending pods; and those, in the order in which they would be decided."""
    alive = [pod for pod in objects.pods if pod.status.phase not in FINISHED_PHASES]
    bound = [pod for pod in alive if pod.spec.node_name]
    waiting = [pod for pod in in_order(alive) if pod.metadata.deletion_timestamp is None]
    return ClusterSnapshot(objects.nodes, objects.named, bound), waiting


def workloads_in(given: Iterable[Manifest], objects: ClusterObjects) -> tuple[SimulatedWorkloads, PriorityClasses]:
    """Raises InputError."""
    manifests = list(unique(given))
    classes = [one for one in manifests if one.group_and_kind == CLASS]
    decoded = [decode_checked(PriorityClass, msgspec.json.encode(one.body), file=one.file) for one in classes]
    known = priority_classes([*objects.priority_classes, *decoded])
    found, expander = SimulatedWorkloads(), WorkloadExpander(known, objects.nodes)
    for one in manifests:
        group, kind = one.group_and_kind
        if kind in WORKLOADS and group == _GROUPS.get(kind, "apps"):
            found.groups.append(expander.expand(kind, one.body, SourceLocation(one.file)))
        elif kind == "Node":
            raise one.error("a node is part of the snapshot: give it with -f")
        elif one.group_and_kind != CLASS:
            others = objects_of([msgspec.json.encode(one.body)], one.file)
            found.named += others.named()
            found.templates |= {
                (one.metadata.namespace, one.metadata.name): one for one in others.resource_claim_templates
            }
            for name, count in others.ignored.items():
                found.ignored[name] = found.ignored.get(name, 0) + count
    found.named += expander.named
    return found, known


def require_free_names(groups: Iterable[PodSet], taken: Mapping[str, str]) -> None:
    """Raises InputError if a pod to come already exists."""
    for group in groups:
        for number in range(group.total if group.named or group.total == 1 else 0):
            key = key_of(group.member(number).metadata)
            if key in taken:
                raise InputError(f"its pod {key} is already in {taken[key]}", subject=group.name)


def read_trace_file(
    name: str,
    classes: PriorityClasses,
    taken: Mapping[str, str],
    *,
    seed: int,
    duration: Distribution | None,
    first_group: int,
) -> Trace:
    """Raises InputError, OSError."""
    folder = Path(name).parent
    read: dict[str, Mapping[str, Any]] = {}

    def template(path: str) -> Mapping[str, Any]:
        if path not in read:
            read[path] = _template(folder / path)
        return read[path]

    shown = "standard input" if name == "-" else name
    data = read_file(name)
    if not data.strip():
        raise InputError("is empty", file=shown)
    return read_trace(
        data,
        shown,
        classes=classes,
        templates=template,
        taken=taken,
        seed=seed,
        duration=duration,
        first_group=first_group,
    )


def _template(path: Path) -> Mapping[str, Any]:
    """The pod of the one Pod, or workload, of a file."""
    found = [one for one in read_manifests([str(path)]) if one.kind in WORKLOADS]
    if len(found) != 1:
        raise InputError(f"has {len(found)} Pods and workloads; it should have one", file=str(path))
    one = found[0]
    if one.kind == "Pod":
        return one.body
    template = at_path(one.body, "spec", "template")
    if not isinstance(template, dict):
        raise InputError("Required value", file=str(path), path="spec.template")
    meta = {key: value for key, value in (template.get("metadata") or {}).items() if key in ("labels", "annotations")}
    space = {"namespace": one.namespace} if one.namespace else {}
    return {"metadata": {**meta, **space}, "spec": template.get("spec") or {}}


def read_configurations(files: Sequence[str], rules: KubernetesRules) -> list[NamedConfiguration]:
    """Named by their files, without the suffix; `default` is kube-scheduler's own. Raises InputError."""
    wanted = files or (DEFAULT,)
    stems = [Path(file).stem for file in wanted]
    found: list[NamedConfiguration] = []
    for file, stem in zip(wanted, stems, strict=True):
        name = stem if stems.count(stem) == 1 else file
        if any(one.name == name for one in found):
            raise BadInput(f"--config {file} is given twice")
        found.append(_configuration(file, name, rules))
    return found


def _configuration(file: str, name: str, rules: KubernetesRules) -> NamedConfiguration:
    path = Path(file)
    if file == DEFAULT and not path.exists():
        return NamedConfiguration(name, default_configuration(rules), {}, read_profiles(None, rules))
    profiles = read_profiles(path, rules)
    config = load_config(read_file(path), str(path), rules)
    return NamedConfiguration(name, config, plugins_of_others(config, path), profiles)


def simulation_notes(
    objects: ClusterObjects,
    workloads: SimulatedWorkloads,
    pods: Sequence[Pod],
    configurations: Sequence[NamedConfiguration],
) -> list[str]:
    """`pods` are some that come: one of each kind is enough."""
    notes = notes_on(objects, _needed(objects, pods), {type(one).__name__ for one in workloads.named})
    notes += ignored_note(workloads.ignored, "`simulate` reads Pods and their controllers")
    notes += ignored_field_notes((*objects.named, *workloads.named))
    for one in configurations:
        if one.config.extenders:
            notes.append(f"{one.name}: a simulation does not call its {len(one.config.extenders)} extenders")
    return notes


def _needed(objects: ClusterObjects, pods: Sequence[Pod]) -> list[tuple[str, str]]:
    """Kinds that the answer depends on, and what follows if they are missing."""
    needed = [("Pod", "all nodes count as empty")]
    specs = [pod.spec for pod in pods]
    if any(uses_claims(spec) for spec in specs):
        volumes = "claims count as missing, and which nodes reach which volumes is unknown"
        needed += [(kind, volumes) for kind in ("PersistentVolumeClaim", "PersistentVolume", "StorageClass")]
        needed.append(("CSINode", "how many volumes a node may have is unknown"))
    needed += device_needs(pods)
    if any(pod_affinity_selects_namespaces(spec) for spec in specs):
        needed.append(("Namespace", "which namespaces affinity selects is unknown"))
    lowest = min((pod.spec.priority or 0 for pod in (*objects.pods, *pods)), default=0)
    if any((spec.priority or 0) > lowest for spec in specs):
        needed.append(("PodDisruptionBudget", "which pods budgets protect from preemption is unknown"))
    owners = {one.kind for pod in pods for one in pod.metadata.owner_references if one.controller}
    owned = "their pods are not spread by default, as they would be"
    needed += [(kind, owned) for kind in ("ReplicaSet", "StatefulSet", "ReplicationController") if kind in owners]
    return needed
