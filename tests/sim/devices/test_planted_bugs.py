"""Bugs in how devices are given, planted one at a time: a world with devices must find each.

Each bug is in the scheduler, in what writes its claims, or in the claim controller; the checkers count for themselves.
"""

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from situate.core.contract import Wake
from situate.core.devices import allocated
from situate.core.devices.inventory import Inventory, PoolDevice
from situate.core.effects import ReleaseClaim
from situate.core.engine import state as state_module
from situate.core.engine.assumed_claims import AssumedClaims
from situate.core.engine.binding import BindingCycle
from situate.core.engine.cycle import Cycle
from situate.core.engine.engine import Engine
from situate.core.model.base import EMPTY
from situate.core.plugins.dynamic_resources import DynamicResources
from situate.core.plugins.support import device_demand
from situate.core.reconcile import resourceclaim
from situate.core.state.device_objects import DeviceObjects
from situate.loop.scheduling import claim_changes, claims
from situate.loop.scheduling.claims import ClaimBinder
from situate.sim.world import run

Plant = Callable[[pytest.MonkeyPatch], None]

WORLDS = 150
CHANGES = 600


def with_claims(kind: type[AssumedClaims]) -> Plant:
    """The engine, and not the checkers, assumes claims in another way."""
    return lambda patch: patch.setattr(state_module, "AssumedClaims", kind)


class Forgetful(AssumedClaims):
    def take(self, key: str, pod: Any, decision: Any) -> None:
        pass


class Greedy(AssumedClaims):
    def give_back(self, key: str) -> Iterator[Any]:
        return iter(())


class Deaf(AssumedClaims):
    def news(self, claims: Any) -> Iterator[Any]:
        return iter(())


class Hasty(AssumedClaims):
    def take(self, key: str, pod: Any, decision: Any) -> None:
        super().take(key, pod, decision)
        self._cluster.objects.devices.in_flight.clear()


def deaf(*wakes: Wake) -> Plant:
    return lambda patch: patch.setattr(DynamicResources, "wakes_on", DynamicResources.wakes_on - frozenset(wakes))


def freed_before_it_is_known_what_was_written(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BindingCycle, "_unreserve_devices", lambda self, ref: self.give_back_devices(ref.key))


def bound_before_its_claims_are_written(patch: pytest.MonkeyPatch) -> None:
    real = BindingCycle._take_devices

    def take(self: Any, reservation: Any, devices: Any, within_ms: int) -> None:
        real(self, reservation, devices, within_ms)
        reservation.claims_pending = False

    patch.setattr(BindingCycle, "_take_devices", take)


def shares_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    real = allocated.PoolUse.add

    def add(self: Any, result: Any, sign: int) -> None:
        real(self, result if result.share_id is None else replace(result, consumed_capacity=EMPTY), sign)

    patch.setattr(allocated.PoolUse, "add", add)


def counters_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    real = Inventory._prepare

    def prepare(self: Any, device: Any, item: Any) -> PoolDevice:
        one = real(self, device, item)
        return PoolDevice(one.device, one.slice, one.content, {}, here=one.here)

    patch.setattr(Inventory, "_prepare", prepare)


def claims_are_taken_from_others(patch: pytest.MonkeyPatch) -> None:
    for module in (device_demand, claim_changes):
        patch.setattr(module, "can_be_deallocated", lambda *_: True)


def claims_are_taken_from_pods_that_stop(patch: pytest.MonkeyPatch) -> None:
    real = resourceclaim.is_done
    patch.setattr(resourceclaim, "is_done", lambda pod: real(pod) or pod.metadata.deletion_timestamp is not None)


def one_claim_serves_all_pods_of_a_class(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DeviceObjects, "serve", lambda *_: False)


def what_was_left_stays(patch: pytest.MonkeyPatch) -> None:
    real = Cycle.end

    def end(self: Any) -> Any:
        return [effect for effect in real(self) if not (isinstance(effect, ReleaseClaim) and effect.delete)]

    patch.setattr(Cycle, "end", end)


def claims_stay_reserved(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(resourceclaim, "_is_over", lambda *_: False)


def what_is_reserved_is_believed(patch: pytest.MonkeyPatch) -> None:
    """A claim that is to be shared need not have the devices that it was decided on."""
    real = ClaimBinder._has_devices

    def has_devices(self: Any, one: Any, claim: Any, binding: Any, *, written: bool) -> bool:
        return one.allocation is None or real(self, one, claim, binding, written=written)

    patch.setattr(ClaimBinder, "_has_devices", has_devices)


def nobody_asks_whether_a_pod_is_bound(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(claims, "holds", lambda *_: False)


def devices_are_taken_back_at_once(patch: pytest.MonkeyPatch) -> None:
    """Though the scheduler before us was killed a moment ago, and its binds may still arrive."""
    real = ClaimBinder.release

    def release(self: Any, effect: Any) -> None:
        self._early = None
        real(self, effect)

    patch.setattr(ClaimBinder, "release", release)


def claims_are_awaited_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Engine, "_claim_changed", lambda *_: None)


BUGS: dict[str, Plant] = {
    "devices of reserved pods are free": with_claims(Forgetful),
    "devices are never given back": with_claims(Greedy),
    "what was written is not heard of before a watch shows it": with_claims(Deaf),
    "a claim is shared before its devices are written": with_claims(Hasty),
    "devices are free before it is known what was written": freed_before_it_is_known_what_was_written,
    "a pod is bound before its claims are written": bound_before_its_claims_are_written,
    "shares consume nothing": shares_are_not_counted,
    "partitions consume no counters": counters_are_not_counted,
    "claims are taken from other pods": claims_are_taken_from_others,
    "claims are taken from pods that still stop": claims_are_taken_from_pods_that_stop,
    "one claim serves all pods of a class": one_claim_serves_all_pods_of_a_class,
    "a claim that an earlier attempt left stays": what_was_left_stays,
    "claims stay reserved for pods that are over": claims_stay_reserved,
    "a claim that others gave back is believed to be reserved": what_is_reserved_is_believed,
    "claims are taken from a pod that was bound unseen": nobody_asks_whether_a_pod_is_bound,
    "claims are taken from a pod whose bind is under way": devices_are_taken_back_at_once,
    "devices that are given back wake nobody": deaf(Wake.RESOURCE_CLAIM_UPDATED, Wake.RESOURCE_CLAIM_DELETED),
    "a slice that comes wakes nobody": deaf(Wake.RESOURCE_SLICE_ADDED),
    "a slice that goes wakes nobody": deaf(Wake.RESOURCE_SLICE_DELETED),
    "a class that goes wakes nobody": deaf(Wake.DEVICE_CLASS_DELETED),
    "a claim that comes does not end the wait for it": claims_are_awaited_for_ever,
}

LONG_WORLDS: dict[str, int] = {"a slice that goes wakes nobody": 2_000, "a class that goes wakes nobody": 2_000}
"""How many changes it takes to find a bug, if more than CHANGES."""

FOUND_IN: dict[str, int] = {
    "devices are never given back": 7,
    "what was written is not heard of before a watch shows it": 8,
    "a claim is shared before its devices are written": 4,
    "devices are free before it is known what was written": 4,
    "shares consume nothing": 19,
    "partitions consume no counters": 2,
    "claims are taken from other pods": 8,
    "one claim serves all pods of a class": 7,
    "a claim that an earlier attempt left stays": 21,
    "a claim that others gave back is believed to be reserved": 11,
    "claims are taken from a pod that was bound unseen": 547,
    "claims are taken from a pod whose bind is under way": 547,
    "devices that are given back wake nobody": 4,
    "a slice that goes wakes nobody": 51,
    "a class that goes wakes nobody": 702171,
}
"""The world in which each bug was found last: where it is looked for first, to save time. Any other will do as well.
`python tests/sim/devices/test_planted_bugs.py` finds them anew."""


def find(name: str) -> tuple[int, str] | None:
    """The first world in which a bug is found, and how."""
    for seed in dict.fromkeys([FOUND_IN.get(name, 1), *range(1, WORLDS + 1)]):
        with pytest.MonkeyPatch.context() as patch:
            BUGS[name](patch)
            if found := run(seed, changes=LONG_WORLDS.get(name, CHANGES), devices=True).violations:
                return seed, found[0]
    return None


@pytest.mark.parametrize("name", BUGS)
def test_the_simulation_finds(name: str) -> None:
    assert find(name) is not None, f"not found in {WORLDS} worlds"


def test_without_a_bug_nothing_is_found_in_those_worlds() -> None:
    worlds = dict.fromkeys((seed, LONG_WORLDS.get(name, CHANGES)) for name, seed in FOUND_IN.items())
    assert [line for seed, changes in worlds for line in run(seed, changes=changes, devices=True).violations] == []


def test_at_least_ten_bugs_are_planted() -> None:
    assert len(BUGS) >= 10


if __name__ == "__main__":
    for bug in sys.argv[1:] or BUGS:
        FOUND_IN.pop(bug, None)
        seed, how = find(bug) or (0, "")
        print(f"    {json.dumps(bug)}: {seed},  # {how}", flush=True)
