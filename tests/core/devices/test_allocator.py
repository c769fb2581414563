from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from device_builders import DRIVER, claim, device, device_class, exactly, first_of, model, slice_of
from situate.core.devices.allocated import AllocatedDevices
from situate.core.devices.allocator import NoSolution, allocate
from situate.core.devices.budget import NO_LIMIT, SearchBudget, TimedOutError
from situate.core.devices.errors import AllocationError
from situate.core.devices.inventory import Inventory, NodeFacts
from situate.core.devices.requests import AllocatorInputs
from situate.core.devices.results import allocation_results
from situate.core.devices.selectors import SelectorAnswers
from situate.core.model.devices import AllocationResult, ResourceClaim, ResourceSlice
from situate.core.plugins.support.device_selectors import selector_compiler
from situate.core.versions import V1_36, V1_37, KubernetesRules

N1 = NodeFacts("n1", {"zone": "1"})
MODEL = 'device.attributes["gpu.example.com"].model == '


class World:
    """Slices and allocations, and what claims get on n1."""

    def __init__(self, *slices: ResourceSlice, rules: KubernetesRules = V1_36) -> None:
        self.inventory = Inventory(rules.devices)
        for one in slices:
            self.inventory.put(None, one)
        self.allocated = AllocatedDevices()
        answers = SelectorAnswers(selector_compiler(rules.devices))
        self.inputs = AllocatorInputs({"gpu": device_class()}, answers, rules.devices)

    def results(self, *claims: ResourceClaim, work: int = NO_LIMIT) -> list[AllocationResult] | NoSolution:
        pools = [(pool, self.allocated.of(pool.id)) for pool in self.inventory.pools(N1)]
        found = allocate(claims, pools, replace(self.inputs, budget=SearchBudget(work)))
        if isinstance(found, NoSolution):
            return found
        return allocation_results(found, claims, [pool for pool, _ in pools], "n1", self.inputs)

    def devices(self, *claims: ResourceClaim) -> list[list[str]] | None:
        found = self.results(*claims)
        return None if isinstance(found, NoSolution) else [[r.device for r in one.devices.results] for one in found]

    def give(self, *claims: ResourceClaim) -> list[AllocationResult]:
        found = self.results(*claims)
        assert not isinstance(found, NoSolution)
        for one in found:
            self.allocated.add(one)
        return found

    def error(self, *claims: ResourceClaim) -> str:
        with pytest.raises(AllocationError) as caught:
            self.results(*claims)
        return str(caught.value)


def gpus(*models: str, **more: Any) -> ResourceSlice:
    return slice_of("n1", *(device(f"g{at}", attributes=model(one)) for at, one in enumerate(models)), **more)


def test_devices_are_taken_in_the_order_of_the_slice() -> None:
    world = World(gpus("a", "b", "a"))
    assert world.devices(claim("c", exactly(count=2))) == [["g0", "g1"]]
    assert world.devices(claim("c", exactly(selector=MODEL + '"b"'))) == [["g1"]]
    assert world.devices(claim("c", exactly(count=4))) is None


def test_what_one_claim_has_no_other_gets() -> None:
    world = World(gpus("a", "a"))
    assert world.devices(claim("c", exactly()), claim("d", exactly())) == [["g0"], ["g1"]]
    world.give(claim("c", exactly()))
    assert world.devices(claim("d", exactly())) == [["g1"]]


def test_the_search_takes_back_what_leads_nowhere() -> None:
    """The first request could have any device, the second only the first one."""
    world = World(gpus("b", "a"))
    both = claim("c", exactly("any"), exactly("b", selector=MODEL + '"b"'))
    assert world.devices(both) == [["g1", "g0"]]


def test_the_first_alternative_that_leads_to_a_solution_wins() -> None:
    world = World(gpus("a", "a"))
    wide, narrow = {"name": "wide", "count": 2}, {"name": "narrow", "count": 1}
    [found] = world.give(claim("c", first_of("r", wide, narrow), exactly("other")))
    assert [one.request for one in found.devices.results] == ["r/narrow", "other"]


def test_all_devices_must_be_free_and_there_must_be_one() -> None:
    world = World(gpus("a", "a"))
    every = claim("c", exactly(allocationMode="All", count=0))
    assert world.devices(every) == [["g0", "g1"]]
    world.give(claim("d", exactly()))
    assert world.devices(every) is None
    assert World().devices(every) is None


def test_all_devices_of_an_incomplete_pool_fail_the_pod() -> None:
    world = World(gpus("a", count=2))
    told = world.error(claim("c", first_of("r", {"name": "s", "allocationMode": "All"})))
    pool = f"{DRIVER}/n1 is currently being updated"
    assert told == f"claim default/c, request s: asks for all devices, but resource pool {pool}"
    assert world.devices(claim("c", exactly())) is None


def test_an_invalid_pool_is_told_where_nothing_else_is_found() -> None:
    world = World(slice_of("n1", device("g"), device("g")))
    assert world.results(claim("c", exactly())) == NoSolution(invalid_pools=True)
    assert "is currently invalid" in world.error(claim("c", exactly(allocationMode="All")))


def test_admin_access_sees_devices_in_use_and_keeps_them_from_nobody() -> None:
    world = World(gpus("a"))
    world.give(claim("c", exactly()))
    [admin] = world.give(claim("d", exactly(adminAccess=True)))
    assert [one.admin_access for one in admin.devices.results] == [True]
    assert world.devices(claim("e", exactly())) is None
    assert world.devices(claim("d", exactly("x", adminAccess=True), exactly("y", adminAccess=True))) is None


def test_within_one_attempt_a_device_for_an_admin_is_taken() -> None:
    world = World(gpus("a"))
    assert world.devices(claim("c", exactly(adminAccess=True)), claim("d", exactly())) is None
    assert world.devices(claim("c", exactly(adminAccess=True)), claim("d", exactly(adminAccess=True))) is not None


@pytest.mark.parametrize(
    "effect, toleration, fits",
    [
        ("NoSchedule", None, False),
        ("NoExecute", None, False),
        ("None", None, True),
        ("Unheard", None, True),
        ("NoSchedule", {"key": "k", "value": "v"}, True),
        ("NoSchedule", {"key": "k", "operator": "Exists"}, True),
        ("NoSchedule", {"operator": "Exists"}, True),
        ("NoSchedule", {"key": "k", "value": "other"}, False),
        ("NoSchedule", {"key": "k", "value": "v", "effect": "NoExecute"}, False),
    ],
)
def test_taints_must_be_tolerated(effect: str, toleration: dict[str, str] | None, fits: bool) -> None:
    world = World(slice_of("n1", device("g", taints=[{"key": "k", "value": "v", "effect": effect}])))
    tolerations = [] if toleration is None else [toleration]
    assert (world.devices(claim("c", exactly(tolerations=tolerations))) is not None) == fits


def numa(*values: int) -> ResourceSlice:
    return slice_of("n1", *(device(f"g{at}", attributes={"numa": {"int": one}}) for at, one in enumerate(values)))


def test_devices_match_in_an_attribute() -> None:
    same = ({"matchAttribute": f"{DRIVER}/numa"},)
    assert World(numa(0, 1, 1)).devices(claim("c", exactly(count=2), constraints=same)) == [["g1", "g2"]]
    assert World(gpus("a", "a")).devices(claim("c", exactly(count=2), constraints=same)) is None


def test_a_constraint_that_all_devices_break_fails_the_pod() -> None:
    same = ({"matchAttribute": f"{DRIVER}/numa", "requests": ["r"]},)
    told = World(numa(0, 1)).error(claim("c", exactly(allocationMode="All"), constraints=same))
    why = "because a claim constraint would not be satisfied"
    assert told == f"claim default/c, request r: cannot add device {DRIVER}/n1/g1 {why}"


@pytest.mark.parametrize("rules, fits", [(V1_36, True), (V1_37, False)])
def test_distinct_devices_differ_from_the_last_one_or_from_all(rules: KubernetesRules, fits: bool) -> None:
    distinct = ({"distinctAttribute": f"{DRIVER}/numa"},)
    world = World(numa(0, 1, 0), rules=rules)
    assert (world.devices(claim("c", exactly(count=3), constraints=distinct)) is not None) == fits


def test_selectors_that_fail_fail_the_pod() -> None:
    asks = claim("c", exactly(selector='device.attributes["gpu.example.com"].numa == 1'))
    assert World(gpus("a")).error(asks) == "claim default/c: selector #0: CEL runtime error: no such key: numa"
    named = World(gpus("a"), rules=V1_37).error(asks)
    assert named.startswith(f"claim default/c: selector #0 on device {DRIVER}/n1/g0: CEL runtime error: no such key")
    assert named.endswith("guarding the check with has() for optional fields")
    broken = World(gpus("a")).error(claim("c", exactly(selector="1 +")))
    assert broken.startswith("claim default/c: selector #0: CEL compile error: compilation failed: ERROR: <input>:1:")


def test_too_many_devices_are_told_by_claim_or_by_request() -> None:
    asks = claim("c", exactly("a", count=20), exactly("b", count=20))
    assert World().error(asks) == "claim default/c: number of requested devices 40 exceeds the claim limit of 32"
    told = "adding 20 devices exceeds the claim limit of 32, with 20 already accounted for"
    assert World(rules=V1_37).error(asks) == f"claim default/c, request b: {told}"


def test_an_alternative_that_would_exceed_the_limit_is_skipped() -> None:
    world = World(gpus(*["a"] * 40))
    asks = claim("c", exactly("a", count=20), first_of("b", {"name": "many", "count": 20}, {"name": "few", "count": 1}))
    [found] = world.give(asks)
    assert found.devices.results[-1].request == "b/few"


def test_the_work_of_a_search_is_limited() -> None:
    asks = claim("c", *[exactly(f"r{at}", count=3) for at in range(4)])
    with pytest.raises(TimedOutError):
        World(gpus(*["a"] * 11)).results(asks, work=1000)


# -- shared counters ---------------------------------------------------------------------------------------------------


def parts(rules: KubernetesRules = V1_36) -> World:
    """Two halves and a whole of one card."""

    def takes(amount: str) -> list[dict[str, Any]]:
        return [{"counterSet": "card", "counters": {"memory": {"value": amount}}}]

    counters = [{"name": "card", "counters": {"memory": {"value": "40Gi"}}}]
    devices = slice_of(
        "n1",
        device("half-0", consumesCounters=takes("20Gi")),
        device("half-1", consumesCounters=takes("20Gi")),
        device("whole", consumesCounters=takes("40Gi")),
        count=2,
    )
    return World(devices, slice_of("n1", name="counters", count=2, sharedCounters=counters), rules=rules)


def test_devices_share_counters() -> None:
    world = parts()
    whole = claim("w", exactly(selector="!(device.driver == '')"), exactly("x"), exactly("y"))
    assert world.devices(claim("c", exactly(count=2))) == [["half-0", "half-1"]]
    assert world.devices(whole) is None
    world.give(claim("c", exactly()))
    assert world.devices(claim("d", exactly(count=2))) is None
    assert world.devices(claim("d", exactly())) == [["half-1"]]


def test_a_device_that_consumes_an_unknown_counter_makes_its_pool_invalid() -> None:
    odd = device("g", consumesCounters=[{"counterSet": "none", "counters": {"memory": {"value": "1"}}}])
    assert World(slice_of("n1", odd)).results(claim("c", exactly())) == NoSolution(invalid_pools=True)


def test_other_nodes_counters_are_seen_in_136_only() -> None:
    """A counter slice of another node whose pool is incomplete fails requests for all devices here."""
    counters = [{"name": "card", "counters": {"memory": {"value": "40Gi"}}}]
    elsewhere = slice_of("n2", name="theirs", count=2, sharedCounters=counters)
    every = claim("c", exactly(allocationMode="All"))
    assert "n2 is currently being updated" in World(gpus("a"), elsewhere).error(every)
    assert World(gpus("a"), elsewhere, rules=V1_37).devices(every) == [["g0"]]


# -- consumable capacity -----------------------------------------------------------------------------------------------


def shareable(**policy: Any) -> ResourceSlice:
    capacity = {"memory": {"value": "40Gi", **({"requestPolicy": policy} if policy else {})}}
    return slice_of("n1", device("g", allowMultipleAllocations=True, capacity=capacity))


def asking(amount: str, name: str = "c", **fields: Any) -> ResourceClaim:
    return claim(name, exactly(capacity={"requests": {"memory": amount}}, **fields))


def test_a_shared_device_is_given_until_its_capacity_is_used_up() -> None:
    world = World(shareable())
    [first] = world.give(asking("30Gi"))
    [share] = first.devices.results
    assert share.consumed_capacity == {"memory": "30Gi"}
    assert share.share_id is not None
    assert world.devices(asking("20Gi")) is None
    [second] = world.give(asking("10Gi", "d"))
    assert second.devices.results[0].share_id != share.share_id
    world.allocated.remove(first)
    assert world.devices(asking("30Gi")) == [["g"]]


@pytest.mark.parametrize(
    "policy, asked, gets",
    [
        ({"default": "5Gi"}, None, "5Gi"),
        ({"validValues": ["8Gi", "16Gi"]}, "9Gi", "16Gi"),
        ({"validRange": {"min": "4Gi"}}, "1Gi", "4Gi"),
        ({"validRange": {"min": "4Gi", "step": "4Gi"}}, "5Gi", "8Gi"),
        ({"validRange": {"min": "1Gi", "max": "4Gi"}}, "5Gi", None),
        ({"validValues": ["8Gi"]}, "9Gi", None),
        ({}, None, "40Gi"),
    ],
)
def test_requests_are_rounded_by_the_policy(policy: dict[str, Any], asked: str | None, gets: str | None) -> None:
    found = World(shareable(**policy)).results(claim("c", exactly()) if asked is None else asking(asked))
    given = None if isinstance(found, NoSolution) else found[0].devices.results[0].consumed_capacity["memory"]
    assert given == gets


def test_a_capacity_that_a_device_lacks_is_not_found() -> None:
    assert World(gpus("a")).devices(asking("1Gi")) is None


@pytest.mark.parametrize("rules, gets", [(V1_36, [["h"]]), (V1_37, None)])
def test_all_leaves_out_used_up_devices_in_136_only(rules: KubernetesRules, gets: list[list[str]] | None) -> None:
    whole = {"memory": {"value": "40Gi"}}
    names = [device(name, allowMultipleAllocations=True, capacity=whole) for name in ("g", "h")]
    world = World(slice_of("n1", *names), rules=rules)
    world.give(asking("30Gi"))
    assert world.devices(asking("20Gi", "d", allocationMode="All", count=0)) == gets
