"""DynamicResources: pods go where the devices of their claims are."""

import pytest

from device_builders import (
    claim,
    device,
    device_class,
    devices_of,
    exactly,
    first_of,
    node,
    owned_by,
    pod_with,
    slice_of,
)
from situate.core.contract import Refusal
from situate.core.engine.decision import decide
from situate.core.engine.framework import default_framework
from situate.core.model.devices import ResourceClaim
from situate.core.model.meta import ObjectMeta
from situate.core.model.named import NamedObject
from situate.core.model.node import Node, NodeSpec
from situate.core.model.pod import Pod, PodResourceClaim, PodSpec
from situate.core.model.tolerations import Taint
from situate.core.plugins.dynamic_resources import DynamicResources
from situate.core.plugins.dynamic_resources import decide as decide_devices
from situate.core.plugins.support.device_demand import written_claims
from situate.core.state.cluster import Cluster
from situate.core.state.view import View


def cluster_of(*names: str) -> Cluster:
    cluster = Cluster()
    for name in names:
        cluster.add_node(Node(metadata=ObjectMeta(name=name)))
    return cluster


def pod(*claims: PodResourceClaim) -> Pod:
    return Pod(metadata=ObjectMeta(name="p", namespace="team"), spec=PodSpec(resource_claims=claims))


def test_a_pod_without_claims_fits_everywhere_and_every_node_scores_0() -> None:
    cluster = cluster_of("a", "b")
    kind = cluster.class_of(pod())
    assert DynamicResources().check(kind, View(cluster)) is None
    assert DynamicResources().score(kind, View(cluster)).tolist() == [0, 0]
    assert DynamicResources().score(kind, View(cluster).at(1)).tolist() == [0]


@pytest.mark.parametrize(
    "claim,text",
    [
        pytest.param(
            PodResourceClaim(name="gpu", resource_claim_name="mine"),
            'could not find ResourceClaim "team/mine"',
            id="a claim that is named is not found",
        ),
        pytest.param(
            PodResourceClaim(name="gpu", resource_claim_template_name="any"),
            'pod "team/p": ResourceClaim not created yet',
            id="a claim from a template has not been made",
        ),
    ],
)
def test_a_pod_with_claims_is_turned_away(claim: PodResourceClaim, text: str) -> None:
    cluster = cluster_of("a")
    assert DynamicResources().check(cluster.class_of(pod(claim)), View(cluster)) == Refusal(text, eviction_helps=False)


# -- claims --------------------------------------------------------------------------------------------------------


def world(*objects: NamedObject, nodes: tuple[Node, ...] = ()) -> Cluster:
    cluster = Cluster()
    for one in nodes or (node("n1"), node("n2")):
        cluster.add_node(one)
    for item in (device_class(), *objects):
        cluster.put_object(item)
    return cluster


def verdicts(cluster: Cluster, pod: Pod) -> dict[str, str] | str:
    """Node -> why not, empty where it fits; or why the pod is turned away or fails."""
    decision = decide(default_framework(), cluster.class_of(pod), View(cluster))
    if decision.filtered.failed is not None:
        return decision.message
    if decision.diagnosis.turned_away is not None:
        return decision.diagnosis.turned_away.refusal.text
    refused = {row: one.reasons[0] for row, one in decision.diagnosis.refusals.items()}
    return {name: refused.get(row, "") for name, row in cluster.nodes.rows.items()}


def given(cluster: Cluster, pod: Pod, name: str) -> list[tuple[str, list[tuple[str, str]]]]:
    found = decide_devices(DynamicResources(), cluster.class_of(pod), View(cluster), cluster.nodes.rows[name])
    assert found is not None
    return [(one.metadata.name, devices_of(allocation)) for one, allocation in found.allocations]


def allocated(cluster: Cluster, pod: Pod, name: str) -> None:
    found = decide_devices(DynamicResources(), cluster.class_of(pod), View(cluster), cluster.nodes.rows[name])
    assert found is not None
    for one in written_claims(found, pod.metadata):
        cluster.put_object(one)


def test_a_pod_goes_where_its_devices_are() -> None:
    cluster = world(slice_of("n1", device("g")), claim("c", exactly()))
    assert verdicts(cluster, pod_with("p", "c")) == {"n1": "", "n2": "cannot allocate all claims"}
    assert given(cluster, pod_with("p", "c"), "n1") == [("c", [("r", "g")])]


def test_a_claim_that_is_allocated_keeps_its_pods_where_its_devices_are() -> None:
    cluster = world(slice_of("n1", device("g")), slice_of("n2", device("g")), claim("c", exactly()))
    allocated(cluster, pod_with("p", "c"), "n2")
    elsewhere = "resourceclaim not available on the node"
    assert verdicts(cluster, pod_with("q", "c")) == {"n1": elsewhere, "n2": ""}
    [row] = list(cluster.objects.devices.claims.values())
    assert [user.name for user in row.status.reserved_for] == ["p"]


@pytest.mark.parametrize(
    "made, text",
    [
        (claim("c", exactly(), deletionTimestamp="2026-01-01T00:00:00Z"), 'resourceclaim "c" is being deleted'),
        (
            claim("c", {"name": "r", "exactly": {"deviceClassName": "odd"}}),
            "request r: device class odd does not exist",
        ),
        (
            claim("c", first_of("r", {"name": "s", "deviceClassName": "odd"})),
            "request r/s: device class odd does not exist",
        ),
        (claim("c", {"name": "r"}), "resource claim default/c, request r: unknown request type"),
    ],
)
def test_a_claim_may_turn_its_pod_away(made: ResourceClaim, text: str) -> None:
    assert verdicts(world(made), pod_with("p", "c")) == text


def test_a_claim_from_a_template_must_be_the_pods_own() -> None:
    text = "ResourceClaim default/c was not created for Pod default/p (Pod is not owner)"
    pod = pod_with("p", "c", generated=True)
    assert verdicts(world(claim("c", exactly())), pod) == text
    own = claim("c", exactly(), ownerReferences=owned_by("p"))
    assert verdicts(world(own, slice_of("n1", device("g"))), pod) == {"n1": "", "n2": "cannot allocate all claims"}


def test_an_error_on_one_node_fails_the_pod_unless_another_filter_refuses_that_node() -> None:
    odd = claim("c", exactly(selector='device.attributes["gpu.example.com"].numa == 0'))
    tainted = Node(
        metadata=ObjectMeta(name="n2"),
        spec=NodeSpec(taints=(Taint(key="k", effect="NoSchedule"),)),
        status=node("n2").status,
    )
    fine = slice_of("n1", device("g", attributes={"numa": {"int": 0}}))
    broken = slice_of("n2", device("g"))
    told = "claim default/c: selector #0: CEL runtime error: no such key: numa"
    assert verdicts(world(odd, fine, broken), pod_with("p", "c")) == f'running "DynamicResources" filter plugin: {told}'
    found = verdicts(world(odd, fine, broken, nodes=(node("n1"), tainted)), pod_with("p", "c"))
    assert found == {"n1": "", "n2": "node(s) had untolerated taint(s)"}


def test_early_alternatives_score_more() -> None:
    better = {"name": "two", "count": 2}, {"name": "one", "count": 1}
    cluster = world(
        slice_of("n1", device("g")), slice_of("n2", device("g"), device("h")), claim("c", first_of("r", *better))
    )
    decision = decide(default_framework(), cluster.class_of(pod_with("p", "c")), View(cluster))
    assert decision.scored is not None
    assert decision.scored.by_plugin["DynamicResources"].tolist() == [2 * (100 * 7 // 8), 200]


def test_a_claim_in_the_way_is_released() -> None:
    cluster = world(slice_of("n1", device("g")), claim("c", exactly()), nodes=(node("n1"),))
    allocated(cluster, pod_with("p", "c"), "n1")
    cluster.remove_node("n1")
    cluster.add_node(node("n3"))
    decision = decide(default_framework(), cluster.class_of(pod_with("p", "c")), View(cluster))
    assert decision.post_filter is not None
    assert decision.post_filter.message.startswith("deallocation of ResourceClaim completed, preemption: ")
    assert decision.post_filter.released is not None
    other = decide(default_framework(), cluster.class_of(pod_with("q", "c", requests={"cpu": "1"})), View(cluster))
    assert other.post_filter is not None
    assert other.post_filter.message.startswith("still not schedulable, preemption: ")
    assert other.post_filter.released is None


# -- extended resources --------------------------------------------------------------------------------------------


def test_devices_serve_an_extended_resource_where_a_node_has_none() -> None:
    served = device_class(extendedResourceName="example.com/gpu")
    cluster = world(
        served, slice_of("n1", device("g")), nodes=(node("n1"), node("n2"), node("n3", **{"example.com__gpu": "1"}))
    )
    pod = pod_with("p", requests={"cpu": "1", "example.com/gpu": "1"})
    assert verdicts(cluster, pod) == {"n1": "", "n2": "cannot allocate all claims", "n3": ""}
    assert given(cluster, pod, "n1") == [("<extended-resources>", [("container-0-request-1", "g")])]
    assert given(cluster, pod, "n3") == []
    two = pod_with("q", requests={"example.com/gpu": "2"})
    assert verdicts(cluster, two) == {
        "n1": "cannot allocate all claims",
        "n2": "cannot allocate all claims",
        "n3": "Insufficient example.com/gpu",
    }


def test_every_class_serves_a_resource_named_after_it() -> None:
    cluster = world(slice_of("n1", device("g")))
    pod = pod_with("p", requests={"deviceclass.resource.kubernetes.io/gpu": "1"})
    assert verdicts(cluster, pod) == {"n1": "", "n2": "cannot allocate all claims"}
