"""The control plane of an agent that lives in the server's own process."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final

from situate.agent.control_plane import (
    NO_ORIGIN,
    AcquiredLease,
    ControlPlaneError,
    LeaseLostError,
    LeaseRenewal,
    NodeUpdate,
    PodUpdate,
    SnapshotUpdate,
    StaleError,
    StatusOrigin,
)
from situate.agent.node_objects import LEASES, lease_body, taken_after, with_own, with_report
from situate.agent.pod_status import merge_status
from situate.core.reconcile.nodes.reports import ACKNOWLEDGED, AgentReport
from situate.server.errors import StatusError
from situate.server.placing.bind_transaction import BINDING_VERSION
from situate.server.registry.registry import Registry
from situate.server.registry.stored_object import StoredObject
from situate.server.registry.watchers import WatchEvent
from situate.server.requests import Caller, DeleteOptions, Object, Target, WatchOptions
from situate.server.resources import BY_KIND
from situate.wire.bodies import micro_time

__all__ = ["LocalControlPlane"]

PODS: Final = BY_KIND["v1", "Pod"]
NODES: Final = BY_KIND["v1", "Node"]
LEASE: Final = BY_KIND["coordination.k8s.io/v1", "Lease"]
EVENTS: Final = BY_KIND["v1", "Event"]
SNAPSHOTS: Final = BY_KIND["situate.dev/v1alpha1", "NodeSnapshot"]
READ: Final = {"ConfigMap": BY_KIND["v1", "ConfigMap"], "Secret": BY_KIND["v1", "Secret"], "Node": NODES}
BOUND: Final = "spec.nodeName!="
GONE: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT})


class LocalControlPlane:
    """A Plane without HTTP."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def register_node(self, node: dict[str, Any], report: AgentReport | None = None) -> None:
        name, said = node["metadata"]["name"], with_report(node, report)
        caller = _caller(name)

        def change(found: Object, held: StoredObject) -> Object:
            meta = found["metadata"]
            labels = {**meta.get("labels", {}), **said["metadata"].get("labels", {})}
            annotations = {**meta.get("annotations", {}), **node["metadata"].get("annotations", {})}
            told = {"labels": labels, **({"annotations": annotations} if annotations else {})}
            made = with_report({**found, "metadata": {**meta, **told}}, report)
            return {**made, "status": with_own(found.get("status", {}), said["status"])}

        try:
            if self._registry.cache.get(NODES, "", name) is None:
                await self._registry.create(Target(NODES), said, caller)
            else:
                await self._registry.modify(Target(NODES, "", name, "status"), change, caller)
        except StatusError as error:
            raise (StaleError if error.code == HTTPStatus.CONFLICT else ControlPlaneError)(error.message) from None

    async def acquire_lease(self, node: str, lease_s: int, least: int = 0) -> AcquiredLease:
        taken = AcquiredLease(max(least, 1))

        def change(found: Object, held: StoredObject) -> Object:
            nonlocal taken
            taken = taken_after(found.get("spec", {}), least)
            return {**found, "spec": _lease(node, LeaseRenewal(taken.term, lease_s))["spec"]}

        try:
            if self._registry.cache.get(LEASE, LEASES, node) is None:
                body = _lease(node, LeaseRenewal(taken.term, lease_s))
                await self._registry.create(Target(LEASE, LEASES), body, _caller(node))
            else:
                await self._registry.modify(Target(LEASE, LEASES, node), change, _caller(node))
        except StatusError as error:
            raise ControlPlaneError(error.message) from None
        return taken

    async def renew_lease(self, node: str, renewal: LeaseRenewal) -> None:
        body = _lease(node, renewal)

        def change(found: Object, held: StoredObject) -> Object:
            term = found.get("spec", {}).get("leaseTransitions", 0)
            if term != renewal.term:
                raise LeaseLostError(f"the lease of node {node} is in term {term}, and was taken in {renewal.term}")
            found["spec"].update(body["spec"])
            if renewal.acknowledged:
                found["metadata"].setdefault("annotations", {})[ACKNOWLEDGED] = str(renewal.acknowledged)
            return found

        try:
            if self._registry.cache.get(LEASE, LEASES, node) is None:
                await self._registry.create(Target(LEASE, LEASES), body, _caller(node))
            else:
                await self._registry.modify(Target(LEASE, LEASES, node), change, _caller(node))
        except StatusError as error:
            raise ControlPlaneError(error.message) from None

    async def watch_pods(self, node: str = "") -> AsyncIterator[PodUpdate]:
        fields = f"spec.nodeName={node}" if node else BOUND
        async for event in self._watch(Target(PODS), fields):
            if event.stored is not None:
                body = None if event.type == "DELETED" else event.stored.to_json(PODS)
                yield PodUpdate(event.stored.namespace, event.stored.name, body, version=event.revision)
            elif event.initial_end:
                yield PodUpdate("", "", None, listed=True)

    async def watch_snapshots(self, node: str = "", since: int = 0) -> AsyncIterator[SnapshotUpdate]:
        async for event in self._watch(Target(SNAPSHOTS, "", node), since=since):
            if event.stored is not None:
                body = None if event.type == "DELETED" else event.stored.to_json(SNAPSHOTS)
                yield SnapshotUpdate(event.stored.name, event.revision, body)

    async def watch_nodes(self, node: str = "") -> AsyncIterator[NodeUpdate]:
        seen = False
        async for event in self._watch(Target(NODES, "", node)):
            if event.initial_end and node and not seen:
                yield NodeUpdate(node, None)
            if event.stored is not None:
                seen = True
                yield NodeUpdate(event.stored.name, None if event.type == "DELETED" else event.stored.to_json(NODES))

    async def _watch(self, target: Target, fields: str = "", since: int = 0) -> AsyncIterator[WatchEvent]:
        """From that revision, or from all that there is; the latter also if that revision is gone."""
        whole = WatchOptions(fields=fields, initial_events=True, resource_version_match="NotOlderThan", bookmarks=True)
        try:
            try:
                watching = await self._registry.watch(
                    target,
                    replace(whole, initial_events=None, resource_version_match="", resource_version=str(since))
                    if since
                    else whole,
                )
            except StatusError as error:
                if error.code != HTTPStatus.GONE:
                    raise
                watching = await self._registry.watch(target, whole)
        except StatusError as error:
            raise ControlPlaneError(error.message) from None
        try:
            async for event in watching:
                yield event
        finally:
            await watching.aclose()

    async def report_status(self, pod: dict[str, Any], status: dict[str, Any], about: StatusOrigin = NO_ORIGIN) -> None:
        meta = pod["metadata"]

        def change(found: Object, held: StoredObject) -> Object:
            if found["metadata"]["uid"] != meta["uid"] or found["spec"].get("nodeName") != pod["spec"]["nodeName"]:
                raise StatusError(HTTPStatus.CONFLICT, "Conflict", "the pod is another, or was bound anew")
            made = with_report(_about(found, about.version), about.report)
            return {**made, "status": merge_status(found.get("status", {}), status)}

        target = Target(PODS, meta["namespace"], meta["name"], "status")
        try:
            await self._registry.modify(target, change, _caller(pod["spec"]["nodeName"]))
        except StatusError as error:
            raise (StaleError if error.code in GONE else ControlPlaneError)(error.message) from None

    async def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        held = self._registry.cache.get(READ[kind], namespace, name)
        return None if held is None else held.object(READ[kind])

    async def record_event(self, event: dict[str, Any]) -> None:
        meta = event["metadata"]
        caller = _caller(event["source"]["host"])
        try:
            await self._registry.create(Target(EVENTS, meta["namespace"]), event, caller)
            return
        except StatusError as error:
            if error.code != HTTPStatus.CONFLICT:
                raise ControlPlaneError(error.message) from None

        def change(found: Object, held: StoredObject) -> Object:
            return {**found, "count": found.get("count", 1) + 1, "lastTimestamp": event["lastTimestamp"]}

        try:
            await self._registry.modify(Target(EVENTS, meta["namespace"], meta["name"]), change, caller)
        except StatusError as error:
            raise ControlPlaneError(error.message) from None

    async def delete_pod(self, pod: dict[str, Any]) -> None:
        meta = pod["metadata"]
        target = Target(PODS, meta["namespace"], meta["name"])
        options = DeleteOptions(grace_s=0, uid=meta["uid"])
        try:
            await self._registry.delete(target, _caller(pod["spec"]["nodeName"]), options)
        except StatusError as error:
            raise (StaleError if error.code in GONE else ControlPlaneError)(error.message) from None


def _lease(node: str, renewal: LeaseRenewal) -> Object:
    return lease_body(node, renewal, micro_time(time.time_ns()))


def _about(pod: Object, version: int | None) -> Object:
    """With the binding that a report is about, which the server compares with the pod's own."""
    if version is None:
        return pod
    meta = pod["metadata"]
    return {**pod, "metadata": {**meta, "annotations": {**meta.get("annotations", {}), BINDING_VERSION: str(version)}}}


def _caller(node: str) -> Caller:
    return Caller(f"system:node:{node}", ("system:nodes", "system:authenticated"), agent="situate-agent")
