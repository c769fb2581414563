"""Extended resources that devices serve: which class wins a name, and the claim for a pod's containers."""

from __future__ import annotations

from msgspec.structs import replace

from builders import container, pod
from device_builders import device_class
from situate.core.devices.extended import ExtendedResources, RequestMapping, extended_claim
from situate.core.model.devices import DeviceClass

GPU = "example.com/gpu"


def named(name: str, created: str = "2026-01-01T00:00:00Z", resource: str = GPU) -> DeviceClass:
    made = device_class(name, extendedResourceName=resource)
    return replace(made, metadata=replace(made.metadata, creation_timestamp=created))


def test_the_newer_class_wins_a_name_then_the_lower_name() -> None:
    table = ExtendedResources()
    table.put(None, named("b"))
    table.put(None, named("a"))
    assert table.classes[GPU] == "a"
    table.put(None, named("z", "2026-02-01T00:00:00Z"))
    assert table.classes[GPU] == "z"
    assert table.classes["deviceclass.resource.kubernetes.io/a"] == "a"
    table.put(None, named("old", "2025-01-01T00:00:00Z"))
    assert "deviceclass.resource.kubernetes.io/old" not in table.classes
    table.put(named("z", "2026-02-01T00:00:00Z"), None)
    assert GPU not in table.classes


def test_a_class_that_takes_another_name_gives_the_old_one_up() -> None:
    table = ExtendedResources()
    table.put(None, named("a"))
    table.put(named("a"), named("a", resource="example.com/other"))
    assert table.classes == {"example.com/other": "a", "deviceclass.resource.kubernetes.io/a": "a"}


def test_init_containers_reuse_what_later_containers_hold() -> None:
    """The first needs more than the others have; of what is missing, the largest part is asked for."""
    asks = pod(
        "p",
        uid="u",
        init_containers=(
            container("i0", requests={GPU: "4"}),
            container("i1", requests={GPU: "1"}),
            container("i2", requests={"cpu": "1", GPU: "5"}),
        ),
        containers=(container("c0", requests={"cpu": "1", GPU: "2"}), container("c1")),
    )
    found = extended_claim(asks, [GPU], {GPU: "gpu"})
    requests = [(one.name, one.exactly.count) for one in found.claim.spec.devices.requests if one.exactly]
    assert requests == [("container-2-request-1", 3), ("container-3-request-1", 2)]
    assert found.mappings == (
        RequestMapping("c0", GPU, "container-3-request-1"),
        RequestMapping("i0", GPU, "container-3-request-1"),
        RequestMapping("i0", GPU, "container-2-request-1"),
        RequestMapping("i1", GPU, "container-3-request-1"),
        RequestMapping("i2", GPU, "container-3-request-1"),
        RequestMapping("i2", GPU, "container-2-request-1"),
    )
