"""Pods that workloads in the input are going to make, as their controllers would: those that do not exist yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from situate.cli.input.cluster import ClusterObjects
from situate.cli.input.files import MappedFile
from situate.cli.input.manifests import Manifest, at_path, manifests_in, unique
from situate.cli.input.owners import OwningWorkload, belongs_to
from situate.cli.output.text import plural
from situate.core.model.meta import ObjectMeta, controller_of, key_of
from situate.core.model.pod import Pod
from situate.core.model.policy import PriorityClass
from situate.core.model.priority import PriorityClasses, priority_classes
from situate.core.reconcile.job_indexes import INDEX
from situate.core.state.cluster import FINISHED_PHASES
from situate.sim.whatif.expansion import SourceLocation, WorkloadExpander
from situate.sim.whatif.script import PodSet
from situate.wire.objects import Source

GROUPS: Final = {"Deployment": "apps", "ReplicaSet": "apps", "StatefulSet": "apps", "DaemonSet": "apps", "Job": "batch"}
"""The workloads whose pods are made, and their groups."""
SELECTING: Final = ("ReplicaSet", "StatefulSet")
ENDED: Final = ("Complete", "Failed", "SuccessCriteriaMet", "FailureTarget")


def add_workload_pods(objects: ClusterObjects, sources: Sequence[Source | MappedFile]) -> bool:
    """Add the pods that the workloads of these sources still lack. Returns whether there are any. Raises InputError."""
    if not any(kind in GROUPS for kind in (*objects.kinds, *(name.partition(" ")[0] for name in objects.ignored))):
        return False
    manifests = _roots(_workloads(sources))
    expander = WorkloadExpander(_classes(objects), objects.nodes)
    sets = [(one, expander.expand(one.kind, one.body, SourceLocation(one.file, one.within))) for one in manifests]
    taken = {key_of(pod.metadata) for pod in objects.pods}
    known = {(type(one), one.metadata.namespace, one.metadata.name) for one in objects.named}
    added, makers = 0, 0
    for manifest, group in sets:
        made = [
            one for one in _missing(manifest, group, objects.pods) if key_of(group.member(one).metadata) not in taken
        ]
        objects.pods += [group.member(number) for number in made]
        claims = [claim for number in made for claim in group.claims(number)]
        objects.named += [one for one in claims if (type(one), one.metadata.namespace, one.metadata.name) not in known]
        added, makers = added + len(made), makers + bool(made)
    objects.named += [
        one for one in expander.named if (type(one), one.metadata.namespace, one.metadata.name) not in known
    ]
    objects.kinds |= dict.fromkeys(type(one).__name__ for one in objects.named)
    objects.ignored = {name: count for name, count in objects.ignored.items() if name.partition(" ")[0] not in GROUPS}
    if added:
        objects.kinds["Pod"] = None
        objects.notes.append(f"made {plural(added, 'pod')} of {plural(makers, 'workload')}, as the controllers would")
    return bool(added)


def _workloads(sources: Iterable[Source | MappedFile]) -> list[Manifest]:
    read = (source.read() if isinstance(source, MappedFile) else source for source in sources)
    found = (one for source in read for one in manifests_in(source))
    return list(unique(one for one in found if GROUPS.get(one.kind) == one.group_and_kind[0] and not _selects(one)))


def _selects(one: Manifest) -> bool:
    """Whether it has no template: such a set is in the input for its selector, by which its pods are spread."""
    return one.kind in SELECTING and not at_path(one.body, "spec", "template", "spec")


def _roots(manifests: Sequence[Manifest]) -> list[Manifest]:
    """Without those that another of them makes: the ReplicaSets of Deployments."""
    known = {(one.kind, one.namespace or "default", one.name) for one in manifests}

    def made(one: Manifest) -> bool:
        owners = one.metadata.get("ownerReferences")
        return any(
            (owner.get("kind"), one.namespace or "default", owner.get("name")) in known
            for owner in (owners if isinstance(owners, list) else ())
            if isinstance(owner, Mapping)
        )

    return [one for one in manifests if not made(one)]


def _classes(objects: ClusterObjects) -> PriorityClasses:
    """Those of the input; and those that its pods name, which have their value."""
    known = {one.metadata.name: one for one in objects.priority_classes}
    for pod in objects.pods:
        name, value = pod.spec.priority_class_name, pod.spec.priority
        if name and value is not None and name not in known:
            known[name] = PriorityClass(metadata=ObjectMeta(name=name), value=value)
    return priority_classes(known.values())


def _missing(manifest: Manifest, group: PodSet, pods: Iterable[Pod]) -> list[int]:
    """The numbers of the pods that do not exist."""
    whose = OwningWorkload(manifest.kind, manifest.namespace or "default", manifest.name)
    own = [pod for pod in pods if _is_its(pod, whose)]
    alive = [pod for pod in own if pod.status.phase not in FINISHED_PHASES and pod.metadata.deletion_timestamp is None]
    if manifest.kind == "DaemonSet":
        there = {_node_of(pod) for pod in alive}
        return [number for number in range(group.total) if _node_of(group.member(number)) not in there]
    if manifest.kind == "Job":
        return _missing_of_job(manifest, group, own, alive)
    if group.named:
        names = {pod.metadata.name for pod in alive}
        return [number for number in range(group.total) if group.member(number).metadata.name not in names]
    return list(range(len(alive), group.total))


def _missing_of_job(manifest: Manifest, group: PodSet, own: Sequence[Pod], alive: Sequence[Pod]) -> list[int]:
    conditions = at_path(manifest.body, "status", "conditions")
    ended = conditions if isinstance(conditions, list) else ()
    if any(isinstance(one, Mapping) and one.get("type") in ENDED and one.get("status") == "True" for one in ended):
        return []
    succeeded = at_path(manifest.body, "status", "succeeded")
    done = max(succeeded if isinstance(succeeded, int) else 0, sum(pod.status.phase == "Succeeded" for pod in own))
    wanted = max(0, min(group.first, group.total - done) - len(alive))
    if not group.named:
        return list(range(len(own), len(own) + wanted))
    indexes = {pod.metadata.labels.get(INDEX) for pod in own if pod.status.phase != "Failed"}
    free = [number for number in range(group.total) if str(number) not in indexes]
    return free[:wanted]


def _is_its(pod: Pod, whose: OwningWorkload) -> bool:
    if belongs_to(pod, whose):
        return True
    owner = controller_of(pod.metadata)
    return (
        whose.kind == "Deployment"
        and owner is not None
        and owner.kind == "ReplicaSet"
        and pod.metadata.namespace == whose.namespace
        and owner.name.rpartition("-")[0] == whose.name
    )


def _node_of(pod: Pod) -> str:
    """The node that a pod of a DaemonSet is bound or pinned to."""
    if pod.spec.node_name:
        return pod.spec.node_name
    values = _pinned(pod)
    return values[0] if values else ""


def _pinned(pod: Pod) -> tuple[str, ...]:
    affinity: Any = None if pod.spec.affinity is None else pod.spec.affinity.node_affinity
    required: Any = None if affinity is None else affinity.required_during_scheduling_ignored_during_execution
    terms: Any = () if required is None else required.node_selector_terms
    return tuple(value for term in terms for field in term.match_fields for value in field.values)
