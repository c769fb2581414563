"""What the API server fills in is filled in, and what needs nothing is not touched."""

from typing import Any

import pytest

from builders import container, expression, node, pod, selector
from situate.core.model.base import Model
from situate.core.model.defaults import defaulted
from situate.core.model.labels import LabelSelector
from situate.core.model.meta import ObjectMeta
from situate.core.model.pod import (
    Affinity,
    ContainerPort,
    PodAffinity,
    PodAffinityTerm,
    ResourceRequirements,
    WeightedPodAffinityTerm,
)
from situate.core.model.policy import Namespace, PodDisruptionBudget, PriorityClass
from situate.core.model.storage import (
    CSIDriverSpec,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from situate.core.model.volumes import RBD
from situate.core.model.workloads import (
    PodTemplate,
    ReplicaSet,
    ReplicationController,
    ReplicationControllerSpec,
    Service,
    StatefulSet,
)

NAMELESS = ObjectMeta(name="x")


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(pod(cpu="1", memory="1Gi", labels={"a": "b"}), id="a pod with requests"),
        pytest.param(pod(containers=(container(cpu="1", limits={"cpu": "2"}),)), id="a pod with limits above requests"),
        pytest.param(
            pod(containers=(container(ports=(ContainerPort(container_port=80, host_port=80),)),), host_network=True),
            id="a host network pod with host ports",
        ),
        pytest.param(pod(affinity=Affinity(pod_affinity=PodAffinity())), id="a pod with affinity"),
        pytest.param(node(cpu="1", labels={"a": "b"}), id="a node"),
        pytest.param(
            Namespace(metadata=ObjectMeta(name="x", labels={"kubernetes.io/metadata.name": "x"})), id="a namespace"
        ),
        pytest.param(Service(metadata=ObjectMeta(name="x", namespace="y")), id="a service"),
        pytest.param(PersistentVolume(metadata=NAMELESS), id="a volume, which has no namespace"),
        pytest.param(PriorityClass(metadata=NAMELESS), id="a priority class, which has no namespace"),
    ],
)
def test_an_object_that_needs_nothing_is_given_back_itself(obj: Model) -> None:
    assert defaulted(obj) is obj


@pytest.mark.parametrize(
    "kind",
    [Service, ReplicaSet, StatefulSet, ReplicationController, PersistentVolumeClaim, PodDisruptionBudget]
    + [CSIStorageCapacity],
)
def test_what_has_a_namespace_is_in_the_default_one(kind: type[Any]) -> None:
    assert defaulted(kind(metadata=NAMELESS)).metadata == ObjectMeta(name="x", namespace="default")


def test_a_pod_is_in_the_default_namespace_and_of_the_default_scheduler() -> None:
    bare = defaulted(pod(namespace="", scheduler_name=""))
    assert bare.metadata.namespace == "default"
    assert bare.spec.scheduler_name == "default-scheduler"


def test_a_limit_without_a_request_is_the_request() -> None:
    one = container(requests={"cpu": "1"}, limits={"cpu": "2", "memory": "1Gi"})
    filled = defaulted(pod(containers=(one,), init_containers=(container("i", limits={"cpu": "3"}),)))
    assert filled.spec.containers[0].resources.requests == {"cpu": "1", "memory": "1Gi"}
    assert filled.spec.init_containers[0].resources.requests == {"cpu": "3"}


def test_ports_are_tcp_and_on_a_host_network_the_hosts() -> None:
    ports = (ContainerPort(container_port=80, protocol=""), ContainerPort(container_port=81, host_port=8081))
    inside = defaulted(pod(containers=(container(ports=ports),))).spec.containers[0].ports
    assert [(port.protocol, port.host_port) for port in inside] == [("TCP", 0), ("TCP", 8081)]
    on_host = defaulted(pod(containers=(container(ports=ports),), host_network=True)).spec.containers[0].ports
    assert [port.host_port for port in on_host] == [80, 8081]


def test_a_pods_own_limits_become_requests() -> None:
    own = ResourceRequirements(limits={"cpu": "4", "memory": "1Gi"})
    asked = (container("a", cpu="1"), container("b", cpu="1500u"))
    spec = defaulted(pod(containers=asked, resources=own)).spec
    assert spec.resources is not None
    assert spec.resources.requests == {"cpu": "1001500000n", "memory": "1Gi"}
    assert spec.resources.limits == own.limits


def test_a_pods_own_requests_alone_add_nothing() -> None:
    own = ResourceRequirements(requests={"memory": "1Gi"})
    asking = pod(cpu="1", resources=own)
    assert defaulted(asking) is asking
    assert defaulted(pod(resources=ResourceRequirements())).spec.resources == ResourceRequirements()


def test_a_pods_own_huge_pages_come_from_its_containers_limits() -> None:
    pages = {"hugepages-2Mi": "4Mi"}
    asking = pod(
        containers=(container(requests=pages, limits=pages),), resources=ResourceRequirements(requests={"cpu": "1"})
    )
    own = defaulted(asking).spec.resources
    assert own is not None
    assert own.requests == {"cpu": "1", "hugepages-2Mi": "4194304000000000n"}
    assert own.limits == {"hugepages-2Mi": "4194304000000000n"}


def term(
    selected: LabelSelector | None, match: tuple[str, ...] = (), mismatch: tuple[str, ...] = ()
) -> PodAffinityTerm:
    return PodAffinityTerm(
        topology_key="zone", label_selector=selected, match_label_keys=match, mismatch_label_keys=mismatch
    )


def test_match_label_keys_become_part_of_the_selector() -> None:
    asking = pod(
        labels={"hash": "7", "tenant": "t"},
        affinity=Affinity(
            pod_affinity=PodAffinity(
                required_during_scheduling_ignored_during_execution=(
                    term(selector(app="web"), ("hash", "absent"), ("tenant",)),
                    term(None, ("hash",)),
                )
            ),
            pod_anti_affinity=PodAffinity(
                preferred_during_scheduling_ignored_during_execution=(
                    WeightedPodAffinityTerm(weight=5, pod_affinity_term=term(selector(), ("hash",))),
                )
            ),
        ),
    )
    filled = defaulted(asking)
    affinity = filled.spec.affinity
    assert affinity is not None
    assert affinity.pod_affinity is not None
    assert affinity.pod_anti_affinity is not None
    first, second = affinity.pod_affinity.required_during_scheduling_ignored_during_execution
    (liked,) = affinity.pod_anti_affinity.preferred_during_scheduling_ignored_during_execution
    assert first.label_selector == selector(
        expression("hash", "In", "7"), expression("tenant", "NotIn", "t"), app="web"
    )
    assert second.label_selector is None
    assert liked.weight == 5
    assert liked.pod_affinity_term.label_selector == selector(expression("hash", "In", "7"))
    assert defaulted(filled) == filled


def test_a_node_that_states_no_allocatable_gives_all_it_has() -> None:
    assert defaulted(node(capacity={"cpu": "4"})).status.allocatable == {"cpu": "4"}
    assert defaulted(node(capacity={"cpu": "4"}, allocatable={"cpu": "3"})).status.allocatable == {"cpu": "3"}
    assert defaulted(node(capacity={"cpu": "4"}, allocatable={})).status.allocatable == {}


def test_a_namespace_is_labelled_with_its_name() -> None:
    labels = {"kubernetes.io/metadata.name": "wrong", "team": "a"}
    filled = defaulted(Namespace(metadata=ObjectMeta(name="prod", labels=labels)))
    assert filled.metadata.labels == {"kubernetes.io/metadata.name": "prod", "team": "a"}
    assert labels["kubernetes.io/metadata.name"] == "wrong"


def test_a_replication_controller_selects_its_templates_labels() -> None:
    template = PodTemplate(metadata=ObjectMeta(labels={"app": "web"}))
    controller = ReplicationController(metadata=NAMELESS, spec=ReplicationControllerSpec(template=template))
    assert defaulted(controller).spec.selector == {"app": "web"}
    assert defaulted(controller).metadata.namespace == "default"
    chosen = ReplicationControllerSpec(selector={"app": "db"}, template=template)
    assert defaulted(ReplicationController(metadata=NAMELESS, spec=chosen)).spec.selector == {"app": "db"}


def test_other_defaults_are_those_of_the_fields() -> None:
    assert StorageClass().volume_binding_mode == "Immediate"
    assert (CSIDriverSpec().attach_required, CSIDriverSpec().storage_capacity) == (True, False)
    assert PersistentVolume().spec.volume_mode == PersistentVolumeClaim().spec.volume_mode == "Filesystem"
    assert PriorityClass().preemption_policy == "PreemptLowerPriority"
    assert RBD().pool == "rbd"
