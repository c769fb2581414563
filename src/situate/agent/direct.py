"""The control plane of an agent that lives in the server's own process."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any, Final

from situate.agent.machine import LEASES, lease_body
from situate.agent.plane import PlaneError, PodRead, StaleError
from situate.agent.statuses import merged
from situate.server.asking import Caller, DeleteOptions, Object, Target, WatchOptions
from situate.server.placing.companions import BINDING_VERSION
from situate.server.problems import StatusError
from situate.server.registry.held import Held
from situate.server.registry.registry import Registry
from situate.server.resources import BY_KIND
from situate.wire.bodies import micro_time

__all__ = ["RegistryPlane"]

PODS: Final = BY_KIND["v1", "Pod"]
NODES: Final = BY_KIND["v1", "Node"]
LEASE: Final = BY_KIND["coordination.k8s.io/v1", "Lease"]
EVENTS: Final = BY_KIND["v1", "Event"]
READ: Final = {
    "ConfigMap": BY_KIND["v1", "ConfigMap"],
    "Secret": BY_KIND["v1", "Secret"],
    "Node": NODES,
    "NodeSnapshot": BY_KIND["situate.dev/v1alpha1", "NodeSnapshot"],
}
BOUND: Final = "spec.nodeName!="
GONE: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT})


class RegistryPlane:
    """A Plane without HTTP."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def register(self, node: dict[str, Any]) -> None:
        name = node["metadata"]["name"]
        caller = _caller(name)
        try:
            await self._registry.create(Target(NODES), node, caller)
        except StatusError as error:
            if error.code != HTTPStatus.CONFLICT:
                raise PlaneError(error.message) from None
            await self._change(Target(NODES, "", name, "status"), "status", node["status"], caller)

    async def renew(self, node: str) -> None:
        now = micro_time(time.time_ns())
        target = Target(LEASE, LEASES, node)
        if self._registry.cache.get(LEASE, LEASES, node) is None:
            try:
                await self._registry.create(Target(LEASE, LEASES), lease_body(node, now), _caller(node))
            except StatusError as error:
                raise PlaneError(error.message) from None
            return
        await self._change(target, "spec", lease_body(node, now)["spec"], _caller(node))

    async def pods(self, node: str = "") -> AsyncIterator[PodRead]:
        options = WatchOptions(
            fields=f"spec.nodeName={node}" if node else BOUND,
            initial_events=True,
            resource_version_match="NotOlderThan",
            bookmarks=True,
        )
        try:
            watching = await self._registry.watch(Target(PODS), options)
        except StatusError as error:
            raise PlaneError(error.message) from None
        try:
            async for event in watching:
                if event.held is not None:
                    body = None if event.type == "DELETED" else event.held.shown(PODS)
                    yield PodRead(event.held.namespace, event.held.name, body)
                elif event.initial_end:
                    yield PodRead("", "", None, listed=True)
        finally:
            await watching.aclose()

    async def report(self, pod: dict[str, Any], status: dict[str, Any], version: int | None = None) -> None:
        meta = pod["metadata"]

        def change(found: Object, held: Held) -> Object:
            if found["metadata"]["uid"] != meta["uid"] or found["spec"].get("nodeName") != pod["spec"]["nodeName"]:
                raise StatusError(HTTPStatus.CONFLICT, "Conflict", "the pod is another, or was bound anew")
            return {**_about(found, version), "status": merged(found.get("status", {}), status)}

        target = Target(PODS, meta["namespace"], meta["name"], "status")
        try:
            await self._registry.modify(target, change, _caller(pod["spec"]["nodeName"]))
        except StatusError as error:
            raise (StaleError if error.code in GONE else PlaneError)(error.message) from None

    async def read(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        held = self._registry.cache.get(READ[kind], namespace, name)
        return None if held is None else held.object(READ[kind])

    async def tell(self, event: dict[str, Any]) -> None:
        meta = event["metadata"]
        caller = _caller(event["source"]["host"])
        try:
            await self._registry.create(Target(EVENTS, meta["namespace"]), event, caller)
            return
        except StatusError as error:
            if error.code != HTTPStatus.CONFLICT:
                raise PlaneError(error.message) from None

        def change(found: Object, held: Held) -> Object:
            return {**found, "count": found.get("count", 1) + 1, "lastTimestamp": event["lastTimestamp"]}

        try:
            await self._registry.modify(Target(EVENTS, meta["namespace"], meta["name"]), change, caller)
        except StatusError as error:
            raise PlaneError(error.message) from None

    async def remove(self, pod: dict[str, Any]) -> None:
        meta = pod["metadata"]
        target = Target(PODS, meta["namespace"], meta["name"])
        options = DeleteOptions(grace_s=0, uid=meta["uid"])
        try:
            await self._registry.delete(target, _caller(pod["spec"]["nodeName"]), options)
        except StatusError as error:
            raise (StaleError if error.code in GONE else PlaneError)(error.message) from None

    async def _change(self, target: Target, part: str, value: Any, caller: Caller) -> None:
        def change(found: Object, held: Held) -> Object:
            return {**found, part: {**found.get(part, {}), **value}}

        try:
            await self._registry.modify(target, change, caller)
        except StatusError as error:
            raise PlaneError(error.message) from None


def _about(pod: Object, version: int | None) -> Object:
    """With the binding that a report is about, which the server compares with the pod's own."""
    if version is None:
        return pod
    meta = pod["metadata"]
    return {**pod, "metadata": {**meta, "annotations": {**meta.get("annotations", {}), BINDING_VERSION: str(version)}}}


def _caller(node: str) -> Caller:
    return Caller(f"system:node:{node}", ("system:nodes", "system:authenticated"), agent="situate-agent")
