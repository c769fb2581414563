"""Pod classes: for pods of one class, every scheduling decision is the same.

The pods of one controller differ only in name and uid. What scheduling reads of them is compiled here once, and they
share verdicts, scores and counts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from enum import Enum, unique
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec import field

from situate.core.model.annotations import annotations_read
from situate.core.model.base import EMPTY, Labels
from situate.core.model.devices import ResourceClaim
from situate.core.model.labels import parse_selector
from situate.core.model.meta import OwnerReference, controller_of
from situate.core.model.pod import Pod, PodAffinityTerm, PodSpec, PodStatus
from situate.core.model.requests import Requests, fit_requests, pod_requests, score_requests
from situate.core.model.volumes import Volume
from situate.core.state.matching import PodTerm
from situate.core.state.vocab import Vocab
from situate.core.versions import DEFAULT, KubernetesRules

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

T = TypeVar("T")


@unique
class TermKind(Enum):
    REQUIRED_AFFINITY = "required affinity"
    REQUIRED_ANTI_AFFINITY = "required anti-affinity"
    PREFERRED_AFFINITY = "preferred affinity"
    PREFERRED_ANTI_AFFINITY = "preferred anti-affinity"

    __hash__ = object.__hash__  # Enum's own is written in Python


class AffinityTerm(msgspec.Struct, frozen=True, cache_hash=True):
    """One (anti-)affinity term of a pod: which pods it matches, in which topology, how strongly. Required ones weigh
    0."""

    kind: TermKind
    pods: PodTerm
    topology_key: str
    weight: int


class HostPort(msgspec.Struct, frozen=True):
    ip: str
    protocol: str
    port: int


class LabelGroup(msgspec.Struct, eq=False):
    """The classes whose pods have one namespace and one set of labels: no selector can tell them apart."""

    namespace: str
    labels: Labels
    classes: list[PodClass] = field(default_factory=list)
    tallies: list[TopologyTally] = field(default_factory=list)
    """The tallies that count pods of this group."""


class PodClass(msgspec.Struct, eq=False):
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
    requested_names: Mapping[str, int]
    """Column of each resource that it requests by name, beside those that every node has."""
    carried: tuple[CarriedTerm, ...] = ()
    """The terms in the cluster's index that its bound pods carry, while it has any."""
    placed: dict[int, int] = field(default_factory=dict)
    """Node row -> how many pods of this class are bound there."""
    leaving: dict[int, int] = field(default_factory=dict)
    """Node row -> how many of those are being deleted."""
    total: int = 0
    stand_in: PodClass | None = None
    """The class that answers for it, as of `stand_in_version`: see `stand_ins`."""
    stand_in_version: int = -1
    demand: tuple[ResourceClaim, ...] | None = None
    """For a class that stands in for pods with claims of their own: claims with the same specs as theirs."""
    demand_specs: tuple[int, ...] = ()
    compiled: dict[Hashable, Any] | None = None
    """What plugins computed of the pod alone, by a key of theirs: see `compiled_once`."""

    @property
    def may_claim_devices(self) -> bool:
        """By claims, or by extended resources that devices may serve."""
        return bool(self.spec.resource_claims or self.requested_names)

    def terms_of(self, kind: TermKind) -> tuple[AffinityTerm, ...]:
        return tuple(term for term in self.terms if term.kind is kind)


def compiled_once(pod_class: PodClass, key: Hashable, compute: Callable[[PodClass], T]) -> T:
    """A value that depends on the class alone, computed once."""
    known = pod_class.compiled
    if known is None:
        known = pod_class.compiled = {}
    found: T | None = known.get(key)
    if found is None:
        found = known[key] = compute(pod_class)
    return found


def signature(pod: Pod, *, alone: bool = False) -> bytes:
    """Bytes that are equal for pods of one class. `alone`: the pod has its own."""
    return unlabelled_signature(pod, alone=alone) + _encode(dict(pod.metadata.labels))


def unlabelled_signature(pod: Pod, *, alone: bool = False) -> bytes:
    """Bytes that are equal for pods that differ in nothing but their labels."""
    spec = what_is_read(pod.spec)
    metadata = pod.metadata
    owner = controller_of(metadata) if metadata.owner_references else None
    # The claim of a generic ephemeral volume or of a template is named after its pod: such a pod has its own class.
    # So has a pod with a claim that others share, because the claim may be reserved for some of them.
    generated = any(volume.ephemeral is not None for volume in spec.volumes)
    own: object = (metadata.name, metadata.uid) if alone or generated or spec.resource_claims else None
    if spec.resource_claims:
        own = (own, pod.status.resource_claim_statuses)
    notes = annotations_read(metadata.annotations)
    return _encode((metadata.namespace, spec, owner, own, _resized(pod.status), notes))


def signature_with(pod_class: PodClass, labels: Labels) -> bytes:
    """The signature of a class as if its pods had these labels."""
    return pod_class.signature[: -len(_encode(dict(pod_class.labels)))] + _encode(labels)


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
    if not status.container_statuses and not status.init_container_statuses and status.resources is None:
        return None
    reported = [one for one in status.container_statuses if one.resources is not None]
    reported_inits = [one for one in status.init_container_statuses if one.resources is not None]
    if not reported and not reported_inits and status.resources is None:
        return None
    infeasible = [(one.status, one.reason) for one in status.conditions if one.type == "PodResizePending"]
    return (
        reported,
        reported_inits,
        status.resources,
        dict(status.allocated_resources),
        infeasible,
    )


class ClassTable:
    """All pod classes, by signature, and the label groups they fall into."""

    __slots__ = ("_by_signature", "_next_id", "_resources", "_rules", "group_table", "groups_by_label")

    def __init__(self, resources: Vocab, rules: KubernetesRules = DEFAULT) -> None:
        self._resources = resources
        self._rules = rules
        self._by_signature: dict[bytes, PodClass] = {}
        self.group_table: dict[bytes, LabelGroup] = {}
        self._next_id = 0
        self.groups_by_label: dict[tuple[str, str], dict[LabelGroup, None]] = {}

    def __len__(self) -> int:
        return len(self._by_signature)

    def find(self, key: bytes) -> PodClass | None:
        return self._by_signature.get(key)

    def values(self) -> list[PodClass]:
        return list(self._by_signature.values())

    def groups(self) -> list[LabelGroup]:
        return list(self.group_table.values())

    def add(self, key: bytes, pod: Pod) -> tuple[PodClass, bool]:
        """Compile a new class; and whether its group is new too."""
        group, is_new = self._group_of(pod)
        pod_class = compile_class(self._next_id, key, pod, group, self._resources, self._rules)
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
        del self.group_table[_group_key(group.namespace, group.labels)]
        for pair in group.labels.items():
            bucket = self.groups_by_label[pair]
            del bucket[group]
            if not bucket:
                del self.groups_by_label[pair]
        return True

    def _group_of(self, pod: Pod) -> tuple[LabelGroup, bool]:
        namespace, labels = pod.metadata.namespace, pod.metadata.labels
        key = _group_key(namespace, labels)
        found = self.group_table.get(key)
        if found is not None:
            return found, False
        group = self.group_table[key] = LabelGroup(namespace, labels)
        for pair in labels.items():
            self.groups_by_label.setdefault(pair, {})[group] = None
        return group, True


def _group_key(namespace: str, labels: Labels) -> bytes:
    return _encode((namespace, sorted(labels.items())))


def compile_class(
    id_: int, key: bytes, pod: Pod, group: LabelGroup, resources: Vocab, rules: KubernetesRules = DEFAULT
) -> PodClass:
    spec = what_is_read(pod.spec)
    requests = pod_requests(pod, by_container=rules.resize_counts_by_container)
    takes = _by_column(requests, resources)
    # The three ways to count requests differ only by these two.
    plain = spec.resources is None and _resized(pod.status) is None
    asks = takes if plain else _by_column(fit_requests(pod), resources)
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    metadata = pod.metadata
    return PodClass(
        id=id_,
        signature=key,
        pod=pod,
        namespace=metadata.namespace,
        labels=metadata.labels,
        annotations=annotations_read(metadata.annotations),
        spec=spec,
        owner=controller_of(metadata) if metadata.owner_references else None,
        priority=spec.priority or 0,
        requests=requests,
        takes=takes,
        nonzero=(requests.nonzero_milli_cpu, requests.nonzero_memory),
        asks=asks,
        weighs=requests if plain else score_requests(pod),
        terms=() if spec.affinity is None else _affinity_terms(pod),
        host_ports=_host_ports(spec),
        affinity_key=_encode((sorted(spec.node_selector.items()), required)) if spec.node_selector or required else b"",
        tolerations_key=_encode(spec.tolerations) if spec.tolerations else b"",
        group=group,
        holds_volumes=bool(spec.volumes) and any(map(_is_held, spec.volumes)),
        # The others come last.
        requested_names={resources.names[at]: at for at, _ in asks if at >= len(FIXED_RESOURCES)}
        if asks[-1][0] >= len(FIXED_RESOURCES)
        else EMPTY,
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
    found = []
    if requests.milli_cpu:
        found.append((CPU, requests.milli_cpu))
    if requests.memory:
        found.append((MEMORY, requests.memory))
    if requests.ephemeral_storage:
        found.append((EPHEMERAL_STORAGE, requests.ephemeral_storage))
    found.append((PODS, 1))
    if requests.scalar:
        found += [(resources.intern(name), amount) for name, amount in requests.scalar.items() if amount]
    return tuple(found)


def _host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """As upstream, the ports of containers and of restartable init containers; 0.0.0.0 and no address are the same."""
    if not spec.init_containers and len(spec.containers) == 1 and not spec.containers[0].ports:
        return ()
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
    namespaces = tuple(sorted({*term.namespaces})) if term.namespaces else ()
    if not namespaces and term.namespace_selector is None:
        namespaces = (pod.metadata.namespace,)
    chooser = None if term.namespace_selector is None else parse_selector(term.namespace_selector)
    return PodTerm(namespaces, chooser, parse_selector(term.label_selector))
