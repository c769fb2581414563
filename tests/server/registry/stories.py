"""How a test of the registry is told: a registry over a store, a clock that stands still, and words for objects."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from situate.server.errors import StatusError
from situate.server.registry.cache import Cache
from situate.server.registry.converted_watch import ConvertedWatch
from situate.server.registry.ports import AdmissionPlugin, TransactionExtension
from situate.server.registry.registry import Registry
from situate.server.registry.user_admission import NOBODY, UserAdmission
from situate.server.registry.watchers import ObjectWatch, WatchEvent
from situate.server.requests import Caller, ListOptions, Object, Target, WatchOptions, WriteOptions
from situate.server.resources import BY_KIND, Resource
from situate.store.contract import Store
from situate.store.memory import MemoryStore

WITHIN_S = 30.0
NOON_S = 1_767_355_200  # 2026-01-02T12:00:00Z
ANN = Caller("ann", agent="kubectl/v1.36")

POD = BY_KIND["v1", "Pod"]
NODE = BY_KIND["v1", "Node"]
CONFIG_MAP = BY_KIND["v1", "ConfigMap"]
NAMESPACE = BY_KIND["v1", "Namespace"]
LEASE = BY_KIND["coordination.k8s.io/v1", "Lease"]
JOB = BY_KIND["batch/v1", "Job"]
DEPLOYMENT = BY_KIND["apps/v1", "Deployment"]


@dataclass
class World:
    """A server without HTTP. Its clock moves when a test says so."""

    store: Store
    registry: Registry
    now_s: list[int]
    uids: list[int] = field(default_factory=lambda: [0])

    @property
    def cache(self) -> Cache:
        return self.registry.cache

    def later(self, seconds: int) -> None:
        self.now_s[0] += seconds

    async def create(self, obj: Object, caller: Caller = ANN, **options: Any) -> Object:
        resource, namespace = where(obj)
        held = await self.registry.create(Target(resource, namespace), obj, caller, WriteOptions(**options))
        return held.object(resource)

    async def update(self, obj: Object, subresource: str = "", caller: Caller = ANN, **options: Any) -> Object:
        resource, namespace = where(obj)
        target = Target(resource, namespace, obj["metadata"]["name"], subresource)
        return (await self.registry.update(target, obj, caller, WriteOptions(**options))).object(resource)

    async def get(self, resource: Resource, name: str, namespace: str = "default") -> Object:
        held = await self.registry.get(Target(resource, namespace if resource.namespaced else "", name))
        return held.object(resource)

    async def names(self, resource: Resource, namespace: str = "default", **options: Any) -> list[str]:
        listing = await self.registry.list(Target(resource, namespace), ListOptions(**options))
        return [held.name for held in listing.items]

    async def watch(
        self, resource: Resource, namespace: str = "default", name: str = "", **options: Any
    ) -> ObjectWatch | ConvertedWatch:
        return await self.registry.watch(Target(resource, namespace, name), WatchOptions(**options))


def tell(
    story: Callable[[World], Awaitable[None]],
    *,
    store: Store | None = None,
    admission: Callable[[Cache], Sequence[AdmissionPlugin]] = lambda _: (),
    users: Callable[[Cache], UserAdmission] = lambda _: NOBODY,
    extension: TransactionExtension | None = None,
    suffixes: Sequence[str] = (),
    bookmarks_s: float = 3_600.0,
) -> None:
    async def told() -> None:
        kept = MemoryStore() if store is None else store
        now_s, uids, left = [NOON_S], [0], list(reversed(suffixes))

        def new_uid() -> str:
            uids[0] += 1
            return f"uid-{uids[0]}"

        cache = Cache(kept)
        more: dict[str, Any] = {"new_suffix": left.pop} if suffixes else {}
        registry = Registry(
            kept,
            wall_ns=lambda: now_s[0] * 1_000_000_000,
            new_uid=new_uid,
            cache=cache,
            admission=admission(cache),
            users=users(cache),
            extension=extension,
            bookmarks_s=bookmarks_s,
            **more,
        )
        async with asyncio.timeout(WITHIN_S):
            await registry.start()
            try:
                await story(World(kept, registry, now_s, uids))
            finally:
                await registry.aclose()
                await kept.aclose()

    asyncio.run(told())


def where(obj: Object) -> tuple[Resource, str]:
    resource = BY_KIND[obj["apiVersion"], obj["kind"]]
    namespace = obj["metadata"].get("namespace") or "default"
    return resource, namespace if resource.namespaced else ""


def refused(caught: "pytest.ExceptionInfo[StatusError]") -> tuple[int, str, str]:
    return caught.value.code, caught.value.reason, caught.value.message


async def no(asked: Awaitable[Any]) -> tuple[int, str, str]:
    """The refusal that must come."""
    with pytest.raises(StatusError) as caught:
        await asked
    return refused(caught)


async def heard(watching: ObjectWatch | ConvertedWatch, count: int) -> list[tuple[str, str]]:
    """The next events: what happened, and to whom. Bookmarks and errors are to nobody."""
    return [_said(await anext(watching)) for _ in range(count)]


def ready(watching: ObjectWatch | ConvertedWatch) -> list[tuple[str, str]]:
    return [_said(event) for event in watching.ready()]


def _said(event: WatchEvent) -> tuple[str, str]:
    return event.type, event.stored.name if event.stored else ""


# -- objects -----------------------------------------------------------------------------------------------------------


def config_map(name: str = "", namespace: str = "", data: dict[str, str] | None = None, **metadata: Any) -> Object:
    named = {"name": name, "namespace": namespace}
    meta = {key: value for key, value in named.items() if value} | metadata
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data or {"k": "v"}}


def pod(name: str, node: str = "", **metadata: Any) -> Object:
    spec: Object = {"containers": [{"name": "c", "image": "i"}]}
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec}


def namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def job(name: str) -> Object:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": template}}


def deployment(name: str, replicas: int = 1) -> Object:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    }
