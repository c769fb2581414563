"""The control plane of an agent that reaches it over HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from situate.agent.machine import LEASES, lease_body
from situate.agent.plane import PlaneError, PodRead, StaleError
from situate.core.changes import Change, ObjectGone, ObjectSeen
from situate.core.model.base import Model
from situate.kube.client import Client
from situate.kube.kinds import Kind
from situate.kube.problems import ApiError
from situate.kube.reflector import Reflector
from situate.wire.bodies import micro_time
from situate.wire.watch import RawReader

__all__ = ["ClientPlane"]

MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
BINDING_VERSION: Final = "situate.dev/binding-version"
BOUND: Final = "spec.nodeName!="

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""


class _Object(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()


_decode_meta: Final = msgspec.json.Decoder(_Object).decode


class ClientPlane:
    """A Plane on an API server."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def register(self, node: dict[str, Any]) -> None:
        try:
            await self._client.request("POST", "/api/v1/nodes", body=_encode(node))
        except ApiError as error:
            if not error.conflict:
                raise PlaneError(error.message) from None
            path = f"/api/v1/nodes/{node['metadata']['name']}/status"
            await self._patch(path, {"status": node["status"]})

    async def renew(self, node: str) -> None:
        root = f"/apis/coordination.k8s.io/v1/namespaces/{LEASES}/leases"
        body = lease_body(node, micro_time(time.time_ns()))
        try:
            await self._client.request(
                "PATCH", f"{root}/{node}", body=_encode({"spec": body["spec"]}), content_type=MERGE
            )
        except ApiError as error:
            if not error.not_found:
                raise PlaneError(error.message) from None
            try:
                await self._client.request("POST", root, body=_encode(body))
            except ApiError as refused:
                raise PlaneError(refused.message) from None

    async def pods(self, node: str = "") -> AsyncIterator[PodRead]:
        selector = f"spec.nodeName={node}" if node else BOUND
        kind = Kind(Model, "pods", field_selector=selector)
        told: asyncio.Queue[PodRead] = asyncio.Queue()

        def tell(changes: Sequence[Change]) -> None:
            for change in changes:
                told.put_nowait(_read(change))

        reflector = Reflector(self._client, kind, tell, reader=RawReader())

        async def say_when_listed() -> None:
            await reflector.synced.wait()
            told.put_nowait(PodRead("", "", None, listed=True))

        tasks = [asyncio.create_task(one) for one in (reflector.run(), say_when_listed())]
        try:
            while True:
                yield await told.get()
        finally:
            for task in tasks:
                task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.gather(*tasks)

    async def report(self, pod: dict[str, Any], status: dict[str, Any], version: int | None = None) -> None:
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status"
        about: dict[str, Any] = {"uid": meta["uid"]}
        if version is not None:
            about["annotations"] = {BINDING_VERSION: str(version)}
        # Strategic: conditions that are others' stay as they are.
        await self._patch(path, {"metadata": about, "status": status}, STRATEGIC)

    async def read(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = _decode(await self._client.request("GET", _path(kind, namespace, name)))
        except ApiError as error:
            if error.not_found:
                return None
            raise PlaneError(error.message) from None
        return found

    async def tell(self, event: dict[str, Any]) -> None:
        root = f"/api/v1/namespaces/{event['metadata']['namespace']}/events"
        try:
            await self._client.request("POST", root, body=_encode(event))
            return
        except ApiError as error:
            if not error.conflict:
                raise PlaneError(error.message) from None
        path = f"{root}/{event['metadata']['name']}"
        try:
            found = _decode(await self._client.request("GET", path))
        except ApiError as error:
            raise PlaneError(error.message) from None
        await self._patch(path, {"count": found.get("count", 1) + 1, "lastTimestamp": event["lastTimestamp"]})

    async def remove(self, pod: dict[str, Any]) -> None:
        meta = pod["metadata"]
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}}
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        try:
            await self._client.request("DELETE", path, body=_encode(options))
        except ApiError as error:
            raise _problem(error) from None

    async def _patch(self, path: str, body: dict[str, Any], how: str = MERGE) -> None:
        try:
            await self._client.request("PATCH", path, body=_encode(body), content_type=how)
        except ApiError as error:
            raise _problem(error) from None


def _path(kind: str, namespace: str, name: str) -> str:
    match kind:
        case "ConfigMap" | "Secret":
            return f"/api/v1/namespaces/{namespace}/{kind.lower()}s/{name}"
        case "Node":
            return f"/api/v1/nodes/{name}"
        case "NodeSnapshot":
            return f"/apis/situate.dev/v1alpha1/nodesnapshots/{name}"
        case _:
            raise ValueError(f"no agent reads a {kind}")


def _problem(error: ApiError) -> PlaneError:
    stale = error.not_found or error.conflict
    return StaleError(error.message) if stale else PlaneError(error.message)


def _read(change: Change) -> PodRead:
    match change:
        case ObjectSeen(item=body) if isinstance(body, bytes):
            meta = _decode_meta(body).metadata
            return PodRead(meta.namespace, meta.name, body)
        case ObjectGone(item=body) if isinstance(body, bytes):
            meta = _decode_meta(body).metadata
            return PodRead(meta.namespace, meta.name, None)
        case _:
            raise TypeError(f"a change that no raw reflector tells: {change}")
