"""The default selector gathers what a pod's services and its controller select by."""

import pytest

from situate.core.model.labels import EVERYTHING, LabelSelector, LabelSelectorRequirement, Requirement, selector_of
from situate.core.model.meta import ObjectMeta, OwnerReference
from situate.core.model.named import NamedObject
from situate.core.model.pod import Pod
from situate.core.model.workloads import (
    ReplicaSet,
    ReplicationController,
    ReplicationControllerSpec,
    SelectorSpec,
    Service,
    ServiceSpec,
    StatefulSet,
)
from situate.core.plugins.support.default_selector import default_selector
from situate.core.state.cluster import Cluster

WEB = {"app": "web", "tier": "front"}


def service(name: str, namespace: str = "default", **selector: str) -> Service:
    return Service(metadata=ObjectMeta(name=name, namespace=namespace), spec=ServiceSpec(selector=selector))


def named(name: str) -> ObjectMeta:
    return ObjectMeta(name=name, namespace="default")


def owner(api_version: str, kind: str, name: str = "own", controller: bool = True) -> OwnerReference:
    return OwnerReference(api_version=api_version, kind=kind, name=name, uid="u", controller=controller)


def selected(*objects: NamedObject, owned_by: OwnerReference | None = None) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Key -> operator and values, of the selector of a pod with the labels WEB."""
    cluster = Cluster()
    for item in objects:
        cluster.put_object(item)
    owners = () if owned_by is None else (owned_by,)
    pod = Pod(metadata=ObjectMeta(name="p", namespace="default", labels=WEB, owner_references=owners))
    found = default_selector(cluster.class_of(pod), cluster.objects.workloads)
    return {one.key: (one.operator, one.values) for one in found.requirements}


IS_WEB = {"app": ("In", ("web",))}


def test_a_pod_that_nobody_selects_has_an_empty_selector() -> None:
    cluster = Cluster()
    pod = cluster.class_of(Pod(metadata=ObjectMeta(name="p", namespace="default", labels=WEB)))
    assert default_selector(pod, cluster.objects.workloads) == EVERYTHING


def test_the_selectors_of_all_matching_services_are_merged() -> None:
    found = selected(service("a", app="web"), service("b", tier="front"), service("c", app="db"))
    assert found == {**IS_WEB, "tier": ("In", ("front",))}


def test_services_of_other_namespaces_and_without_a_selector_do_not_count() -> None:
    assert selected(service("a", "other", app="web"), service("b")) == {}


@pytest.mark.parametrize("version", ["v1", "/v1"])
def test_a_replication_controller_adds_its_selector_and_wins_over_services(version: str) -> None:
    spec = ReplicationControllerSpec(selector={"app": "other", "track": "stable"})
    controller = ReplicationController(metadata=named("own"), spec=spec)
    found = selected(service("a", app="web"), controller, owned_by=owner(version, "ReplicationController"))
    assert found == {"app": ("In", ("other",)), "track": ("In", ("stable",))}


@pytest.mark.parametrize("kind", [ReplicaSet, StatefulSet])
def test_sets_add_every_requirement_of_their_selector(kind: type[ReplicaSet] | type[StatefulSet]) -> None:
    expression = LabelSelectorRequirement(key="hash", operator="Exists")
    selector = LabelSelector(match_labels={"tier": "front"}, match_expressions=(expression,))
    own = kind(metadata=named("own"), spec=SelectorSpec(selector=selector))
    found = selected(service("a", app="web"), own, owned_by=owner("apps/v1", kind.__name__))
    assert found == {**IS_WEB, "tier": ("In", ("front",)), "hash": ("Exists", ())}


def test_a_set_that_contradicts_a_service_is_asked_for_as_well() -> None:
    spec = SelectorSpec(selector=LabelSelector(match_labels={"app": "other"}))
    cluster = Cluster()
    cluster.put_object(service("a", app="web"))
    cluster.put_object(ReplicaSet(metadata=named("own"), spec=spec))
    meta = ObjectMeta(name="p", namespace="default", labels=WEB, owner_references=(owner("apps/v1", "ReplicaSet"),))
    found = default_selector(cluster.class_of(Pod(metadata=meta)), cluster.objects.workloads)
    assert found == selector_of([Requirement("app", "In", ("web",)), Requirement("app", "In", ("other",))])


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param(None, id="absent"),
        pytest.param(LabelSelector(), id="empty"),
        pytest.param(
            LabelSelector(match_expressions=(LabelSelectorRequirement(key="a", operator="Near"),)), id="not parsable"
        ),
    ],
)
def test_a_set_without_a_usable_selector_adds_nothing(selector: LabelSelector | None) -> None:
    own = ReplicaSet(metadata=named("own"), spec=SelectorSpec(selector=selector))
    assert selected(service("a", app="web"), own, owned_by=owner("apps/v1", "ReplicaSet")) == IS_WEB


@pytest.mark.parametrize(
    "owned_by",
    [
        pytest.param(owner("apps/v1beta1", "ReplicaSet"), id="of another version"),
        pytest.param(owner("v1", "ReplicaSet"), id="of another group"),
        pytest.param(owner("batch/v1", "Job"), id="of another kind"),
        pytest.param(owner("apps/v1", "ReplicaSet", name="gone"), id="that is not there"),
        pytest.param(owner("apps/v1", "ReplicaSet", controller=False), id="that does not manage the pod"),
    ],
)
def test_an_owner_is_not_asked(owned_by: OwnerReference) -> None:
    spec = SelectorSpec(selector=LabelSelector(match_labels={"tier": "front"}))
    own = ReplicaSet(metadata=named("own"), spec=spec)
    assert selected(service("a", app="web"), own, owned_by=owned_by) == IS_WEB
