"""Extends the transaction of every write of a claim with the ledgers of the pools whose devices it takes or returns.

    a claim is allocated               pool + devices; 409 if another claim has one of them
    its allocation goes, or the claim  pool - devices; a pool that nobody uses has no ledger

As with a node's ledger, the transaction is guarded by the revision of each pool's ledger, so two schedulers cannot give
one device to two claims. A shared device is given until its capacity is used up, and a partition of a device as long as
the pool's counters suffice: then the slices guard the transaction, too. Admin access takes nothing.

A store of an earlier release has allocated claims without ledgers: the first allocation from such a pool counts them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final

from situate.server.objects import Object
from situate.server.placing.device_pools import DEVICE_POOLS, HeldDevice, PoolId, decoded, encoded, held_by, name_of
from situate.server.placing.node_locks import NodeLocks
from situate.server.placing.offered_devices import OfferedDevice, OfferedDevices, OfferedPool, amount
from situate.server.placing.refusals import device_taken
from situate.server.placing.snapshots import SnapshotMetadata
from situate.server.placing.write_request import CacheReader
from situate.server.registry.keys import key_of
from situate.server.registry.selectable_fields import uid_only
from situate.server.resources import BY_KIND
from situate.store.entries import ABSENT, Revision
from situate.store.transactions import At, Delete, Guard, Put, Write

CLAIMS: Final = BY_KIND["resource.k8s.io/v1", "ResourceClaim"]


class DeviceTransactions:
    """It caches only decoded slices."""

    def __init__(self, now: Callable[[], str], new_uid: Callable[[], str]) -> None:
        self._now = now
        self._new_uid = new_uid
        self._offered = OfferedDevices()
        self._locks = NodeLocks()
        self._unrecorded: dict[PoolId, list[tuple[str, str]]] | None = None
        """Claims that were allocated before there were ledgers, by pool."""

    def extend(
        self, cache: CacheReader, before: Object | None, after: Object | None, guards: list[Guard], writes: list[Write]
    ) -> None:
        """Raises StatusError."""
        had, has = list(held_by(before)), list(held_by(after))
        if had == has:
            return
        meta = (after or before or {})["metadata"]
        taken: list[str] = []
        for pool in sorted({pool for pool, _ in (*had, *has)}):
            wanted = [one for where, one in has if where == pool]
            taken += self._move(cache, pool, meta["uid"], wanted, guards, writes)
        if taken:
            raise device_taken(meta["name"], taken)

    def forget(self, cache: CacheReader, namespace: str, name: str, guards: list[Guard], writes: list[Write]) -> None:
        """Delete a claim that cannot be read."""
        for held in cache.all(DEVICE_POOLS):
            identity, pool, devices = decoded(held)
            left = tuple(one for one in devices if (one.namespace, one.claim) != (namespace, name))
            if left != devices:
                guards.append(At(held.key, Revision(held.revision)))
                writes.append(Put(held.key, encoded(identity, pool, left)) if left else Delete(held.key))

    def lock(self, before: Object | None, after: Object | None) -> AbstractAsyncContextManager[None] | None:
        """The lock of the first pool: with it, concurrent writes to one pool need fewer retries."""
        had, has = list(held_by(before)), list(held_by(after))
        return None if had == has else self._locks.of(name_of(min(pool for pool, _ in (*had, *has))))

    def _move(
        self,
        cache: CacheReader,
        pool: PoolId,
        uid: str,
        wanted: Sequence[HeldDevice],
        guards: list[Guard],
        writes: list[Write],
    ) -> list[str]:
        """Make these the claim's devices in the pool; why that is impossible."""
        name = name_of(pool)
        key, record = key_of(DEVICE_POOLS, "", name), cache.get(DEVICE_POOLS, "", name)
        if record is None:
            identity, revision = SnapshotMetadata(name, self._new_uid(), self._now()), ABSENT
            devices = tuple(self._before_ledgers(cache, pool))
        else:
            identity, _, devices = decoded(record)
            revision = Revision(record.revision)
        others = tuple(one for one in devices if one.uid != uid)
        if wanted and (problems := self._problems(cache, pool, others, wanted, guards)):
            return problems
        after = (*others, *wanted)
        guards.append(At(key, revision))
        if after:
            value = encoded(identity, pool, after)
            writes.append(Put(key, value))
            cache.expect(key, value, uid_only(identity.uid))
        elif record is not None:
            writes.append(Delete(key))
        return []

    def _problems(
        self,
        cache: CacheReader,
        pool: PoolId,
        others: Sequence[HeldDevice],
        wanted: Sequence[HeldDevice],
        guards: list[Guard],
    ) -> list[str]:
        offered = self._offered.of(cache, pool)
        if any(one.share for one in wanted) or offered.counters:
            guards += (At(key, Revision(revision)) for key, revision in offered.slices)
        holders: dict[str, list[HeldDevice]] = {}
        for one in others:
            holders.setdefault(one.device, []).append(one)
        problems = []
        for one in wanted:
            there = holders.setdefault(one.device, [])
            if why := _taken(one, there, offered.devices.get(one.device)):
                problems.append(f"device {'/'.join((*pool, one.device))} {why}")
            there.append(one)
        return problems or _overdrawn(pool, offered, holders, wanted)

    def _before_ledgers(self, cache: CacheReader, pool: PoolId) -> Iterable[HeldDevice]:
        """The devices of claims that were allocated before there were ledgers, and still are."""
        if self._unrecorded is None:
            self._unrecorded = {}
            for held in cache.all(CLAIMS):
                for where, _ in held_by(held.object(CLAIMS)):
                    if cache.get(DEVICE_POOLS, "", name_of(where)) is None:
                        self._unrecorded.setdefault(where, []).append((held.namespace, held.name))
        for place in dict.fromkeys(self._unrecorded.get(pool, ())):
            found = cache.get(CLAIMS, *place)
            for where, one in held_by(None if found is None else found.object(CLAIMS)):
                if where == pool:
                    yield one


def _taken(wanted: HeldDevice, there: Sequence[HeldDevice], offered: OfferedDevice | None) -> str:
    """Why a claim cannot have this device, or this share of it; else empty."""
    alone = [one for one in there if not wanted.share or not one.share]
    if alone:
        return f"is allocated to claim {alone[0].namespace}/{alone[0].claim}"
    names = ", ".join(dict.fromkeys(f"{one.namespace}/{one.claim}" for one in (*there, wanted)))
    if offered is None:
        return f"is in no slice, and claims share it: {names}" if there else ""
    for name, asked in wanted.consumed.items():
        if name in offered.capacity:
            used = sum(amount(one.consumed.get(name, 0)) for one in there)
            if used + amount(asked) > amount(offered.capacity[name]):
                return f"has no room: {asked} of {name} is more than is left of {offered.capacity[name]} for {names}"
    return ""


def _overdrawn(
    pool: PoolId, offered: OfferedPool, holders: Mapping[str, Sequence[HeldDevice]], wanted: Sequence[HeldDevice]
) -> list[str]:
    """The devices whose counters the pool does not have any more. A shared device consumes them once."""
    if not offered.counters:
        return []
    used: dict[tuple[str, str], int] = {}
    for device in holders:
        for counter, part in _consumes(offered, device).items():
            used[counter] = used.get(counter, 0) + part
    return [
        f"device {'/'.join((*pool, device))} needs more of counter {counter} in set {place} than other devices leave"
        for device in dict.fromkeys(one.device for one in wanted)
        for place, counter in _consumes(offered, device)
        if used[place, counter] > offered.counters.get((place, counter), 0)
    ]


def _consumes(offered: OfferedPool, device: str) -> Mapping[tuple[str, str], int]:
    found = offered.devices.get(device)
    return {} if found is None else found.consumes
