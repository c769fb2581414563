"""Which devices are in use: given to a claim alone, or shared, with what the shares consume.

Follows the claims one by one, so that a decision need not walk through all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeAlias

from situate.core.model.base import EMPTY
from situate.core.model.devices import AllocationResult, DeviceRequestAllocationResult
from situate.core.model.quantity import parse_quantity

PoolId: TypeAlias = tuple[str, str]
"""(driver, pool)."""

UseKey: TypeAlias = tuple[object, ...]
"""Equal for pools of equal devices with the same ones in use."""

UNUSED: Final[UseKey] = ()


@dataclass(eq=False, slots=True)
class Shares:
    """The shares of one device."""

    count: int = 0
    with_capacity: int = 0
    """How many of them consume capacity."""
    consumed: dict[str, int] = field(default_factory=dict)
    """In billionths."""


@dataclass(eq=False, slots=True)
class PoolUse:
    """What is in use of one pool."""

    exclusive: dict[str, int] = field(default_factory=dict)
    """Device -> by how many results. More than one is not the scheduler's doing."""
    shared: dict[str, Shares] = field(default_factory=dict)
    _key: UseKey | None = UNUSED

    @property
    def key(self) -> UseKey:
        if self._key is None:
            shared = sorted(
                (name, shares.with_capacity > 0, tuple(sorted(shares.consumed.items())))
                for name, shares in self.shared.items()
            )
            self._key = (tuple(sorted(self.exclusive)), tuple(shared)) if self.exclusive or shared else UNUSED
        return self._key

    def is_allocated(self, device: str) -> bool:
        return device in self.exclusive or device in self.shared

    def consumed(self, device: str) -> Mapping[str, int]:
        shares = self.shared.get(device)
        return EMPTY if shares is None else shares.consumed

    def copy(self) -> PoolUse:
        shared = {name: Shares(one.count, one.with_capacity, dict(one.consumed)) for name, one in self.shared.items()}
        return PoolUse(dict(self.exclusive), shared, self._key)

    def add(self, result: DeviceRequestAllocationResult, sign: int) -> None:
        self._key = None
        name = result.device
        if result.share_id is None:
            count = self.exclusive.get(name, 0) + sign
            if count > 0:
                self.exclusive[name] = count
            else:
                self.exclusive.pop(name, None)
            return
        shares = self.shared.setdefault(name, Shares())
        shares.count += sign
        shares.with_capacity += sign * bool(result.consumed_capacity)
        for capacity, amount in result.consumed_capacity.items():
            shares.consumed[capacity] = shares.consumed.get(capacity, 0) + sign * parse_quantity(amount)
        if shares.count <= 0:
            del self.shared[name]


NOTHING_USED: Final = PoolUse()
NO_POOLS: Final[Mapping[PoolId, PoolUse]] = MappingProxyType({})


class AllocatedDevices:
    """By pool. Only pools with something in use are here."""

    __slots__ = ("pools",)

    def __init__(self) -> None:
        self.pools: dict[PoolId, PoolUse] = {}

    def of(self, pool: PoolId) -> PoolUse:
        return self.pools.get(pool, NOTHING_USED)

    def add(self, allocation: AllocationResult) -> None:
        self._count(allocation.devices.results, 1)

    def remove(self, allocation: AllocationResult) -> None:
        self._count(allocation.devices.results, -1)

    def _count(self, results: Iterable[DeviceRequestAllocationResult], sign: int) -> None:
        """Results with admin access keep a device from nobody."""
        for result in results:
            if result.admin_access:
                continue
            pool = (result.driver, result.pool)
            use = self.pools.setdefault(pool, PoolUse())
            use.add(result, sign)
            if not use.exclusive and not use.shared:
                del self.pools[pool]


def pools_of(allocation: AllocationResult | None) -> dict[PoolId, None]:
    """The pools of which an allocation has devices that it keeps from others."""
    if allocation is None:
        return {}
    return {(one.driver, one.pool): None for one in allocation.devices.results if not one.admin_access}
