"""Plans with devices: copies get claims of their own, pods that leave give devices back, and all of it is undone."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from device_builders import claim, device, device_class, exactly, node, owned_by, pod_with, slice_of
from situate.core.config.defaults import default_configuration
from situate.core.engine.framework import build_frameworks
from situate.core.model.claim_templates import ResourceClaimTemplate
from situate.core.model.devices import ResourceClaim
from situate.core.model.meta import OwnerReference
from situate.core.model.named import NamedObject
from situate.core.model.node import Node
from situate.core.model.pod import Pod, PodStatus
from situate.core.plan.drain import drain
from situate.core.plan.eviction_rules import DrainRules
from situate.core.plan.fit import fit
from situate.core.plan.rescheduling import Rescheduler
from situate.core.plan.sandbox import Sandbox
from situate.core.plan.sizing import NodeTemplate, nodes_needed
from situate.core.plan.survive import losses
from situate.core.state.audit import audit
from situate.core.state.cluster import Cluster

OWNER = (OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="rs", uid="rs", controller=True),)


def template(count: int = 1) -> dict[tuple[str, str], ResourceClaimTemplate]:
    body = {
        "metadata": {"name": "t", "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [exactly(count=count)]}}},
    }
    return {("default", "t"): msgspec.convert(body, ResourceClaimTemplate)}


def gpus(count: int) -> list[dict[str, Any]]:
    return [device(f"d{at}") for at in range(count)]


def new(name: str) -> Pod:
    """A pod whose claim is still to be made."""
    made = pod_with(name, "gpu", generated=True)
    meta = msgspec.structs.replace(made.metadata, owner_references=OWNER)
    return msgspec.structs.replace(made, metadata=meta, status=PodStatus())


def sandbox(nodes: list[Node], *named: NamedObject, count: int = 1) -> Sandbox:
    cluster = Cluster()
    cluster.load(nodes, [device_class(), *named], ())
    return Sandbox(cluster, build_frameworks(default_configuration()), (), template(count))


def running(ground: Sandbox, name: str, on: str) -> str:
    """Bind a pod with a claim of its own."""
    ground.bind(ground.with_claims(new(name)), ground.row(on))
    return f"default/{name}"


def given(ground: Sandbox) -> dict[str, list[str]]:
    """Claim -> its devices, as `pool/device`."""
    return {
        claim.metadata.name: []
        if claim.status.allocation is None
        else [f"{one.pool}/{one.device}" for one in claim.status.allocation.devices.results]
        for claim in ground.cluster.objects.devices.claims.values()
    }


def test_each_copy_gets_devices_of_its_own() -> None:
    ground = sandbox([node("n1"), node("n2")], slice_of("n1", *gpus(3)), slice_of("n2", *gpus(1)))
    found = fit(ground, new("web"))
    assert (found.count, dict(found.by_node)) == (4, {"n1": 3, "n2": 1})
    assert found.message.startswith("0/2 nodes are available: 2 cannot allocate all claims.")
    taken = [one for devices in given(ground).values() for one in devices]
    assert sorted(taken) == ["n1/d0", "n1/d1", "n1/d2", "n2/d0"]


def test_copies_of_a_pod_whose_template_is_unknown_ask_for_what_it_has() -> None:
    ground = sandbox([node("n1")], slice_of("n1", *gpus(5)), count=2)
    key = running(ground, "web", "n1")
    ground.templates = {}
    assert fit(ground, ground.pods[key]).count == 1


def test_a_shared_claim_keeps_copies_where_its_devices_are() -> None:
    ground = sandbox(
        [node("n1", pods="3"), node("n2")], slice_of("n1", *gpus(1)), slice_of("n2", *gpus(1)), claim("one", exactly())
    )
    found = fit(ground, pod_with("web", "one"), 20)
    assert len(found.by_node) == 1
    assert [len(devices) for devices in given(ground).values()] == [1]


def test_extended_resources_are_counted_by_devices() -> None:
    ground = sandbox([node("n1")], slice_of("n1", *gpus(3)))
    ground.cluster.put_object(device_class("served", extendedResourceName="example.com/gpu"))
    found = fit(ground, pod_with("web", requests={"cpu": "1", "example.com/gpu": "1"}))
    assert found.count == 3


def test_a_pod_that_leaves_gives_its_devices_back_and_a_rollback_returns_them() -> None:
    ground = sandbox([node("n1")], slice_of("n1", *gpus(1)))
    key = running(ground, "web", "n1")
    before = given(ground)
    mark = ground.savepoint()
    ground.evict(key)
    assert given(ground) == {"web-gpu": []}
    assert fit(ground, new("other")).count == 1
    ground.rollback(mark)
    assert given(ground) == before
    assert audit(ground.cluster) == []


def test_a_claim_of_several_pods_stays_until_the_last_leaves() -> None:
    ground = sandbox([node("n1")], slice_of("n1", *gpus(1)), claim("one", exactly()))
    for name in ("a", "b"):
        ground.bind(pod_with(name, "one"), ground.row("n1"))
    ground.evict("default/a")
    assert given(ground) == {"one": ["n1/d0"]}
    ground.evict("default/b")
    assert given(ground) == {"one": []}


def test_a_drain_moves_pods_to_nodes_with_free_devices() -> None:
    ground = sandbox([node("n1"), node("n2"), node("n3")], slice_of("n1", *gpus(1)), slice_of("n2", *gpus(1)))
    running(ground, "a", "n1")
    done = drain(ground, ["n1"], DrainRules(force=True))
    assert [(one.key, one.node) for wave in done.waves for one in wave] == [("default/a", "n2")]
    assert given(ground) == {"a-gpu": ["n2/d0"]}


@pytest.mark.parametrize("spare, lost", [(1, 0), (0, 1)])
def test_a_loss_is_survived_if_the_devices_are_there_again(spare: int, lost: int) -> None:
    slices = [slice_of("n1", *gpus(1)), slice_of("n2", *gpus(spare), name="spare")]
    ground = sandbox([node("n1"), node("n2")], *slices)
    running(ground, "a", "n1")
    before = given(ground)
    found = {one.domain: len(one.lost) for one in losses(ground, "node")}
    assert found == {"n1": lost, "n2": 0}
    assert given(ground) == before
    assert audit(ground.cluster) == []


def test_a_claim_that_is_in_the_way_gives_its_devices_back_as_the_scheduler_lets_it() -> None:
    here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gone"]}]}
    status = {"allocation": {"devices": {"results": []}, "nodeSelector": {"nodeSelectorTerms": [here]}}}
    stuck = msgspec.structs.replace(
        claim("one", exactly()), status=msgspec.convert(status, type(ResourceClaim().status))
    )
    ground = sandbox([node("n1")], slice_of("n1", *gpus(1)), stuck)
    (placed,) = Rescheduler(ground).reschedule([pod_with("p", "one")])
    assert placed.node == "n1"
    assert given(ground) == {"one": ["n1/d0"]}


@pytest.mark.parametrize("each, pods, nodes", [(1, 7, 2), (2, 7, 4), (4, 3, 3)])
def test_as_many_nodes_are_needed_as_have_the_devices(each: int, pods: int, nodes: int) -> None:
    ground = sandbox([], count=each)
    wanted = [ground.with_claims(new(f"p{at}")) for at in range(pods)]
    shape = NodeTemplate("gpu", node("gpu"), slices=(slice_of("gpu", *gpus(4)),))
    found = nodes_needed(ground, wanted, [shape])
    assert (found.nodes, found.left) == (nodes, ())
    assert found.bound <= nodes
    assert found.bound == -(-pods // (4 // each))


def test_no_number_of_nodes_without_devices_is_enough() -> None:
    ground = sandbox([])
    found = nodes_needed(ground, [ground.with_claims(new("p"))], [NodeTemplate("plain", node("plain"))])
    assert [key for key, _ in found.left] == ["default/p"]


def test_pods_of_one_template_share_verdicts() -> None:
    ground = sandbox([node("n1")], slice_of("n1", *gpus(4)))
    one, other = (ground.with_claims(new(name)) for name in "ab")
    assert ground.kind_of(one) is ground.kind_of(other)
    assert ground.verdicts(one) is ground.verdicts(other)


def test_a_generated_claim_has_the_name_of_its_pod_and_entry_and_is_owned_by_the_pod() -> None:
    ground = sandbox([node("n1")], claim("p-gpu", exactly(), ownerReferences=owned_by("somebody")))
    made = ground.with_claims(new("p"))
    (status,) = made.status.resource_claim_statuses
    assert status.resource_claim_name == "p-gpu-1"
    owner = ground.cluster.objects.devices.claims["default", "p-gpu-1"].metadata.owner_references[0]
    assert (owner.name, owner.uid) == ("p", "uid-p")
