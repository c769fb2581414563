"""The controllers over an API server: reflectors feed their runner, and a port performs their effects."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from situate.core.changes import Change, ObjectGone, ObjectSeen
from situate.core.model.base import Model
from situate.core.reconcile.effects import DeleteObject, Effect, LeaseVersion, ObjectRef, RebindPod, RecordEvent
from situate.core.reconcile.nodes.cleanup import LEASES
from situate.core.reconcile.nodes.fencing import NodeProfile
from situate.kube.client import Client
from situate.kube.errors import ApiError
from situate.kube.kinds import WatchedKind
from situate.kube.reflector import Reflector
from situate.kube.served_kinds import served_kinds
from situate.loop.controllers.cache import ServedKind
from situate.loop.controllers.events import event_body, event_name, space_of
from situate.loop.controllers.port import RefusedError, WriteResult, call, refused
from situate.loop.controllers.runner import Runner
from situate.loop.drive import running_clock
from situate.loop.logs import Log
from situate.wire.bodies import seconds_time
from situate.wire.metadata import decode_metadata
from situate.wire.watch import RawReader

UNWATCHED: Final = frozenset(
    {"events", "leases", "placementdecisions", "placementevents", "nodesnapshots", "devicepools"}
)
"""They come and go by the thousand, own nothing, and their writers manage them: controllers do not see them. They go
with their namespace."""
EMPTIED: Final = frozenset({"events", "leases"})
"""Of those, what we delete with a namespace. A decision goes with its pod, and nobody else may delete it."""
NODE_LEASES: Final = ("coordination.k8s.io/v1", "leases")
REMEMBERED: Final = 500
"""How many deleted owners are remembered."""
HEALTH_S: Final = 0.5
DEFINING: Final = frozenset({"customresourcedefinitions", "apiservices"})
"""When one of these changes, the server may serve new kinds."""
SETTLED_S: Final = 1.0
"""How long after that the server is asked for its kinds: it may be slower to serve a kind than to say so."""
LOOK_AGAIN_S: Final = 30.0
"""How often it is asked without a reason."""
MERGE: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"

_log = Log(__name__)
_encode: Final = msgspec.json.Encoder().encode


class ApiPort:
    """The ControllerPort of an API server."""

    def __init__(self, client: Client, kinds: Sequence[tuple[ServedKind, bool]]) -> None:
        self._client = client
        self._resources = {(one.api_version, one.kind): one.resource for one, _ in kinds}
        self._namespaced = frozenset((one.api_version, one.kind) for one, namespaced in kinds if namespaced)
        self._gone: OrderedDict[str, None] = OrderedDict()
        """Uids of deleted owners, cached because many objects have the same owner."""
        self._emptied = [one for one, namespaced in kinds if namespaced and one.resource in EMPTIED]
        self._count = 0

    def add(self, served: ServedKind, *, namespaced: bool) -> None:
        """Know one more kind."""
        name = (served.api_version, served.kind)
        self._resources[name] = served.resource
        if namespaced:
            self._namespaced |= {name}

    async def perform(self, effect: Effect) -> WriteResult | None:
        try:
            return await call(self, effect)
        except ApiError as error:
            return refused(effect, error.message, not_found=error.not_found, conflict=error.conflict)

    async def is_gone(self, ref: ObjectRef) -> bool:
        if ref.uid in self._gone:
            return True
        space = ref.namespace if (ref.api_version, ref.kind) in self._namespaced else ""
        try:
            found = await self._client.request("GET", self._path(replace(ref, namespace=space)))
        except ApiError as error:
            if not error.not_found:
                raise RefusedError(error.message) from None
        else:
            if ref.uid in ("", decode_metadata(found).uid):
                return False
        if not ref.uid:
            return True  # another object may get the name
        self._gone[ref.uid] = None  # uids are never reused
        if len(self._gone) > REMEMBERED:
            self._gone.popitem(last=False)
        return True

    async def create(self, ref: ObjectRef, body: Mapping[str, Any]) -> int:
        return _revision(await self._client.request("POST", self._path(ref, named=False), body=_encode(body)))

    async def merge(self, ref: ObjectRef, patch: Mapping[str, Any]) -> int:
        return await self._patch(ref, "", patch, MERGE)

    async def replace_status(
        self, ref: ObjectRef, version: str, status: Mapping[str, Any], annotations: Mapping[str, str] | None
    ) -> int:
        operations: list[dict[str, Any]] = [
            {"op": "test", "path": "/metadata/uid", "value": ref.uid},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
            {"op": "add", "path": "/status", "value": status},
        ]
        if annotations is not None:
            operations.append({"op": "add", "path": "/metadata/annotations", "value": annotations})
        return await self._patch(ref, "/status", operations, JSON_PATCH)

    async def merge_status(
        self, ref: ObjectRef, version: str, patch: Mapping[str, Any], lease: LeaseVersion | None = None
    ) -> int:
        await self._check(lease)
        guarded = {"metadata": {"uid": ref.uid, "resourceVersion": version}, "status": patch}
        return await self._patch(ref, "/status", guarded, MERGE)

    async def rebind(self, effect: RebindPod) -> None:
        """An API server cannot replace a pod in one write, and in two it could be lost: delete it, as Kubernetes."""
        await self.delete(DeleteObject(effect.ref, lease=effect.lease))

    async def _check(self, lease: LeaseVersion | None) -> None:
        """Raises RefusedError if the node's lease is at another version. The pod was marked for deletion before: an
        agent that renews its lease after this check finds the mark when it lists its pods."""
        if lease is None:
            return
        try:
            path = f"{_root(NODE_LEASES[0], LEASES)}/{NODE_LEASES[1]}/{lease.node}"
            found = decode_metadata(await self._client.request("GET", path)).resource_version
        except ApiError as error:
            if not error.not_found:
                raise
            found = ""
        if found != lease.resource_version:
            raise RefusedError(f"node {lease.node} may run its pods: its lease has been written since", settled=True)

    async def delete(self, effect: DeleteObject) -> None:
        await self._check(effect.lease)
        version = effect.resource_version
        preconditions = {"uid": effect.ref.uid, **({"resourceVersion": version} if version else {})}
        options: dict[str, Any] = {"propagationPolicy": effect.propagation, "preconditions": preconditions}
        if effect.grace_s is not None:
            options["gracePeriodSeconds"] = effect.grace_s
        await self._client.request("DELETE", self._path(effect.ref), body=_encode(options))

    async def evict(self, ref: ObjectRef) -> None:
        meta = {"name": ref.name, "namespace": ref.namespace}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}
        options = {"preconditions": {"uid": ref.uid}}
        path = f"{self._path(ref)}/eviction"
        await self._client.request("POST", path, body=_encode({**body, "deleteOptions": options}))

    def _path(self, ref: ObjectRef, *, named: bool = True) -> str:
        resource = self._resources.get((ref.api_version, ref.kind))
        if resource is None:
            raise ApiError(404, "NotFound", f"the server does not have {ref.kind} in {ref.api_version}")
        root = _root(ref.api_version, ref.namespace)
        return f"{root}/{resource}/{ref.name}" if named else f"{root}/{resource}"

    async def _patch(self, ref: ObjectRef, subresource: str, patch: Any, how: str) -> int:
        path = self._path(ref) + subresource
        return _revision(await self._client.request("PATCH", path, body=_encode(patch), content_type=how))

    async def finalize(self, ref: ObjectRef, version: str, finalizers: tuple[str, ...]) -> int:
        for served in self._emptied:
            await self._client.request("DELETE", f"{_root(served.api_version, ref.name)}/{served.resource}")
        found: dict[str, Any] = msgspec.json.decode(await self._client.request("GET", self._path(ref)))
        found["metadata"]["resourceVersion"] = version
        found["spec"] = {**found.get("spec", {}), "finalizers": list(finalizers)}
        return _revision(await self._client.request("PUT", f"{self._path(ref)}/finalize", body=_encode(found)))

    async def record(self, event: RecordEvent) -> None:
        now = time.time_ns()
        self._count += 1
        body = event_body(event, event_name(event, now, self._count), seconds_time(now))
        await self._client.request("POST", f"/api/v1/namespaces/{space_of(event)}/events", body=_encode(body))


class ApiControllers:
    """`run` it until it is cancelled."""

    def __init__(
        self,
        client: Client,
        kinds: Sequence[tuple[ServedKind, bool]],
        profile: NodeProfile | None = None,
        *,
        moves_drifted: bool = False,
    ) -> None:
        """`profile`: how nodes are monitored; None: not at all. `moves_drifted`: evict pods that no longer fit or match
        their node."""
        served = [one for one, _ in kinds]
        self._client, self._port = client, ApiPort(client, kinds)
        self._known = {_group_resource(one) for one in served}
        self._defined = asyncio.Event()
        self.runner = Runner(served, self._port, running_clock(), profile, moves_drifted=moves_drifted)
        leases = [one for one in served if profile is not None and (one.api_version, one.resource) == NODE_LEASES]
        self._leases = [Reflector(client, _kind(one), self._take_leases, reader=RawReader()) for one in leases]
        self._reflectors = [self._reflector(one) for one in served if one.resource not in UNWATCHED]

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for reflector in (*self._reflectors, *self._leases):
                group.create_task(reflector.run())
            for reflector in (*self._reflectors, *self._leases):
                await reflector.synced.wait()
            _log.info("Controllers' caches are synced", kinds=len(self._reflectors))
            group.create_task(self.runner.run())
            group.create_task(self._follow_new_kinds(group))
            for reflector in self._leases:
                group.create_task(self._watch_health(reflector))

    async def _follow_new_kinds(self, group: asyncio.TaskGroup) -> None:
        """Kinds that were not served when we started. One that is gone stays followed: without its reflector, an owner
        of that kind could seem to be gone."""
        while True:
            try:
                async with asyncio.timeout(LOOK_AGAIN_S):
                    await self._defined.wait()
                await asyncio.sleep(SETTLED_S)
            except TimeoutError:
                pass  # nothing tells us of every kind
            self._defined.clear()
            try:
                found = await served_kinds(self._client)
            except ApiError as error:
                _log.warning("Cannot ask the server for its kinds; trying again", err=error.message)
                continue
            for one, namespaced in found:
                if _group_resource(one) not in self._known and one.resource not in UNWATCHED:
                    self._follow(group, one, namespaced=namespaced)

    def _follow(self, group: asyncio.TaskGroup, served: ServedKind, *, namespaced: bool) -> None:
        self._known.add(_group_resource(served))
        self._port.add(served, namespaced=namespaced)
        self.runner.view.graph.add_kinds([(served.api_version, served.kind)])
        group.create_task(self._reflector(served).run())
        _log.info("Controllers see one more kind", kind=served.kind, version=served.api_version)

    def _reflector(self, served: ServedKind) -> Reflector:
        return Reflector(self._client, _kind(served), partial(self._take, served), reader=RawReader())

    async def _watch_health(self, leases: Reflector) -> None:
        """While we cannot watch leases, nodes are not judged by them."""
        seen = True
        while True:
            await asyncio.sleep(HEALTH_S)
            if seen == bool(leases.problem):
                seen = not seen
                self.runner.leases_seen(seen)

    def _take_leases(self, changes: Sequence[Change]) -> None:
        for change in changes:
            match change:
                case ObjectSeen(item=body) if decode_metadata(_bytes(body)).namespace == LEASES:
                    self.runner.renewed(_bytes(body))
                case ObjectGone(item=body) if decode_metadata(_bytes(body)).namespace == LEASES:
                    self.runner.lease_gone(decode_metadata(_bytes(body)).name)
                case _:
                    continue  # not a node's lease

    def _take(self, served: ServedKind, changes: Sequence[Change]) -> None:
        if served.resource in DEFINING:
            self._defined.set()
        for change in changes:
            match change:
                case ObjectSeen(item=body):
                    self.runner.seen(served, _bytes(body))
                case ObjectGone(item=body):
                    meta = decode_metadata(_bytes(body))
                    self.runner.gone(served, meta.namespace, meta.name, int(meta.resource_version or 0))
                case _:
                    raise TypeError(f"a change that no raw reflector tells: {change}")


def _revision(answer: bytes) -> int:
    return int(decode_metadata(answer).resource_version or 0)


def _bytes(body: object) -> bytes:
    if not isinstance(body, bytes):
        raise TypeError(f"not as it was read: {type(body).__name__}")
    return body


def _group_resource(served: ServedKind) -> tuple[str, str]:
    """The same objects, in whichever version they are served."""
    return served.api_version.rpartition("/")[0], served.resource


def _kind(served: ServedKind) -> WatchedKind:
    group, _, version = served.api_version.rpartition("/")
    return WatchedKind(Model, served.resource, group, (version,))


def _root(api_version: str, namespace: str) -> str:
    base = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    return f"{base}/namespaces/{namespace}" if namespace else base
