"""Small clusters, of things that come in several shapes: for tests that let one after another change.

First what makes such things; then what there may be, to be changed at random.
"""

from collections.abc import Mapping
from random import Random
from typing import Any

from msgspec.structs import replace

from builders import container, expression, node, pod, selector, taint, term, toleration
from situate.core.model.csi_migration import GCE_PD
from situate.core.model.meta import ObjectMeta, OwnerReference
from situate.core.model.named import NamedObject
from situate.core.model.node import Node
from situate.core.model.nodeselector import NodeSelector
from situate.core.model.pod import (
    Affinity,
    Container,
    ContainerPort,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    RestartRule,
    TopologySpreadConstraint,
)
from situate.core.model.pod import (
    NodeAffinitySpec as NodeAffinityRules,
)
from situate.core.model.policy import Namespace
from situate.core.model.volumes import AWSElasticBlockStore, GCEPersistentDisk, Volume
from situate.core.model.workloads import ReplicaSet, SelectorSpec, Service, ServiceSpec
from storage_builders import (
    DRIVER,
    ZONE,
    attachment,
    capacity,
    claim,
    claimed,
    csi_driver,
    csi_node,
    ephemeral,
    storage_class,
    volume,
    waiting,
)

HOST, DISK = "host", "disk"
GPU = "example.com/gpu"
Thing = Node | Pod | NamedObject
World = Mapping[str, Thing | None]
"""By a key of its own, what there is of each thing; None if it is not there."""


# -- what makes things -----------------------------------------------------------------------------------------------


def near(key: str = ZONE, **fields: Any) -> PodAffinityTerm:
    return PodAffinityTerm(topology_key=key, **{"label_selector": selector(app="a"), **fields})


def company(*terms: PodAffinityTerm) -> Affinity:
    """A pod wants others near."""
    return Affinity(pod_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=terms))


def distance(*terms: PodAffinityTerm) -> Affinity:
    """A pod shuns others."""
    return Affinity(pod_anti_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=terms))


def disk_rules(*values: str) -> NodeAffinityRules:
    terms = NodeSelector(node_selector_terms=(term((DISK, "In", values)),))
    return NodeAffinityRules(required_during_scheduling_ignored_during_execution=terms)


def on_disk(*values: str) -> Affinity:
    return Affinity(node_affinity=disk_rules(*values))


def spread(key: str = ZONE, **fields: Any) -> TopologySpreadConstraint:
    shape = {"max_skew": 1, "when_unsatisfiable": "DoNotSchedule", "label_selector": selector(app="a"), **fields}
    return TopologySpreadConstraint(topology_key=key, **shape)


def listening(number: int, ip: str = "", protocol: str = "TCP") -> tuple[Container, ...]:
    """The containers of a pod that takes a port of its node."""
    return (container(ports=(ContainerPort(host_port=number, host_ip=ip, protocol=protocol),)),)


def disk(name: str, *, read_only: bool = False) -> tuple[Volume, ...]:
    return (Volume(name="d", gce_persistent_disk=GCEPersistentDisk(pd_name=name, read_only=read_only)),)


def space(name: str, **labels: str) -> Namespace:
    return Namespace(metadata=ObjectMeta(name=name, labels=labels))


def service(name: str = "s", namespace: str = "default", **wanted: str) -> Service:
    return Service(metadata=ObjectMeta(name=name, namespace=namespace), spec=ServiceSpec(selector=wanted))


def labelled(thing: Any, **labels: str) -> Any:
    """The same with more labels."""
    return replace(thing, metadata=replace(thing.metadata, labels={**thing.metadata.labels, **labels}))


# -- what there may be: each thing in several shapes -----------------------------------------------------------------


def nodes(name: str) -> list[Thing | None]:
    room: dict[str, Any] = {"cpu": "2", "memory": "2Gi", "pods": 10}
    labels = {HOST: name, ZONE: "z1"}
    return [
        None,
        node(name, labels=labels, **room),
        node(name, labels={**labels, ZONE: "z2"}, **room),
        node(name, labels={**labels, DISK: "ssd"}, **room),
        node(name, labels={**labels, GCE_PD.topology_key: "z2"}, **room),
        node(name, labels={HOST: name}, **room),
        node(name, labels=labels, unschedulable=True, **room),
        node(name, labels=labels, taints=(taint(),), **room),
        node(name, labels=labels, **{**room, "cpu": "4", "pods": 1}),
        node(name, labels=labels, **{**room, "cpu": "500m"}),
        node(name, labels=labels, allocatable={GPU: 1}, **room),
        node(name, labels=labels, declared_features=("RestartAllContainersOnContainerExits",), **room),
    ]


def bound(name: str) -> list[Thing | None]:
    def at(node_name: str = "n1", **fields: Any) -> Pod:
        return pod(name, uid=name, node_name=node_name, **{"labels": {"app": "a"}, "cpu": "1", **fields})

    return [
        None,
        at(),
        at("n2"),
        at(labels={"app": "b"}),
        at(namespace="other"),
        at(deletion_timestamp="2026-01-01T00:00:00Z"),
        at(cpu="500m"),
        at(affinity=distance(near())),
        at(affinity=distance(near(HOST, namespace_selector=selector(team="x")))),
        at(containers=listening(80)),
        at(containers=listening(80, "10.0.0.1")),
        at(volumes=disk("d")),
        at(namespace="other", volumes=disk("d")),
        at(volumes=claimed("c1")),
        at(volumes=claimed("c2")),
        at(volumes=(ephemeral(),)),
        at("gone"),
    ]


def others() -> dict[str, list[Thing | None]]:
    """All other objects; a list of its shapes by the key of each."""
    owned = ObjectMeta(name="rs", namespace="default")
    in_z2 = (term((ZONE, "In", ("z2",))),)
    return {
        "default": [None, space("default"), space("default", team="x"), space("default", team="y")],
        "other": [None, space("other"), space("other", team="x")],
        "service": [None, service(app="a"), service(app="b")],
        "set": [None, ReplicaSet(metadata=owned, spec=SelectorSpec(selector=selector(app="a")))],
        "c1": [
            None,
            claim("c1", volume="v1"),
            claim("c1", volume="v1", modes=("ReadWriteOncePod",)),
            waiting("c1"),
            waiting("c1", size="2Gi"),
            waiting("c1", selected_node="n1"),
            waiting("c1", "now"),
            claim("c1", volume="v1", deletion_timestamp="2026-01-01T00:00:00Z"),
        ],
        "c2": [None, claim("c2", volume="v2"), waiting("c2")],
        "scratch": [None, *(waiting("w-scratch", owner=uid) for uid in ("w", "somebody"))],
        "v1": [
            None,
            volume("v1"),
            volume("v1", terms=in_z2),
            volume("v1", labels={ZONE: "z1"}),
            volume("v1", class_name="late", phase="Available"),
            volume("v1", class_name="late", phase="Bound", claim_ref=("default", "c2")),
            volume("v1", class_name="late", phase="Available", claim_ref=("default", "c1"), terms=in_z2),
            volume("v1", gce_persistent_disk=GCEPersistentDisk(pd_name="v1"), terms=in_z2),
            volume("v1", gce_persistent_disk=GCEPersistentDisk(pd_name="v1"), labels={ZONE: "z2"}),
        ],
        "v2": [None, volume("v2", claim_ref=("default", "c2")), volume("v2", driver="other.example.com")],
        "late": [
            None,
            storage_class("late"),
            storage_class("late", provisioner=GCE_PD.name),
            storage_class("late", topologies=({ZONE: ("z2",)},)),
            storage_class("late", late=False),
            storage_class("late", provisioner="kubernetes.io/no-provisioner"),
        ],
        "driver": [None, csi_driver(), csi_driver(storage_capacity=False)],
        "space": [
            None,
            capacity("k", "late", selector(), "5Gi"),
            capacity("k", "late", selector(), "1Mi"),
            capacity("k", "late", selector(**{ZONE: "z2"}), "5Gi"),
        ],
        "csi n1": [
            None,
            csi_node("n1", {DRIVER: 1}),
            csi_node("n1", {DRIVER: 0}),
            csi_node("n1", {DRIVER: None}),
            csi_node("n1", {GCE_PD.driver: 1}, migrated=GCE_PD.name),
        ],
        "csi n2": [None, csi_node("n2", {DRIVER: 1}), csi_node("n2", {DRIVER: 2})],
        "attached": [None, attachment("x", "n1", "v2"), attachment("x", "n2", "v2")],
    }


SHAPES: dict[str, list[Thing | None]] = {
    **{name: nodes(name) for name in ("n1", "n2", "n3")},
    **{name: bound(name) for name in ("b1", "b2", "b3")},
    **others(),
}


def waiting_pod(**fields: Any) -> Pod:
    return pod("w", uid="w", **{"labels": {"app": "a"}, **fields})


OWNER = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="rs", uid="rs", controller=True)
ANY_TEAM = selector(expression("team", "DoesNotExist"))
WAITING = {
    "asks for nothing": waiting_pod(),
    "has other labels": waiting_pod(labels={"app": "b"}),
    "asks for much": waiting_pod(cpu="1500m"),
    "asks for a device": waiting_pod(requests={GPU: 1}),
    "wants a disk": waiting_pod(affinity=on_disk("ssd")),
    "wants a node by label": waiting_pod(node_selector={ZONE: "z2"}),
    "tolerates": waiting_pod(tolerations=(toleration("dedicated", "Exists"),)),
    "tolerates all": waiting_pod(tolerations=(toleration("", "Exists"),)),
    "takes a port": waiting_pod(containers=listening(80)),
    "takes a port of one address": waiting_pod(containers=listening(80, "10.0.0.1")),
    "wants company": waiting_pod(labels={"app": "b"}, affinity=company(near())),
    "wants its own kind": waiting_pod(affinity=company(near())),
    "wants two": waiting_pod(affinity=company(near(), near(HOST))),
    "wants a team": waiting_pod(affinity=company(near(namespace_selector=selector(team="x")))),
    "wants no team": waiting_pod(affinity=company(near(namespace_selector=ANY_TEAM))),
    "shuns": waiting_pod(affinity=distance(near())),
    "shuns two": waiting_pod(affinity=distance(near(), near(HOST, label_selector=selector(app="b")))),
    "shuns a team": waiting_pod(affinity=distance(near(namespace_selector=selector(team="x")))),
    "spreads": waiting_pod(topology_spread_constraints=(spread(),)),
    "spreads twice": waiting_pod(topology_spread_constraints=(spread(), spread(HOST))),
    "spreads on ssd": waiting_pod(affinity=on_disk("ssd"), topology_spread_constraints=(spread(),)),
    "spreads where tolerated": waiting_pod(topology_spread_constraints=(spread(node_taints_policy="Honor"),)),
    "spreads over two zones": waiting_pod(topology_spread_constraints=(spread(min_domains=2),)),
    "spreads by label": waiting_pod(topology_spread_constraints=(spread(match_label_keys=("app",)),)),
    "spreads by label and is another": waiting_pod(
        labels={"app": "b"}, topology_spread_constraints=(spread(match_label_keys=("app",)),)
    ),
    "is owned": waiting_pod(owner_references=(OWNER,)),
    "needs a feature": waiting_pod(
        containers=(container(restart_policy_rules=(RestartRule(action="RestartAllContainers"),)),)
    ),
    "has a disk": waiting_pod(volumes=disk("d")),
    "reads a disk": waiting_pod(volumes=disk("d", read_only=True)),
    "has another disk": waiting_pod(
        volumes=(Volume(name="e", aws_elastic_block_store=AWSElasticBlockStore(volume_id="vol-1")),)
    ),
    "has a claim": waiting_pod(volumes=claimed("c1")),
    "has two claims": waiting_pod(volumes=claimed("c1", "c2")),
    "has a volume of its own": waiting_pod(volumes=(ephemeral(),)),
}


def some_world(dice: Random) -> dict[str, Thing | None]:
    """Much is in its first shape, in which it is of use to somebody."""
    return {key: shapes[1] if dice.random() < 0.4 else dice.choice(shapes) for key, shapes in SHAPES.items()}
