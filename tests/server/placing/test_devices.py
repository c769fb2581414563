"""A device is never given twice: writes of claims meet at the ledger of the pool."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from server.placing.conftest import Tell
from server.placing.world import WITHIN_S, World, opened, opened_again
from server.placing.world import tell as tell_in_memory
from situate.server.errors import StatusError
from situate.server.placing.audit import audit
from situate.server.placing.device_pools import DEVICE_POOLS, decoded
from situate.server.placing.device_transaction import CLAIMS
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import SYSTEM, Object, Target
from situate.store.contract import Store
from situate.store.memory import MemoryStore
from situate.store.sqlite.store import SqliteStore
from situate.store.transactions import Delete, Put

DRIVER, POOL = "gpu.example.com", "n1"
numbers = itertools.count()


def result(device: str, **fields: Any) -> Object:
    return {"request": "r", "driver": DRIVER, "pool": POOL, "device": device, **fields}


def shared(device: str, memory: str) -> Object:
    share = f"00000000-0000-4000-8000-{next(numbers):012x}"
    return result(device, shareID=share, consumedCapacity={"memory": memory})


async def claim(world: World, name: str) -> None:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    meta = {"name": name, "namespace": "default"}
    await world.create({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": meta, "spec": spec})


async def offer(world: World, *devices: Object, counters: Sequence[Object] = ()) -> None:
    """Publish a pool: a slice for its devices, and one for its counters."""
    count = 2 if counters else 1
    pool = {"name": POOL, "generation": 1, "resourceSliceCount": count}
    specs = [{"devices": list(devices)}, {"sharedCounters": list(counters)}][:count]
    for at, spec in enumerate(specs):
        meta = {"name": f"{POOL}-{at}"}
        whole = {"driver": DRIVER, "pool": pool, "nodeName": POOL, **spec}
        body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": meta, "spec": whole}
        await world.create(body)


async def allocate(world: World, name: str, *results: Object) -> str:
    """Write a claim's allocation, as a scheduler does over HTTP; why not, or nothing. No results: take it away."""
    held = await world.registry.get(Target(CLAIMS, "default", name))
    obj = held.object(CLAIMS)
    obj["status"] = {"allocation": {"devices": {"results": list(results)}}} if results else {}
    try:
        await world.registry.update(Target(CLAIMS, "default", name, "status"), obj, SYSTEM)
    except StatusError as error:
        return f"{error.code} {[cause.reason for cause in error.causes]} {error.message}"
    return ""


def holders(world: World) -> dict[str, list[str]]:
    """The claims that have each device, as the ledger says."""
    found: dict[str, list[str]] = {}
    for held in world.registry.cache.all(DEVICE_POOLS):
        for one in decoded(held)[2]:
            found.setdefault(one.device, []).append(one.claim)
    assert audit(world.registry.cache) == []
    return found


def test_a_device_is_given_once_and_again_when_it_is_back() -> None:
    async def story(world: World) -> None:
        for name in ("a", "b", "c"):
            await claim(world, name)
        assert await allocate(world, "a", result("gpu-0"), result("gpu-1")) == ""
        said = await allocate(world, "b", result("gpu-1"), result("gpu-2"))
        assert said == (
            "409 ['DeviceTaken'] Operation cannot be fulfilled on resourceclaims.resource.k8s.io \"b\":"
            " device gpu.example.com/n1/gpu-1 is allocated to claim default/a"
        )
        assert await allocate(world, "b", result("gpu-2")) == ""
        assert holders(world) == {"gpu-0": ["a"], "gpu-1": ["a"], "gpu-2": ["b"]}
        assert await allocate(world, "a") == ""
        assert await allocate(world, "c", result("gpu-1")) == "", "an allocation that is cleared"
        await world.registry.delete(Target(CLAIMS, "default", "c"), SYSTEM)
        assert await allocate(world, "a", result("gpu-1")) == "", "a claim that is gone"
        for name in ("a", "b"):
            await world.registry.delete(Target(CLAIMS, "default", name), SYSTEM)
        assert holders(world) == {}
        assert list(world.registry.cache.all(DEVICE_POOLS)) == [], "a pool that nobody uses has no ledger"

    tell_in_memory(story)


def test_one_claim_does_not_get_a_device_twice() -> None:
    async def story(world: World) -> None:
        await claim(world, "a")
        assert "is allocated to claim default/a" in await allocate(world, "a", result("gpu-0"), result("gpu-0"))

    tell_in_memory(story)


def test_devices_of_one_name_in_other_pools_and_drivers_are_others() -> None:
    async def story(world: World) -> None:
        for name in ("a", "b", "c"):
            await claim(world, name)
        assert await allocate(world, "a", result("gpu-0")) == ""
        assert await allocate(world, "b", {**result("gpu-0"), "pool": "n2"}) == ""
        assert await allocate(world, "c", {**result("gpu-0"), "driver": "other.example.com"}) == ""
        assert sorted(holders(world)["gpu-0"]) == ["a", "b", "c"]

    tell_in_memory(story)


def test_admin_access_takes_nothing_and_nobody_takes_from_it() -> None:
    async def story(world: World) -> None:
        for name in ("a", "b", "admin"):
            await claim(world, name)
        assert await allocate(world, "a", result("gpu-0")) == ""
        assert (
            await allocate(world, "admin", result("gpu-0", adminAccess=True), result("gpu-1", adminAccess=True)) == ""
        )
        assert await allocate(world, "b", result("gpu-1")) == ""
        assert holders(world) == {"gpu-0": ["a"], "gpu-1": ["b"]}

    tell_in_memory(story)


def test_a_shared_device_is_given_until_it_is_full() -> None:
    async def story(world: World) -> None:
        device = {"name": "gpu-0", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "40Gi"}}}
        await offer(world, device)
        for name in ("a", "b", "c", "d"):
            await claim(world, name)
        assert await allocate(world, "a", shared("gpu-0", "10Gi")) == ""
        assert await allocate(world, "b", shared("gpu-0", "20Gi")) == ""
        said = await allocate(world, "c", shared("gpu-0", "11Gi"))
        assert said.endswith(
            "device gpu.example.com/n1/gpu-0 has no room: 11Gi of memory is more than is left of 40Gi for"
            " default/a, default/b, default/c"
        )
        assert "is allocated to claim default/a" in await allocate(world, "d", result("gpu-0"))
        assert await allocate(world, "c", shared("gpu-0", "10Gi")) == ""
        assert holders(world) == {"gpu-0": ["a", "b", "c"]}

    tell_in_memory(story)


def test_partitions_are_given_while_the_counters_of_their_device_suffice() -> None:
    def part(name: str, memory: str) -> Object:
        used = [{"counterSet": "gpu-0", "counters": {"memory": {"value": memory}}}]
        return {"name": name, "consumesCounters": used}

    async def story(world: World) -> None:
        whole = {"name": "gpu-0", "counters": {"memory": {"value": "40Gi"}}}
        await offer(world, part("half-0", "20Gi"), part("half-1", "20Gi"), part("all", "40Gi"), counters=[whole])
        for name in ("a", "b", "c"):
            await claim(world, name)
        assert await allocate(world, "a", result("half-0")) == ""
        said = await allocate(world, "b", result("all"))
        assert said.endswith("n1/all needs more of counter memory in set gpu-0 than other devices leave")
        assert await allocate(world, "b", result("half-1")) == ""
        assert await allocate(world, "a") == ""
        assert await allocate(world, "b") == ""
        assert await allocate(world, "c", result("all")) == ""

    tell_in_memory(story)


def test_of_racing_schedulers_one_gets_the_device(tell: Tell) -> None:
    """Sixteen claims and four devices; then all return them, and sixteen race again."""

    async def story(world: World) -> None:
        names = [f"c{at}" for at in range(16)]
        for name in names:
            await claim(world, name)
        for _ in range(2):
            answers = await asyncio.gather(
                *(allocate(world, name, result(f"gpu-{at % 4}")) for at, name in enumerate(names))
            )
            assert sum(not answer for answer in answers) == 4
            assert all(answer.startswith("409 ['DeviceTaken']") for answer in answers if answer)
            assert sorted(holders(world)) == [f"gpu-{at}" for at in range(4)]
            got = [name for name, answer in zip(names, answers, strict=True) if not answer]
            assert await asyncio.gather(*(allocate(world, name) for name in got)) == [""] * 4
            assert holders(world) == {}

    tell(story)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_of_schedulers_that_race_through_two_servers_one_gets_the_device(kind: str, tmp_path: Path) -> None:
    async def told() -> None:
        store = MemoryStore() if kind == "memory" else await SqliteStore.open(tmp_path / "store.db")
        try:
            async with asyncio.timeout(WITHIN_S), opened(store) as one, opened_again(store) as other:
                await _race(one, other)
        finally:
            await store.aclose()

    asyncio.run(told())


async def _race(one: World, other: World) -> None:
    names = [f"c{at}" for at in range(8)]
    for name in names:
        await claim(one, name)
    for _ in range(4):
        await asyncio.gather(*(world.registry.cache.wait_until_fresh() for world in (one, other)))
        answers = await asyncio.gather(
            *(allocate((one, other)[at % 2], name, result("gpu-0"), result("gpu-1")) for at, name in enumerate(names))
        )
        assert sum(not answer for answer in answers) == 1, answers
        assert all(answer.startswith("409") for answer in answers if answer)
        await asyncio.gather(*(world.registry.cache.wait_until_fresh() for world in (one, other)))
        assert holders(one) == holders(other)
        (winner,) = (name for name, answer in zip(names, answers, strict=True) if not answer)
        assert await allocate(other, winner) == ""


def test_claims_that_were_allocated_before_there_were_ledgers_count() -> None:
    async def told() -> None:
        store: Store = MemoryStore()
        async with opened(store) as old:
            for name in ("a", "b"):
                await claim(old, name)
            assert await allocate(old, "a", result("gpu-0")) == ""
            (record,) = old.registry.cache.all(DEVICE_POOLS)
            await store.commit([], [Delete(record.key)])
        async with opened_again(store) as new:
            assert "is allocated to claim default/a" in await allocate(new, "b", result("gpu-0"))
            assert await allocate(new, "b", result("gpu-1")) == ""
            assert holders(new) == {"gpu-0": ["a"], "gpu-1": ["b"]}

    asyncio.run(told())


def test_a_claim_that_cannot_be_read_returns_its_devices_when_it_is_deleted() -> None:
    async def told() -> None:
        store: Store = MemoryStore()
        async with opened(store) as world:
            for name in ("a", "b"):
                await claim(world, name)
            assert await allocate(world, "a", result("gpu-0")) == ""
            held: StoredObject | None = world.registry.cache.get(CLAIMS, "default", "a")
            assert held is not None
            await store.commit([], [Put(held.key, b"{")])
        async with opened_again(store) as world:
            assert "409" in await allocate(world, "b", result("gpu-0"))
            await world.registry.delete(Target(CLAIMS, "default", "a"), SYSTEM)
            assert await allocate(world, "b", result("gpu-0")) == ""

    asyncio.run(told())
