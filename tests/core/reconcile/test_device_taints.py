"""Device taints: who has to leave, when, and what a DeviceTaintRule says about it."""

from __future__ import annotations

from typing import Any

import pytest

from core.reconcile.test_resourceclaim import BY_NAME, BY_TEMPLATE, claim, claim_template, consumer, only_claim, pod
from core.reconcile.test_table import Driven
from core.reconcile.world import SECOND, Raw, World
from situate.core.reconcile.api_values import format_time
from situate.core.reconcile.device_taints import IN_PROGRESS
from situate.core.reconcile.resourceclaim import FINALIZER

NO_EXECUTE = {"key": "broken", "effect": "NoExecute"}
TOLERATES = {"key": "broken", "operator": "Exists", "effect": "NoExecute"}


def pool(*taints: Raw, generation: int = 1, name: str = "slice-n1", device: str = "gpu-0") -> Raw:
    devices = [{"name": device, "taints": list(taints)}, {"name": "gpu-9"}]
    spec = {"driver": "gpu.example.com", "pool": {"name": "n1", "generation": generation}, "devices": devices}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


def rule(effect: str = "NoExecute", at: int = 0, **selector: str) -> Raw:
    taint = {"key": "broken", "effect": effect, "timeAdded": format_time(at)}
    spec = {"deviceSelector": selector, "taint": taint}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "metadata": {"name": "rule"}, "spec": spec}


def give(world: World, name: str, *pods: Raw, tolerations: tuple[Raw, ...] = (), device: str = "gpu-0") -> None:
    """What a scheduler writes."""
    held = {**world.find("ResourceClaim", name)}
    held["metadata"] = {**held["metadata"], "finalizers": [FINALIZER]}
    result = {"request": "r", "driver": "gpu.example.com", "pool": "n1", "device": device}
    if tolerations:
        result["tolerations"] = list(tolerations)  # type: ignore[assignment]
    held["status"] = {
        "allocation": {"devices": {"results": [result]}},
        "reservedFor": [consumer(one) for one in pods],
    }
    world.put(held)


def running(*, tolerations: tuple[Raw, ...] = (), device: str = "gpu-0") -> Driven:
    """A pod on a node with a device."""
    world = Driven()
    world.create(pool())
    world.create(claim_template())
    made = world.create(pod(nodeName="n1"))
    world.settle()
    give(world, only_claim(world)["metadata"]["name"], made, tolerations=tolerations, device=device)
    world.settle()
    return world


def taint(world: World, *taints: Raw, **more: Any) -> None:
    """The driver publishes taints."""
    timed = [{"timeAdded": format_time(world.now), **one} for one in taints]
    spec = pool(*timed, **more)["spec"]
    world.patch("ResourceSlice", "slice-n1", {"spec": spec}, "")
    world.settle()


def is_leaving(world: World, name: str = "p") -> bool:
    return "deletionTimestamp" in world.find("Pod", name)["metadata"]


def condition(world: World) -> Raw:
    (found,) = world.find("DeviceTaintRule", "rule", "")["status"]["conditions"]
    assert found["type"] == IN_PROGRESS
    return dict(found)


def test_a_pod_leaves_a_device_that_its_driver_taints() -> None:
    world = running()
    taint(world, NO_EXECUTE)
    assert is_leaving(world)
    (found,) = world.find("Pod", "p")["status"]["conditions"]
    assert (found["type"], found["status"], found["reason"], found["message"]) == (
        "DisruptionTarget",
        "True",
        "DeletionByDeviceTaintManager",
        "Device Taint manager: deleting due to NoExecute taint",
    )
    (event,) = [one for one in world.events if one.ref.kind == "Pod"]
    assert (event.type, event.reason, event.message) == (
        "Normal",
        "DeviceTaintManagerEviction",
        "Marking for deletion",
    )


@pytest.mark.parametrize(
    "tolerations, stays",
    [
        pytest.param((TOLERATES,), True, id="a toleration without a time is for ever"),
        pytest.param(({**TOLERATES, "effect": ""},), False, id="a toleration must name the effect"),
        pytest.param(
            ({**TOLERATES, "effect": "NoSchedule"},), False, id="a toleration of another effect does not count"
        ),
        pytest.param(({**TOLERATES, "key": "hot"},), False, id="a toleration of another key does not count"),
        pytest.param(({**TOLERATES, "tolerationSeconds": 0},), False, id="no seconds are no toleration"),
        pytest.param(
            ({**TOLERATES, "tolerationSeconds": 30}, TOLERATES), True, id="of several tolerations one for ever suffices"
        ),
    ],
)
def test_what_a_claim_tolerates(tolerations: tuple[Raw, ...], stays: bool) -> None:
    world = running(tolerations=tolerations)
    taint(world, NO_EXECUTE)
    assert is_leaving(world) is not stays


def test_a_pod_leaves_when_the_shortest_toleration_ends() -> None:
    long, short = ({**TOLERATES, "tolerationSeconds": seconds} for seconds in (600, 60))
    world = running(tolerations=(long, short))
    taint(world, NO_EXECUTE)
    world.now += 59 * SECOND
    world.settle()
    assert not is_leaving(world)
    world.now += 1 * SECOND
    world.settle()
    assert is_leaving(world)


def test_a_pod_stays_if_the_taint_goes_in_time() -> None:
    world = running(tolerations=({**TOLERATES, "tolerationSeconds": 60},))
    taint(world, NO_EXECUTE)
    taint(world)
    world.now += 3_600 * SECOND
    world.settle()
    assert not is_leaving(world)


def test_taints_of_other_devices_effects_and_old_generations_evict_nobody() -> None:
    world = running()
    taint(world, {"key": "broken", "effect": "NoSchedule"})
    taint(world, NO_EXECUTE, device="gpu-1")
    world.create(pool(generation=2, name="slice-new"))
    taint(world, NO_EXECUTE)
    assert not is_leaving(world)
    world.delete("ResourceSlice", "slice-new", "")
    world.settle()
    assert is_leaving(world), "the generation before counts again"


def test_only_pods_that_a_claim_is_reserved_for_leave() -> None:
    world = Driven()
    world.create(pool())
    world.create(claim("shared"))
    first = world.create(pod("first", BY_NAME, nodeName="n1"))
    world.create(pod("second", BY_NAME))
    give(world, "shared", first)
    taint(world, NO_EXECUTE)
    assert is_leaving(world, "first")
    assert not is_leaving(world, "second")


def test_a_claim_that_was_made_for_another_pod_of_the_name_does_not_count() -> None:
    world = running()
    found = only_claim(world)
    found["metadata"]["ownerReferences"][0]["uid"] = "somebody-else"
    world.put(found)
    taint(world, NO_EXECUTE)
    assert not is_leaving(world)


@pytest.mark.parametrize(
    "selector, stays",
    [
        ({}, False),
        ({"driver": "gpu.example.com"}, False),
        ({"driver": "gpu.example.com", "pool": "n1"}, False),
        ({"driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}, False),
        ({"driver": "other.example.com"}, True),
        ({"pool": "n2"}, True),
        ({"device": "gpu-1"}, True),
    ],
)
def test_a_rule_evicts_from_the_devices_that_it_selects(selector: dict[str, str], stays: bool) -> None:
    world = running()
    world.create(rule(at=world.now, **selector))
    world.settle()
    assert is_leaving(world) is not stays


def test_a_rule_without_a_selector_selects_nothing() -> None:
    world = running()
    made = rule(at=world.now)
    del made["spec"]["deviceSelector"]
    world.create(made)
    world.settle()
    assert not is_leaving(world)
    assert condition(world)["reason"] == "NotStarted"


def test_a_rule_reports_who_has_to_leave_and_when_all_have_left() -> None:
    world = running(tolerations=({**TOLERATES, "tolerationSeconds": 30},))
    world.create(rule(at=world.now))
    world.settle()
    found = condition(world)
    assert (found["status"], found["reason"]) == ("True", "PodsPendingEviction")
    assert found["message"] == "1 pod needs to be evicted in 1 namespace."
    assert found["observedGeneration"] == 1
    for _ in range(50):
        world.settle()
        world.now += 1 * SECOND
        if ("Pod", "default", "p") in world.bodies and is_leaving(world):
            world.gone(world.find("Pod", "p"))
    world.settle()
    found = condition(world)
    assert (found["status"], found["reason"], found.get("message", "")) == ("False", "Completed", "")


def test_a_rule_without_effect_says_what_it_would_do() -> None:
    world = running()
    world.create(rule("None", at=world.now))
    world.settle()
    assert not is_leaving(world)
    found = condition(world)
    assert (found["status"], found["reason"]) == ("False", "NoEffect")
    assert found["message"] == (
        "2 published devices selected. 1 allocated device selected. 1 pod would be evicted in 1 namespace if the effect"
        " was NoExecute. This information will not be updated again. Recreate the DeviceTaintRule to trigger an update."
    )
    world.patch("DeviceTaintRule", "rule", {"spec": {"taint": {"effect": "NoExecute"}}}, "")
    world.settle()
    assert is_leaving(world)
    assert condition(world)["observedGeneration"] == 2


def test_a_rule_of_another_effect_says_that_it_evicts_nobody() -> None:
    world = running()
    world.create(rule("NoSchedule", at=world.now))
    world.settle()
    assert not is_leaving(world)
    found = condition(world)
    assert (found["reason"], found["message"]) == ("OtherEffect", "Eviction only happens for the NoExecute effect.")


def test_a_pod_without_a_node_waits_where_it_is() -> None:
    world = Driven()
    world.create(pool())
    world.create(claim_template())
    made = world.create(pod(claims=BY_TEMPLATE))
    world.settle()
    give(world, only_claim(world)["metadata"]["name"], made)
    taint(world, NO_EXECUTE)
    assert not is_leaving(world)
