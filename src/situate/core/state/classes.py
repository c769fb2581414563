"""Pod classes: for pods of one class, every scheduling decision is the same.

The pods of one controller differ only in name and uid. What scheduling reads of them is compiled here once, and they
share verdicts, scores and counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, unique
from typing import TYPE_CHECKING, Final

import msgspec

from situate.core.model.annotations import annotations_read
from situate.core.model.base import Labels
from situate.core.model.labels import parse_selector
from situate.core.model.meta import OwnerReference, controller_of
from situate.core.model.pod import Pod, PodAffinityTerm, PodSpec, PodStatus
from situate.core.model.requests import Requests, fit_requests, pod_requests, score_requests
from situate.core.model.volumes import Volume
from situate.core.state.matching import PodTerm
from situate.core.state.vocab import Vocab

if TYPE_CHECKING:
    from situate.core.state.terms import CarriedTerm
    from situate.core.state.topology import TopologyTally

CPU: Final = 0
MEMORY: Final = 1
EPHEMERAL_STORAGE: Final = 2
PODS: Final = 3
FIXED_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage", "pods")
"""Every node has a column for these resources, in this order. Others get a column when they are first seen."""

_encode: Final = msgspec.json.Encoder().encode


@unique
class TermKind(Enum):
    REQUIRED_AFFINITY = "required affinity"
    REQUIRED_ANTI_AFFINITY = "required anti-affinity"
    PREFERRED_AFFINITY = "preferred affinity"
    PREFERRED_ANTI_AFFINITY = "preferred anti-affinity"


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """One (anti-)affinity term of a pod: which pods it matches, in which topology, how strongly. Required ones weigh
    0."""

    kind: TermKind
    pods: PodTerm
    topology_key: str
    weight: int


@dataclass(frozen=True, slots=True)
class HostPort:
    ip: str
    protocol: str
    port: int


@dataclass(eq=False, slots=True)
class LabelGroup:
    """The classes whose pods have one namespace and one set of labels: no selector can tell them apart."""

    namespace: str
    labels: Labels
    classes: list[PodClass] = field(default_factory=list)
    tallies: list[TopologyTally] = field(default_factory=list)
    """The tallies that count pods of this group."""


@dataclass(eq=False, slots=True)
class PodClass:
    """Everything that scheduling reads of a pod, compiled; and where the pods of this class are."""

    id: int
    signature: bytes
    pod: Pod
    """The first pod of this class. Its name and uid matter only where they are part of the signature."""
    namespace: str
    labels: Labels
    annotations: Labels
    """Only those that scheduling reads: see `model.annotations`."""
    spec: PodSpec
    owner: OwnerReference | None
    priority: int
    requests: Requests
    """What a pod of this class counts for on its node."""
    takes: tuple[tuple[int, int], ...]
    """The same as (resource column, amount), `pods: 1` included; nothing that is zero."""
    nonzero: tuple[int, int]
    """milli-cpu and memory as scoring counts them: a container that requests none counts for a little."""
    asks: tuple[tuple[int, int], ...]
    """What it requests of a node it is not on yet, as (resource column, amount). Differs during a resize."""
    weighs: Requests
    """What it adds to a node when nodes are scored by room. Kubernetes ignores pod-level requests there."""
    terms: tuple[AffinityTerm, ...]
    host_ports: tuple[HostPort, ...]
    affinity_key: bytes
    """Equal for pods with the same demands on a node's labels."""
    tolerations_key: bytes
    """Equal for pods that tolerate the same taints."""
    group: LabelGroup
    holds_volumes: bool
    """Whether it has volumes that matter on nodes: disks and claims, not secrets and the like."""
    carried: tuple[CarriedTerm, ...] = ()
    """The terms in the cluster's index that its bound pods carry, while it has any."""
    placed: dict[int, int] = field(default_factory=dict)
    """Node row -> how many pods of this class are bound there."""
    leaving: dict[int, int] = field(default_factory=dict)
    """Node row -> how many of those are being deleted."""
    total: int = 0

    def terms_of(self, kind: TermKind) -> tuple[AffinityTerm, ...]:
        return tuple(term for term in self.terms if term.kind is kind)


def signature(pod: Pod) -> bytes:
    """Bytes that are equal for pods of one class."""
    spec = what_is_read(pod.spec)
    metadata = pod.metadata
    owner = controller_of(metadata) if metadata.owner_references else None
    # The claim of a generic ephemeral volume or of a template is named after its pod: such a pod has its own class.
    alone = None
    if spec.volumes or spec.resource_claims:
        generated = any(volume.ephemeral is not None for volume in spec.volumes) or any(
            claim.resource_claim_name is None for claim in spec.resource_claims
        )
        alone = (metadata.name, metadata.uid) if generated else None
    notes = annotations_read(metadata.annotations)
    return _encode((metadata.namespace, dict(metadata.labels), spec, owner, alone, _resized(pod.status), notes))


def what_is_read(spec: PodSpec) -> PodSpec:
    """The spec without what no plugin reads: where the pod is bound, its group, and volumes such as tokens.

    Every pod of a real cluster has a token volume with a random name. If that counted, each pod would be a class of its
    own.
    """
    if not spec.node_name and not spec.volumes and spec.scheduling_group is None:
        return spec
    volumes = tuple(volume for volume in spec.volumes if volume != Volume(name=volume.name))
    return msgspec.structs.replace(spec, node_name="", volumes=volumes, scheduling_group=None)


def _resized(status: PodStatus) -> object:
    """What a resize in place has reached, where the kubelet reports it: it counts in the requests."""
    if not (status.container_statuses or status.init_container_statuses or status.allocated_resources):
        return None
    infeasible = [(one.status, one.reason) for one in status.conditions if one.type == "PodResizePending"]
    return (
        status.container_statuses,
        status.init_container_statuses,
        status.resources,
        dict(status.allocated_resources),
        infeasible,
    )


class ClassTable:
    """All pod classes, by signature, and the label groups they fall into."""

    __slots__ = ("_by_signature", "_groups", "_next_id", "_resources", "groups_by_label")

    def __init__(self, resources: Vocab) -> None:
        self._resources = resources
        self._by_signature: dict[bytes, PodClass] = {}
        self._groups: dict[bytes, LabelGroup] = {}
        self._next_id = 0
        self.groups_by_label: dict[tuple[str, str], dict[LabelGroup, None]] = {}

    def __len__(self) -> int:
        return len(self._by_signature)

    def find(self, key: bytes) -> PodClass | None:
        return self._by_signature.get(key)

    def values(self) -> list[PodClass]:
        return list(self._by_signature.values())

    def groups(self) -> list[LabelGroup]:
        return list(self._groups.values())

    def add(self, key: bytes, pod: Pod) -> tuple[PodClass, bool]:
        """Compile a new class; and whether its group is new too."""
        group, is_new = self._group_of(pod)
        pod_class = compile_class(self._next_id, key, pod, group, self._resources)
        self._next_id += 1
        self._by_signature[key] = pod_class
        group.classes.append(pod_class)
        return pod_class, is_new

    def forget(self, pod_class: PodClass) -> bool:
        """Drop a class without pods; whether its group went with it."""
        del self._by_signature[pod_class.signature]
        group = pod_class.group
        group.classes.remove(pod_class)
        if group.classes:
            return False
        del self._groups[_group_key(group.namespace, group.labels)]
        for pair in group.labels.items():
            bucket = self.groups_by_label[pair]
            del bucket[group]
            if not bucket:
                del self.groups_by_label[pair]
        return True

    def _group_of(self, pod: Pod) -> tuple[LabelGroup, bool]:
        namespace, labels = pod.metadata.namespace, pod.metadata.labels
        key = _group_key(namespace, labels)
        found = self._groups.get(key)
        if found is not None:
            return found, False
        group = self._groups[key] = LabelGroup(namespace, labels)
        for pair in labels.items():
            self.groups_by_label.setdefault(pair, {})[group] = None
        return group, True


def _group_key(namespace: str, labels: Labels) -> bytes:
    return _encode((namespace, sorted(labels.items())))


def compile_class(id_: int, key: bytes, pod: Pod, group: LabelGroup, resources: Vocab) -> PodClass:
    spec = what_is_read(pod.spec)
    requests = pod_requests(pod)
    takes = _by_column(requests, resources)
    # The three ways to count requests differ only by these two.
    plain = spec.resources is None and _resized(pod.status) is None
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    return PodClass(
        id=id_,
        signature=key,
        pod=pod,
        namespace=pod.metadata.namespace,
        labels=pod.metadata.labels,
        annotations=annotations_read(pod.metadata.annotations),
        spec=spec,
        owner=controller_of(pod.metadata),
        priority=spec.priority or 0,
        requests=requests,
        takes=takes,
        nonzero=(requests.nonzero_milli_cpu, requests.nonzero_memory),
        asks=takes if plain else _by_column(fit_requests(pod), resources),
        weighs=requests if plain else score_requests(pod),
        terms=_affinity_terms(pod),
        host_ports=_host_ports(spec),
        affinity_key=_encode((sorted(spec.node_selector.items()), required)),
        tolerations_key=_encode(spec.tolerations),
        group=group,
        holds_volumes=any(map(_is_held, spec.volumes)),
    )


def _is_held(volume: Volume) -> bool:
    """Whether the volume matters to other pods, or a driver has to attach it. Every pod has a token volume, which does
    not."""
    held = (
        volume.persistent_volume_claim,
        volume.ephemeral,
        volume.gce_persistent_disk,
        volume.aws_elastic_block_store,
        volume.azure_disk,
        volume.cinder,
        volume.portworx_volume,
        volume.iscsi,
        volume.rbd,
    )
    return any(source is not None for source in held)


def _by_column(requests: Requests, resources: Vocab) -> tuple[tuple[int, int], ...]:
    fixed = ((CPU, requests.milli_cpu), (MEMORY, requests.memory), (EPHEMERAL_STORAGE, requests.ephemeral_storage))
    scalar = tuple((resources.intern(name), amount) for name, amount in requests.scalar.items() if amount)
    return tuple((column, amount) for column, amount in fixed if amount) + ((PODS, 1), *scalar)


def _host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """As upstream, the ports of containers and of restartable init containers; 0.0.0.0 and no address are the same."""
    sidecars = [container for container in spec.init_containers if container.restart_policy == "Always"]
    return tuple(
        HostPort(port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
        for container in (*sidecars, *spec.containers)
        for port in container.ports
        if port.host_port > 0
    )


def _affinity_terms(pod: Pod) -> tuple[AffinityTerm, ...]:
    affinity = pod.spec.affinity
    if affinity is None:
        return ()
    terms: list[AffinityTerm] = []
    for side, required, preferred in (
        (affinity.pod_affinity, TermKind.REQUIRED_AFFINITY, TermKind.PREFERRED_AFFINITY),
        (affinity.pod_anti_affinity, TermKind.REQUIRED_ANTI_AFFINITY, TermKind.PREFERRED_ANTI_AFFINITY),
    ):
        if side is None:
            continue
        for term in side.required_during_scheduling_ignored_during_execution:
            terms.append(AffinityTerm(required, _pod_term(pod, term), term.topology_key, 0))
        for weighted in side.preferred_during_scheduling_ignored_during_execution:
            term = weighted.pod_affinity_term
            terms.append(AffinityTerm(preferred, _pod_term(pod, term), term.topology_key, weighted.weight))
    return tuple(terms)


def _pod_term(pod: Pod, term: PodAffinityTerm) -> PodTerm:
    """A term that names no namespace and selects none is about the pod's own."""
    namespaces = tuple(sorted({*term.namespaces}))
    if not namespaces and term.namespace_selector is None:
        namespaces = (pod.metadata.namespace,)
    chooser = None if term.namespace_selector is None else parse_selector(term.namespace_selector)
    return PodTerm(namespaces, chooser, parse_selector(term.label_selector))
