"""What the checker of devices says of a pod that is bound, and of the claims for its extended resources."""

from typing import Any

import pytest
from msgspec.structs import replace

from device_builders import claim, device_class, node, owned_by, pod_with
from situate.core.devices.extended import CLAIM_ANNOTATION
from situate.core.model.devices import ResourceClaimConsumerReference
from situate.core.model.pod import PodExtendedResourceClaimStatus
from situate.sim.devices.checker import EXCUSED_MS, DeviceChecker
from situate.sim.devices.claim_server import ClaimServer
from situate.sim.devices.drawing import ACCELERATOR
from situate.sim.store import ObjectStore
from situate.sim.timeline import Timeline


@pytest.mark.parametrize(
    "plugin, named, problems",
    [
        (True, False, []),
        (True, True, ["devices: default/p is bound, and its claim default/left is not allocated"]),
        (False, False, [f"devices: default/p is bound without a claim for {ACCELERATOR}"]),
        (False, True, ["devices: default/p is bound, and its claim default/left is not allocated"]),
    ],
)
def test_only_the_claim_that_a_pod_names_has_to_have_devices(plugin: bool, named: bool, problems: list[str]) -> None:
    """`plugin`: the node has devices of its own, so the pod need not have a claim."""
    timeline, store, found = Timeline(), ObjectStore(), list[str]()
    checker = DeviceChecker(
        timeline, store, ClaimServer(timeline, store), lambda: None, lambda _, more: found.extend(more)
    )
    store.put_node(node("n1", **({ACCELERATOR: "1"} if plugin else {})))
    pod = pod_with("p", requests={ACCELERATOR: "1"})
    store.put_other(claim("left", annotations={CLAIM_ANNOTATION: "true"}, ownerReferences=owned_by("p")))
    if named:
        status = PodExtendedResourceClaimStatus(resource_claim_name="left", request_mappings=())
        pod = replace(pod, status=replace(pod.status, extended_resource_claim_status=status))
    timeline.after(EXCUSED_MS, lambda: checker.bound(replace(pod, spec=replace(pod.spec, node_name="n1")), ""))
    timeline.advance()
    assert found == problems


@pytest.mark.parametrize("later_ms, problems", [(0, 0), (EXCUSED_MS, 1)])
def test_a_claim_that_was_left_is_excused_while_no_class_serves_the_resource(later_ms: int, problems: int) -> None:
    timeline, store, found = Timeline(), ObjectStore(), list[str]()
    checker = DeviceChecker(
        timeline, store, ClaimServer(timeline, store), lambda: None, lambda _, more: found.extend(more)
    )
    store.heard_by.append(checker.hear)
    store.put_node(node("n1", **{ACCELERATOR: "1"}))
    store.put_other(claim("left", annotations={CLAIM_ANNOTATION: "true"}, ownerReferences=owned_by("p")))
    status = PodExtendedResourceClaimStatus(resource_claim_name="left", request_mappings=())
    pod = pod_with("p", requests={ACCELERATOR: "1"})
    pod = replace(
        pod,
        spec=replace(pod.spec, node_name="n1"),
        status=replace(pod.status, extended_resource_claim_status=status),
    )
    timeline.after(EXCUSED_MS, lambda: store.put_other(device_class("gpu")))
    timeline.advance()
    timeline.after(later_ms + 1, lambda: checker.bound(pod, ""))
    timeline.advance()
    assert len(found) == problems


@pytest.mark.parametrize(
    "taken, problems",
    [
        ("ours", ["devices: claim default/ours was taken from p, which runs"]),
        ("named", ["devices: claim default/named was taken from p, which runs"]),
        ("second", []),
    ],
)
def test_no_claim_that_a_pod_uses_is_deleted_while_it_runs(taken: str, problems: list[str]) -> None:
    """A scheduler whose list lagged may have made a second claim for a bound pod. It deletes that one."""
    timeline, store, found = Timeline(), ObjectStore(), list[str]()
    checker = DeviceChecker(
        timeline, store, ClaimServer(timeline, store), lambda: None, lambda _, more: found.extend(more)
    )
    store.heard_by.append(checker.hear)
    store.put_node(node("n1", **{ACCELERATOR: "1"}))
    status = PodExtendedResourceClaimStatus(resource_claim_name="named", request_mappings=())
    pod = pod_with("p", "ours", requests={ACCELERATOR: "1"})
    pod = replace(
        pod,
        spec=replace(pod.spec, node_name="n1"),
        status=replace(pod.status, phase="Running", extended_resource_claim_status=status),
    )
    made: dict[str, Any] = {"annotations": {CLAIM_ANNOTATION: "true"}, "ownerReferences": owned_by("p")}
    user = ResourceClaimConsumerReference(resource="pods", name="p", uid=pod.metadata.uid)
    claims = {one.metadata.name: one for one in (claim("ours"), claim("named", **made), claim("second", **made))}
    for name, one in claims.items():
        claims[name] = replace(one, status=replace(one.status, reserved_for=(user,)))
        store.put_other(claims[name])
    store.put_pod(pod)
    checker.bound(pod, "")
    found.clear()
    store.drop_other(claims[taken])
    assert found == problems
