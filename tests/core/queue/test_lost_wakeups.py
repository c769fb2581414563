"""No wake-up is lost: every filter, every kind of event that it waits for, whenever the change comes.

Each case is a pod that one filter refuses on every node, and a change that helps. Whether the change is seen before the
pod, in the same step, while the pod would still rest or long after it was parked: it is placed, and never by the
five-minute flush. A change of the same kind that cannot help leaves it parked, without another attempt.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pytest
from msgspec import convert
from msgspec.structs import replace

from builders import container, node, pod, selector, taint, term, toleration
from device_builders import DRIVER as GPU_DRIVER
from device_builders import claim as resource_claim
from device_builders import device, device_class, exactly, slice_of
from situate.core.changes import (
    BindFailed,
    Change,
    ExtenderSaid,
    NodeGone,
    NodeSeen,
    ObjectGone,
    ObjectSeen,
    PodGone,
    PodRef,
    PodSeen,
)
from situate.core.config.defaults import default_configuration
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.contract import Wake
from situate.core.devices.extended import CLAIM_ANNOTATION
from situate.core.effects import AskExtender, Bind, BindClaims, BindVolumes, Effect, Evict
from situate.core.engine.engine import Engine
from situate.core.engine.framework import build_frameworks
from situate.core.model.csi_migration import GCE_PD
from situate.core.model.devices import DeviceTaintRule, ResourceClaimStatus
from situate.core.model.meta import ObjectMeta
from situate.core.model.node import Node
from situate.core.model.pod import (
    Pod,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSchedulingGate,
    RestartRule,
)
from situate.core.model.volumes import GCEPersistentDisk
from situate.core.model.workloads import Service, ServiceSpec
from situate.core.queue.queued_pod import QueuedPod, QueueState
from situate.core.versions import RULES
from situate.wire.config import config_of
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
from worlds import company, disk, distance, labelled, listening, near, service, space, spread

Thing: TypeAlias = Any
"""A node, a pod, or any object that is kept by name."""
UID = "w"
SECOND = 1_000


# -- what there is ---------------------------------------------------------------------------------------------------


def seen(*things: Thing) -> list[Change]:
    changes: list[Change] = []
    for thing in things:
        if isinstance(thing, Node):
            changes.append(NodeSeen(thing))
        elif isinstance(thing, Pod):
            changes.append(PodSeen(thing))
        else:
            changes.append(ObjectSeen(thing))
    return changes


def gone(*things: Thing) -> list[Change]:
    changes: list[Change] = []
    for thing in things:
        if isinstance(thing, Node):
            changes.append(NodeGone(thing.metadata.name))
        elif isinstance(thing, Pod):
            changes.append(PodGone(PodRef(thing.metadata.namespace, thing.metadata.name, thing.metadata.uid)))
        else:
            changes.append(ObjectGone(thing))
    return changes


def machine(name: str = "n1", zone: str | None = "z1", **fields: Any) -> Node:
    labels = {"host": name, **({} if zone is None else {ZONE: zone}), **fields.pop("labels", {})}
    return node(name, labels=labels, **{"cpu": "2", "memory": "4Gi", "pods": 10, **fields})


def running(name: str = "b1", node_name: str = "n1", **fields: Any) -> Pod:
    return pod(name, uid=name, node_name=node_name, phase="Running", **{"labels": {"app": "a"}, **fields})


def want(**fields: Any) -> Pod:
    """The pod that waits."""
    return pod("w", uid=UID, **{"labels": {"app": "a"}, **fields})


# -- the cases -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Case:
    """A pod that a filter refuses, and what happens."""

    plugin: str
    kind: Wake
    there: Sequence[Thing]
    wants: Pod
    helps: Sequence[Change]
    useless: Sequence[Change] = ()
    """A change that must not even make it try; empty where Kubernetes tries at every change of this kind."""
    besides: tuple[str, ...] = ()
    """Other filters that refuse some node, and would not be woken by this."""
    config: KubeSchedulerConfiguration = field(default_factory=default_configuration)
    waits: QueueState = QueueState.UNSCHEDULABLE
    """GATED: its claims are missing, so it is not even tried."""

    @property
    def told(self) -> str:
        return f"{self.plugin}: {self.kind.value}{', its own' if self.own else ''}"

    @property
    def own(self) -> bool:
        """Whether it is the waiting pod itself that changes."""
        return any(isinstance(one, PodSeen) and one.pod.metadata.uid == UID for one in self.helps)


def node_cases() -> list[Case]:
    cordoned, tainted = machine(unschedulable=True), machine(taints=(taint(),))
    on_ssd = want(node_selector={"disk": "ssd"})
    b80 = running(containers=listening(80))
    big, asks = running(cpu="1500m"), want(cpu="1")
    feature = "RestartAllContainersOnContainerExits"
    needs = want(containers=(container(restart_policy_rules=(RestartRule(action="RestartAllContainers"),)),))
    gated = pod("gated", uid="gated", scheduling_gates=(PodSchedulingGate(name="g"),))

    def cordon(kind: Wake, helps: list[Change], useless: list[Change]) -> Case:
        return Case("NodeUnschedulable", kind, [cordoned], want(), helps, useless)

    def tainting(kind: Wake, helps: list[Change], useless: list[Change]) -> Case:
        return Case("TaintToleration", kind, [tainted], want(), helps, useless)

    def fit(kind: Wake, helps: list[Change], useless: list[Change]) -> Case:
        return Case("NodeResourcesFit", kind, [machine(), big, gated], asks, helps, useless)

    return [
        cordon(Wake.NODE_ADDED, seen(machine("n2")), seen(machine("n2", unschedulable=True))),
        cordon(Wake.NODE_TAINT, seen(machine()), seen(machine(unschedulable=True, taints=(taint(),)))),
        cordon(
            Wake.POD_TOLERATION,
            seen(want(tolerations=(toleration("node.kubernetes.io/unschedulable", "Exists"),))),
            seen(want(tolerations=(toleration("dedicated", "Exists"),))),
        ),
        tainting(Wake.NODE_ADDED, seen(machine("n2")), seen(machine("n2", taints=(taint(),)))),
        tainting(Wake.NODE_TAINT, seen(machine()), seen(machine(taints=(taint(effect="NoExecute"),)))),
        tainting(
            Wake.POD_TOLERATION,
            seen(want(tolerations=(toleration("dedicated", "Exists"),))),
            seen(want(labels={"app": "b"})),
        ),
        Case(
            "NodeAffinity",
            Wake.NODE_ADDED,
            [machine()],
            on_ssd,
            seen(machine("n2", labels={"disk": "ssd"})),
            seen(machine("n2", labels={"disk": "hdd"})),
        ),
        Case(
            "NodeAffinity",
            Wake.NODE_LABEL,
            [machine()],
            on_ssd,
            seen(machine(labels={"disk": "ssd"})),
            seen(machine(labels={"disk": "hdd"})),
        ),
        Case("NodePorts", Wake.NODE_ADDED, [machine(), b80], want(containers=listening(80)), seen(machine("n2"))),
        Case(
            "NodePorts",
            Wake.POD_DELETED,
            [machine(), b80, running("b2", containers=listening(81))],
            want(containers=listening(80)),
            gone(b80),
            gone(running("b2")),
        ),
        fit(Wake.NODE_ADDED, seen(machine("n2")), seen(machine("n2", cpu="500m"))),
        fit(Wake.NODE_ALLOCATABLE, seen(machine(cpu="3")), seen(machine(memory="8Gi"))),
        fit(Wake.POD_DELETED, gone(big), gone(gated)),
        fit(Wake.POD_SCALED_DOWN, seen(running(cpu="500m")), seen(running(cpu="1600m"))),
        Case(
            "NodeResourcesFit",
            Wake.POD_SCALED_DOWN,
            [machine(), big],
            asks,
            seen(want(cpu="500m")),
            seen(want(cpu="1", labels={"app": "b"})),
        ),
        Case(
            "NodeDeclaredFeatures",
            Wake.NODE_ADDED,
            [machine()],
            needs,
            seen(machine("n2", declared_features=(feature,))),
        ),
        Case(
            "NodeDeclaredFeatures",
            Wake.NODE_DECLARED_FEATURE,
            [machine()],
            needs,
            seen(machine(declared_features=(feature,))),
            seen(machine(labels={"other": "label"})),
        ),
    ]


def pod_cases() -> list[Case]:
    two = want(topology_spread_constraints=(spread(min_domains=2),))
    even = want(topology_spread_constraints=(spread(),))
    picky = want(topology_spread_constraints=(spread(node_taints_policy="Honor"),))
    two_tolerated = (spread(node_taints_policy="Honor", min_domains=2),)
    empty = machine("n2", "z2", unschedulable=True)
    leaving = running(deletion_timestamp="2026-01-01T00:00:00Z")
    args = {
        "defaultingType": "List",
        "defaultConstraints": [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}],
    }
    by_default = config_of(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"pluginConfig": [{"name": "PodTopologySpread", "args": args}]}],
        }
    )

    def spreading(kind: Wake, helps: Sequence[Change], useless: Sequence[Change] = (), wants: Pod = two) -> Case:
        there = [machine(), running(), running("b2", labels={"app": "b"})]
        return Case("PodTopologySpread", kind, there, wants, helps, useless)

    def beside_empty(kind: Wake, helps: Sequence[Change], useless: Sequence[Change] = (), wants: Pod = even) -> Case:
        there = [machine(), running(), empty, machine("n3", None, unschedulable=True)]
        return Case("PodTopologySpread", kind, there, wants, helps, useless, besides=("NodeUnschedulable",))

    def pairing(kind: Wake, helps: Sequence[Change], useless: Sequence[Change], **fields: Any) -> Case:
        there = [machine(), machine("n2"), running(), running("b2", labels={"app": "b"})]
        return Case("InterPodAffinity", kind, there, want(**fields), helps, useless)

    wants_db = company(near(label_selector=selector(app="db")))
    shuns, repels = distance(near()), distance(near())
    of_team = company(near(namespace_selector=selector(team="x")))
    return [
        beside_empty(Wake.POD_ADDED, seen(running("b3", "n2")), seen(running("b3", "n2", labels={"app": "b"}))),
        spreading(Wake.POD_LEAVING, seen(leaving)),
        spreading(Wake.POD_DELETED, gone(running()), gone(running("b2"))),
        spreading(Wake.POD_LABEL, seen(running(labels={"app": "b"})), seen(running(labels={"app": "a", "x": "y"}))),
        spreading(
            Wake.POD_LABEL,
            seen(want(labels={"app": "b"}, topology_spread_constraints=(spread(min_domains=2),))),
            seen(want(labels={"app": "a", "x": "y"}, topology_spread_constraints=(spread(min_domains=2),))),
        ),
        Case(
            "PodTopologySpread",
            Wake.POD_TOLERATION,
            [machine(), running(), machine("n2", "z2", unschedulable=True, taints=(taint(),)), running("b2", "n2")],
            want(topology_spread_constraints=two_tolerated),
            seen(want(topology_spread_constraints=two_tolerated, tolerations=(toleration("dedicated", "Exists"),))),
            seen(want(topology_spread_constraints=two_tolerated, labels={"app": "a", "x": "y"})),
            besides=("NodeUnschedulable",),
        ),
        spreading(Wake.NODE_ADDED, seen(machine("n2", "z2")), seen(machine("n2", None))),
        beside_empty(Wake.NODE_DELETED, gone(empty), gone(machine("n3"))),
        Case(
            "PodTopologySpread",
            Wake.NODE_LABEL,
            [machine(), running(), machine("n2", None)],
            two,
            seen(machine("n2", "z2")),
            seen(machine("n2", None, labels={"x": "y"})),
        ),
        beside_empty(Wake.NODE_TAINT, seen(machine("n2", "z2", unschedulable=True, taints=(taint(),))), wants=picky),
        Case(
            "PodTopologySpread",
            Wake.WORKLOAD_CHANGED,
            [machine(), running(), empty, service(app="a")],
            want(),
            gone(service(app="a")),
            seen(Service(metadata=ObjectMeta(name="t", namespace="default"), spec=ServiceSpec(selector={"app": "b"}))),
            besides=("NodeUnschedulable",),
            config=by_default,
        ),
        pairing(Wake.POD_ADDED, seen(running("b3", labels={"app": "db"})), seen(running("b3")), affinity=wants_db),
        pairing(
            Wake.POD_LABEL, seen(running(labels={"app": "db"})), seen(running(labels={"app": "c"})), affinity=wants_db
        ),
        pairing(Wake.POD_DELETED, gone(running()), gone(running("b2")), affinity=shuns),
        pairing(Wake.NODE_ADDED, seen(machine("n3", "z3")), (), affinity=shuns),
        pairing(Wake.NODE_LABEL, seen(machine("n2", "z2")), seen(machine("n2", labels={"x": "y"})), affinity=shuns),
        Case(
            "InterPodAffinity",
            Wake.NAMESPACE_LABEL,
            [machine(), running(namespace="other"), space("other"), space("third")],
            want(labels={"app": "b"}, affinity=of_team),
            seen(space("other", team="x")),
            seen(space("third", team="y")),
        ),
        Case(
            "InterPodAffinity",
            Wake.POD_DELETED,
            [machine(), running(affinity=repels), running("b2", labels={"app": "b"})],
            want(),
            gone(running()),
            gone(running("b2")),
        ),
        Case(
            "InterPodAffinity",
            Wake.NODE_ADDED,
            [machine(), running(affinity=repels)],
            want(),
            seen(machine("n2", "z2")),
        ),
        Case(
            "InterPodAffinity",
            Wake.POD_LABEL,
            [machine(), running(affinity=repels)],
            want(),
            seen(want(labels={"app": "b"})),
        ),
        Case(
            "InterPodAffinity",
            Wake.NODE_ADDED,
            [machine(zone=None)],
            want(affinity=company(near())),
            seen(machine("n2", "z2")),
            seen(machine("n2", None)),
        ),
    ]


def limit_cases() -> list[Case]:
    full = [machine(), csi_node("n1", {DRIVER: 1}), claim("c1", volume="v1"), volume("v1"), claim("c2", volume="v2")]
    full += [volume("v2"), storage_class()]
    holder, bare = running(volumes=claimed("c1")), running("b2")
    wants = want(volumes=claimed("c2"))
    to_come = [machine(), csi_node("n1", {DRIVER: 1}), claim("c2", volume="v2"), volume("v2"), storage_class(), holder]
    left_over = [*full, attachment("x", "n1", "v1")]

    def limit(kind: Wake, helps: Sequence[Change], useless: Sequence[Change] = (), there: Sequence[Thing] = ()) -> Case:
        return Case("NodeVolumeLimits", kind, there or [*full, holder, bare], wants, helps, useless)

    return [
        limit(Wake.NODE_ADDED, seen(machine("n2")), seen(machine(labels={"x": "y"}))),
        limit(
            Wake.CSI_NODE_UPDATED, seen(csi_node("n1", {DRIVER: 2})), seen(csi_node("n1", {DRIVER: 1}, migrated="x"))
        ),
        limit(Wake.CSI_NODE_DELETED, gone(csi_node("n1"))),
        limit(
            Wake.POD_ADDED,
            seen(running("b3", volumes=claimed("c2"))),
            seen(running("b3", volumes=claimed("c9"))),
            [*full, attachment("x", "n1", "v2")],
        ),
        limit(Wake.POD_DELETED, gone(holder), gone(bare)),
        limit(
            Wake.CLAIM_UPDATED,
            seen(claim("c1", volume="v1")),
            seen(labelled(waiting("c1"), x="y")),
            [
                machine(),
                csi_node("n1", {DRIVER: 2}),
                waiting("c1"),
                volume("v1"),
                attachment("x", "n1", "v1"),
                claim("c2", volume="v2"),
                volume("v2"),
                storage_class(),
                holder,
            ],
        ),
        limit(Wake.CLAIM_DELETED, gone(claim("c1"))),
        limit(
            Wake.VOLUME_ADDED,
            seen(volume("v1", driver="other", claim_ref=("default", "c1"))),
            seen(volume("v9")),
            [*to_come, claim("c1", volume="v1", storage_class_name="late")],
        ),
        limit(Wake.VOLUME_UPDATED, seen(volume("v1", driver="other")), seen(volume("v1", claim_ref=("default", "c1")))),
        limit(Wake.VOLUME_DELETED, gone(volume("v1")), (), left_over),
        limit(
            Wake.STORAGE_CLASS_UPDATED,
            seen(storage_class(provisioner="other")),
            seen(labelled(storage_class(), x="y")),
            [*to_come, waiting("c1")],
        ),
        limit(Wake.STORAGE_CLASS_DELETED, gone(storage_class()), (), [*to_come, waiting("c1")]),
        limit(Wake.VOLUME_ATTACHMENT_DELETED, gone(attachment("x", "n1", "v1")), (), left_over),
    ]


def volume_cases() -> list[Case]:
    in_z2 = (term((ZONE, "In", ("z2",))),)
    bound, mine = claim("c1", volume="v1"), want(volumes=claimed("c1"))
    once = claim("c1", volume="v1", modes=("ReadWriteOncePod",))
    nothing_made = storage_class(provisioner="kubernetes.io/no-provisioner")
    held = volume("v1", class_name="late", phase="Bound", claim_ref=("default", "c9"))
    pd = volume("v1", gce_persistent_disk=GCEPersistentDisk(pd_name="v1"), terms=in_z2)
    made_for_it = volume("v1", class_name="late", claim_ref=("default", "c1"), terms=in_z2)
    handed_over = csi_node("n1", migrated=GCE_PD.name)
    in_driver_z2 = machine(labels={GCE_PD.topology_key: "z2"})
    tells = [machine(), storage_class(), csi_driver(), waiting("c1")]
    small = capacity("k", "late", selector(), "1Mi")
    labels = {ZONE: "z2"}

    def restrict(
        kind: Wake, there: list[Thing], wants: Pod, helps: list[Change], useless: Sequence[Change] = ()
    ) -> Case:
        return Case("VolumeRestrictions", kind, there, wants, helps, useless)

    def binding(
        kind: Wake, there: list[Thing], helps: list[Change], useless: Sequence[Change] = (), **fields: Any
    ) -> Case:
        return Case("VolumeBinding", kind, there, fields.get("wants", mine), helps, useless)

    def zone(kind: Wake, helps: list[Change], useless: Sequence[Change] = (), there: Sequence[Thing] = ()) -> Case:
        volumes = [volume("v1", labels=labels), volume("v2", labels={ZONE: "z1"})]
        there = there or [machine(), bound, *volumes, claim("c9", volume="v9")]
        return Case("VolumeZone", kind, there, mine, helps, useless)

    d1, d2 = running(volumes=disk("d")), running("b2", volumes=disk("e"))
    elsewhere = running(namespace="other", volumes=disk("d"))
    return [
        restrict(
            Wake.NODE_ADDED,
            [machine(), d1],
            want(volumes=disk("d")),
            seen(machine("n2")),
            seen(machine(labels={"x": "y"})),
        ),
        restrict(Wake.POD_DELETED, [machine(), d1, d2], want(volumes=disk("d")), gone(d1), gone(d2)),
        restrict(Wake.POD_DELETED, [machine(), elsewhere], want(volumes=disk("d")), gone(elsewhere)),
        restrict(
            Wake.POD_DELETED,
            [machine(), machine("n2"), once, volume("v1"), running(volumes=claimed("c1")), d2],
            mine,
            gone(running()),
            gone(d2),
        ),
        restrict(Wake.CLAIM_ADDED, [machine(), volume("v1")], mine, seen(bound), seen(claim("c9", volume="v9"))),
        restrict(
            Wake.CLAIM_UPDATED,
            [machine(), once, volume("v1"), running(volumes=claimed("c1"))],
            mine,
            seen(bound),
            seen(labelled(once, x="y")),
        ),
        binding(Wake.STORAGE_CLASS_ADDED, [machine(), waiting("c1")], seen(storage_class())),
        binding(
            Wake.STORAGE_CLASS_UPDATED,
            [machine(), waiting("c1"), storage_class(topologies=({ZONE: ("z2",)},))],
            seen(storage_class()),
            seen(labelled(storage_class(topologies=({ZONE: ("z2",)},)), x="y")),
        ),
        binding(
            Wake.CLAIM_ADDED,
            [machine(), storage_class()],
            seen(waiting("w-scratch", owner=UID)),
            seen(waiting("another")),
            wants=want(volumes=(ephemeral(),)),
        ),
        binding(
            Wake.CLAIM_UPDATED,
            [machine(), waiting("c1", "now"), storage_class("now", late=False), volume("v1"), waiting("c9")],
            seen(bound),
            seen(labelled(waiting("c9"), x="y")),
        ),
        binding(Wake.VOLUME_ADDED, [machine(), waiting("c1"), nothing_made], seen(volume("v1", class_name="late"))),
        binding(
            Wake.VOLUME_UPDATED, [machine(), waiting("c1"), nothing_made, held], seen(volume("v1", class_name="late"))
        ),
        binding(
            Wake.VOLUME_DELETED,
            [machine(), waiting("c1"), nothing_made, made_for_it, volume("v2", class_name="late")],
            gone(volume("v1")),
        ),
        binding(Wake.NODE_ADDED, [machine(), bound, volume("v1", terms=in_z2)], seen(machine("n2", "z2"))),
        binding(
            Wake.NODE_LABEL,
            [machine(), bound, volume("v1", terms=in_z2)],
            seen(machine(zone="z2")),
            seen(machine(taints=(taint(),))),
        ),
        binding(Wake.CSI_NODE_ADDED, [in_driver_z2, bound, pd], seen(handed_over)),
        binding(
            Wake.CSI_NODE_UPDATED,
            [in_driver_z2, bound, pd, csi_node("n1")],
            seen(handed_over),
            seen(csi_node("n1", {DRIVER: 5})),
        ),
        binding(Wake.CSI_NODE_DELETED, [machine(zone="z2"), bound, pd, handed_over], gone(handed_over)),
        binding(
            Wake.CSI_DRIVER_UPDATED,
            tells,
            seen(csi_driver(storage_capacity=False)),
            seen(labelled(csi_driver(), x="y")),
        ),
        binding(Wake.CSI_DRIVER_DELETED, tells, gone(csi_driver())),
        binding(Wake.CSI_CAPACITY_ADDED, tells, seen(capacity("k", "late", selector(), "5Gi"))),
        binding(
            Wake.CSI_CAPACITY_UPDATED,
            [*tells, small],
            seen(capacity("k", "late", selector(), "5Gi")),
            seen(capacity("k", "late", selector(), "512Ki")),
        ),
        zone(Wake.NODE_ADDED, seen(machine("n2", "z2"))),
        zone(Wake.NODE_LABEL, seen(machine(zone="z2")), seen(machine(taints=(taint(),)))),
        zone(Wake.VOLUME_ADDED, seen(volume("v1")), (), [machine(), bound]),
        zone(
            Wake.VOLUME_UPDATED,
            seen(volume("v1", labels={ZONE: "z1"})),
            seen(volume("v1", labels=labels, capacity="20Gi")),
        ),
        zone(Wake.CLAIM_UPDATED, seen(claim("c1", volume="v2")), seen(labelled(claim("c9", volume="v9"), x="y"))),
    ]


def device_cases() -> list[Case]:
    asks, mine = resource_claim("c", exactly()), (PodResourceClaim(name="g", resource_claim_name="c"),)
    there = [machine(), device_class(), asks]
    far = {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["z2"]}]}]}
    in_z2 = slice_of("", device("g"), name="far", pool="far", nodeSelector=far)
    has, other = slice_of("n1", device("g")), resource_claim("other", exactly())
    newer = slice_of("n1", device("g"), name="newer", generation=2, count=2)
    far_away = slice_of("n2", device("g"))
    results = [{"request": "r", "driver": GPU_DRIVER, "pool": "n1", "device": "g"}]
    taken = replace(other, status=convert({"allocation": {"devices": {"results": results}}}, ResourceClaimStatus))
    everything = {"deviceSelector": {}, "taint": {"key": "broken", "effect": "NoSchedule"}}
    tainted = convert({"metadata": {"name": "rule"}, "spec": everything}, DeviceTaintRule)
    served = device_class(extendedResourceName="example.com/gpu")
    extended = want(containers=(container(requests={"example.com/gpu": "1"}),))
    full = machine(allocatable={"example.com/gpu": "1"})
    holder = running(containers=(container(requests={"example.com/gpu": "1"}),))
    left = resource_claim(
        "left",
        annotations={CLAIM_ANNOTATION: "true"},
        ownerReferences=[{"kind": "Pod", "name": "w", "uid": UID, "controller": True}],
    )
    late = (PodResourceClaim(name="g", resource_claim_template_name="t"),)
    own = resource_claim(
        "made", exactly(), ownerReferences=[{"kind": "Pod", "name": "w", "uid": UID, "controller": True}]
    )
    made = want(resource_claims=late)
    statuses = (PodResourceClaimStatus(name="g", resource_claim_name="made"),)
    told = replace(made, status=replace(made.status, resource_claim_statuses=statuses))

    def devices(
        kind: Wake,
        there: Sequence[Thing],
        helps: list[Change],
        useless: Sequence[Change] = (),
        wants: Pod | None = None,
        waits: QueueState = QueueState.UNSCHEDULABLE,
    ) -> Case:
        wants = wants or want(resource_claims=mine)
        return Case("DynamicResources", kind, there, wants, helps, useless, waits=waits)

    return [
        devices(Wake.NODE_ADDED, [*there, slice_of("n2", device("g"))], seen(machine("n2"))),
        devices(Wake.NODE_LABEL, [*there, in_z2], seen(machine(zone="z2"))),
        devices(
            Wake.NODE_ALLOCATABLE,
            [machine(), served],
            seen(machine(allocatable={"example.com/gpu": "1"})),
            wants=extended,
        ),
        devices(Wake.RESOURCE_SLICE_ADDED, there, seen(has)),
        devices(Wake.RESOURCE_SLICE_UPDATED, [*there, slice_of("n1")], seen(has)),
        devices(Wake.RESOURCE_SLICE_DELETED, [*there, has, newer, far_away], gone(newer), gone(far_away)),
        Case(
            "DynamicResources",
            Wake.RESOURCE_SLICE_UPDATED,
            [*there, has, tainted],
            want(resource_claims=mine),
            gone(tainted),
            config=default_configuration(RULES["1.37"]),
        ),
        devices(Wake.DEVICE_CLASS_ADDED, [machine(), asks, has], seen(device_class())),
        devices(
            Wake.DEVICE_CLASS_UPDATED,
            [machine(), asks, has, device_class(selectors=[{"cel": {"expression": "false"}}])],
            seen(device_class()),
        ),
        devices(
            Wake.DEVICE_CLASS_DELETED,
            [full, served, device_class("x"), left],
            gone(served),
            gone(device_class("x")),
            wants=extended,
        ),
        devices(
            Wake.RESOURCE_CLAIM_ADDED,
            [machine(), device_class(), has],
            seen(asks),
            seen(other),
            waits=QueueState.GATED,
        ),
        devices(Wake.RESOURCE_CLAIM_UPDATED, [*there, has, taken], seen(other), seen(labelled(taken, x="y"))),
        devices(Wake.RESOURCE_CLAIM_DELETED, [*there, has, taken], gone(taken)),
        devices(
            Wake.POD_RESOURCE_CLAIMS,
            [machine(), device_class(), has, own],
            seen(told),
            wants=made,
            waits=QueueState.GATED,
        ),
        Case(
            "NodeResourcesFit",
            Wake.DEVICE_CLASS_ADDED,
            [machine(), has],
            extended,
            seen(served),
            seen(device_class("x")),
        ),
        Case(
            "NodeResourcesFit",
            Wake.NODE_ADDED,
            [full, holder, served, slice_of("n2", device("g"))],
            extended,
            seen(machine("n2")),
            seen(machine("n2", cpu="0", pods=0)),
        ),
        Case(
            "NodeResourcesFit",
            Wake.DEVICE_CLASS_UPDATED,
            [machine(), has, device_class()],
            extended,
            seen(served),
            seen(device_class(config=[{}])),
        ),
    ]


CASES = [*node_cases(), *pod_cases(), *limit_cases(), *volume_cases(), *device_cases()]
IMPOSSIBLE = {
    ("NodeName", Wake.NODE_ADDED): "a pod that names its node is bound",
    ("NodeVolumeLimits", Wake.CSI_NODE_ADDED): "nothing is limited without one; Kubernetes waits for it",
    ("NodeVolumeLimits", Wake.CLAIM_ADDED): "without its claim the pod is turned away by another filter first",
    ("NodeVolumeLimits", Wake.CSI_DRIVER_UPDATED): "drivers matter since 1.37: see test_node_volume_limits.py",
    ("NodeVolumeLimits", Wake.CSI_DRIVER_DELETED): "drivers matter since 1.37: see test_node_volume_limits.py",
    ("VolumeZone", Wake.CLAIM_ADDED): "without its claim the pod is turned away by another filter first",
    ("VolumeZone", Wake.STORAGE_CLASS_ADDED): "without its class the pod is turned away by another filter first",
    ("VolumeZone", Wake.STORAGE_CLASS_UPDATED): "with a class that binds at once, the same",
}


def test_the_matrix_is_whole() -> None:
    """Every kind of event that a filter waits for is in a case, or cannot be what it waits for, with the reason."""
    (deciding,) = build_frameworks(default_configuration()).values()
    waited_for = {(plugin.name, kind) for plugin in deciding.profile.filters for kind in plugin.wakes_on}
    covered = {(case.plugin, case.kind) for case in CASES}
    assert waited_for - covered == IMPOSSIBLE.keys()
    assert covered <= waited_for


# -- when the change comes -------------------------------------------------------------------------------------------


def placed(effects: Sequence[Effect]) -> list[Effect]:
    return [one for one in effects if isinstance(one, Bind | BindVolumes | BindClaims) and one.pod.uid == UID]


def parked(case: Case, now: int = 0) -> tuple[Engine, QueuedPod]:
    """An engine whose pod was refused, by the filter that the case is about; or is not tried, for lack of claims."""
    engine = Engine(case.config)
    effects = engine.step(now, [*seen(*case.there), PodSeen(case.wants)])
    entry = engine.queue.get("default/w")
    assert entry is not None
    assert entry.state is case.waits, f"it was not refused: {effects}"
    if case.waits is QueueState.GATED:
        assert not effects, "nobody is told of missing claims"
        return engine, entry
    assert entry.unschedulable_plugins == (*case.besides, case.plugin)
    assert not any(isinstance(one, Evict) for one in effects)
    return engine, entry


cases = pytest.mark.parametrize("case", [pytest.param(case, id=case.told) for case in CASES])


@cases
@pytest.mark.parametrize(
    "after_ms", [pytest.param(1, id="while the pod would rest"), pytest.param(100 * SECOND, id="long after")]
)
def test_a_change_that_comes_after_the_pod_was_parked_places_it(case: Case, after_ms: int) -> None:
    engine, _ = parked(case)
    assert placed(engine.step(after_ms, case.helps))
    assert engine.queue.flushed == 0


@cases
def test_a_change_that_comes_in_the_same_step_as_the_pod_places_it(case: Case) -> None:
    engine = Engine(case.config)
    assert placed(engine.step(0, [*seen(*case.there), PodSeen(case.wants), *case.helps]))


@cases
def test_a_change_that_comes_before_the_pod_places_it(case: Case) -> None:
    engine = Engine(case.config)
    engine.step(0, seen(*case.there))
    engine.step(1, () if case.own else case.helps)
    assert placed(engine.step(2, case.helps if case.own else [PodSeen(case.wants)]))


@cases
def test_a_change_that_comes_while_another_keeps_the_queue_busy_places_it(case: Case) -> None:
    """A pod that rests does not come early while others are ready, and is not forgotten either."""
    engine = Engine(case.config, batch=1)
    engine.step(0, [*seen(*case.there), PodSeen(case.wants)])
    busy = [PodSeen(pod(f"x{at}", uid=f"x{at}", cpu="100")) for at in range(3)]
    effects = engine.step(1, [*case.helps, *busy])
    while not placed(effects) and (due := engine.next_due_ms(2)) is not None and due <= 2 * SECOND:
        effects += engine.step(due, ())
    assert placed(effects)
    assert engine.queue.flushed == 0


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.told) for case in CASES if case.waits is QueueState.UNSCHEDULABLE]
)
def test_a_filter_that_did_not_wait_for_it_would_leave_the_pod_parked(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that each case shows what it is about: it is this event that wakes the pod, and no other."""
    (deciding,) = build_frameworks(case.config).values()
    (kind,) = [type(plugin) for plugin in deciding.profile.filters if plugin.name == case.plugin]
    monkeypatch.setattr(kind, "wakes_on", kind.wakes_on - {case.kind})
    engine, entry = parked(case)
    assert not placed(engine.step(100 * SECOND, case.helps))
    assert entry.state is QueueState.UNSCHEDULABLE


@pytest.mark.parametrize("case", [pytest.param(case, id=case.told) for case in CASES if case.useless])
def test_a_change_that_cannot_help_leaves_the_pod_parked_without_another_attempt(case: Case) -> None:
    engine, entry = parked(case)
    attempts = entry.attempts
    engine.step(100 * SECOND, case.useless)
    assert (entry.state, entry.attempts) == (case.waits, attempts)


# -- what the engine itself does -------------------------------------------------------------------------------------


def ref(name: str) -> PodRef:
    return PodRef("default", name, name)


def waiter(name: str, **fields: Any) -> Pod:
    return pod(name, uid=name, **fields)


def test_a_pod_that_is_placed_wakes_those_who_want_it_near_in_the_same_step() -> None:
    engine = Engine(default_configuration())
    wants = want(labels={"app": "b"}, affinity=company(near()))
    effects = engine.step(0, [*seen(machine()), PodSeen(wants), PodSeen(waiter("first", labels={"app": "a"}))])
    assert [one.pod.name for one in effects if isinstance(one, Bind)] == ["first", "w"]


def test_a_bind_that_fails_for_good_frees_its_room_for_who_waits() -> None:
    engine = Engine(default_configuration())
    effects = engine.step(0, [*seen(machine(cpu="1")), PodSeen(waiter("first", cpu="1")), PodSeen(want(cpu="1"))])
    (bind,) = [one for one in effects if isinstance(one, Bind)]
    assert placed(engine.step(5, [BindFailed(bind.pod, bind.attempt, "no", final=True)]))


def test_a_reserved_pod_that_is_deleted_frees_its_room_for_who_waits() -> None:
    engine = Engine(default_configuration())
    engine.step(0, [*seen(machine(cpu="1")), PodSeen(waiter("first", cpu="1")), PodSeen(want(cpu="1"))])
    assert placed(engine.step(5, [PodGone(ref("first"))]))


def test_a_reserved_pod_whose_deletion_begins_frees_its_room_before_it_is_gone() -> None:
    engine = Engine(default_configuration())
    engine.step(0, [*seen(machine(cpu="1")), PodSeen(waiter("first", cpu="1")), PodSeen(want(cpu="1"))])
    leaving = waiter("first", cpu="1", deletion_timestamp="2026-01-01T00:00:00Z")
    assert placed(engine.step(5, [PodSeen(leaving)]))
    assert engine.state.reservations.keys() == {"default/w"}


def test_a_pod_that_somebody_else_bound_elsewhere_than_we_reserved_frees_our_node_for_who_waits() -> None:
    engine = Engine(default_configuration())
    there = [machine("n1", cpu="1"), machine("n2", cpu="1", unschedulable=True)]
    engine.step(0, [*seen(*there), PodSeen(waiter("first", cpu="1")), PodSeen(want(cpu="1"))])
    assert placed(engine.step(5, [PodSeen(waiter("first", cpu="1", node_name="n2"))]))


def test_a_node_that_leaves_frees_what_its_pods_kept_from_others() -> None:
    """The pods of a lost node are deleted long after; nobody counts them any more, so nobody need wait for that."""
    engine = Engine(default_configuration())
    there = [machine("n1"), machine("n2"), running("b1", "n1")]
    engine.step(0, [*seen(*there), PodSeen(want(affinity=distance(near())))])
    assert placed(engine.step(5, [NodeGone("n1")]))


def test_a_node_that_leaves_with_the_last_of_a_kind_lets_the_kind_start_anew() -> None:
    engine = Engine(default_configuration())
    there = [machine("n1", unschedulable=True), machine("n2", "z2"), running("b1", "n1")]
    engine.step(0, [*seen(*there), PodSeen(want(affinity=company(near())))])
    assert placed(engine.step(5, [NodeGone("n1")]))


def test_a_pod_that_is_seen_to_finish_frees_its_room() -> None:
    engine = Engine(default_configuration())
    engine.step(0, [*seen(machine(cpu="1"), running(cpu="1")), PodSeen(want(cpu="1"))])
    done = pod("b1", uid="b1", node_name="n1", phase="Succeeded", cpu="1")
    assert placed(engine.step(5, [PodSeen(done)]))


def test_a_pod_without_nodes_waits_for_the_first() -> None:
    engine = Engine(default_configuration())
    engine.step(0, [PodSeen(want())])
    assert placed(engine.step(5, seen(machine())))


def test_gates_that_go_make_a_pod_ready_at_once() -> None:
    engine = Engine(default_configuration())
    gated = want(scheduling_gates=(PodSchedulingGate(name="g"),))
    assert not placed(engine.step(0, [*seen(machine()), PodSeen(gated)]))
    assert placed(engine.step(5, [PodSeen(want())]))


def test_a_change_of_a_parked_pod_that_no_filter_reads_does_not_wake_it() -> None:
    engine = Engine(default_configuration())
    engine.step(0, [*seen(machine(cpu="1")), PodSeen(want(cpu="2"))])
    engine.step(100 * SECOND, [PodSeen(want(containers=(container(cpu="2", image="another"),)))])
    entry = engine.queue.get("default/w")
    assert entry is not None
    assert (entry.state, entry.attempts) == (QueueState.UNSCHEDULABLE, 1)


def test_a_parked_pod_whose_node_selector_changes_is_tried_again() -> None:
    """Kubernetes allows that of gated pods only; but nobody may be stranded by what somebody else forbids."""
    engine = Engine(default_configuration())
    engine.step(0, [*seen(machine()), PodSeen(want(node_selector={"disk": "ssd"}))])
    assert placed(engine.step(5, [PodSeen(want(node_selector={ZONE: "z1"}))]))


@pytest.mark.parametrize(
    "ends",
    [
        pytest.param([PodGone(ref("promised"))], id="the pod that had it is gone"),
        pytest.param(
            [PodSeen(waiter("promised", cpu="2", priority=9, node_name="n2"))], id="somebody bound that pod elsewhere"
        ),
    ],
)
def test_a_promise_that_ends_frees_the_node_for_who_waits(ends: list[Change]) -> None:
    """There is room for the pod beside the victim that has not gone yet, and none beside whom the node is held for."""
    engine = Engine(default_configuration())
    there = [machine(cpu="3"), running("victim", cpu="2"), machine("n2", unschedulable=True)]
    promised = waiter("promised", cpu="2", priority=9)
    effects = engine.step(0, [*seen(*there), PodSeen(promised), PodSeen(want(cpu="1"))])
    assert [one.victim.name for one in effects if isinstance(one, Evict)] == ["victim"]
    entry = engine.queue.get("default/w")
    assert entry is not None
    assert entry.state is QueueState.UNSCHEDULABLE
    assert placed(engine.step(5, ends))


def extended() -> Engine:
    return Engine(
        config_of(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "extenders": [{"urlPrefix": "http://localhost/", "filterVerb": "filter"}],
            }
        )
    )


def asked(effects: Sequence[Effect]) -> list[AskExtender]:
    return [one for one in effects if isinstance(one, AskExtender)]


def test_a_change_that_comes_while_an_extender_is_asked_is_not_missed() -> None:
    engine = extended()
    (first,) = asked(engine.step(0, [*seen(machine()), PodSeen(want())]))
    assert not asked(engine.step(1, seen(machine("n2"))))
    (second,) = asked(engine.step(2, [ExtenderSaid(first.ask, nodes=())]))
    assert (first.nodes, second.nodes) == (("n1",), ("n1", "n2"))


def test_a_change_of_the_pod_itself_while_an_extender_is_asked_is_not_missed() -> None:
    engine = extended()
    (first,) = asked(engine.step(0, [*seen(machine()), PodSeen(want())]))
    engine.step(1, [PodSeen(want(labels={"app": "b"}))])
    assert asked(engine.step(2, [ExtenderSaid(first.ask, nodes=())]))


def test_what_an_extender_refuses_waits_for_any_change() -> None:
    engine = extended()
    (first,) = asked(engine.step(0, [*seen(machine()), PodSeen(want())]))
    assert not asked(engine.step(2, [ExtenderSaid(first.ask, nodes=())]))
    assert not asked(engine.step(100 * SECOND, ()))
    assert asked(engine.step(101 * SECOND, seen(machine(labels={"x": "y"}))))
