"""A registry in memory that serves custom kinds, and calls without HTTP that answer as the server does."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from situate.server.admission.chain import chain
from situate.server.apiextensions.controller import DefinitionController
from situate.server.apiextensions.definition import ConvertBy, no_webhooks
from situate.server.apiextensions.served import DEFINITIONS, CustomKinds
from situate.server.errors import StatusError
from situate.server.http.bodies import decode_resource
from situate.server.registry.cache import Cache
from situate.server.registry.registry import Registry, collecting
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import SYSTEM, Object, Target, WriteOptions
from situate.server.resources import BY_KIND, Resource
from situate.store.memory import MemoryStore

NAMESPACE = BY_KIND["v1", "Namespace"]
NOW_NS = 1_800_000_000 * 10**9
GROUP = "example.com"


def definition(schema: Any, *, kind: str = "Thing", **version: Any) -> Object:
    """A definition of one version."""
    plural = f"{kind.lower()}s"
    one = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [one],
        },
    }


def of_spec(**properties: Any) -> Object:
    """A schema of a whole object, from the properties of its spec."""
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}


def thing(name: str = "a", *, kind: str = "Thing", version: str = "v1", **fields: Any) -> Object:
    return {"apiVersion": f"{GROUP}/{version}", "kind": kind, "metadata": {"name": name}, **fields}


class World:
    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.controller = DefinitionController(registry, lambda: NOW_NS)

    async def define(self, crd: Object) -> Resource:
        """Create or replace a definition, and wait until it is served; the first of its versions."""
        await self.create(DEFINITIONS, crd, namespace="")
        return await self.established(crd)

    async def established(self, crd: Object) -> Resource:
        await self.controller._handle(crd["metadata"]["name"])
        spec = crd["spec"]
        found = self.registry.custom.at_path(spec["group"], spec["versions"][0]["name"], spec["names"]["plural"])
        assert found is not None
        return found

    async def create(
        self, resource: Resource, obj: Object, *, namespace: str = "default", validation: Any = "Warn"
    ) -> StoredObject:
        body, options = json.dumps(obj).encode(), WriteOptions(field_validation=validation)
        decode = partial(decode_resource, body, "application/json", resource, options)
        return await self.registry.create_body(Target(resource, namespace), body, decode, SYSTEM, options)

    async def update(self, resource: Resource, obj: Object, subresource: str = "") -> StoredObject:
        name = obj["metadata"]["name"]
        return await self.registry.update(Target(resource, "default", name, subresource), obj, SYSTEM)

    async def patch(self, resource: Resource, name: str, patch: Any, how: Any = "merge", sub: str = "") -> Object:
        target = Target(resource, "default", name, sub)
        options = WriteOptions(field_manager="tester")
        return (await self.registry.patch(target, how, patch, SYSTEM, options)).stored.object(resource)


@asynccontextmanager
async def world(convert: ConvertBy = no_webhooks) -> AsyncIterator[World]:
    store = MemoryStore()
    cache = Cache(store)
    numbers = itertools.count(1)
    registry = Registry(
        store,
        wall_ns=lambda: NOW_NS,
        new_uid=lambda: f"uid-{next(numbers)}",
        cache=cache,
        custom=CustomKinds(cache, convert),
        admission=chain(cache),
    )
    await registry.start()
    await registry.create(
        Target(NAMESPACE), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}, SYSTEM
    )
    yield World(registry)
    await registry.aclose()
    await store.aclose()


def run(story: Any) -> Any:
    """Run a story in a world of its own."""

    async def whole() -> Any:
        async with world() as made:
            return await story(made)

    return asyncio.run(whole())


async def refusal(call: Any) -> tuple[int, list[str]]:
    """The code of a refusal, and its causes or its message."""
    try:
        await call
    except StatusError as error:
        return error.code, [f"{one.field}: {one.message}" for one in error.causes] or [error.message]
    return 0, []


async def warnings_of(call: Any) -> list[str]:
    with collecting() as found:
        await call
    return found
