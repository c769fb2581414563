"""The search skips dead ends, and finds what it would have found without that."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.devices.test_allocator import MODEL, World, gpus
from device_builders import DRIVER, claim, device, exactly, first_of, model, slice_of
from situate.core.devices import allocator
from situate.core.devices.errors import AllocationError
from situate.core.model.devices import AllocationResult, ResourceClaim, ResourceSlice
from situate.core.versions import V1_36, V1_37, KubernetesRules

ALIKE = ({"matchAttribute": f"{DRIVER}/model"},)
FEW = 20_000
"""Far less than all combinations of eight devices."""


def test_a_request_that_nothing_can_serve_ends_the_search() -> None:
    """Two claims, of which only the last request is impossible."""
    world = World(gpus(*"aaaaaaaa"))
    first = claim("c", exactly("r0", count=3), first_of("r1", {"name": "s0", "count": 2}, {"name": "s1", "count": 2}))
    second = claim("d", exactly("r0", count=2), exactly("r1", selector=MODEL + '"b"'))
    assert world.devices(first, second) is None
    world.results(first, second, work=FEW)  # it raises nothing


def test_devices_that_nothing_tells_apart_are_tried_once() -> None:
    world = World(gpus(*"aaaaaaaaabbbbbbbbbccccccccc"))
    twelve = claim("c", *(exactly(f"r{at}") for at in range(12)), constraints=ALIKE)
    assert world.devices(twelve) is None
    world.results(twelve, work=FEW)


def test_an_error_that_the_search_would_meet_is_met() -> None:
    """The last device has no model: the selector fails on it, though the second request cannot be served."""
    world = World(slice_of("n1", *(device(f"g{at}", attributes=model("a")) for at in range(9)), device("g9")))
    wanted = claim("c", exactly("r0", count=4), exactly("r1", count=6, selector=MODEL + '"a"'))
    assert "no such key: model" in world.error(wanted)


# -- the same as without ---------------------------------------------------------------------------------------------

_MODELS = st.sampled_from("ab")
_BOOLS = st.booleans()


@st.composite
def _slices(draw: st.DrawFn) -> list[ResourceSlice]:
    devices = []
    counters = draw(_BOOLS)
    for at in range(draw(st.integers(1, 6))):
        more: dict[str, Any] = {}
        if draw(st.integers(0, 3)) == 0:
            more |= {"capacity": {"memory": {"value": "4"}}, "allowMultipleAllocations": True}
        if counters and draw(_BOOLS):
            more["consumesCounters"] = [{"counterSet": "s", "counters": {"c": {"value": draw(st.sampled_from("12"))}}}]
        if draw(st.integers(0, 5)) == 0:
            more["taints"] = [{"key": "k", "effect": "NoSchedule"}]
        attributes = {} if draw(st.integers(0, 7)) == 0 else model(draw(_MODELS))
        devices.append(device(f"g{at}", attributes=attributes, **more))
    if not counters:
        return [slice_of("n1", *devices)]
    shared: Any = {"sharedCounters": [{"name": "s", "counters": {"c": {"value": "3"}}}], "devices": []}
    return [slice_of("n1", *devices, count=2), slice_of("n1", name="n1-counters", count=2, **shared)]


@st.composite
def _asks(draw: st.DrawFn) -> dict[str, Any]:
    found: dict[str, Any] = {"count": draw(st.integers(1, 3))}
    if draw(st.integers(0, 5)) == 0:
        found = {"allocationMode": "All", "count": 0}
    if draw(_BOOLS):
        found["selector"] = MODEL + f'"{draw(_MODELS)}"'
    if draw(st.integers(0, 6)) == 0:
        found["adminAccess"] = True
    return found


@st.composite
def _claims(draw: st.DrawFn) -> list[ResourceClaim]:
    found = []
    for number in range(draw(st.integers(1, 2))):
        requests = []
        for at in range(draw(st.integers(1, 3))):
            ask = draw(_asks())
            if draw(st.integers(0, 3)) == 0:
                subs = [{"name": f"s{each}", "count": draw(st.integers(1, 3))} for each in range(2)]
                requests.append(first_of(f"r{at}", *subs))
            else:
                requests.append(exactly(f"r{at}", **ask))
        kind = draw(st.sampled_from([None, None, "matchAttribute", "distinctAttribute"]))
        constraints = () if kind is None else ({kind: f"{DRIVER}/model"},)
        found.append(claim(f"c{number}", *requests, constraints=constraints))
    return found


def _outcome(world: World, claims: list[ResourceClaim], hard: int) -> Any:
    with patch.object(allocator, "HARD", hard):
        try:
            found = world.results(*claims)
        except AllocationError as error:
            return str(error)
    return _devices(found) if isinstance(found, list) else found


def _devices(found: list[AllocationResult]) -> list[list[tuple[str, str]]]:
    return [[(one.request, one.device) for one in each.devices.results] for each in found]


@pytest.mark.parametrize("rules", [V1_36, V1_37], ids=lambda one: one.version)
@settings(max_examples=400, deadline=None)
@given(slices=_slices(), claims=_claims())
def test_the_outcome_is_that_of_a_search_without_shortcuts(
    rules: KubernetesRules, slices: list[ResourceSlice], claims: list[ResourceClaim]
) -> None:
    world = World(*slices, rules=rules)
    assert _outcome(world, claims, hard=0) == _outcome(world, claims, hard=1 << 40)
