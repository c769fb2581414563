"""Nodes, pods and other objects of a world, drawn from a seed.

There are few distinct values on purpose: with three zones and four labels, pods interact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from msgspec.structs import replace

from situate.core.gang.naming import (
    DISRUPT_ALL,
    DISRUPTION_LABEL,
    GANG_LABEL,
    SIZE_LABEL,
    TOPOLOGY_LABEL,
    GangSource,
)
from situate.core.model.custom_groups.kind import CustomPodGroup
from situate.core.model.custom_groups.table import CUSTOM_GROUP_KINDS
from situate.core.model.group import (
    GangSchedulingPolicy,
    PodGroup,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
)
from situate.core.model.labels import LabelSelector
from situate.core.model.meta import ObjectMeta
from situate.core.model.node import Node, NodeSpec, NodeStatus
from situate.core.model.nodeselector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from situate.core.model.pod import (
    Affinity,
    Container,
    ContainerPort,
    NodeAffinitySpec,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSchedulingGate,
    PodSchedulingGroup,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from situate.core.model.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from situate.core.model.tolerations import Taint, Toleration
from situate.core.model.workloads import Service, ServiceSpec
from situate.core.state.pods import timestamp_text
from situate.sim.kubelet import LIFECYCLE, LIFECYCLES

NAMESPACE: Final = "default"
FOREIGN: Final = "another-scheduler"
ZONE: Final = "topology.kubernetes.io/zone"
HOSTNAME: Final = "kubernetes.io/hostname"
DISK: Final = "disk"
GPU: Final = "example.com/gpu"
ZONES: Final = ("a", "b", "c")
DISKS: Final = ("ssd", "hdd")
APPS: Final = ("api", "db", "web", "work")
TAINTS: Final = (
    Taint(key="dedicated", value="db", effect="NoSchedule"),
    Taint(key="dedicated", value="gpu", effect="NoSchedule"),
    Taint(key="drain", effect="PreferNoSchedule"),
    Taint(key="broken", effect="NoExecute"),
)
TOLERATIONS: Final = (
    Toleration(key="dedicated", operator="Equal", value="db", effect="NoSchedule"),
    Toleration(key="dedicated", operator="Exists"),
    Toleration(key="broken", operator="Exists", effect="NoExecute"),
    Toleration(key="node.kubernetes.io/unschedulable", operator="Exists", effect="NoSchedule"),
)
GATE: Final = PodSchedulingGate(name="example.com/quota")
NODE_CPUS: Final = (1, 2, 2, 4, 4, 8)
POD_CPUS: Final = ("0", "100m", "250m", "500m", "500m", "1", "1", "2", "3500m")
POD_MEMORY: Final = ("0", "64Mi", "256Mi", "512Mi", "1Gi", "3Gi")
PRIORITIES: Final = (0, 0, 0, 5, 10, 100, 1_000)
PORTS: Final = (8080, 9090)


@dataclass(frozen=True, slots=True)
class Template:
    name: str
    labels: dict[str, str]
    spec: PodSpec
    gated: bool
    life: str


@dataclass(frozen=True, slots=True)
class Features:
    """Which features the pods use, each a probability."""

    affinity: float
    spread: float
    ports: float
    node_affinity: float
    tolerations: float
    gates: float
    gpu: float
    preemption: float
    foreign: float
    budgets: float
    gangs: float
    volumes: float


def draw_features(rng: Random) -> Features:
    def probability(most: float, on: float = 0.55) -> float:
        return rng.uniform(0.1, 1.0) * most if rng.random() < on else 0.0

    return Features(
        affinity=probability(0.5),
        spread=probability(0.5),
        ports=probability(0.3),
        node_affinity=probability(0.5),
        tolerations=probability(0.5),
        gates=probability(0.3),
        gpu=probability(0.3),
        preemption=probability(1.0, on=0.75),
        foreign=probability(0.2),
        budgets=probability(0.5),
        gangs=probability(0.4),
        volumes=probability(0.4),
    )


def draw_template(rng: Random, name: str, features: Features, schedulers: Sequence[str]) -> Template:
    app = rng.choice(APPS)
    requests = {"cpu": rng.choice(POD_CPUS), "memory": rng.choice(POD_MEMORY)}
    if rng.random() < features.gpu:
        requests[GPU] = str(rng.randint(1, 2))
    ports: tuple[ContainerPort, ...] = ()
    if rng.random() < features.ports:
        ports = (ContainerPort(container_port=80, host_port=rng.choice(PORTS)),)
    container = Container(name="c", image="img", resources=ResourceRequirements(requests=requests), ports=ports)
    preempts = rng.random() < features.preemption
    spec = PodSpec(
        containers=(container,),
        node_selector={DISK: rng.choice(DISKS)} if rng.random() < features.node_affinity / 2 else {},
        affinity=_affinity(rng, app, features),
        tolerations=_tolerations(rng, features),
        topology_spread_constraints=_spread(rng, app) if rng.random() < features.spread else (),
        scheduler_name=FOREIGN if rng.random() < features.foreign else rng.choice(schedulers),
        priority=rng.choice(PRIORITIES) if preempts else 0,
        preemption_policy="Never" if preempts and rng.random() < 0.2 else None,
    )
    life = rng.choice(tuple(LIFECYCLES))
    return Template(name, {"app": app}, spec, gated=rng.random() < features.gates, life=life)


def _tolerations(rng: Random, features: Features) -> tuple[Toleration, ...]:
    if rng.random() >= features.tolerations:
        return ()
    return tuple(rng.sample(TOLERATIONS, rng.randint(1, 2)))


def _affinity(rng: Random, app: str, features: Features) -> Affinity | None:
    node = together = apart = None
    if rng.random() < features.node_affinity:
        key, values = rng.choice(((ZONE, ZONES), (DISK, DISKS)))
        wanted = tuple(rng.sample(values, rng.randint(1, len(values) - 1)))
        terms = (NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key=key, operator="In", values=wanted),)),)
        node = NodeAffinitySpec(
            required_during_scheduling_ignored_during_execution=NodeSelector(node_selector_terms=terms)
        )
    if rng.random() < features.affinity:
        together = _pod_affinity(rng, rng.choice(APPS))
    if rng.random() < features.affinity:
        apart = _pod_affinity(rng, rng.choice((app, rng.choice(APPS))))
    if node is None and together is None and apart is None:
        return None
    return Affinity(node_affinity=node, pod_affinity=together, pod_anti_affinity=apart)


def _pod_affinity(rng: Random, app: str) -> PodAffinity:
    term = PodAffinityTerm(
        label_selector=LabelSelector(match_labels={"app": app}), topology_key=rng.choice((ZONE, HOSTNAME))
    )
    if rng.random() < 0.6:
        return PodAffinity(required_during_scheduling_ignored_during_execution=(term,))
    weighted = WeightedPodAffinityTerm(weight=rng.randint(1, 100), pod_affinity_term=term)
    return PodAffinity(preferred_during_scheduling_ignored_during_execution=(weighted,))


def _spread(rng: Random, app: str) -> tuple[TopologySpreadConstraint, ...]:
    hard = rng.random() < 0.6
    return (
        TopologySpreadConstraint(
            max_skew=rng.randint(1, 2),
            topology_key=rng.choice((ZONE, HOSTNAME)),
            when_unsatisfiable="DoNotSchedule" if hard else "ScheduleAnyway",
            label_selector=LabelSelector(match_labels={"app": app}),
            min_domains=rng.choice((None, None, 2)) if hard else None,
            node_taints_policy=rng.choice(("Ignore", "Honor")),
        ),
    )


def make_pod(template: Template, name: str, uid: str, now: int) -> Pod:
    spec = template.spec
    if template.gated:
        spec = replace(spec, scheduling_gates=(GATE,))
    metadata = ObjectMeta(
        name=name,
        namespace=NAMESPACE,
        uid=uid,
        labels=template.labels,
        annotations={LIFECYCLE: template.life},
        creation_timestamp=timestamp_text(now // 1_000 * 1_000),
    )
    return Pod(metadata=metadata, spec=spec, status=PodStatus(phase="Pending"))


@dataclass(frozen=True, slots=True)
class GangSpec:
    """`pods` may be more than the gang needs. `group` is its PodGroup, if it has one. Its pods have these labels and
    annotations."""

    name: str
    pods: int
    labels: dict[str, str]
    group: PodGroup | CustomPodGroup | None
    annotations: dict[str, str] = field(default_factory=dict)


def draw_gang(rng: Random, name: str) -> GangSpec:
    """A gang by labels, by PodGroup or by a PodGroup of another scheduler, of each in turn."""
    needed = rng.randint(2, 5)
    pods = needed + rng.choice((0, 0, 1))
    labels = {DISRUPTION_LABEL: DISRUPT_ALL} if rng.random() < 0.5 else {}
    if rng.random() < 0.2:
        labels[TOPOLOGY_LABEL] = rng.choice(("zone", "hostname"))
    metadata = ObjectMeta(name=name, namespace=NAMESPACE)
    match rng.choice((GangSource.LABELS, GangSource.POD_GROUP, GangSource.COSCHEDULING)):
        case GangSource.LABELS:
            return GangSpec(name, pods, {**labels, GANG_LABEL: name, SIZE_LABEL: str(needed)}, None)
        case GangSource.COSCHEDULING:
            kind = CUSTOM_GROUP_KINDS[needed % len(CUSTOM_GROUP_KINDS)]
            group = kind.model(metadata=metadata, spec={"minMember": needed})
            labels |= dict.fromkeys(kind.pod_labels, name)
            return GangSpec(name, pods, labels, group, dict.fromkeys(kind.pod_annotations, name))
        case _:
            policy = PodGroupSchedulingPolicy(gang=GangSchedulingPolicy(min_count=needed))
            return GangSpec(
                name, pods, labels, PodGroup(metadata=metadata, spec=PodGroupSpec(scheduling_policy=policy))
            )


def in_gang(pod: Pod, gang: GangSpec) -> Pod:
    meta = pod.metadata
    annotations = {**meta.annotations, **gang.annotations}
    metadata = replace(meta, labels={**meta.labels, **gang.labels}, annotations=annotations)
    spec = pod.spec
    if isinstance(gang.group, PodGroup):
        spec = replace(spec, scheduling_group=PodSchedulingGroup(pod_group_name=gang.name))
    return replace(pod, metadata=metadata, spec=spec)


def draw_node(rng: Random, name: str, uid: str, features: Features) -> Node:
    cpu = rng.choice(NODE_CPUS)
    labels = {HOSTNAME: name}
    if rng.random() < 0.9:
        labels[ZONE] = rng.choice(ZONES)
    if rng.random() < 0.8:
        labels[DISK] = rng.choice(DISKS)
    room: dict[str, Any] = {"cpu": str(cpu), "memory": f"{cpu * 2}Gi", "pods": str(rng.choice((3, 10, 110)))}
    if features.gpu and rng.random() < 0.5:
        room[GPU] = str(rng.randint(1, 4))
    return Node(
        metadata=ObjectMeta(name=name, uid=uid, labels=labels),
        spec=NodeSpec(taints=draw_taints(rng) if rng.random() < 0.3 else ()),
        status=NodeStatus(allocatable=room, capacity=room),
    )


def draw_taints(rng: Random) -> tuple[Taint, ...]:
    return (rng.choice(TAINTS),)


def changed_node(rng: Random, node: Node, *, shrinks: bool) -> Node:
    """The node with a different label, taint, cordon or size."""
    changes: tuple[Callable[[], Node], ...] = (
        lambda: replace(node, spec=replace(node.spec, unschedulable=not node.spec.unschedulable)),
        lambda: replace(node, spec=replace(node.spec, taints=() if node.spec.taints else draw_taints(rng))),
        lambda: _relabelled(rng, node),
        lambda: _resized(rng, node, shrinks=shrinks),
    )
    return rng.choice(changes)()


def _relabelled(rng: Random, node: Node) -> Node:
    key, values = rng.choice(((ZONE, ZONES), (DISK, DISKS)))
    labels = {**node.metadata.labels, key: rng.choice(values)}
    return replace(node, metadata=replace(node.metadata, labels=labels))


def _resized(rng: Random, node: Node, *, shrinks: bool) -> Node:
    cpu = int(str(node.status.allocatable["cpu"]))
    cpu = max(1, cpu + rng.choice((-1, 1, 1, 2) if shrinks else (1, 2)))
    room = {**node.status.allocatable, "cpu": str(min(cpu, 16))}
    return replace(node, status=replace(node.status, allocatable=room))


def draw_service(rng: Random, name: str) -> Service:
    metadata = ObjectMeta(name=name, namespace=NAMESPACE)
    return Service(metadata=metadata, spec=ServiceSpec(selector={"app": rng.choice(APPS)}))


def draw_budget(rng: Random, name: str) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace=NAMESPACE),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": rng.choice(APPS)})),
        status=PodDisruptionBudgetStatus(disruptions_allowed=rng.randint(0, 2)),
    )
