"""Identity on the registry itself: roles that are kept there, and admission on what is written there."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import pytest

from server.identity.authorization.test_matrix import bits
from server.identity.world import ASKERS, objects, questions
from situate.server.errors import StatusError
from situate.server.identity.authorization.authorization import Authorization
from situate.server.identity.authorization.escalation import NoEscalation
from situate.server.identity.authorization.node_restriction import NodeRestriction
from situate.server.identity.bootstrap import bootstrap
from situate.server.identity.ports import ObjectReader, resource_of
from situate.server.registry.cache import Cache
from situate.server.registry.registry import Registry
from situate.server.requests import SYSTEM, Caller, Object, Target
from situate.server.resources import BY_KIND
from situate.store.memory import MemoryStore

ALPHA = Caller("system:node:alpha", ("system:nodes", "system:authenticated"))
KATE = Caller("kate", ("system:authenticated",))
NOON_NS = 1_794_000_000_000_000_000
NODES = resource_of("v1", "nodes")
BINDINGS = resource_of("rbac.authorization.k8s.io/v1", "rolebindings")


@asynccontextmanager
async def opened(*, filled: bool = True) -> AsyncIterator[tuple[Registry, Authorization]]:
    store = MemoryStore()
    cache = Cache(store)
    view: ObjectReader = cache
    authorization = Authorization(view)
    numbers = count()
    registry = Registry(
        store,
        wall_ns=lambda: NOON_NS,
        new_uid=lambda: f"uid-{next(numbers)}",
        cache=cache,
        admission=(NodeRestriction(view, authorization), NoEscalation(authorization.rbac, authorization)),
    )
    await registry.start()
    try:
        await bootstrap(registry, "a certificate")
        for thing in objects() if filled else ():
            await put(registry, thing)
        yield registry, authorization
    finally:
        await registry.aclose()
        await store.aclose()


async def put(registry: Registry, thing: Object, caller: Caller = SYSTEM) -> None:
    resource = BY_KIND[thing["apiVersion"], thing["kind"]]
    await registry.create(Target(resource, thing["metadata"].get("namespace", "")), thing, caller)


def test_everybody_may_the_same_over_the_registry_as_over_kubernetes(facts: dict[str, Any]) -> None:
    async def story() -> None:
        async with opened() as (_, authorization):
            for question, (*_, row) in zip(questions(), facts["may"], strict=True):
                mine = [bits(authorization, question, Caller(who.name, who.groups)) for who in ASKERS]
                assert mine == row, question

    asyncio.run(story())


def test_a_second_start_writes_nothing() -> None:
    async def story() -> None:
        async with opened(filled=False) as (registry, _):
            assert await bootstrap(registry, "a certificate") == 0
            assert await bootstrap(registry, "another") == 2  # for servers, and for nodes that join

    asyncio.run(story())


def test_a_node_is_restricted_in_what_it_writes() -> None:
    async def story() -> None:
        async with opened() as (registry, _):
            own, other = Target(NODES, "", "alpha"), Target(NODES, "", "beta")
            await registry.patch(own, "merge", {"metadata": {"labels": {"a.com/b": "c"}}}, ALPHA)
            patch = {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}
            with pytest.raises(StatusError, match="is not allowed to modify taints"):
                await registry.patch(own, "merge", patch, ALPHA)
            with pytest.raises(StatusError, match='is not allowed to modify node "beta"'):
                await registry.patch(other, "merge", {"metadata": {"labels": {"a.com/b": "c"}}}, ALPHA)
            with pytest.raises(StatusError, match="can only delete pods with"):
                await registry.delete(Target(resource_of("v1", "pods"), "shop", "other"), ALPHA)

    asyncio.run(story())


def test_nobody_binds_what_they_do_not_have_and_a_grant_counts_at_once() -> None:
    def binding(role: str) -> Object:
        return {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "made", "namespace": "shop"},
            "subjects": [{"kind": "User", "name": "zoe", "apiGroup": "rbac.authorization.k8s.io"}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        }

    async def story() -> None:
        async with opened() as (registry, authorization):
            question = next(one for one in questions() if one[:4] == ("", "pods", "", "shop"))
            zoe = Caller("zoe", ("system:authenticated",))
            assert bits(authorization, question, zoe) == 0
            with pytest.raises(StatusError, match="attempting to grant RBAC permissions not currently held"):
                await put(registry, binding("cluster-admin"), KATE)
            await put(registry, binding("view"), KATE)
            assert bits(authorization, question, zoe) == 0b111
            await registry.delete(Target(BINDINGS, "shop", "made"), KATE)
            assert bits(authorization, question, zoe) == 0

    asyncio.run(story())


@pytest.mark.parametrize("registered", [True, False])
def test_a_mirror_pod_needs_the_node_that_owns_it(registered: bool) -> None:
    async def story() -> None:
        async with opened(filled=False) as (registry, _):
            node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "alpha"}}
            uid = "none"
            if registered:
                uid = (await registry.create(Target(NODES), node, SYSTEM)).uid
            owner = {"apiVersion": "v1", "kind": "Node", "name": "alpha", "uid": uid, "controller": True}
            metadata = {
                "name": "mirrored",
                "namespace": "default",
                "annotations": {"kubernetes.io/config.mirror": "x"},
                "ownerReferences": [owner],
            }
            spec = {"nodeName": "alpha", "containers": [{"name": "main", "image": "i"}]}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
            if registered:
                await put(registry, pod, ALPHA)
            else:
                with pytest.raises(StatusError) as refused:
                    await put(registry, pod, ALPHA)
                assert (refused.value.code, refused.value.message) == (404, 'node "alpha" not found')

    asyncio.run(story())
