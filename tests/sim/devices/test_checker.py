"""What the checker of devices says of a pod that is bound, and of the claims for its extended resources."""

import pytest
from msgspec.structs import replace

from device_builders import claim, node, owned_by, pod_with
from situate.core.devices.extended import CLAIM_ANNOTATION
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
