"""For each filter, which events are worth waking a pod that it refused: as Kubernetes' queueing hints, and no fewer.

Where Kubernetes sleeps through a change that helps, the sentence says so ("though Kubernetes does not").
"""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from builders import container, expression, node, pod, selector, taint, term, toleration
from situate.core.contract import Filter, Reason, Wake, WakeEvent
from situate.core.engine.wake_events import (
    bound_pod_events,
    node_events,
    node_left,
    nomination_ended,
    object_events,
    own_events,
)
from situate.core.model.csi_migration import GCE_PD
from situate.core.model.meta import ObjectMeta, OwnerReference
from situate.core.model.node import Node
from situate.core.model.nodeselector import NodeSelector
from situate.core.model.pod import (
    Affinity,
    Pod,
    RestartRule,
    TopologySpreadConstraint,
)
from situate.core.model.pod import NodeAffinitySpec as NodeRules
from situate.core.model.workloads import ReplicaSet, SelectorSpec, Service, ServiceSpec
from situate.core.plugins.inter_pod_affinity import InterPodAffinity
from situate.core.plugins.node_affinity import NodeAffinity
from situate.core.plugins.node_declared_features import NodeDeclaredFeatures
from situate.core.plugins.node_name import NodeName
from situate.core.plugins.node_ports import NodePorts
from situate.core.plugins.node_resources_fit import NodeResourcesFit
from situate.core.plugins.node_unschedulable import NodeUnschedulable
from situate.core.plugins.node_volume_limits import NodeVolumeLimits
from situate.core.plugins.pod_topology_spread import PodTopologySpread
from situate.core.plugins.support.out_of_tree import as_filter
from situate.core.plugins.support.single_stage import pre_filter_only
from situate.core.plugins.taint_toleration import TaintToleration
from situate.core.plugins.volume_binding import VolumeBinding
from situate.core.plugins.volume_restrictions import VolumeRestrictions
from situate.core.plugins.volume_zone import VolumeZone
from situate.core.queue.queueing_hints import may_help
from situate.core.state.cluster import Cluster
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
from worlds import (
    GPU,
    company,
    disk,
    disk_rules,
    distance,
    labelled,
    listening,
    near,
    on_disk,
    service,
    space,
    spread,
)

Happens = Callable[[Cluster, Pod], Sequence[WakeEvent]]
"""What happens in a cluster where this pod waits, as that pod is told of it."""


# -- what may happen -------------------------------------------------------------------------------------------------


def comes(one: Node) -> Happens:
    def happens(cluster: Cluster, _: Pod) -> Sequence[WakeEvent]:
        cluster.add_node(one)
        return list(node_events(None, one, cluster.resources))

    return happens


def turns(before: Node, after: Node) -> Happens:
    def happens(cluster: Cluster, _: Pod) -> Sequence[WakeEvent]:
        cluster.add_node(before)
        cluster.add_node(after)
        return list(node_events(before, after, cluster.resources))

    return happens


def leaves(one: Node, *pods: Pod) -> Happens:
    return lambda cluster, _: list(node_left(one, [cluster.class_of(each) for each in pods], cluster.objects))


def bound(one: Pod) -> Happens:
    return lambda cluster, _: list(bound_pod_events(None, (cluster.class_of(one), "n1", False), cluster.objects))


def gone(one: Pod) -> Happens:
    return lambda cluster, _: list(bound_pod_events((cluster.class_of(one), "n1", False), None, cluster.objects))


def changes(before: Pod, after: Pod) -> Happens:
    def happens(cluster: Cluster, _: Pod) -> Sequence[WakeEvent]:
        was, now = ((cluster.class_of(one), "n1", _is_leaving(one)) for one in (before, after))
        return list(bound_pod_events(was, now, cluster.objects))

    return happens


def _is_leaving(one: Pod) -> bool:
    return one.metadata.deletion_timestamp is not None


def itself(before: Pod) -> Happens:
    """The waiting pod was this before it became what it is."""

    def happens(cluster: Cluster, now: Pod) -> Sequence[WakeEvent]:
        events = own_events(cluster.class_of(before), cluster.class_of(now), cluster.objects)
        assert events is not None
        return events

    return happens


def seen(after: Any, before: Any = None, *around: Any) -> Happens:
    def happens(cluster: Cluster, _: Pod) -> Sequence[WakeEvent]:
        for one in around:
            cluster.put_object(one)
        cluster.put_object(after)
        return list(object_events(before, after, cluster.objects))

    return happens


def lost(one: Any) -> Happens:
    return lambda cluster, _: list(object_events(one, None, cluster.objects))


def beside(happens: Happens, *objects: Any) -> Happens:
    """The same, in a cluster with these objects."""

    def among(cluster: Cluster, waits: Pod) -> Sequence[WakeEvent]:
        for one in objects:
            cluster.put_object(one)
        return happens(cluster, waits)

    return among


def wakes(plugin: Filter, waits: Pod, happens: Happens) -> bool:
    cluster = Cluster()
    kind = cluster.class_of(waits)
    events = happens(cluster, waits)
    return any(may_help(kind, (plugin.name,), event, {plugin.name: plugin}) for event in events)


def check(plugin: Filter, waits: Pod, happens: Happens, expected: bool) -> None:
    assert wakes(plugin, waits, happens) is expected


def yes(told: str, *case: Any) -> Any:
    return pytest.param(*case, True, id=f"wakes for {told}")


def no(told: str, *case: Any) -> Any:
    return pytest.param(*case, False, id=f"sleeps through {told}")


# -- nodes -----------------------------------------------------------------------------------------------------------


def machine(name: str = "n1", **fields: Any) -> Node:
    return node(name, **{"cpu": "2", "memory": "4Gi", "pods": 10, **fields})


def other(name: str = "other", **fields: Any) -> Pod:
    return pod(name, uid=name, node_name="n1", **{"labels": {"app": "a"}, **fields})


@pytest.mark.parametrize(
    "waits,happens,expected",
    [
        yes("a node with room", pod(cpu="1"), comes(machine())),
        no("a node that is too small", pod(cpu="3"), comes(machine())),
        no("a node that takes no pods", pod(), comes(machine(pods=0))),
        no("a node without the device", pod(requests={GPU: 1}), comes(machine())),
        yes("a node with the device", pod(requests={GPU: 1}), comes(machine(allocatable={GPU: 1}))),
        yes("more of what it asks for", pod(cpu="1"), turns(machine(), machine(cpu="3"))),
        no("more that is still not enough", pod(cpu="4"), turns(machine(), machine(cpu="3"))),
        no("more of something else", pod(cpu="1"), turns(machine(), machine(memory="8Gi"))),
        no("less of what it asks for", pod(cpu="1"), turns(machine(cpu="3"), machine())),
        yes("room for more pods, even if it asks for nothing", pod(), turns(machine(pods=1), machine(pods=2))),
        no("more cpu if it asks for nothing", pod(), turns(machine(), machine(cpu="3"))),
        yes("a device that appears", pod(requests={GPU: 1}), turns(machine(), machine(allocatable={GPU: 1}))),
        no("another label on a node", pod(cpu="1"), turns(machine(), machine(labels={"x": "y"}))),
        yes("a pod that leaves a node", pod(cpu="1"), gone(other())),
        no("a pod that is bound", pod(cpu="1"), bound(other())),
        no("the pods of a node that has left too", pod(cpu="1"), leaves(machine(), other(cpu="1"))),
        yes("a bound pod that takes less of it", pod(cpu="1"), changes(other(cpu="1"), other(cpu="500m"))),
        no("a bound pod that takes less of something else", pod(cpu="1"),
           changes(other(memory="2Gi"), other(memory="1Gi"))),
        no("a bound pod that takes more", pod(cpu="1"), changes(other(cpu="500m"), other(cpu="1"))),
        no("a bound pod whose labels change", pod(cpu="1"), changes(other(), other(labels={"app": "b"}))),
        yes("asking for less itself", pod(cpu="1"), itself(pod(cpu="2"))),
        no("asking for more itself", pod(cpu="2"), itself(pod(cpu="1"))),
        no("other labels of its own", pod(cpu="1", labels={"a": "b"}), itself(pod(cpu="1"))),
    ],
)  # fmt: skip
def test_node_resources_fit(waits: Pod, happens: Happens, expected: bool) -> None:
    check(NodeResourcesFit(), waits, happens, expected)


def test_node_resources_fit_wakes_for_a_node_without_a_device_that_is_ignored_though_kubernetes_does_not() -> None:
    ignoring = NodeResourcesFit(ignored_resources=frozenset({GPU}))
    check(ignoring, pod(requests={GPU: 1}), comes(machine()), True)
    check(ignoring, pod(cpu="3", requests={GPU: 1}), comes(machine()), False)


TOLERANT = pod(tolerations=(toleration("dedicated", "Exists"),))


@pytest.mark.parametrize(
    "waits,happens,expected",
    [
        yes("a node without taints", pod(), comes(machine())),
        no("a node with a taint that it does not tolerate", pod(), comes(machine(taints=(taint(),)))),
        yes("a node with a taint that it tolerates", TOLERANT, comes(machine(taints=(taint(),)))),
        yes("a node with a taint that only puts off", pod(),
            comes(machine(taints=(taint(effect="PreferNoSchedule"),)))),
        yes("a taint that goes", pod(), turns(machine(taints=(taint(),)), machine())),
        no("one of two taints that goes", pod(),
           turns(machine(taints=(taint(), taint("x"))), machine(taints=(taint(),)))),
        no("a taint that comes", pod(), turns(machine(), machine(taints=(taint(),)))),
        no("a taint that goes and was tolerated", TOLERANT, turns(machine(taints=(taint(),)), machine())),
        no("the end of a cordon", pod(), turns(machine(unschedulable=True), machine())),
        yes("any toleration of its own", TOLERANT, itself(pod())),
        no("other labels of its own", pod(labels={"a": "b"}), itself(pod())),
    ],
)  # fmt: skip
def test_taint_toleration(waits: Pod, happens: Happens, expected: bool) -> None:
    check(TaintToleration(), waits, happens, expected)


CORDON_TOLERANT = pod(tolerations=(toleration("node.kubernetes.io/unschedulable", "Exists"),))


@pytest.mark.parametrize(
    "waits,happens,expected",
    [
        yes("a node that is not cordoned", pod(), comes(machine())),
        no("a node that is cordoned", pod(), comes(machine(unschedulable=True))),
        yes("the end of a cordon", pod(), turns(machine(unschedulable=True), machine())),
        no("the beginning of a cordon", pod(), turns(machine(), machine(unschedulable=True))),
        no("a taint that goes", pod(), turns(machine(taints=(taint(),)), machine())),
        yes("a toleration of the cordon", CORDON_TOLERANT, itself(pod())),
        no("a toleration of something else", TOLERANT, itself(pod())),
    ],
)
def test_node_unschedulable(waits: Pod, happens: Happens, expected: bool) -> None:
    check(NodeUnschedulable(), waits, happens, expected)


@pytest.mark.parametrize(
    "happens,expected",
    [yes("any node", comes(machine())), no("a node that changes", turns(machine(), machine(labels={"x": "y"})))],
)
def test_node_name(happens: Happens, expected: bool) -> None:
    check(NodeName(), pod(), happens, expected)


def named(name: str) -> Affinity:
    terms = NodeSelector(node_selector_terms=(term(fields=(("metadata.name", "In", name),)),))
    return Affinity(node_affinity=NodeRules(required_during_scheduling_ignored_during_execution=terms))


SSD = machine(labels={"disk": "ssd"})


@pytest.mark.parametrize(
    "waits,happens,expected",
    [
        yes("a node that matches its selector", pod(node_selector={"disk": "ssd"}), comes(SSD)),
        no("a node that does not", pod(node_selector={"disk": "hdd"}), comes(SSD)),
        yes("a node that matches its affinity", pod(affinity=on_disk("ssd", "nvme")), comes(SSD)),
        no("a node that matches its selector and not its affinity",
           pod(node_selector={"disk": "ssd"}, affinity=on_disk("hdd")), comes(SSD)),
        yes("the node that it names", pod(affinity=named("n1")), comes(machine("n1"))),
        no("a node that it does not name", pod(affinity=named("n1")), comes(machine("n2"))),
        yes("a node that comes to match", pod(affinity=on_disk("ssd")), turns(machine(), SSD)),
        no("a node that matched and gets another label", pod(affinity=on_disk("ssd")),
           turns(SSD, machine(labels={"disk": "ssd", "x": "y"}))),
        no("a node that ceases to match", pod(affinity=on_disk("ssd")), turns(SSD, machine())),
        no("a taint that goes", pod(affinity=on_disk("ssd")), turns(machine(taints=(taint(),)), machine())),
    ],
)  # fmt: skip
def test_node_affinity(waits: Pod, happens: Happens, expected: bool) -> None:
    check(NodeAffinity(), waits, happens, expected)


@pytest.mark.parametrize(
    "waits,happens,expected",
    [
        yes("a node that comes to match what is enforced, though Kubernetes does not", pod(), turns(machine(), SSD)),
        no("a node that matches the pod's and not what is enforced", pod(node_selector={"x": "y"}),
           turns(machine(), machine(labels={"x": "y"}))),
        no("a node that matches what is enforced and not the pod's", pod(node_selector={"x": "y"}), comes(SSD)),
    ],
)  # fmt: skip
def test_node_affinity_that_the_scheduler_enforces(waits: Pod, happens: Happens, expected: bool) -> None:
    check(NodeAffinity(added_affinity=disk_rules("ssd")), waits, happens, expected)


WANTS_80 = pod(containers=listening(80))


@pytest.mark.parametrize(
    "waits,happens,expected",
    [
        yes("any node", WANTS_80, comes(machine())),
        no("a node that changes", WANTS_80, turns(machine(), machine(labels={"x": "y"}))),
        yes("a pod that held the port", WANTS_80, gone(other(containers=listening(80)))),
        no("a pod that held another port", WANTS_80, gone(other(containers=listening(81)))),
        no("a pod that held it for another protocol", WANTS_80, gone(other(containers=listening(80, protocol="UDP")))),
        yes("a pod that held it at one address", WANTS_80, gone(other(containers=listening(80, "10.0.0.1")))),
        no("a pod that held it at another address", pod(containers=listening(80, "10.0.0.2")),
           gone(other(containers=listening(80, "10.0.0.1")))),
        no("a pod without ports", WANTS_80, gone(other())),
        no("a pod that comes", WANTS_80, bound(other(containers=listening(80)))),
        no("the pods of a node that has left too", WANTS_80, leaves(machine(), other(containers=listening(80)))),
    ],
)  # fmt: skip
def test_node_ports(waits: Pod, happens: Happens, expected: bool) -> None:
    check(NodePorts(), waits, happens, expected)


NEEDS = pod(containers=(container(restart_policy_rules=(RestartRule(action="RestartAllContainers"),)),))


@pytest.mark.parametrize(
    "happens,expected",
    [
        yes("any node", comes(machine())),
        yes("features that a node declares", turns(machine(), machine(declared_features=("Some",)))),
        no("labels of a node", turns(machine(), machine(labels={"x": "y"}))),
        no("a pod that leaves", gone(other())),
    ],
)
def test_node_declared_features(happens: Happens, expected: bool) -> None:
    check(NodeDeclaredFeatures(), NEEDS, happens, expected)


# -- pods among pods -------------------------------------------------------------------------------------------------


LONELY = pod(affinity=company(near()))
OF_A_KIND = pod(labels={"app": "a"}, affinity=company(near()))
STRICT = pod(affinity=company(near(), near("host", label_selector=selector(role="db"))))
SHY = pod(affinity=distance(near()))
VERY_SHY = pod(affinity=distance(near(), near("host", label_selector=selector(role="db"))))
OF_TEAM = pod(affinity=company(near(namespace_selector=selector(team="x"))))
SHUNS_TEAM = pod(affinity=distance(near(namespace_selector=selector(team="x"))))
PLAIN = pod(labels={"app": "a"})
IN_Z1, IN_Z2 = machine(labels={ZONE: "z1"}), machine(labels={ZONE: "z2"})
ABROAD = other(namespace="other")


@pytest.mark.parametrize(
    "waits,happens,expected",
    [
        yes("a pod that it wants near", LONELY, bound(other())),
        no("a pod that it does not speak of", LONELY, bound(other(labels={"app": "b"}))),
        no("a pod in a namespace that it does not speak of", LONELY, bound(ABROAD)),
        no("a pod that matches one of two terms", STRICT, bound(other())),
        yes("a pod that matches both", STRICT, bound(other(labels={"app": "a", "role": "db"}))),
        no("a pod that it shuns and that comes", SHY, bound(other())),
        yes("a pod in a namespace of the team, though Kubernetes does not", OF_TEAM,
            beside(bound(ABROAD), space("other", team="x"))),
        no("a pod in a namespace of another team", OF_TEAM, beside(bound(ABROAD), space("other", team="y"))),
        yes("a pod that it shuns and that leaves", SHY, gone(other())),
        no("a pod that it does not shun and that leaves", SHY, gone(other(labels={"app": "b"}))),
        yes("a pod that one of two terms shuns, though Kubernetes does not", VERY_SHY, gone(other())),
        yes("a pod of a team that it shuns, though Kubernetes does not", SHUNS_TEAM,
            beside(gone(ABROAD), space("other", team="x"))),
        yes("a pod that shunned it", PLAIN, gone(other(affinity=distance(near())))),
        no("a pod that shunned others", pod(), gone(other(affinity=distance(near())))),
        yes("a pod that shunned its team", PLAIN,
            beside(gone(other(affinity=SHUNS_TEAM.spec.affinity)), space("default", team="x"))),
        no("a pod that it wants near and that leaves", LONELY, gone(other())),
        yes("the last of its kind that leaves, though Kubernetes does not", OF_A_KIND, gone(other())),
        yes("the last of its kind, lost with its node", OF_A_KIND, leaves(IN_Z1, other())),
        yes("a pod that comes to match", LONELY, changes(other(labels={"app": "b"}), other())),
        no("a pod that ceases to match", LONELY, changes(other(), other(labels={"app": "b"}))),
        yes("a pod of its kind that ceases to be, though Kubernetes does not", OF_A_KIND,
            changes(other(), other(labels={"app": "b"}))),
        yes("a pod that it no longer shuns", SHY, changes(other(), other(labels={"app": "b"}))),
        no("a pod that it shuns from now on", SHY, changes(other(labels={"app": "b"}), other())),
        no("labels that it does not speak of", SHY, changes(other(), other(labels={"app": "a", "x": "y"}))),
        yes("other labels of its own", pod(labels={"app": "b"}), itself(PLAIN)),
        yes("a node in some domain", LONELY, comes(IN_Z1)),
        no("a node in no domain", LONELY, comes(machine())),
        yes("any node, if it only shuns", SHY, comes(machine())),
        yes("any node, if it is only shunned, though Kubernetes does not", PLAIN, comes(machine())),
        yes("a node that joins a domain", LONELY, turns(machine(), IN_Z1)),
        yes("a node that changes domains", LONELY, turns(IN_Z1, IN_Z2)),
        yes("a node that changes domains, if it shuns", SHY, turns(IN_Z1, IN_Z2)),
        yes("a node that leaves its domain, if it shuns", SHY, turns(IN_Z1, machine())),
        no("a node that joins a domain, if it shuns", SHY, turns(machine(), IN_Z1)),
        no("a label that comes to a node", LONELY, turns(IN_Z1, machine(labels={ZONE: "z1", "x": "y"}))),
        no("room on a node", LONELY, turns(machine(), machine(cpu="9"))),
        yes("a namespace that joins the team, though Kubernetes does not", OF_TEAM,
            seen(space("other", team="x"), space("other"))),
        yes("a namespace that leaves a team that it shuns", SHUNS_TEAM, seen(space("other"), space("other", team="x"))),
        no("a namespace that stays outside the team", OF_TEAM, seen(space("other", team="y"), space("other"))),
        no("other labels of another namespace, if no term chooses any", LONELY,
           seen(space("other", team="x"), space("other"))),
        yes("other labels of its own namespace: others may choose it", LONELY,
            seen(space("default", team="x"), space("default"))),
        yes("a namespace of the team that is deleted, if it shuns", SHUNS_TEAM, lost(space("other", team="x"))),
    ],
)  # fmt: skip
def test_inter_pod_affinity(waits: Pod, happens: Happens, expected: bool) -> None:
    check(InterPodAffinity(), waits, happens, expected)


def spreading(*more: TopologySpreadConstraint, first: TopologySpreadConstraint | None = None, **fields: Any) -> Pod:
    constraints = (spread() if first is None else first, *more)
    return pod(topology_spread_constraints=constraints, **{"labels": {"app": "a"}, **fields})


EVEN = spreading()
PICKY = spreading(first=spread(node_taints_policy="Honor"))
ON_SSD = spreading(affinity=on_disk("ssd"))
ALIKE = spread(match_label_keys=("rev",), label_selector=selector(app="b"))
AT_HOST = machine(labels={ZONE: "z1", "host": "n1"})
LEAVING = other(deletion_timestamp="2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    "waits,happens,expected",
    [
        yes("a pod that counts and comes", EVEN, bound(other())),
        yes("a pod that counts and leaves", EVEN, gone(other())),
        yes("a pod that counted and was lost with its node", EVEN, leaves(machine(), other())),
        yes("a pod that counts and is being deleted, though Kubernetes does not", EVEN, changes(other(), LEAVING)),
        no("a pod that does not count", EVEN, gone(other(labels={"app": "b"}))),
        no("a pod of another namespace", EVEN, gone(ABROAD)),
        yes("a pod that comes to count", EVEN, changes(other(labels={"app": "b"}), other())),
        yes("a pod that ceases to count", EVEN, changes(other(), other(labels={"app": "b"}))),
        no("a pod whose other labels change", EVEN, changes(other(), other(labels={"app": "a", "x": "y"}))),
        no("soft constraints' pods", spreading(first=spread(when_unsatisfiable="ScheduleAnyway")), gone(other())),
        yes("ceasing to count itself", spreading(labels={"app": "b"}), itself(EVEN)),
        no("other labels of its own that do not count", spreading(labels={"app": "a", "x": "y"}), itself(EVEN)),
        yes("another value of its own of a label to agree on, though Kubernetes does not",
            spreading(first=ALIKE, labels={"rev": "2"}), itself(spreading(first=ALIKE, labels={"rev": "1"}))),
        yes("a toleration of its own, if taints count", spreading(first=spread(node_taints_policy="Honor"),
            tolerations=(toleration("dedicated", "Exists"),)), itself(PICKY)),
        no("a toleration of its own, if they do not", spreading(tolerations=(toleration("dedicated", "Exists"),)),
           itself(EVEN)),
        yes("a node in some domain", EVEN, comes(IN_Z1)),
        no("a node in none", EVEN, comes(machine())),
        no("a node in a domain of one of two keys", spreading(spread("host")), comes(IN_Z1)),
        yes("a node in domains of both", spreading(spread("host")), comes(AT_HOST)),
        yes("a node that leaves its domain empty", EVEN, leaves(IN_Z1)),
        no("a node that was in no domain and leaves", EVEN, leaves(machine())),
        yes("a node that joins a domain", EVEN, turns(machine(), IN_Z1)),
        yes("a node that leaves one", EVEN, turns(IN_Z1, machine())),
        yes("a node that changes domains", EVEN, turns(IN_Z1, IN_Z2)),
        no("another label of a node", EVEN, turns(IN_Z1, machine(labels={ZONE: "z1", "x": "y"}))),
        yes("a node that no longer counts by the pod's affinity, though Kubernetes does not", ON_SSD,
            turns(machine(labels={ZONE: "z1", "disk": "ssd"}), IN_Z1)),
        yes("another taint on a node in a domain", PICKY,
            turns(IN_Z1, machine(labels={ZONE: "z1"}, taints=(taint(),)))),
        no("another taint on a node in none", PICKY, turns(machine(), machine(taints=(taint(),)))),
        no("a cordon", EVEN, turns(IN_Z1, machine(labels={ZONE: "z1"}, unschedulable=True))),
        no("a service, as it has constraints of its own", EVEN,
           seen(Service(metadata=ObjectMeta(name="s", namespace="default"), spec=ServiceSpec(selector={"app": "a"})))),
        yes("anything, if its selector cannot be read",
            spreading(first=spread(label_selector=selector(expression("app", "Around", "a")))), gone(other())),
    ],
)  # fmt: skip
def test_pod_topology_spread(waits: Pod, happens: Happens, expected: bool) -> None:
    check(PodTopologySpread(), waits, happens, expected)


OWNED = pod(
    labels={"app": "a"},
    owner_references=(OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="rs", uid="1", controller=True),),
)
SET = ReplicaSet(metadata=ObjectMeta(name="rs", namespace="default"), spec=SelectorSpec(selector=selector(app="a")))
SAME_SET_ELSEWHERE = ReplicaSet(metadata=ObjectMeta(name="rs", namespace="other"), spec=SET.spec)


@pytest.mark.parametrize(
    "waits,happens,expected",
    [
        yes("a pod of its service", PLAIN, beside(gone(other()), service(app="a"))),
        no("a pod of another service", PLAIN, beside(gone(other(labels={"app": "b"})), service(app="a"))),
        yes("a pod of its controller", OWNED, beside(gone(other()), SET)),
        yes("a node in some domain", PLAIN, comes(IN_Z1)),
        yes("a service that selects it, though Kubernetes does not", PLAIN, seen(service(app="a"))),
        yes("a service that selected it", PLAIN, seen(service(app="b"), service(app="a"))),
        yes("a service that selected it and is deleted", PLAIN, lost(service(app="a"))),
        no("a service that selects others", PLAIN, seen(service(app="b"))),
        no("a service in another namespace", PLAIN, seen(service(namespace="other", app="a"))),
        yes("its controller", OWNED, seen(SET)),
        no("a controller of the same name in another namespace", OWNED, seen(SAME_SET_ELSEWHERE)),
        no("somebody's controller", PLAIN, seen(SET)),
    ],
)
def test_pod_topology_spread_by_default(waits: Pod, happens: Happens, expected: bool) -> None:
    by_default = PodTopologySpread(default_constraints=(spread(label_selector=None),), system_defaulted=False)
    check(by_default, waits, happens, expected)


# -- volumes ---------------------------------------------------------------------------------------------------------


HAS_C1, HAS_DISK = pod(volumes=claimed("c1")), pod(volumes=disk("d"))
HAS_SCRATCH = pod("w", uid="w", volumes=(ephemeral(),))
SCRATCH = waiting("w-scratch", owner="w")
ONCE = claim("c1", volume="v1", modes=("ReadWriteOncePod",))


@pytest.mark.parametrize(
    "waits,happens,expected",
    [
        yes("any node", HAS_DISK, comes(machine())),
        no("labels of a node", HAS_DISK, turns(machine(), IN_Z1)),
        yes("a pod that had the disk", HAS_DISK, gone(other(volumes=disk("d")))),
        yes("one of another namespace too, though Kubernetes does not", HAS_DISK,
            gone(other(namespace="other", volumes=disk("d")))),
        no("a pod with another disk", HAS_DISK, gone(other(volumes=disk("e")))),
        no("a pod that only read it, if it only reads it", pod(volumes=disk("d", read_only=True)),
           gone(other(volumes=disk("d", read_only=True)))),
        yes("a pod that used its claim", HAS_C1, gone(other(volumes=claimed("c1")))),
        yes("one that was lost with its node: nobody else in the cluster may use the claim", HAS_C1,
            leaves(machine(), other(volumes=claimed("c1")))),
        no("a pod that used another claim", HAS_C1, gone(other(volumes=claimed("c2")))),
        no("a pod with a claim of that name in another namespace", HAS_C1,
           gone(other(namespace="other", volumes=claimed("c1")))),
        yes("its claim", HAS_C1, seen(ONCE)),
        no("another claim", HAS_C1, seen(claim("c2"))),
        no("a claim of that name in another namespace", HAS_C1, seen(claim("c1", namespace="other"))),
        yes("its claim made anew, for many", HAS_C1, seen(claim("c1", volume="v1"), ONCE)),
        no("its claim with other labels", HAS_C1, seen(labelled(ONCE, x="y"), ONCE)),
    ],
)  # fmt: skip
def test_volume_restrictions(waits: Pod, happens: Happens, expected: bool) -> None:
    check(VolumeRestrictions(), waits, happens, expected)


@pytest.mark.parametrize(
    "waits,happens,expected",
    [
        yes("any node, though Kubernetes does not", HAS_C1, comes(machine())),
        yes("any CSINode", HAS_C1, seen(csi_node("n1"))),
        yes("a limit that rises", HAS_C1, seen(csi_node("n1", {DRIVER: 2}), csi_node("n1", {DRIVER: 1}))),
        no("a limit that falls", HAS_C1, seen(csi_node("n1", {DRIVER: 1}), csi_node("n1", {DRIVER: 2}))),
        yes("a limit that ends, though Kubernetes does not", HAS_C1,
            seen(csi_node("n1", {DRIVER: None}), csi_node("n1", {DRIVER: 1}))),
        yes("a driver that goes, though Kubernetes does not", HAS_C1,
            seen(csi_node("n1"), csi_node("n1", {DRIVER: 1}))),
        yes("a CSINode that goes, though Kubernetes does not", HAS_C1, lost(csi_node("n1", {DRIVER: 1}))),
        no("another annotation of a CSINode", HAS_C1,
           seen(csi_node("n1", {DRIVER: 1}, migrated="x"), csi_node("n1", {DRIVER: 1}))),
        yes("a pod with a claim that leaves", HAS_C1, gone(other(volumes=claimed("c9")))),
        yes("a pod with a volume of its own that leaves", HAS_C1, gone(other(volumes=(ephemeral(),)))),
        yes("a pod with a disk that leaves", HAS_C1, gone(other(volumes=disk("d")))),
        no("a pod without volumes", HAS_C1, gone(other())),
        no("the pods of a node that has left too", HAS_C1, leaves(machine(), other(volumes=claimed("c9")))),
        yes("a pod that comes and has its volume attached, though Kubernetes does not", HAS_C1,
            bound(other(volumes=claimed("c1")))),
        no("a pod that comes with another volume", HAS_C1, bound(other(volumes=claimed("c9")))),
        yes("its claim", HAS_C1, seen(claim("c1"))),
        yes("the claim of its own volume", HAS_SCRATCH, seen(SCRATCH)),
        no("another claim", HAS_C1, seen(claim("c9"))),
        yes("its claim when it changes", HAS_C1, seen(claim("c1", volume="v1"), waiting("c1"))),
        yes("another claim that is bound: its volume no longer counts twice, though Kubernetes does not", HAS_C1,
            seen(claim("c9", volume="v9"), waiting("c9"))),
        no("another claim with other labels", HAS_C1, seen(labelled(claim("c9"), x="y"), claim("c9"))),
        yes("a volume of a claim", HAS_C1, seen(volume("v9", claim_ref=("default", "c9")))),
        no("a volume of nobody", HAS_C1, seen(volume("v9"))),
        no("a volume that is claimed", HAS_C1, seen(volume("v9", claim_ref=("default", "c9")), volume("v9"))),
        yes("a volume of another driver now", HAS_C1, seen(volume("v9", driver="x"), volume("v9"))),
        yes("an attachment that goes", HAS_C1, lost(attachment("x", "n1", "v9"))),
        yes("an attachment that goes, if it has a volume of its own, though Kubernetes does not", HAS_SCRATCH,
            lost(attachment("x", "n1", "v9"))),
        yes("an attachment by its disk's driver", HAS_DISK, lost(attachment("x", "n1", "v9", GCE_PD.driver))),
        no("an attachment by another driver", HAS_DISK, lost(attachment("x", "n1", "v9"))),
    ],
)  # fmt: skip
def test_node_volume_limits(waits: Pod, happens: Happens, expected: bool) -> None:
    check(NodeVolumeLimits(), waits, happens, expected)


WIDE, NARROW = storage_class(), storage_class(topologies=({ZONE: ("z1",)},))
ALL = selector()


@pytest.mark.parametrize(
    "waits,happens,expected",
    [
        yes("any class", HAS_C1, seen(WIDE)),
        yes("other topologies of a class", HAS_C1, seen(WIDE, NARROW)),
        yes("a class made anew that binds late", HAS_C1, seen(WIDE, storage_class(late=False))),
        no("other labels of a class", HAS_C1, seen(labelled(WIDE, x="y"), WIDE)),
        yes("its claim", HAS_C1, seen(claim("c1"))),
        yes("any change of its claim", HAS_C1, seen(labelled(claim("c1"), x="y"), claim("c1"))),
        yes("the claim of its own volume", HAS_SCRATCH, seen(SCRATCH)),
        no("another claim", HAS_C1, seen(claim("c9"))),
        no("a claim of that name in another namespace", HAS_C1, seen(claim("c1", namespace="other"))),
        yes("any volume", HAS_C1, seen(volume("v9"))),
        yes("any change of a volume", HAS_C1, seen(labelled(volume("v9"), x="y"), volume("v9"))),
        yes("a volume that goes, though Kubernetes does not", HAS_C1, lost(volume("v9"))),
        yes("any node", HAS_C1, comes(machine())),
        yes("labels of a node", HAS_C1, turns(machine(), IN_Z1)),
        no("taints of a node", HAS_C1, turns(machine(taints=(taint(),)), machine())),
        yes("any CSINode", HAS_C1, seen(csi_node("n1"))),
        yes("a plugin that is handed over", HAS_C1, seen(csi_node("n1", migrated=GCE_PD.name), csi_node("n1"))),
        no("another limit of a CSINode", HAS_C1, seen(csi_node("n1", {DRIVER: 2}), csi_node("n1", {DRIVER: 1}))),
        yes("a driver that no longer tells its space", HAS_C1, seen(csi_driver(storage_capacity=False), csi_driver())),
        no("a driver that begins to tell it", HAS_C1, seen(csi_driver(), csi_driver(storage_capacity=False))),
        yes("a driver that goes", HAS_C1, lost(csi_driver())),
        yes("any space", HAS_C1, seen(capacity("k", "late", ALL, "1Gi"))),
        yes("more space", HAS_C1, seen(capacity("k", "late", ALL, "2Gi"), capacity("k", "late", ALL, "1Gi"))),
        no("less space", HAS_C1, seen(capacity("k", "late", ALL, "1Gi"), capacity("k", "late", ALL, "2Gi"))),
        no("more space and no larger volumes", HAS_C1,
           seen(capacity("k", "late", ALL, "2Gi", "1Gi"), capacity("k", "late", ALL, "1Gi", "1Gi"))),
        yes("larger volumes", HAS_C1,
            seen(capacity("k", "late", ALL, "2Gi", "2Gi"), capacity("k", "late", ALL, "2Gi", "1Gi"))),
        yes("space that is told at last", HAS_C1,
            seen(capacity("k", "late", ALL, "1Gi"), capacity("k", "late", ALL, None))),
        yes("space for other nodes", HAS_C1,
            seen(capacity("k", "late", ALL, "1Gi"), capacity("k", "late", selector(a="b"), "1Gi"))),
        no("a pod that leaves", HAS_C1, gone(other(volumes=claimed("c1")))),
    ],
)  # fmt: skip
def test_volume_binding(waits: Pod, happens: Happens, expected: bool) -> None:
    check(VolumeBinding(), waits, happens, expected)


@pytest.mark.parametrize(
    "waits,happens,expected",
    [
        yes("a class that binds late", HAS_C1, seen(WIDE)),
        no("a class that binds at once", HAS_C1, seen(storage_class(late=False))),
        yes("a class made anew that binds late", HAS_C1, seen(WIDE, storage_class(late=False))),
        no("other topologies of a class", HAS_C1, seen(WIDE, NARROW)),
        yes("any node", HAS_C1, comes(machine())),
        yes("labels of a node", HAS_C1, turns(machine(), IN_Z1)),
        yes("its claim", HAS_C1, seen(claim("c1"))),
        yes("any change of its claim", HAS_C1, seen(claim("c1", volume="v1"), waiting("c1"))),
        no("another claim", HAS_C1, seen(claim("c9"))),
        no("the claim of its own volume: it has no zone yet", HAS_SCRATCH, seen(SCRATCH)),
        yes("any volume", HAS_C1, seen(volume("v9"))),
        yes("another zone of a volume", HAS_C1,
            seen(volume("v9", labels={ZONE: "z1"}), volume("v9", labels={ZONE: "z2"}))),
        no("another label of a volume", HAS_C1,
           seen(volume("v9", labels={ZONE: "z1", "x": "y"}), volume("v9", labels={ZONE: "z1"}))),
        no("a volume that goes", HAS_C1, lost(volume("v9"))),
    ],
)  # fmt: skip
def test_volume_zone(waits: Pod, happens: Happens, expected: bool) -> None:
    check(VolumeZone(), waits, happens, expected)


# -- promises, and plugins inside plugins ----------------------------------------------------------------------------


@pytest.mark.parametrize("priority,expected", [(4, True), (5, True), (6, False)])
def test_the_end_of_a_promise_matters_to_pods_that_the_promised_one_outranked_or_equalled(
    priority: int, expected: bool
) -> None:
    """Those of higher priority never took the promised room for taken."""

    def happens(cluster: Cluster, _: Pod) -> Sequence[WakeEvent]:
        return [nomination_ended(cluster.class_of(pod("promised", priority=5)), "n1", cluster.objects)]

    check(NodeResourcesFit(), pod(cpu="1", priority=priority), happens, expected)


def test_a_filter_that_is_asked_before_nodes_only_is_as_discerning() -> None:
    check(pre_filter_only(NodeAffinity()), pod(node_selector={"disk": "ssd"}), comes(machine()), False)
    check(pre_filter_only(NodeAffinity()), pod(node_selector={"disk": "ssd"}), comes(SSD), True)


class Particular:
    """Somebody's filter."""

    reasons = (Reason("node(s) were not the one", eviction_helps=False),)
    wakes_on = frozenset({Wake.NODE_ADDED})

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def wakes(self, _: object, event: WakeEvent) -> bool:
        if isinstance(self.answer, Exception):
            raise self.answer
        return bool(self.answer)


class Whole(Particular):
    def check(self, _pod: object, _view: object) -> None: ...


class Single(Particular):
    def check_one(self, _pod: object, _node: object) -> None: ...


@pytest.mark.parametrize("kind", [Whole, Single])
@pytest.mark.parametrize(
    "answer,expected",
    [
        pytest.param(True, True, id="what it says is worth it wakes"),
        pytest.param(False, False, id="what it says is not does not"),
        pytest.param(ValueError("no idea"), True, id="where it raises, the pod is not stranded"),
    ],
)
def test_a_filter_of_somebody_else_may_be_discerning(kind: type, answer: Any, expected: bool) -> None:
    plugin = as_filter("Particular", kind(answer))
    assert plugin is not None
    check(plugin, pod(), comes(machine()), expected)
    check(plugin, pod(), gone(other()), False)
