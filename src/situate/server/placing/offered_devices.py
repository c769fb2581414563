"""What the slices of a pool offer: the capacities of its devices, and the counters that they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from situate.core.model.quantity import QuantityError, parse_quantity
from situate.server.placing.device_pools import PoolId
from situate.server.placing.write_request import CacheReader
from situate.server.registry.stored_object import StoredObject
from situate.server.resources import BY_KIND

SLICES: Final = BY_KIND["resource.k8s.io/v1", "ResourceSlice"]

Amounts: TypeAlias = dict[tuple[str, str], int]
"""By counter set and counter."""


class OfferedDevice(msgspec.Struct, frozen=True):
    capacity: Mapping[str, Any]
    consumes: Mapping[tuple[str, str], int]


class OfferedPool(msgspec.Struct, frozen=True):
    devices: Mapping[str, OfferedDevice]
    counters: Mapping[tuple[str, str], int]
    slices: tuple[tuple[str, int], ...]
    """The keys and revisions of what was read."""


class _Slice(msgspec.Struct, frozen=True):
    key: str
    revision: int
    pool: PoolId
    generation: int
    devices: Mapping[str, OfferedDevice]
    counters: Mapping[tuple[str, str], int]


class OfferedDevices:
    """Decodes each version of a slice once."""

    def __init__(self) -> None:
        self._last_change = -1
        self._slices: dict[str, _Slice] = {}
        self._pools: dict[PoolId, list[_Slice]] = {}

    def of(self, cache: CacheReader, pool: PoolId) -> OfferedPool:
        """The pool in its newest generation."""
        last_change = cache.of(SLICES).last_change
        if last_change != self._last_change:
            self._read(cache)
            self._last_change = last_change
        found = self._pools.get(pool, ())
        newest = max((one.generation for one in found), default=0)
        current = [one for one in found if one.generation == newest]
        return OfferedPool(
            {name: device for one in current for name, device in one.devices.items()},
            {name: amount for one in current for name, amount in one.counters.items()},
            tuple((one.key, one.revision) for one in current),
        )

    def _read(self, cache: CacheReader) -> None:
        slices: dict[str, _Slice] = {}
        pools: dict[PoolId, list[_Slice]] = {}
        for held in cache.all(SLICES):
            known = self._slices.get(held.name)
            one = known if known is not None and known.revision == held.revision else _decoded(held)
            slices[held.name] = one
            pools.setdefault(one.pool, []).append(one)
        self._slices, self._pools = slices, pools


def _decoded(held: StoredObject) -> _Slice:
    spec = held.object(SLICES).get("spec", {})
    pool = spec.get("pool", {})
    devices = {
        one.get("name", ""): OfferedDevice(
            {name: part.get("value", 0) for name, part in one.get("capacity", {}).items()},
            _sums(one.get("consumesCounters", ()), "counterSet"),
        )
        for one in spec.get("devices", ())
    }
    counters = _sums(spec.get("sharedCounters", ()), "name")
    place = (spec.get("driver", ""), pool.get("name", ""))
    return _Slice(held.key, held.revision, place, pool.get("generation", 0), devices, counters)


def _sums(sets: Sequence[Mapping[str, Any]], name: str) -> Amounts:
    found: Amounts = {}
    for one in sets:
        for counter, part in one.get("counters", {}).items():
            key = (one.get(name, ""), counter)
            found[key] = found.get(key, 0) + amount(part.get("value", 0))
    return found


def amount(raw: Any) -> int:
    """A quantity, in billionths; 0 if it is none."""
    try:
        return parse_quantity(raw)
    except QuantityError:
        return 0
