"""A registry with its bind transactions on a store, for tests of placing; and objects as users write them."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from situate.core.model.ledger import Ledger
from situate.server.placing.bind_transaction import NODES, PODS, BindTransactions
from situate.server.placing.binding import Binder
from situate.server.placing.decisions import PLACEMENT_DECISIONS, PlacementDecision
from situate.server.placing.decisions import decoded as decision_decoded
from situate.server.placing.eviction import Evictor
from situate.server.placing.snapshots import NODE_SNAPSHOTS
from situate.server.placing.snapshots import decoded as snapshot_decoded
from situate.server.registry.registry import Registry
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import SYSTEM, DeleteOptions, Object, Target
from situate.server.resources import BY_KIND
from situate.store.contract import Store
from situate.store.memory import MemoryStore

WITHIN_S = 30.0
NAMESPACES = BY_KIND["v1", "Namespace"]
SECOND = 1_000_000_000


class World:
    def __init__(self, store: Store, *, fails_stray_binds: bool = False) -> None:
        numbers = itertools.count(1)
        self.now_ns = 1_700_000_000 * SECOND
        self.store = store
        self.transactions = BindTransactions(
            self.wall_ns, lambda: f"uid-{next(numbers):06}", fails_stray_binds=fails_stray_binds
        )
        self.registry = Registry(
            store, wall_ns=self.wall_ns, new_uid=lambda: f"uid-{next(numbers):06}", extension=self.transactions
        )
        self.binder = Binder(self.registry, self.wall_ns, self.transactions.node_locks)
        self.evictor = Evictor(self.registry, self.wall_ns)

    def wall_ns(self) -> int:
        return self.now_ns

    async def create(self, obj: Object, namespace: str = "") -> StoredObject:
        resource = BY_KIND[obj["apiVersion"], obj["kind"]]
        return await self.registry.create(Target(resource, obj["metadata"].get("namespace", "")), obj, SYSTEM)

    async def node(self, name: str = "n1", cpu: str = "4", **fields: Any) -> StoredObject:
        """A node with room; `allocatable` adds to it, the rest goes into its spec, and labels into its metadata."""
        room = {"cpu": cpu, "memory": "8Gi", "pods": "10", **fields.pop("allocatable", {})}
        meta = {"name": name, "labels": fields.pop("labels", {})}
        await self.create({"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": fields})
        return await self.report_node(name, room)

    async def report_node(self, name: str, room: dict[str, str]) -> StoredObject:
        def change(obj: Object, _held: StoredObject) -> Object:
            obj["status"] = {**obj.get("status", {}), "allocatable": room, "capacity": room}
            return obj

        return await self.registry.modify(Target(NODES, "", name), change, SYSTEM)

    async def change_node(self, name: str, **spec: Any) -> StoredObject:
        def change(obj: Object, _held: StoredObject) -> Object:
            obj["spec"] = {**obj.get("spec", {}), **spec}
            return obj

        return await self.registry.modify(Target(NODES, "", name), change, SYSTEM)

    async def pod(self, name: str = "p", cpu: str = "1", **fields: Any) -> StoredObject:
        return await self.create(pod_object(name, cpu, **fields))

    async def report(self, name: str, phase: str, **status: Any) -> StoredObject:
        """A status write, as an agent makes it."""
        held = await self.registry.get(Target(PODS, "default", name))
        obj = held.object(PODS)
        del obj["metadata"]["resourceVersion"]
        obj["metadata"].setdefault("annotations", {}).update(status.pop("annotations", {}))
        obj["status"] = {**obj.get("status", {}), "phase": phase, **status}
        return await self.registry.update(Target(PODS, "default", name, "status"), obj, SYSTEM)

    async def delete_pod(self, name: str, grace_s: int | None = 0) -> None:
        await self.registry.delete(Target(PODS, "default", name), SYSTEM, DeleteOptions(grace_s=grace_s))

    def held(self, name: str) -> StoredObject:
        found = self.registry.cache.get(PODS, "default", name)
        assert found is not None
        return found

    def read(self, name: str) -> Object:
        return self.held(name).object(PODS)

    def read_node(self, name: str) -> Object:
        found = self.registry.cache.get(NODES, "", name)
        assert found is not None
        return found.object(NODES)

    def ledger(self, node: str = "n1") -> Ledger | None:
        found = self.registry.cache.get(NODE_SNAPSHOTS, "", node)
        return None if found is None else snapshot_decoded(found.value)[1]

    def on(self, node: str = "n1") -> list[str]:
        """The names of the pods on a node's ledger."""
        found = self.ledger(node)
        return [] if found is None else [one.name for one in found.pods]

    def decision(self, name: str) -> PlacementDecision | None:
        found = self.registry.cache.get(PLACEMENT_DECISIONS, "default", name)
        return None if found is None else decision_decoded(found.value)


def pod_object(name: str = "p", cpu: str = "1", **fields: Any) -> Object:
    """`metadata` adds to its own; `ports` are the container's; other fields go into the spec."""
    container: Object = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    if "ports" in fields:
        container["ports"] = fields.pop("ports")
    meta = {"name": name, "namespace": "default", **fields.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container], **fields}}


@asynccontextmanager
async def opened(store: Store, *, fails_stray_binds: bool = False) -> AsyncIterator[World]:
    """A world on an empty store."""
    async with opened_again(store, fails_stray_binds=fails_stray_binds) as world:
        for name in ("default", "kube-system"):
            await world.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        yield world


@asynccontextmanager
async def opened_again(store: Store, *, fails_stray_binds: bool = False) -> AsyncIterator[World]:
    """A world on a store that has been one before."""
    world = World(store, fails_stray_binds=fails_stray_binds)
    await world.registry.start()
    try:
        yield world
    finally:
        await world.registry.aclose()


def tell(story: Callable[[World], Awaitable[None]]) -> None:
    """Have a story happen on a store in memory."""

    async def told() -> None:
        async with asyncio.timeout(WITHIN_S), opened(MemoryStore()) as world:
            await story(world)

    asyncio.run(told())
