"""Changes told as wake-ups: one event for each way in which something changed, with what was before."""

from typing import Any

import pytest

from builders import container, node, pod, selector, taint, toleration
from situate.core.contract import Wake, WakeEvent
from situate.core.engine.wake_events import (
    bound_pod_events,
    node_events,
    node_left,
    nomination_ended,
    object_events,
    own_events,
)
from situate.core.model.meta import ObjectMeta
from situate.core.model.node import Node
from situate.core.model.pod import Affinity, ContainerPort, Pod, PodAffinity, PodAffinityTerm
from situate.core.model.policy import Namespace, PodDisruptionBudget
from situate.core.model.workloads import ReplicaSet, Service
from situate.core.state.classes import CPU, PODS
from situate.core.state.cluster import Cluster
from storage_builders import (
    attachment,
    capacity,
    claim,
    claimed,
    csi_driver,
    csi_node,
    storage_class,
    volume,
)

GPU = "example.com/gpu"


def kinds(events: Any) -> list[Wake]:
    return [event.kind for event in events]


def of_node(before: Node | None, after: Node) -> list[WakeEvent]:
    cluster = Cluster()
    for one in (before, after):
        if one is not None:
            cluster.add_node(one)
    return list(node_events(before, after, cluster.resources))


# -- nodes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "after,expected",
    [
        pytest.param(node(cpu="2"), [Wake.NODE_ALLOCATABLE], id="more room"),
        pytest.param(node(cpu="1", labels={"a": "b"}), [Wake.NODE_LABEL], id="a label"),
        pytest.param(node(cpu="1", taints=(taint(),)), [Wake.NODE_TAINT], id="a taint"),
        pytest.param(node(cpu="1", unschedulable=True), [Wake.NODE_TAINT], id="a cordon counts as a taint"),
        pytest.param(node(cpu="1", declared_features=("X",)), [Wake.NODE_DECLARED_FEATURE], id="a feature"),
        pytest.param(node(cpu="1", annotations={"a": "b"}), [], id="an annotation is nothing"),
        pytest.param(
            node(cpu="2", labels={"a": "b"}, taints=(taint(),), declared_features=("X",)),
            [Wake.NODE_ALLOCATABLE, Wake.NODE_LABEL, Wake.NODE_TAINT, Wake.NODE_DECLARED_FEATURE],
            id="all at once are as many events",
        ),
    ],
)
def test_a_node_that_changes_is_an_event_for_each_way_in_which_it_did(after: Node, expected: list[Wake]) -> None:
    before = node(cpu="1")
    events = of_node(before, after)
    assert kinds(events) == expected
    assert all(event.node is after and event.node_before is before for event in events)


def test_a_node_that_comes_is_one_event_however_it_looks_and_tells_its_room() -> None:
    (event,) = of_node(None, node(cpu="2", pods=5, labels={"a": "b"}, taints=(taint(),), allocatable={GPU: 1}))
    assert (event.kind, event.node_before, event.room_before) == (Wake.NODE_ADDED, None, None)
    assert event.room is not None
    assert (event.room[CPU], event.room[PODS], sorted(event.room.values())[-3:]) == (2_000, 5, [1, 5, 2_000])


def test_room_that_changes_is_told_with_what_it_was() -> None:
    (event,) = of_node(node(cpu="1"), node(cpu="2"))
    assert event.room is not None
    assert event.room_before is not None
    assert (event.room_before[CPU], event.room[CPU]) == (1_000, 2_000)


def test_a_node_that_leaves_takes_its_pods_with_it_each_class_told_once_and_of_no_node() -> None:
    cluster = Cluster()
    same, other = cluster.class_of(pod("a")), cluster.class_of(pod("b", labels={"x": "y"}))
    events = list(node_left(node("n1"), [same, other, same], cluster.objects))
    assert kinds(events) == [Wake.NODE_DELETED, Wake.POD_DELETED, Wake.POD_DELETED]
    assert [event.pod for event in events[1:]] == [same, other]
    assert [event.node_name for event in events] == ["n1", "", ""]
    assert events[0].node_before == node("n1")


# -- bound pods ------------------------------------------------------------------------------------------------------


def at(cluster: Cluster, one: Pod | None) -> Any:
    if one is None:
        return None
    return cluster.class_of(one), one.spec.node_name, one.metadata.deletion_timestamp is not None


def of_pod(before: Pod | None, after: Pod | None) -> list[WakeEvent]:
    cluster = Cluster()
    return list(bound_pod_events(at(cluster, before), at(cluster, after), cluster.objects))


def running(node_name: str = "n1", **fields: Any) -> Pod:
    return pod("p", node_name=node_name, **{"cpu": "1", **fields})


DELETED = "2026-01-01T00:00:00Z"
SHUNS = Affinity(
    pod_anti_affinity=PodAffinity(
        required_during_scheduling_ignored_during_execution=(
            PodAffinityTerm(topology_key="zone", label_selector=selector(a="b")),
        )
    )
)


@pytest.mark.parametrize(
    "before,after,expected",
    [
        pytest.param(None, running(), [Wake.POD_ADDED], id="it came"),
        pytest.param(running(), None, [Wake.POD_DELETED], id="it left"),
        pytest.param(running(), running("n2"), [Wake.POD_DELETED, Wake.POD_ADDED], id="it is elsewhere now"),
        pytest.param(running(), running(labels={"a": "b"}), [Wake.POD_LABEL], id="other labels"),
        pytest.param(running(), running(cpu="500m"), [Wake.POD_SCALED_DOWN], id="it asks for less"),
        pytest.param(running(), running(cpu="2"), [], id="asking for more helps nobody"),
        pytest.param(running(), running(deletion_timestamp=DELETED), [Wake.POD_LEAVING], id="it is being deleted"),
        pytest.param(running(deletion_timestamp=DELETED), running(deletion_timestamp=DELETED), [], id="and still is"),
        pytest.param(
            running(),
            running(cpu="500m", labels={"a": "b"}, deletion_timestamp=DELETED),
            [Wake.POD_LABEL, Wake.POD_SCALED_DOWN, Wake.POD_LEAVING],
            id="all at once are as many events",
        ),
        pytest.param(
            running(containers=(container(ports=(ContainerPort(host_port=80),)),)),
            running(containers=(container(),)),
            [Wake.POD_DELETED, Wake.POD_ADDED],
            id="without its port it is another pod",
        ),
        pytest.param(
            running(volumes=claimed("c")), running(), [Wake.POD_DELETED, Wake.POD_ADDED], id="without its volume, too"
        ),
        pytest.param(
            running(affinity=SHUNS), running(), [Wake.POD_DELETED, Wake.POD_ADDED], id="without its terms, too"
        ),
        pytest.param(running(), running(tolerations=(toleration("x"),)), [], id="its tolerations are its own matter"),
        pytest.param(None, None, [], id="it was nowhere and is nowhere"),
    ],
)
def test_a_bound_pod(before: Pod | None, after: Pod | None, expected: list[Wake]) -> None:
    events = of_pod(before, after)
    assert kinds(events) == expected
    assert all(event.objects is not None and not event.own for event in events)


def test_who_leaves_is_told_of_where_it_was_and_who_comes_of_where_it_is() -> None:
    assert [event.node_name for event in of_pod(running("n1"), running("n2"))] == ["n1", "n2"]


def test_the_end_of_a_promise_is_as_if_the_pod_had_left_for_pods_up_to_its_priority() -> None:
    cluster = Cluster()
    event = nomination_ended(cluster.class_of(pod(priority=7)), "n1", cluster.objects)
    assert (event.kind, event.node_name, event.up_to) == (Wake.POD_DELETED, "n1", 7)


# -- the waiting pod itself ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "before,after,expected",
    [
        pytest.param(pod(), pod(labels={"a": "b"}), [Wake.POD_LABEL], id="its labels"),
        pytest.param(pod(), pod(tolerations=(toleration("x"),)), [Wake.POD_TOLERATION], id="its tolerations"),
        pytest.param(pod(cpu="2"), pod(cpu="1"), [Wake.POD_SCALED_DOWN], id="it asks for less"),
        pytest.param(pod(cpu="1"), pod(cpu="2"), [], id="asking for more does not help"),
        pytest.param(
            pod(containers=(container(image="a"),)), pod(containers=(container(image="b"),)), [], id="nor does an image"
        ),
        pytest.param(
            pod(cpu="2"),
            pod(cpu="1", labels={"a": "b"}, tolerations=(toleration("x"),)),
            [Wake.POD_LABEL, Wake.POD_TOLERATION, Wake.POD_SCALED_DOWN],
            id="all at once are as many events",
        ),
        pytest.param(pod(), pod(node_selector={"a": "b"}), None, id="its node selector: try again, whoever refused it"),
        pytest.param(pod(), pod(affinity=SHUNS), None, id="its terms, too"),
        pytest.param(pod(), pod(volumes=claimed("c")), None, id="its volumes, too"),
        pytest.param(pod(), pod(priority=1), None, id="its priority, too: it may now preempt"),
        pytest.param(pod(), pod(preemption_policy="Never"), None, id="its right to preempt, too"),
    ],
)
def test_a_waiting_pod_that_changes_is_told_of_it(before: Pod, after: Pod, expected: list[Wake] | None) -> None:
    cluster = Cluster()
    events = own_events(cluster.class_of(before), cluster.class_of(after), cluster.objects)
    assert (None if events is None else kinds(events)) == expected
    assert all(event.own for event in events or ())


# -- all other objects -----------------------------------------------------------------------------------------------


def space(**labels: str) -> Namespace:
    return Namespace(metadata=ObjectMeta(name="s", labels=labels))


def meta(name: str = "x") -> ObjectMeta:
    return ObjectMeta(name=name, namespace="default")


OTHER_META = ObjectMeta(name="x", namespace="default", annotations={"a": "b"})


@pytest.mark.parametrize(
    "one,other,added,updated,deleted",
    [
        pytest.param(
            claim("c"), claim("c", volume="v"), Wake.CLAIM_ADDED, Wake.CLAIM_UPDATED, Wake.CLAIM_DELETED, id="a claim"
        ),
        pytest.param(
            volume("v"),
            volume("v", phase="Bound"),
            Wake.VOLUME_ADDED,
            Wake.VOLUME_UPDATED,
            Wake.VOLUME_DELETED,
            id="a volume",
        ),
        pytest.param(
            storage_class(),
            storage_class(late=False),
            Wake.STORAGE_CLASS_ADDED,
            Wake.STORAGE_CLASS_UPDATED,
            Wake.STORAGE_CLASS_DELETED,
            id="a storage class",
        ),
        pytest.param(
            csi_node("n"),
            csi_node("n", {"d": 1}),
            Wake.CSI_NODE_ADDED,
            Wake.CSI_NODE_UPDATED,
            Wake.CSI_NODE_DELETED,
            id="a CSI node",
        ),
        pytest.param(
            csi_driver(),
            csi_driver(storage_capacity=False),
            None,
            Wake.CSI_DRIVER_UPDATED,
            Wake.CSI_DRIVER_DELETED,
            id="a CSI driver, which helps nobody by coming",
        ),
        pytest.param(
            capacity("k", "late", selector(), "1Gi"),
            capacity("k", "late", selector(), "2Gi"),
            Wake.CSI_CAPACITY_ADDED,
            Wake.CSI_CAPACITY_UPDATED,
            None,
            id="space, which helps nobody by going",
        ),
        pytest.param(
            attachment("x", "n1", "v"),
            attachment("x", "n2", "v"),
            None,
            Wake.VOLUME_ATTACHMENT_DELETED,
            Wake.VOLUME_ATTACHMENT_DELETED,
            id="an attachment; one that is elsewhere is another",
        ),
        pytest.param(
            Service(metadata=meta()),
            Service(metadata=OTHER_META),
            *[Wake.WORKLOAD_CHANGED] * 3,
            id="a service",
        ),
        pytest.param(
            ReplicaSet(metadata=meta()),
            ReplicaSet(metadata=OTHER_META),
            *[Wake.WORKLOAD_CHANGED] * 3,
            id="a controller",
        ),
        pytest.param(space(a="b"), space(a="c"), *[Wake.NAMESPACE_LABEL] * 3, id="a namespace"),
        pytest.param(
            PodDisruptionBudget(metadata=meta()),
            PodDisruptionBudget(metadata=OTHER_META),
            *[None] * 3,
            id="a budget, which helps nobody: preemption breaks it where it must",
        ),
    ],
)
def test_an_object(one: Any, other: Any, added: Wake | None, updated: Wake | None, deleted: Wake | None) -> None:
    objects = Cluster().objects
    assert kinds(object_events(None, one, objects)) == [kind for kind in (added,) if kind is not None]
    assert kinds(object_events(one, other, objects)) == [kind for kind in (updated,) if kind is not None]
    assert kinds(object_events(one, None, objects)) == [kind for kind in (deleted,) if kind is not None]


def test_an_object_that_changes_is_told_with_what_it_was() -> None:
    (event,) = object_events(claim("c"), claim("c", volume="v"), Cluster().objects)
    assert (event.item_before, event.item) == (claim("c"), claim("c", volume="v"))


def test_a_namespace_without_labels_helps_nobody_by_coming_or_going() -> None:
    objects = Cluster().objects
    assert not list(object_events(None, space(), objects))
    assert not list(object_events(space(), None, objects))
