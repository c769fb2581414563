"""Expands workloads to pods, as the controllers would, without a cluster.

Names, labels, owners and node affinity are those that the controllers of `core/reconcile` set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar
from zlib import crc32

import msgspec
from msgspec.structs import replace

from situate.core.model.apps import DaemonSet, Deployment, ManagedReplicaSet, ManagedStatefulSet
from situate.core.model.batch import Job
from situate.core.model.managed_node import ManagedNode, ManagedNodeSpec, TimedTaint
from situate.core.model.meta import ObjectMeta
from situate.core.model.named import NamedObject
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.priority import PriorityClasses, UnknownPriorityClassError, with_priority
from situate.core.model.storage import PersistentVolumeClaim
from situate.core.model.stored import Owner, PodTemplateSpec, StoredMeta
from situate.core.model.volumes import PersistentVolumeClaimSource, Volume
from situate.core.model.workloads import ReplicaSet as SelectingSet
from situate.core.model.workloads import SelectorSpec
from situate.core.model.workloads import StatefulSet as SelectingStatefulSet
from situate.core.reconcile.daemonset_nodes import fit, pinned_spec
from situate.core.reconcile.history import HASH_LABEL
from situate.core.reconcile.job_indexes import INDEX
from situate.core.reconcile.naming import LETTERS, SUFFIX_LENGTH, TEMPLATE_HASH, hashed_name, template_hash
from situate.core.reconcile.objects import controller_ref
from situate.core.reconcile.pods import new_pod
from situate.core.reconcile.statefulset_pods import POD_INDEX, POD_NAME
from situate.sim.whatif.distributions import Distribution, parse_distribution
from situate.sim.whatif.script import NextPod, PodSet
from situate.wire.errors import InputError
from situate.wire.objects import decode_checked

DURATION: Final = "situate.dev/duration"
"""The annotation of a pod or template with the run time of the pod."""
MOST_PODS: Final = 1_000_000
"""The pod limit of one workload."""
_SPACE: Final = len(LETTERS) ** SUFFIX_LENGTH
_STRIDE: Final = 5_915_587
"""Coprime to the space, so that all numbers get different letters."""

M = TypeVar("M", Deployment, ManagedReplicaSet, ManagedStatefulSet, DaemonSet, Job)


class SourceLocation(msgspec.Struct, frozen=True):
    """For error messages."""

    file: str
    within: str = ""


class WorkloadExpander:
    """`named` collects the other objects that workloads bring."""

    def __init__(self, classes: PriorityClasses, nodes: Sequence[Node]) -> None:
        self._classes = classes
        self._nodes = nodes
        self.named: list[NamedObject] = []

    def expand(self, kind: str, value: Mapping[str, Any], location: SourceLocation) -> PodSet:
        """The pods of a workload of one of WORKLOADS. Raises InputError."""
        return WORKLOADS[kind](self, value, location)

    # -- each kind -----------------------------------------------------------------------------------------------

    def _pod(self, value: Mapping[str, Any], location: SourceLocation) -> PodSet:
        pod = self._finished(
            decode_checked(Pod, msgspec.json.encode(value), file=location.file, within=location.within)
        )
        name = f"{pod.metadata.namespace}/{pod.metadata.name}"
        if pod.spec.node_name:
            raise InputError("is already bound: use -f for a snapshot", file=location.file, subject=f"Pod {name}")
        pod = renamed(pod, pod.metadata.name)
        duration = _duration(pod, location, f"Pod {name}")
        numbered = _numbered(pod)

        def member(number: int) -> Pod:
            return numbered(number) if number else pod

        return PodSet(f"Pod {name}", member, 1, 1, duration=duration)

    def _deployment(self, value: Mapping[str, Any], location: SourceLocation) -> PodSet:
        one = _decoded(Deployment, "Deployment", value, location)
        digest = template_hash(one.spec.template, one.status.collision_count)
        labels = {**one.spec.template.metadata.labels, TEMPLATE_HASH: digest}
        selector = one.spec.selector
        if selector is not None:
            selector = replace(selector, match_labels={**selector.match_labels, TEMPLATE_HASH: digest})
        meta = replace(
            one.metadata,
            name=hashed_name(one.metadata.name, digest),
            uid=f"{one.metadata.uid}-{digest}",
            labels=labels,
            annotations={},
        )
        made = ManagedReplicaSet(metadata=meta, spec=replace(ManagedReplicaSet().spec, selector=selector))
        subject = _subject("Deployment", one.metadata)
        return self._replicas(subject, one.spec.replicas, made, one.spec.template, location, {TEMPLATE_HASH: digest})

    def _replica_set(self, value: Mapping[str, Any], location: SourceLocation) -> PodSet:
        one = _decoded(ManagedReplicaSet, "ReplicaSet", value, location)
        return self._replicas(
            _subject("ReplicaSet", one.metadata), one.spec.replicas, one, one.spec.template, location, {}
        )

    def _replicas(
        self,
        subject: str,
        count: int,
        one: ManagedReplicaSet,
        template: PodTemplateSpec,
        location: SourceLocation,
        labels: dict[str, str],
    ) -> PodSet:
        _checked(count, subject, location, "spec.replicas")
        self.named.append(SelectingSet(metadata=_plain(one.metadata), spec=SelectorSpec(selector=one.spec.selector)))
        pod = self._template(one.metadata, template, controller_ref(one), location, subject, labels=labels)
        return PodSet(subject, _numbered(pod), count, count, lasting=True, duration=_duration(pod, location, subject))

    def _stateful_set(self, value: Mapping[str, Any], location: SourceLocation) -> PodSet:
        one = _decoded(ManagedStatefulSet, "StatefulSet", value, location)
        subject, meta = _subject("StatefulSet", one.metadata), one.metadata
        count = _checked(one.spec.replicas, subject, location, "spec.replicas")
        start = 0 if one.spec.ordinals is None else one.spec.ordinals.start
        digest = hashed_name(meta.name, template_hash(one.spec.template, None))
        pod = self._template(
            meta, one.spec.template, controller_ref(one), location, subject, labels={HASH_LABEL: digest}
        )
        self.named.append(SelectingStatefulSet(metadata=_plain(meta), spec=SelectorSpec(selector=one.spec.selector)))
        templates = _claim_templates(one, location, subject)

        def member(number: int) -> Pod:
            name = f"{meta.name}-{start + number}"
            labels = {**pod.metadata.labels, POD_NAME: name, POD_INDEX: str(start + number)}
            return _with_claims(renamed(pod, name, labels), [claim.metadata.name for claim in templates])

        def claims(number: int) -> list[PersistentVolumeClaim]:
            return [_claim(claim, meta, start + number) for claim in templates]

        ordered = one.spec.pod_management_policy != "Parallel"
        return PodSet(
            subject,
            member,
            min(1, count) if ordered else count,
            count,
            next=NextPod.BOUND if ordered else NextPod.NEVER,
            claims=claims,
            named=True,
            lasting=True,
            duration=_duration(pod, location, subject),
        )

    def _daemon_set(self, value: Mapping[str, Any], location: SourceLocation) -> PodSet:
        one = _decoded(DaemonSet, "DaemonSet", value, location)
        subject, meta = _subject("DaemonSet", one.metadata), one.metadata
        fits = fit(one, [_managed(node) for node in self._nodes])
        names = [name for name, fitting in fits.items() if fitting.runs]
        owner = controller_ref(one)
        pods = [
            self._template(meta, one.spec.template, owner, location, subject, spec=pinned_spec(one, node))
            for node in names
        ]

        def member(number: int) -> Pod:
            return renamed(pods[number], f"{meta.name}-{letters(meta.uid, number)}")

        duration = _duration(pods[0], location, subject) if pods else None
        return PodSet(subject, member, len(pods), len(pods), named=True, lasting=True, daemon=True, duration=duration)

    def _job(self, value: Mapping[str, Any], location: SourceLocation) -> PodSet:
        one = _decoded(Job, "Job", value, location)
        subject, meta = _subject("Job", one.metadata), one.metadata
        parallel = 0 if one.spec.suspend else _checked(one.spec.parallelism, subject, location, "spec.parallelism")
        total = parallel if one.spec.completions is None else one.spec.completions
        _checked(total, subject, location, "spec.completions")
        labels = {"batch.kubernetes.io/job-name": meta.name, "job-name": meta.name}
        labels |= {"batch.kubernetes.io/controller-uid": meta.uid, "controller-uid": meta.uid}
        pod = self._template(meta, one.spec.template, controller_ref(one), location, subject, labels=labels)
        indexed = one.spec.completion_mode == "Indexed"

        def by_index(number: int) -> Pod:
            name = f"{meta.name}-{number}-{letters(meta.uid, number)}"
            return renamed(pod, name, {**pod.metadata.labels, INDEX: str(number)})

        return PodSet(
            subject,
            by_index if indexed else _numbered(pod),
            min(parallel, total),
            0 if one.spec.suspend else total,
            next=NextPod.FINISHED,
            named=indexed,
            duration=_duration(pod, location, subject),
        )

    # -- what they share -----------------------------------------------------------------------------------------

    def _template(
        self,
        meta: StoredMeta,
        template: PodTemplateSpec,
        owner: Owner,
        location: SourceLocation,
        subject: str,
        *,
        labels: Mapping[str, str] | None = None,
        spec: Mapping[str, Any] | None = None,
    ) -> Pod:
        made = new_pod(meta.namespace, meta.name, template, owner, labels=labels, spec=spec)
        return self._finished(
            decode_checked(Pod, msgspec.json.encode(made.body), file=location.file, within=subject), subject, location
        )

    def _finished(self, pod: Pod, subject: str = "", location: SourceLocation | None = None) -> Pod:
        try:
            return with_priority(pod, self._classes)
        except UnknownPriorityClassError as error:
            subject_name = subject or f"Pod {pod.metadata.namespace}/{pod.metadata.name}"
            file = "" if location is None else location.file
            raise InputError(str(error), file=file, subject=subject_name, path="spec.priorityClassName") from None


WORKLOADS: Final[Mapping[str, Callable[[WorkloadExpander, Mapping[str, Any], SourceLocation], PodSet]]] = {
    "Pod": WorkloadExpander._pod,
    "Deployment": WorkloadExpander._deployment,
    "ReplicaSet": WorkloadExpander._replica_set,
    "StatefulSet": WorkloadExpander._stateful_set,
    "DaemonSet": WorkloadExpander._daemon_set,
    "Job": WorkloadExpander._job,
}
"""The kinds that can be expanded."""


def _decoded(model: type[M], kind: str, value: Mapping[str, Any], location: SourceLocation) -> M:
    """Fill in the namespace and the uid as an API server would."""
    meta = value.get("metadata")
    name = meta.get("name") if isinstance(meta, Mapping) else None
    if not isinstance(name, str) or not name:
        subject = f"{kind} ({location.within})" if location.within else kind
        raise InputError("Required value", file=location.file, subject=subject, path="metadata.name")
    try:
        one = msgspec.convert(value, model)
    except msgspec.ValidationError as error:
        from situate.wire.errors import from_decoder

        path, problem = from_decoder(str(error), value)
        raise InputError(problem, file=location.file, subject=f"{kind} {name}", path=path) from None
    if not one.spec.template.spec:
        raise InputError("Required value", file=location.file, subject=f"{kind} {name}", path="spec.template.spec")
    namespace = one.metadata.namespace or "default"
    uid = one.metadata.uid or f"{kind.lower()}-{namespace}-{name}"
    return replace(one, metadata=replace(one.metadata, namespace=namespace, uid=uid))


def letters(of: str, number: int) -> str:
    """Five letters, different for each number, as in generated names."""
    left = (crc32(of.encode()) + number * _STRIDE) % _SPACE
    found = []
    for _ in range(SUFFIX_LENGTH):
        left, letter = divmod(left, len(LETTERS))
        found.append(LETTERS[letter])
    return "".join(found)


def _subject(kind: str, meta: StoredMeta) -> str:
    return f"{kind} {meta.namespace}/{meta.name}"


def _checked(count: int, subject: str, location: SourceLocation, path: str) -> int:
    if not 0 <= count <= MOST_PODS:
        problem = f"{count} is not between 0 and {MOST_PODS:,}"
        raise InputError(problem, file=location.file, subject=subject, path=path)
    return count


def _duration(pod: Pod, location: SourceLocation, subject: str) -> Distribution | None:
    said = pod.metadata.annotations.get(DURATION)
    if said is None:
        return None
    try:
        return parse_distribution(said)
    except ValueError as error:
        path = f"metadata.annotations[{DURATION}]"
        raise InputError(str(error), file=location.file, subject=subject, path=path) from None


def _plain(meta: StoredMeta) -> ObjectMeta:
    return ObjectMeta(name=meta.name, namespace=meta.namespace, uid=meta.uid, labels=meta.labels)


def renamed(pod: Pod, name: str, labels: Mapping[str, str] | None = None) -> Pod:
    meta = replace(
        pod.metadata,
        name=name,
        uid=f"{pod.metadata.namespace}/{name}",
        labels=pod.metadata.labels if labels is None else labels,
    )
    return replace(pod, metadata=meta)


def _numbered(pod: Pod) -> Callable[[int], Pod]:
    """Generated names from the owner's name and a counter."""
    base = pod.metadata.name
    owner = next((one.name for one in pod.metadata.owner_references if one.controller), base)

    def member(number: int) -> Pod:
        return renamed(pod, f"{owner}-{letters(f'{pod.metadata.namespace}/{owner}', number)}")

    return member


def _managed(node: Node) -> ManagedNode:
    taints = tuple(TimedTaint(key=one.key, value=one.value, effect=one.effect) for one in node.spec.taints)
    meta = StoredMeta(name=node.metadata.name, labels=node.metadata.labels)
    return ManagedNode(metadata=meta, spec=ManagedNodeSpec(unschedulable=node.spec.unschedulable, taints=taints))


# -- claims of a StatefulSet -----------------------------------------------------------------------------------------


def _claim_templates(one: ManagedStatefulSet, location: SourceLocation, subject: str) -> list[PersistentVolumeClaim]:
    templates = []
    for said in one.spec.volume_claim_templates:
        meta = said.get("metadata")
        value = {
            **said,
            "metadata": {**(meta if isinstance(meta, Mapping) else {}), "namespace": one.metadata.namespace},
        }
        data = msgspec.json.encode(value)
        templates.append(decode_checked(PersistentVolumeClaim, data, file=location.file, within=subject))
    return templates


def _claim(template: PersistentVolumeClaim, meta: StoredMeta, ordinal: int) -> PersistentVolumeClaim:
    name = f"{template.metadata.name}-{meta.name}-{ordinal}"
    return replace(template, metadata=replace(template.metadata, name=name, uid=f"{meta.namespace}/{name}"))


def _with_claims(pod: Pod, templates: Sequence[str]) -> Pod:
    if not templates:
        return pod
    volumes = {volume.name: volume for volume in pod.spec.volumes}
    for name in templates:
        source = PersistentVolumeClaimSource(claim_name=f"{name}-{pod.metadata.name}")
        volumes[name] = Volume(name=name, persistent_volume_claim=source)
    return replace(pod, spec=replace(pod.spec, volumes=tuple(volumes.values())))
