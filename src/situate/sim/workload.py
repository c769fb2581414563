"""Who comes and what they ask for: nodes and pods of several kinds, drawn from a seed.

Values are few on purpose: with three zones and four labels, pods meet, collide and wait for one another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from msgspec.structs import replace

from situate.core.gang.naming import (
    COSCHEDULING_LABEL,
    DISRUPT_ALL,
    DISRUPTION_LABEL,
    GANG_LABEL,
    SIZE_LABEL,
    TOPOLOGY_LABEL,
    GangSource,
)
from situate.core.model.group import (
    CoschedulingPodGroup,
    CoschedulingPodGroupSpec,
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
    NodeAffinity,
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
from situate.sim.kubelet import LIFE, LIVES

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
    """What the pods of one controller have in common."""

    name: str
    labels: dict[str, str]
    spec: PodSpec
    gated: bool
    life: str


@dataclass(frozen=True, slots=True)
class Features:
    """Which demands this world's pods make, each a chance."""

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


def draw_features(dice: Random) -> Features:
    def chance(most: float, on: float = 0.55) -> float:
        return dice.uniform(0.1, 1.0) * most if dice.random() < on else 0.0

    return Features(
        affinity=chance(0.5),
        spread=chance(0.5),
        ports=chance(0.3),
        node_affinity=chance(0.5),
        tolerations=chance(0.5),
        gates=chance(0.3),
        gpu=chance(0.3),
        preemption=chance(1.0, on=0.75),
        foreign=chance(0.2),
        budgets=chance(0.5),
        gangs=chance(0.4),
        volumes=chance(0.4),
    )


def draw_template(dice: Random, name: str, features: Features, schedulers: Sequence[str]) -> Template:
    app = dice.choice(APPS)
    requests = {"cpu": dice.choice(POD_CPUS), "memory": dice.choice(POD_MEMORY)}
    if dice.random() < features.gpu:
        requests[GPU] = str(dice.randint(1, 2))
    ports: tuple[ContainerPort, ...] = ()
    if dice.random() < features.ports:
        ports = (ContainerPort(container_port=80, host_port=dice.choice(PORTS)),)
    container = Container(name="c", image="img", resources=ResourceRequirements(requests=requests), ports=ports)
    preempts = dice.random() < features.preemption
    spec = PodSpec(
        containers=(container,),
        node_selector={DISK: dice.choice(DISKS)} if dice.random() < features.node_affinity / 2 else {},
        affinity=_affinity(dice, app, features),
        tolerations=_tolerations(dice, features),
        topology_spread_constraints=_spread(dice, app) if dice.random() < features.spread else (),
        scheduler_name=FOREIGN if dice.random() < features.foreign else dice.choice(schedulers),
        priority=dice.choice(PRIORITIES) if preempts else 0,
        preemption_policy="Never" if preempts and dice.random() < 0.2 else None,
    )
    life = dice.choice(tuple(LIVES))
    return Template(name, {"app": app}, spec, gated=dice.random() < features.gates, life=life)


def _tolerations(dice: Random, features: Features) -> tuple[Toleration, ...]:
    if dice.random() >= features.tolerations:
        return ()
    return tuple(dice.sample(TOLERATIONS, dice.randint(1, 2)))


def _affinity(dice: Random, app: str, features: Features) -> Affinity | None:
    node = together = apart = None
    if dice.random() < features.node_affinity:
        key, values = dice.choice(((ZONE, ZONES), (DISK, DISKS)))
        wanted = tuple(dice.sample(values, dice.randint(1, len(values) - 1)))
        terms = (NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key=key, operator="In", values=wanted),)),)
        node = NodeAffinity(required_during_scheduling_ignored_during_execution=NodeSelector(node_selector_terms=terms))
    if dice.random() < features.affinity:
        together = _pod_affinity(dice, dice.choice(APPS))
    if dice.random() < features.affinity:
        apart = _pod_affinity(dice, dice.choice((app, dice.choice(APPS))))
    if node is None and together is None and apart is None:
        return None
    return Affinity(node_affinity=node, pod_affinity=together, pod_anti_affinity=apart)


def _pod_affinity(dice: Random, app: str) -> PodAffinity:
    term = PodAffinityTerm(
        label_selector=LabelSelector(match_labels={"app": app}), topology_key=dice.choice((ZONE, HOSTNAME))
    )
    if dice.random() < 0.6:
        return PodAffinity(required_during_scheduling_ignored_during_execution=(term,))
    weighted = WeightedPodAffinityTerm(weight=dice.randint(1, 100), pod_affinity_term=term)
    return PodAffinity(preferred_during_scheduling_ignored_during_execution=(weighted,))


def _spread(dice: Random, app: str) -> tuple[TopologySpreadConstraint, ...]:
    hard = dice.random() < 0.6
    return (
        TopologySpreadConstraint(
            max_skew=dice.randint(1, 2),
            topology_key=dice.choice((ZONE, HOSTNAME)),
            when_unsatisfiable="DoNotSchedule" if hard else "ScheduleAnyway",
            label_selector=LabelSelector(match_labels={"app": app}),
            min_domains=dice.choice((None, None, 2)) if hard else None,
            node_taints_policy=dice.choice(("Ignore", "Honor")),
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
        annotations={LIFE: template.life},
        creation_timestamp=timestamp_text(now // 1_000 * 1_000),
    )
    return Pod(metadata=metadata, spec=spec, status=PodStatus(phase="Pending"))


@dataclass(frozen=True, slots=True)
class GangOf:
    """A gang to be made: how many pods, of which so many are needed, and the object that says so, if one does."""

    name: str
    pods: int
    labels: dict[str, str]
    group: PodGroup | CoschedulingPodGroup | None


def draw_gang(dice: Random, name: str) -> GangOf:
    """A gang of any of the three ways to name one; at times with more pods than it needs."""
    needed = dice.randint(2, 5)
    pods = needed + dice.choice((0, 0, 1))
    labels = {DISRUPTION_LABEL: DISRUPT_ALL} if dice.random() < 0.5 else {}
    if dice.random() < 0.2:
        labels[TOPOLOGY_LABEL] = dice.choice(("zone", "hostname"))
    metadata = ObjectMeta(name=name, namespace=NAMESPACE)
    match dice.choice((GangSource.LABELS, GangSource.POD_GROUP, GangSource.COSCHEDULING)):
        case GangSource.LABELS:
            return GangOf(name, pods, {**labels, GANG_LABEL: name, SIZE_LABEL: str(needed)}, None)
        case GangSource.COSCHEDULING:
            group = CoschedulingPodGroup(metadata=metadata, spec=CoschedulingPodGroupSpec(min_member=needed))
            return GangOf(name, pods, {**labels, COSCHEDULING_LABEL: name}, group)
        case _:
            policy = PodGroupSchedulingPolicy(gang=GangSchedulingPolicy(min_count=needed))
            return GangOf(name, pods, labels, PodGroup(metadata=metadata, spec=PodGroupSpec(scheduling_policy=policy)))


def in_gang(pod: Pod, gang: GangOf) -> Pod:
    metadata = replace(pod.metadata, labels={**pod.metadata.labels, **gang.labels})
    spec = pod.spec
    if isinstance(gang.group, PodGroup):
        spec = replace(spec, scheduling_group=PodSchedulingGroup(pod_group_name=gang.name))
    return replace(pod, metadata=metadata, spec=spec)


def draw_node(dice: Random, name: str, uid: str, features: Features) -> Node:
    cpu = dice.choice(NODE_CPUS)
    labels = {HOSTNAME: name}
    if dice.random() < 0.9:
        labels[ZONE] = dice.choice(ZONES)
    if dice.random() < 0.8:
        labels[DISK] = dice.choice(DISKS)
    room: dict[str, Any] = {"cpu": str(cpu), "memory": f"{cpu * 2}Gi", "pods": str(dice.choice((3, 10, 110)))}
    if features.gpu and dice.random() < 0.5:
        room[GPU] = str(dice.randint(1, 4))
    return Node(
        metadata=ObjectMeta(name=name, uid=uid, labels=labels),
        spec=NodeSpec(taints=draw_taints(dice) if dice.random() < 0.3 else ()),
        status=NodeStatus(allocatable=room, capacity=room),
    )


def draw_taints(dice: Random) -> tuple[Taint, ...]:
    return (dice.choice(TAINTS),)


def changed_node(dice: Random, node: Node, *, shrinks: bool) -> Node:
    """The same node with something about it another: a label, a taint, a cordon, its room."""
    changes: tuple[Callable[[], Node], ...] = (
        lambda: replace(node, spec=replace(node.spec, unschedulable=not node.spec.unschedulable)),
        lambda: replace(node, spec=replace(node.spec, taints=() if node.spec.taints else draw_taints(dice))),
        lambda: _relabelled(dice, node),
        lambda: _resized(dice, node, shrinks=shrinks),
    )
    return dice.choice(changes)()


def _relabelled(dice: Random, node: Node) -> Node:
    key, values = dice.choice(((ZONE, ZONES), (DISK, DISKS)))
    labels = {**node.metadata.labels, key: dice.choice(values)}
    return replace(node, metadata=replace(node.metadata, labels=labels))


def _resized(dice: Random, node: Node, *, shrinks: bool) -> Node:
    cpu = int(str(node.status.allocatable["cpu"]))
    cpu = max(1, cpu + dice.choice((-1, 1, 1, 2) if shrinks else (1, 2)))
    room = {**node.status.allocatable, "cpu": str(min(cpu, 16))}
    return replace(node, status=replace(node.status, allocatable=room))


def draw_service(dice: Random, name: str) -> Service:
    metadata = ObjectMeta(name=name, namespace=NAMESPACE)
    return Service(metadata=metadata, spec=ServiceSpec(selector={"app": dice.choice(APPS)}))


def draw_budget(dice: Random, name: str) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace=NAMESPACE),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": dice.choice(APPS)})),
        status=PodDisruptionBudgetStatus(disruptions_allowed=dice.randint(0, 2)),
    )
