"""Objects in memory for the tests: what identity reads of the registry's cache, and a registry that only keeps."""

import asyncio
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from situate.server.errors import already_exists, conflict, not_found
from situate.server.requests import Caller, DeleteOptions, Object, Target
from situate.server.resources import BY_KIND, Resource


@dataclass(frozen=True)
class Kept:
    namespace: str
    name: str
    revision: int
    value: Object

    def object(self, resource: Resource) -> Object:
        return {"apiVersion": resource.api_version, "kind": resource.kind, **deepcopy(self.value)}


@dataclass
class ResourceState:
    last_change: int = 0


class Memory:
    """A cache and a registry in one."""

    def __init__(self, *objects: Object) -> None:
        self.revision = 0
        self.kept: dict[tuple[str, str, str], Kept] = {}
        self.states: dict[str, ResourceState] = {}
        for thing in objects:
            self.put(thing)

    def copy(self) -> "Memory":
        """Another one with the same objects."""
        other = Memory()
        other.revision, other.kept = self.revision, dict(self.kept)
        other.states = {key: ResourceState(state.last_change) for key, state in self.states.items()}
        return other

    @property
    def cache(self) -> "Memory":
        return self

    def put(self, thing: Object) -> Kept:
        resource = BY_KIND[thing["apiVersion"], thing["kind"]]
        self.revision += 1
        metadata = {"uid": f"uid-{self.revision}", **thing["metadata"]}
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        held = Kept(namespace, name, self.revision, deepcopy({**thing, "metadata": metadata}))
        self.kept[resource.stored_as, namespace, name] = held
        self.of(resource).last_change = self.revision
        return held

    def remove(self, resource: Resource, namespace: str, name: str) -> None:
        self.revision += 1
        del self.kept[resource.stored_as, namespace, name]
        self.of(resource).last_change = self.revision

    def get(self, resource: Resource, namespace: str, name: str) -> Kept | None:
        return self.kept.get((resource.stored_as, namespace, name))

    def all(self, resource: Resource, namespace: str = "") -> Iterator[Kept]:
        for key in sorted(self.kept):
            if key[0] == resource.stored_as and (not namespace or key[1] == namespace):
                yield self.kept[key]

    def on_node(self, node: str) -> list[Kept]:
        return [
            held
            for (stored_as, _, _), held in sorted(self.kept.items())
            if stored_as == "/pods" and held.value.get("spec", {}).get("nodeName") == node
        ]

    def of(self, resource: Resource) -> ResourceState:
        return self.states.setdefault(resource.stored_as, ResourceState())

    async def create(self, target: Target, obj: Object, caller: Caller) -> Any:
        name = obj["metadata"]["name"]
        if self.get(target.resource, target.namespace, name) is not None:
            raise already_exists(target.resource.plural, target.resource.group, name)
        return self.put(obj)

    async def update(self, target: Target, obj: Object, caller: Caller) -> Any:
        return self.put(obj)

    async def delete(self, target: Target, caller: Caller, options: DeleteOptions) -> Any:
        found = self.get(target.resource, target.namespace, target.name)
        await asyncio.sleep(0)  # as a registry, which lets others in meanwhile
        if self.get(target.resource, target.namespace, target.name) is None or found is None:
            raise not_found(target.resource.plural, target.resource.group, target.name)
        if options.uid and found.value["metadata"]["uid"] != options.uid:
            raise conflict(target.resource.plural, target.resource.group, target.name)
        self.remove(target.resource, target.namespace, target.name)
