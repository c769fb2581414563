"""Whether devices are given beyond what there is: recomputed from claims and slices, without the scheduler's tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from situate.core.model.devices import Device, DeviceRequestAllocationResult, ResourceClaim, ResourceSlice
from situate.core.model.meta import key_of
from situate.core.model.quantity import parse_quantity

PoolId: TypeAlias = tuple[str, str]
"""(driver, pool)."""
DeviceId: TypeAlias = tuple[str, str, str]
"""(driver, pool, device)."""


@dataclass(frozen=True, slots=True)
class Overuse:
    """A device that is given beyond what there is."""

    device: DeviceId
    problem: str
    by_slices: bool
    """Whether that depends on what the slices say, which may change."""


@dataclass(slots=True)
class _Pool:
    devices: dict[str, Device] = field(default_factory=dict)
    counters: dict[tuple[str, str], int] = field(default_factory=dict)


def held(claim: ResourceClaim) -> Iterator[tuple[DeviceId, DeviceRequestAllocationResult]]:
    """The devices of a claim. Admin access holds none."""
    allocation = claim.status.allocation
    for one in () if allocation is None else allocation.devices.results:
        if not one.admin_access:
            yield (one.driver, one.pool, one.device), one


def overuse(claim: ResourceClaim, others: Iterable[ResourceClaim], slices: Iterable[ResourceSlice]) -> list[Overuse]:
    """What a claim has that it cannot have next to these others."""
    there: dict[DeviceId, list[tuple[str, DeviceRequestAllocationResult]]] = {}
    for other in others:
        if other.metadata.uid != claim.metadata.uid:
            for device, result in held(other):
                there.setdefault(device, []).append((key_of(other.metadata), result))
    pools = _newest({(device[0], device[1]) for device, _ in held(claim)}, slices)
    found: list[Overuse] = []
    for device, result in held(claim):
        users = there.setdefault(device, [])
        exclusive = [name for name, one in users if result.share_id is None or one.share_id is None]
        if exclusive:
            found.append(Overuse(device, f"{'/'.join(device)} is {exclusive[0]}'s already", by_slices=False))
        users.append((key_of(claim.metadata), result))
        offered = pools[device[0], device[1]].devices.get(device[2])
        if result.share_id is not None and offered is not None:
            found += _beyond_capacity(device, offered, [one for _, one in users])
    for pool, offer in pools.items():
        found += _beyond_counters(pool, offer, there)
    return found


def _beyond_capacity(
    device: DeviceId, offered: Device, users: Iterable[DeviceRequestAllocationResult]
) -> Iterator[Overuse]:
    for name, capacity in offered.capacity.items():
        used = sum(parse_quantity(one.consumed_capacity.get(name, 0)) for one in users)
        if used > parse_quantity(capacity.value):
            yield Overuse(
                device, f"{'/'.join(device)} has {capacity.value} {name}, not {used / 10**9:g}", by_slices=True
            )


def _beyond_counters(pool: PoolId, offer: _Pool, there: Iterable[DeviceId]) -> Iterator[Overuse]:
    """A device that several share pays its counters once."""
    used: dict[tuple[str, str], int] = {}
    devices = [one for one in there if one[:2] == pool and one[2] in offer.devices]
    for one in devices:
        for taken in offer.devices[one[2]].consumes_counters:
            for name, amount in taken.counters.items():
                key = (taken.counter_set, name)
                used[key] = used.get(key, 0) + parse_quantity(amount.value)
    for key, total in used.items():
        if total > offer.counters.get(key, 0):
            yield Overuse(devices[-1], f"{'/'.join(pool)} has too little of {'/'.join(key)}", by_slices=True)


def _newest(wanted: set[PoolId], slices: Iterable[ResourceSlice]) -> dict[PoolId, _Pool]:
    """These pools in their newest generations."""
    pools = {name: _Pool() for name in sorted(wanted)}
    there = [one for one in slices if (one.spec.driver, one.spec.pool.name) in pools]
    last: dict[PoolId, int] = {}
    for one in there:
        name = (one.spec.driver, one.spec.pool.name)
        last[name] = max(last.get(name, 0), one.spec.pool.generation)
    for one in there:
        name = (one.spec.driver, one.spec.pool.name)
        if one.spec.pool.generation == last[name]:
            pools[name].devices |= {device.name: device for device in one.spec.devices}
            for part in one.spec.shared_counters:
                for counter, amount in part.counters.items():
                    pools[name].counters[part.name, counter] = parse_quantity(amount.value)
    return pools
