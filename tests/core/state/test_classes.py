"""Pod classes: which pods are of one class, and what is compiled of them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from builders import container, pod, selector, toleration
from situate.core.model.meta import OwnerReference
from situate.core.model.pod import (
    Affinity,
    ContainerPort,
    ContainerStatus,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodCondition,
    ResourceRequirements,
    WeightedPodAffinityTerm,
)
from situate.core.model.volumes import Ephemeral, GCEPersistentDisk, PersistentVolumeClaimSource, Volume
from situate.core.state.classes import CPU, MEMORY, PODS, HostPort, PodClass, TermKind, compiled_once, signature
from situate.core.state.cluster import Cluster

OWNER = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web", uid="rs", controller=True)
SCRATCH = Volume(name="scratch", ephemeral=Ephemeral())
PENDING = PodCondition(type="PodResizePending", status="True", reason="Infeasible", message="too large")
RESIZED = ContainerStatus(name="c", resources=ResourceRequirements(requests={"cpu": "2"}))


def compiled(**fields: Any) -> PodClass:
    return Cluster().class_of(pod("p", **fields))


@pytest.mark.parametrize(
    "one,other",
    [
        pytest.param(pod("a", uid="1"), pod("b", uid="2"), id="name and uid"),
        pytest.param(pod("a"), pod("a", node_name="n"), id="the node"),
        pytest.param(pod("a"), pod("a", phase="Running", start_time="2026-01-01T00:00:00Z"), id="phase and start"),
        pytest.param(pod("a"), pod("a", creation_timestamp="2026-01-01T00:00:00Z"), id="age"),
        pytest.param(pod("a"), pod("a", deletion_timestamp="2026-01-01T00:00:00Z"), id="being deleted"),
        pytest.param(pod("a"), pod("a", annotations={"note": "x"}), id="annotations"),
        pytest.param(pod("a"), pod("a", conditions=(PodCondition(type="Ready"),)), id="conditions"),
        pytest.param(pod("a"), pod("a", container_statuses=(ContainerStatus(name="c"),)), id="containers that run"),
        pytest.param(
            pod("a", container_statuses=(RESIZED,)),
            pod("a", container_statuses=(ContainerStatus(name="d"), RESIZED)),
            id="containers that run beside one that was resized",
        ),
        pytest.param(
            pod("a", container_statuses=(RESIZED,), conditions=(PENDING,)),
            pod("a", container_statuses=(RESIZED,), conditions=(replace(PENDING, message="in other words"),)),
            id="what is said about a resize that can never happen",
        ),
        pytest.param(
            pod("a"),
            pod("a", owner_references=(OwnerReference(kind="Node", uid="x"),)),
            id="an owner that does not control it",
        ),
    ],
)
def test_pods_that_differ_in_this_alone_are_of_one_class(one: Pod, other: Pod) -> None:
    assert signature(one) == signature(other)


@pytest.mark.parametrize(
    "one,other",
    [
        pytest.param(pod("a"), pod("a", namespace="other"), id="namespace"),
        pytest.param(pod("a"), pod("a", labels={"app": "web"}), id="labels"),
        pytest.param(pod("a", cpu="1"), pod("a", cpu="2"), id="requests"),
        pytest.param(pod("a"), pod("a", priority=1), id="priority"),
        pytest.param(pod("a"), pod("a", tolerations=(toleration("k"),)), id="tolerations"),
        pytest.param(pod("a"), pod("a", owner_references=(OWNER,)), id="the owner that controls it"),
        pytest.param(pod("a"), pod("a", container_statuses=(RESIZED,)), id="what a resize reached"),
        pytest.param(
            pod("a", volumes=(SCRATCH,)),
            pod("b", volumes=(SCRATCH,)),
            id="the name, where a claim is named after the pod",
        ),
        pytest.param(
            pod("a", container_statuses=(RESIZED,)),
            pod(
                "a",
                container_statuses=(RESIZED,),
                conditions=(PodCondition(type="PodResizePending", reason="Infeasible"),),
            ),
            id="that a resize can never happen",
        ),
    ],
)
def test_pods_that_differ_in_this_are_of_two_classes(one: Pod, other: Pod) -> None:
    assert signature(one) != signature(other)


def test_a_pod_takes_what_it_requests_and_one_of_the_pods_that_a_node_can_run() -> None:
    cluster = Cluster()
    kind = cluster.class_of(pod(requests={"cpu": "1500m", "memory": "1Ki", "example.com/gpu": 2, "example.com/no": 0}))
    gpu = cluster.resources.find("example.com/gpu")
    assert kind.takes == ((CPU, 1500), (MEMORY, 1024), (PODS, 1), (gpu, 2))
    assert kind.asks == kind.takes
    assert kind.nonzero == (1500, 1024)


def test_who_asks_for_nothing_counts_for_a_little_where_nodes_are_compared() -> None:
    kind = compiled()
    assert (kind.takes, kind.nonzero) == (((PODS, 1),), (100, 200 << 20))


def test_where_the_first_pod_of_a_class_is_bound_is_no_part_of_the_class() -> None:
    kind = compiled(node_name="somewhere")
    assert kind.spec.node_name == ""
    assert kind.signature == signature(pod("other"))


def test_host_ports_are_those_of_containers_and_sidecars() -> None:
    def ported(name: str, port: int, **fields: Any) -> Any:
        return container(name, ports=(ContainerPort(host_port=port, container_port=port),), **fields)

    kind = compiled(
        init_containers=(ported("i", 1), ported("s", 2, restart_policy="Always")),
        containers=(ported("c", 3), container("d", ports=(ContainerPort(container_port=4),))),
    )
    assert kind.host_ports == (HostPort("0.0.0.0", "TCP", 2), HostPort("0.0.0.0", "TCP", 3))


@pytest.mark.parametrize(
    "volume,held",
    [
        pytest.param(Volume(name="token"), False, id="a secret or the like is not"),
        pytest.param(SCRATCH, True, id="an ephemeral volume is"),
        pytest.param(
            Volume(name="d", persistent_volume_claim=PersistentVolumeClaimSource(claim_name="d")), True, id="a claim is"
        ),
        pytest.param(Volume(name="d", gce_persistent_disk=GCEPersistentDisk(pd_name="d")), True, id="a disk is"),
    ],
)
def test_volumes_that_are_looked_for_on_nodes(volume: Volume, held: bool) -> None:
    assert compiled(volumes=(volume,)).holds_volumes is held


def test_terms_are_compiled_with_the_namespaces_that_they_speak_of() -> None:
    web = selector(app="web")
    own = PodAffinityTerm(label_selector=web, topology_key="a")
    named = PodAffinityTerm(label_selector=web, topology_key="b", namespaces=("y", "x", "y"))
    chosen = PodAffinityTerm(label_selector=web, topology_key="c", namespace_selector=selector())
    kind = compiled(
        namespace="mine",
        affinity=Affinity(
            pod_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=(own, named)),
            pod_anti_affinity=PodAffinity(
                preferred_during_scheduling_ignored_during_execution=(
                    WeightedPodAffinityTerm(weight=7, pod_affinity_term=chosen),
                )
            ),
        ),
    )
    told = [(term.kind, term.topology_key, term.weight, term.pods.namespaces) for term in kind.terms]
    assert told == [
        (TermKind.REQUIRED_AFFINITY, "a", 0, ("mine",)),
        (TermKind.REQUIRED_AFFINITY, "b", 0, ("x", "y")),
        (TermKind.PREFERRED_ANTI_AFFINITY, "c", 7, ()),
    ]
    assert kind.terms[2].pods.namespace_selector is not None
    assert kind.terms_of(TermKind.PREFERRED_ANTI_AFFINITY) == kind.terms[2:]


def test_classes_with_the_same_labels_share_a_group() -> None:
    cluster = Cluster()
    one = cluster.class_of(pod(labels={"app": "web", "tier": "x"}, cpu="1"))
    other = cluster.class_of(pod(labels={"tier": "x", "app": "web"}, cpu="2"))
    apart = cluster.class_of(pod(labels={"app": "web", "tier": "x"}, namespace="other"))
    assert one.group is other.group
    assert one.group is not apart.group
    assert one.id < other.id < apart.id


def test_what_plugins_compile_of_a_class_is_computed_once_for_each_key() -> None:
    kind = Cluster().class_of(pod("p"))
    asked: list[str] = []

    def name_of(one: PodClass) -> str:
        asked.append(one.pod.metadata.name)
        return one.pod.metadata.name

    assert [compiled_once(kind, key, name_of) for key in ("a", "b", "a")] == ["p", "p", "p"]
    assert asked == ["p", "p"]
