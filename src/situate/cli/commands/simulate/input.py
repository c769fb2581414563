"""What is simulated: a snapshot from files or a cluster, workloads, a trace, and configurations. Decides nothing.

What was not there to read, and what can therefore not be judged, is told in notes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from situate.cli import BadInput
from situate.cli.input.cluster import Seen, read_live
from situate.cli.input.cluster import read_files as read_dump
from situate.cli.input.files import read_file, read_sources
from situate.cli.input.manifests import read_manifests
from situate.cli.input.profiles import plugins_of_others, read_profiles
from situate.core.config.defaults import default_configuration
from situate.core.model.meta import key_of
from situate.core.model.policy import PriorityClass
from situate.core.model.priority import priority_classes
from situate.core.state.cluster import FINISHED_PHASES
from situate.sim.whatif.expansion import WORKLOADS, SourceLocation, WorkloadExpander
from situate.sim.whatif.script import ClusterSnapshot
from situate.sim.whatif.trace import Trace, read_trace
from situate.wire.config import load_config
from situate.wire.errors import InputError
from situate.wire.objects import decode_checked, objects_of

if TYPE_CHECKING:
    from situate.core.config.types import KubeSchedulerConfiguration
    from situate.core.engine.framework import Framework
    from situate.core.model.named import NamedObject
    from situate.core.model.pod import Pod
    from situate.core.model.priority import PriorityClasses
    from situate.kube.client import Client
    from situate.sim.whatif.distributions import Distribution
    from situate.sim.whatif.script import PodSet

NOBODY: Final = "\0"
"""The name of no pod: nobody in particular is asked about."""
DEFAULT: Final = "default"
CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
_GROUPS: Final = {"Pod": "", "Job": "batch"}


@dataclass(slots=True)
class Workloads:
    """What the files of workloads hold."""

    groups: list[PodSet] = field(default_factory=list)
    named: list[NamedObject] = field(default_factory=list)
    ignored: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Configuration:
    """One of those that are compared."""

    name: str
    config: KubeSchedulerConfiguration
    others: Mapping[str, type]
    profiles: Mapping[str, Framework]


# -- the snapshot ----------------------------------------------------------------------------------------------------


def read_snapshot(names: Sequence[str]) -> Seen:
    """Raises InputError, OSError."""
    seen, _ = read_dump(list(read_sources(names)), NOBODY)
    return seen


async def read_cluster(client: Client) -> Seen:
    """All that we may list of a live cluster. Raises ApiError if that is no pods, or no nodes."""
    from situate.kube.errors import ApiError
    from situate.kube.kinds import ALL_KINDS

    refused = ""

    async def classes() -> list[PriorityClass]:
        nonlocal refused
        try:
            listed = msgspec.json.decode(await client.request("GET", CLASSES))
        except ApiError as error:
            if not (error.forbidden or error.not_found):
                raise
            refused = error.message
            return []
        found = [{**one, "kind": "PriorityClass"} for one in listed.get("items") or ()]
        return [decode_checked(PriorityClass, msgspec.json.encode(one), file=client.access.server) for one in found]

    listed, seen = await asyncio.gather(classes(), read_live(client, ALL_KINDS))
    seen.priority_classes = listed
    if refused:
        seen.refused["priorityclasses"] = refused
    return seen


def snapshot_of(seen: Seen) -> tuple[ClusterSnapshot, list[Pod]]:
    """The cluster without the pods that wait, and those, in the order in which they would be decided."""
    from situate.cli.commands.place.rehearsal import in_order

    alive = [pod for pod in seen.pods if pod.status.phase not in FINISHED_PHASES]
    bound = [pod for pod in alive if pod.spec.node_name]
    waiting = [pod for pod in in_order(alive) if pod.metadata.deletion_timestamp is None]
    return ClusterSnapshot(seen.nodes, seen.named, bound), waiting


# -- workloads and traces --------------------------------------------------------------------------------------------


def read_workloads(names: Sequence[str], seen: Seen) -> tuple[Workloads, PriorityClasses]:
    """Raises InputError, OSError."""
    read = read_manifests(names)
    found = Workloads()
    classes = [*seen.priority_classes]
    rest: list[tuple[str, str, dict[str, Any]]] = []
    once: dict[tuple[str, str, str], str] = {}
    for file, body in read:
        kind, group = _kind(file, body)
        _once(once, kind, file, body)
        if (kind, group) == ("PriorityClass", "scheduling.k8s.io"):
            classes.append(decode_checked(PriorityClass, msgspec.json.encode(body), file=file))
        else:
            rest.append((file, kind, body))
    known = priority_classes(classes)
    expander = WorkloadExpander(known, seen.nodes)
    for file, kind, body in rest:
        group = str(body["apiVersion"]).rpartition("/")[0]
        if kind in WORKLOADS and group == _GROUPS.get(kind, "apps"):
            found.groups.append(expander.expand(kind, body, SourceLocation(file)))
        elif kind == "Node":
            raise InputError("a node is part of the snapshot: give it with -f", file=file, subject=_subject(kind, body))
        else:
            _other(found, file, kind, body)
    found.named += expander.named
    return found, known


def _kind(file: str, body: Mapping[str, Any]) -> tuple[str, str]:
    for path in ("kind", "apiVersion"):
        if not isinstance(body.get(path), str) or not body[path]:
            raise InputError("Required value", file=file, path=path)
    return body["kind"], body["apiVersion"].rpartition("/")[0]


def _once(once: dict[tuple[str, str, str], str], kind: str, file: str, body: Mapping[str, Any]) -> None:
    subject = _subject(kind, body)
    key = (kind, body["apiVersion"], subject)
    if key in once:
        raise InputError(f"is there twice: already in {once[key]}", file=file, subject=subject)
    once[key] = file


def _subject(kind: str, body: Mapping[str, Any]) -> str:
    meta = body.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    return f"{kind} {meta.get('namespace') or DEFAULT}/{meta.get('name') or ''}"


def _other(found: Workloads, file: str, kind: str, body: Mapping[str, Any]) -> None:
    objects = objects_of([msgspec.json.encode(body)], file)
    found.named += objects.named()
    for name, count in objects.ignored.items():
        found.ignored[name] = found.ignored.get(name, 0) + count


def taken_names(seen: Seen, where: str) -> dict[str, str]:
    return {f"{pod.metadata.namespace}/{pod.metadata.name}": where for pod in seen.pods}


def without_clashes(groups: Iterable[PodSet], taken: Mapping[str, str]) -> None:
    """Raises InputError if a pod to come is there already."""
    for group in groups:
        for number in range(group.total if group.named or group.total == 1 else 0):
            key = key_of(group.member(number).metadata)
            if key in taken:
                raise InputError(f"its pod {key} is in {taken[key]} already", subject=group.name)


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
    bodies = [body for _, body in read_manifests([str(path)]) if body.get("kind") in WORKLOADS]
    if len(bodies) != 1:
        raise InputError(f"{len(bodies)} objects that pods can be made of; there should be one", file=str(path))
    body = bodies[0]
    if body["kind"] == "Pod":
        return body
    template = (body.get("spec") or {}).get("template")
    if not isinstance(template, dict):
        raise InputError("Required value", file=str(path), path="spec.template")
    meta = {key: value for key, value in (template.get("metadata") or {}).items() if key in ("labels", "annotations")}
    space = (body.get("metadata") or {}).get("namespace")
    return {"metadata": {**meta, **({"namespace": space} if space else {})}, "spec": template.get("spec") or {}}


# -- configurations --------------------------------------------------------------------------------------------------


def read_configurations(files: Sequence[str]) -> list[Configuration]:
    """Named by their files, without what they end with; `default` is kube-scheduler's own. Raises InputError."""
    said = files or (DEFAULT,)
    stems = [Path(file).stem for file in said]
    found: list[Configuration] = []
    for file, stem in zip(said, stems, strict=True):
        name = stem if stems.count(stem) == 1 else file
        if any(one.name == name for one in found):
            raise BadInput(f"--config {file} is given twice")
        found.append(_configuration(file, name))
    return found


def _configuration(file: str, name: str) -> Configuration:
    path = Path(file)
    if file == DEFAULT and not path.exists():
        return Configuration(name, default_configuration(), {}, read_profiles(None))
    profiles = read_profiles(path)
    config = load_config(read_file(path), str(path))
    return Configuration(name, config, plugins_of_others(config, path), profiles)


# -- notes -----------------------------------------------------------------------------------------------------------


def notes_on(
    seen: Seen, workloads: Workloads, pods: Sequence[Pod], configurations: Sequence[Configuration]
) -> list[str]:
    """`pods` are some that come: one of each kind is enough."""
    notes = [f"cannot list {name}: {why}" for name, why in sorted(seen.refused.items())]
    given = {*seen.kinds, *(type(one).__name__ for one in workloads.named)}
    missing = [(kind, what) for kind, what in _needed(seen, pods) if kind not in given and not seen.refused]
    for what in dict.fromkeys(what for _, what in missing):
        kinds = [kind for kind, told in missing if told == what]
        notes.append(f"no {' and no '.join(kinds)} was given: {what}")
    nodes = {node.metadata.name for node in seen.nodes}
    homeless = sum(bool(pod.spec.node_name) and pod.spec.node_name not in nodes for pod in seen.pods)
    if homeless:
        told, are = ("1 bound pod is", "counts") if homeless == 1 else (f"{homeless} bound pods are", "count")
        notes.append(f"{told} on nodes that are not there, and {are} nowhere")
    if workloads.ignored:
        passed = ", ".join(f"{count} {kind}" for kind, count in sorted(workloads.ignored.items()))
        notes.append(f"not simulated: {passed}")
    for one in configurations:
        if one.config.extenders:
            notes.append(f"{one.name}: {len(one.config.extenders)} extenders are not asked in a simulation")
    return notes


def _needed(seen: Seen, pods: Sequence[Pod]) -> list[tuple[str, str]]:
    """Kinds that the answer depends on, and what cannot be judged without them."""
    needed = [("Pod", "the nodes are taken for empty")]
    specs = [pod.spec for pod in pods]
    if any(volume.persistent_volume_claim or volume.ephemeral for spec in specs for volume in spec.volumes):
        volumes = "claims are taken for missing, and which nodes reach which volumes cannot be judged"
        needed += [("PersistentVolumeClaim", volumes), ("PersistentVolume", volumes), ("StorageClass", volumes)]
        needed.append(("CSINode", "how many volumes a node may have cannot be judged"))
    sides = [
        side
        for spec in specs
        if spec.affinity is not None
        for side in (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity)
        if side is not None
    ]
    terms = [term for side in sides for term in side.required_during_scheduling_ignored_during_execution]
    if any(term.namespace_selector is not None for term in terms):
        needed.append(("Namespace", "which namespaces affinity selects cannot be judged"))
    lowest = min((pod.spec.priority or 0 for pod in (*seen.pods, *pods)), default=0)
    if any((spec.priority or 0) > lowest for spec in specs):
        needed.append(("PodDisruptionBudget", "whom budgets protect from preemption cannot be judged"))
    owners = {one.kind for pod in pods for one in pod.metadata.owner_references if one.controller}
    owned = "their pods are not spread by default as they would be"
    needed += [(kind, owned) for kind in ("ReplicaSet", "StatefulSet", "ReplicationController") if kind in owners]
    return needed
