"""A performer before each of its worlds, behind one set of calls: a fake API server, and a registry in memory.

@pytest.mark.parametrize("world", WORLDS)
def test_...(world: Opener) -> None:
    async def scenario(world: PortWorld) -> None: ...
    play(world, scenario)

Objects are as clients write them. The performer knows of them what it was shown: `show` tells it how they are now.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from kube.fake_server import FakeServer
from kube.performing import Counted, Seen
from server.placing.world import World as RegistryStage
from server.placing.world import opened, pod_object
from situate.core.changes import Change, PodRef
from situate.core.model.devices import ResourceClaim
from situate.core.model.group import PodGroup
from situate.core.model.node import Node
from situate.core.model.storage import PersistentVolume, PersistentVolumeClaim
from situate.kube.client import Client
from situate.kube.conditions import GroupApi
from situate.kube.port import KubeSchedulingPort
from situate.loop.scheduling.performer import Performer
from situate.loop.scheduling.port import SchedulingPort
from situate.server.requests import SYSTEM, DeleteOptions, Object, Target
from situate.server.resources import BY_KIND
from situate.server.scheduling.port import RegistrySchedulingPort
from situate.store.memory import MemoryStore
from situate.wire.objects import decode, decode_node, decode_pod

WITHIN_S = 10.0
START_NS = 1_767_225_600_123_456_789  # 2026-01-01T00:00:00.123456789Z
NODES = ("n1", "n2")
GROUPS = "scheduling.k8s.io/v1beta1"


@dataclass(frozen=True)
class Event:
    """What both forms of an event say."""

    name: str
    about: str
    related: str
    reason: str
    note: str
    controller: str
    instance: str
    count: int


class PortWorld(ABC):
    def __init__(self) -> None:
        self.seen = Seen()
        self.counted = Counted()
        self.leads = True
        self.now_ns = START_NS
        self.told: list[Change] = []
        self.port: Any = self.make_port()
        self.performer = self.new_performer()

    def new_performer(self, **options: Any) -> Performer:
        return Performer(
            self.port,
            self.seen,
            self.told.extend,
            component="default-scheduler",
            may_write=self.may_write,
            now_ns=self.clock,
            metrics=self.counted,
            **{"devices_settled_s": 0.0, **options},
        )

    def may_write(self) -> bool:
        return self.leads

    def clock(self) -> int:
        return self.now_ns

    async def until(self, true: Callable[[], object]) -> None:
        async with asyncio.timeout(WITHIN_S):
            while not true():
                await asyncio.sleep(0.001)

    async def quiet(self) -> None:
        """Until nothing waits or runs."""
        await self.until(lambda: not self.performer.busy)

    async def answers(self, count: int = 1) -> list[Change]:
        """Wait for so many answers in all; then a little more, for any that nobody should give."""
        await self.until(lambda: len(self.told) >= count)
        await self.quiet()
        return self.told

    async def add_pod(self, name: str = "web", **spec: Any) -> PodRef:
        """A pending pod, known to the performer."""
        uid = await self.create(pod_object(name, cpu="10m", **spec))
        self.show()
        return PodRef("default", name, uid)

    async def add_volume(self, name: str = "pv-1", node: str = "n1", **spec: Any) -> None:
        term = {"matchExpressions": [{"key": "host", "operator": "In", "values": [node]}]}
        fields = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "local": {"path": "/x"},
            "persistentVolumeReclaimPolicy": "Retain",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        }
        body = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}}
        await self.create({**body, "spec": {**fields, **spec}})

    async def add_claim(self, name: str = "data") -> None:
        meta, size = {"name": name, "namespace": "default"}, {"requests": {"storage": "1Gi"}}
        spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": size}
        await self.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec})

    async def add_resource_claim(self, name: str = "gpu", **meta: Any) -> str:
        """A claim for a device; its uid."""
        requests = [{"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}]
        body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
        spec = {"devices": {"requests": requests}}
        return await self.create({**body, "metadata": {"name": name, "namespace": "default", **meta}, "spec": spec})

    async def add_group(self, name: str = "g") -> None:
        meta, spec = {"name": name, "namespace": "default"}, {"schedulingPolicy": {"gang": {"minCount": 2}}}
        await self.create({"apiVersion": GROUPS, "kind": "PodGroup", "metadata": meta, "spec": spec})
        self.show()

    def pod(self, name: str = "web") -> Object:
        return self.get("Pod", name)

    def volume(self, name: str = "pv-1") -> Object:
        return self.get("PersistentVolume", name)

    def claim(self, name: str = "data") -> Object:
        return self.get("PersistentVolumeClaim", name)

    def resource_claim(self, name: str = "gpu") -> Object:
        return self.get("ResourceClaim", name)

    def get(self, kind: str, name: str) -> Object:
        [found] = [one for one in self.all(kind) if one["metadata"]["name"] == name]
        return found

    def show(self) -> None:
        """Show the performer everything as it is, as the engine does after a step."""
        pods = [decode_pod(_json(one)) for one in self.all("Pod")]
        volumes = [decode(PersistentVolume, _json(one)) for one in self.all("PersistentVolume")]
        claims = [decode(PersistentVolumeClaim, _json(one)) for one in self.all("PersistentVolumeClaim")]
        devices = [decode(ResourceClaim, _json(one)) for one in self.all("ResourceClaim")]
        groups = [decode(PodGroup, _json(one)) for one in self.all("PodGroup")]
        self.seen.pods = {f"default/{one.metadata.name}": one for one in pods}
        self.seen.nodes = {name: _node(name) for name in NODES}
        self.seen.volumes = {one.metadata.name: one for one in volumes}
        self.seen.claims = {("default", one.metadata.name): one for one in claims}
        self.seen.groups = {("default", one.metadata.name): one for one in groups}
        self.seen.resource_claims = {("default", one.metadata.name): one for one in devices}
        self.step()

    def step(self) -> None:
        """A step without effects, after a change of storage."""
        self.seen.version += 1
        self.performer.perform([])

    @abstractmethod
    def make_port(self, **options: Any) -> SchedulingPort: ...

    @abstractmethod
    async def create(self, obj: Object) -> str:
        """The uid."""

    @abstractmethod
    def all(self, kind: str) -> list[Object]: ...

    @abstractmethod
    async def change(self, kind: str, name: str, change: Callable[[Object], object]) -> None:
        """Somebody else changes an object; the performer is not shown it yet."""

    @abstractmethod
    async def remove(self, kind: str, name: str) -> None: ...

    @abstractmethod
    def events(self) -> list[Event]: ...

    @property
    @abstractmethod
    def writes(self) -> int:
        """How many writes have been made."""


class KubeWorld(PortWorld):
    """A fake API server, over HTTP."""

    def __init__(self, server: FakeServer, client: Client) -> None:
        self.server = server
        self.client = client
        super().__init__()

    def make_port(self, **options: Any) -> SchedulingPort:
        return KubeSchedulingPort(
            self.client,
            self.client,
            self.seen,
            host="host-1",
            may_write=self.may_write,
            now_ns=self.clock,
            groups=lambda: GroupApi.of("v1beta1"),
            **options,
        )

    async def create(self, obj: Object) -> str:
        uid: str = self.server.put(_collection(obj["kind"]), obj)["metadata"]["uid"]
        return uid

    def all(self, kind: str) -> list[Object]:
        return self.server.all(_collection(kind))

    async def change(self, kind: str, name: str, change: Callable[[Object], object]) -> None:
        found = json.loads(_json(self.get(kind, name)))
        change(found)
        self.server.put(_collection(kind), found)

    async def remove(self, kind: str, name: str) -> None:
        self.server.remove(_collection(kind), name, "" if kind == "PersistentVolume" else "default")

    def events(self) -> list[Event]:
        return [
            Event(
                one["metadata"]["name"],
                one["regarding"]["name"],
                one.get("related", {}).get("name", ""),
                one["reason"],
                one["note"],
                one["reportingController"],
                one["reportingInstance"],
                one.get("series", {}).get("count", 1),
            )
            for one in self.all("Event")
        ]

    @property
    def writes(self) -> int:
        return sum(asked.method != "GET" for asked in self.server.requests)


class RegistryWorld(PortWorld):
    """A registry over a store in memory."""

    def __init__(self, stage: RegistryStage) -> None:
        self.stage = stage
        super().__init__()

    def make_port(self, **options: Any) -> SchedulingPort:
        return RegistrySchedulingPort(
            self.stage.registry,
            self.stage.binder,
            self.seen,
            self.clock,
            component="default-scheduler",
            host="host-1",
            may_write=self.may_write,
            **options,
        )

    async def create(self, obj: Object) -> str:
        return (await self.stage.create(obj)).uid

    def all(self, kind: str) -> list[Object]:
        resource = BY_KIND[_api_version(kind), kind]
        return [one.object(resource) for one in self.stage.registry.cache.all(resource)]

    async def change(self, kind: str, name: str, change: Callable[[Object], object]) -> None:
        def changed(obj: Object, _stored: object) -> Object:
            change(obj)
            return obj

        await self.stage.registry.modify(self._target(kind, name), changed, SYSTEM)

    async def remove(self, kind: str, name: str) -> None:
        if kind.startswith(("PersistentVolume", "ResourceClaim")):
            await self.change(kind, name, lambda obj: obj["metadata"].pop("finalizers", None))
        await self.stage.registry.delete(self._target(kind, name), SYSTEM, DeleteOptions(grace_s=0))

    def _target(self, kind: str, name: str) -> Target:
        return Target(BY_KIND[_api_version(kind), kind], "" if kind == "PersistentVolume" else "default", name)

    def events(self) -> list[Event]:
        return [
            Event(
                one["metadata"]["name"],
                one["involvedObject"]["name"],
                one.get("related", {}).get("name", ""),
                one["reason"],
                one["message"],
                one["reportingComponent"],
                one["reportingInstance"],
                one.get("series", {}).get("count", 1),
            )
            for one in self.all("Event")
        ]

    @property
    def writes(self) -> int:
        return self.stage.registry.cache.revision


Opener = Callable[[], AbstractAsyncContextManager[PortWorld]]


@asynccontextmanager
async def kube() -> AsyncIterator[PortWorld]:
    async with FakeServer() as server, Client(server.access(), qps=-1) as client:
        yield KubeWorld(server, client)


@asynccontextmanager
async def registry() -> AsyncIterator[PortWorld]:
    async with opened(MemoryStore()) as stage:
        for name in NODES:
            await stage.node(name, cpu="64", allocatable={"pods": "1000", "memory": "2000Gi"}, labels={"host": name})
        yield RegistryWorld(stage)


WORLDS = [kube, registry]


def play(opener: Opener, scenario: Callable[[PortWorld], Awaitable[None]]) -> None:
    async def run() -> None:
        async with opener() as world:
            await scenario(world)
            await world.performer.drain(0)

    asyncio.run(run())


def _collection(kind: str) -> str:
    if kind == "Event":
        return "/apis/events.k8s.io/v1/events"
    version = _api_version(kind)
    return f"{'/api' if version == 'v1' else '/apis'}/{version}/{kind.lower()}s"


def _api_version(kind: str) -> str:
    return {"PodGroup": GROUPS, "ResourceClaim": "resource.k8s.io/v1"}.get(kind, "v1")


def _json(obj: Object) -> bytes:
    return json.dumps(obj).encode()


def _node(name: str) -> Node:
    return decode_node(_json({"metadata": {"name": name, "labels": {"host": name}}}))
