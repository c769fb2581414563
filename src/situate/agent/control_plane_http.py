"""The control plane of an agent that reaches it over HTTP."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import msgspec

from situate.agent.control_plane import (
    NO_ORIGIN,
    AcquiredLease,
    ControlPlaneError,
    LeaseLostError,
    LeaseRenewal,
    NodeUpdate,
    NotServedError,
    PodUpdate,
    SnapshotUpdate,
    StaleError,
    StatusOrigin,
)
from situate.agent.node_objects import LEASES, lease_body, taken_after, with_report
from situate.core.changes import Change, ObjectGone, ObjectSeen
from situate.core.model.base import Model
from situate.core.reconcile.nodes.reports import ACKNOWLEDGED, AgentReport
from situate.kube.access import Access
from situate.kube.client import Client
from situate.kube.discovery import served_version
from situate.kube.errors import ApiError
from situate.kube.kinds import Kind
from situate.kube.reflector import Reflector
from situate.wire.bodies import micro_time
from situate.wire.watch import RawReader

__all__ = ["HttpControlPlane", "cluster_of", "own_authorities"]

MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
BINDING_VERSION: Final = "situate.dev/binding-version"
LEASE_CALL_S: Final = 4.0
"""A renewal that is not answered by then is tried anew: there is not much time."""
OWN_AUTHORITIES: Final = 8
"""More of them than this are those of the whole world, and say nothing about a cluster."""
TRIES: Final = 5
"""How often a lease is written that others write, too."""
BOUND: Final = "spec.nodeName!="
LEASE_PATH: Final = f"/apis/coordination.k8s.io/v1/namespaces/{LEASES}/leases"
SNAPSHOTS: Final = Kind(Model, "nodesnapshots", "situate.dev", ("v1alpha1",))

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class _Object(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()


_decode_meta: Final = msgspec.json.Decoder(_Object).decode


class HttpControlPlane:
    """A Plane on an API server."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._leases: dict[str, dict[str, Any]] = {}
        """The nodes' leases as they were last answered."""
        self._taking: dict[str, tuple[str, AcquiredLease]] = {}
        """Leases that are being taken, and when."""

    async def register_node(self, node: dict[str, Any], report: AgentReport | None = None) -> None:
        said = with_report(node, report)
        meta = said["metadata"]
        try:
            await self._client.request("POST", "/api/v1/nodes", body=_encode(said))
        except ApiError as error:
            if not error.conflict:
                raise ControlPlaneError(error.message) from None
            path = f"/api/v1/nodes/{meta['name']}"
            about = {"metadata": {"annotations": meta.get("annotations", {})}}
            # Strategic: conditions that are others' stay as they are.
            await self._patch(f"{path}/status", {**about, "status": said["status"]}, STRATEGIC)
            found = await self.get("Node", "", meta["name"]) or {}
            labels = found.get("metadata", {}).get("labels", {})
            if any(labels.get(key) != value for key, value in meta.get("labels", {}).items()):
                await self._patch(path, {"metadata": {"labels": meta["labels"]}})

    # -- the lease ---------------------------------------------------------------------------------------------------

    async def acquire_lease(self, node: str, lease_s: int, least: int = 0) -> AcquiredLease:
        for _ in range(TRIES):
            found = await self._read_lease(node)
            taken = self._arrived(node, found) or taken_after({} if found is None else found["spec"], least)
            moment = micro_time(time.time_ns())
            self._taking[node] = (moment, taken)
            if await self._write_lease(node, LeaseRenewal(taken.term, lease_s), found, moment):
                del self._taking[node]
                return taken
        raise ControlPlaneError(f"the lease of node {node} is written by others all the time")

    def _arrived(self, node: str, found: dict[str, Any] | None) -> AcquiredLease | None:
        """What was taken before, if only the answer to that was lost: nobody else has had it since."""
        moment, taken = self._taking.get(node, ("", None))
        spec = {} if found is None else found["spec"]
        return taken if moment and spec.get("renewTime") == moment else None

    async def renew_lease(self, node: str, renewal: LeaseRenewal) -> None:
        """On the version of the lease that is known, so that it cannot be taken from another by accident."""
        found = self._leases.get(node)
        if found is not None and await self._write_lease(node, renewal, found):
            return
        for _ in range(TRIES):
            found = await self._read_lease(node)
            if found is not None and (term := found["spec"].get("leaseTransitions", 0)) != renewal.term:
                raise LeaseLostError(f"the lease of node {node} is in term {term}, and was taken in {renewal.term}")
            if await self._write_lease(node, renewal, found):
                return
        raise ControlPlaneError(f"the lease of node {node} is written by others all the time")

    async def _read_lease(self, node: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = _decode(
                await self._client.request("GET", f"{LEASE_PATH}/{node}", timeout_s=LEASE_CALL_S)
            )
        except ApiError as error:
            if error.not_found:
                return None
            raise ControlPlaneError(error.message) from None
        return found

    async def _write_lease(
        self, node: str, renewal: LeaseRenewal, found: dict[str, Any] | None, moment: str = ""
    ) -> bool:
        """Whether it was as it was found."""
        body = lease_body(node, renewal, moment or micro_time(time.time_ns()))
        try:
            if found is None:
                answer = await self._client.request("POST", LEASE_PATH, body=_encode(body), timeout_s=LEASE_CALL_S)
            else:
                meta = {name: value for name, value in found["metadata"].items() if name != "managedFields"}
                annotations = meta.get("annotations", {})
                if renewal.acknowledged:
                    annotations = {**annotations, ACKNOWLEDGED: str(renewal.acknowledged)}
                body = {**found, "metadata": {**meta, "annotations": annotations}, "spec": body["spec"]}
                answer = await self._client.request(
                    "PUT", f"{LEASE_PATH}/{node}", body=_encode(body), timeout_s=LEASE_CALL_S
                )
        except ApiError as error:
            self._leases.pop(node, None)
            if error.conflict or error.not_found:
                return False
            raise ControlPlaneError(error.message) from None
        self._leases[node] = _decode(answer)
        return True

    # -- what is watched ---------------------------------------------------------------------------------------------

    async def watch_pods(self, node: str = "") -> AsyncIterator[PodUpdate]:
        selector = f"spec.nodeName={node}" if node else BOUND
        async for change in self._follow(Kind(Model, "pods", field_selector=selector)):
            if change is None:
                yield PodUpdate("", "", None, listed=True)
            else:
                meta, body = change
                version = int(meta.resource_version) if meta.resource_version.isdigit() else 0
                yield PodUpdate(meta.namespace, meta.name, body, version=version)

    async def watch_snapshots(self, node: str = "", since: int = 0) -> AsyncIterator[SnapshotUpdate]:
        try:
            if await served_version(self._client, SNAPSHOTS) is None:
                raise NotServedError("the server has no NodeSnapshots")
        except ApiError as error:
            raise ControlPlaneError(error.message) from None
        kind = replace(SNAPSHOTS, field_selector=f"metadata.name={node}" if node else "")
        async for change in self._follow(kind, str(since or "")):
            if change is not None:
                meta, body = change
                yield SnapshotUpdate(meta.name, int(meta.resource_version), body)

    async def watch_nodes(self, node: str = "") -> AsyncIterator[NodeUpdate]:
        seen = False
        async for change in self._follow(Kind(Model, "nodes", field_selector=f"metadata.name={node}" if node else "")):
            if change is None and node and not seen:
                yield NodeUpdate(node, None)
            if change is not None:
                seen = True
                yield NodeUpdate(change[0].name, change[1])

    async def _follow(self, kind: Kind, since: str = "") -> AsyncIterator[tuple[_Meta, bytes | None] | None]:
        """What is there and what changes, for ever; None: all that was there has been told."""
        told: asyncio.Queue[tuple[_Meta, bytes | None] | None] = asyncio.Queue()

        def tell(changes: Sequence[Change]) -> None:
            for change in changes:
                told.put_nowait(_read(change))

        reflector = Reflector(self._client, kind, tell, reader=RawReader(), since=since)

        async def say_when_listed() -> None:
            await reflector.synced.wait()
            told.put_nowait(None)

        tasks = [asyncio.create_task(one) for one in (reflector.run(), say_when_listed())]
        try:
            while True:
                yield await told.get()
        finally:
            for task in tasks:
                task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.gather(*tasks)

    # -- pods --------------------------------------------------------------------------------------------------------

    async def report_status(self, pod: dict[str, Any], status: dict[str, Any], about: StatusOrigin = NO_ORIGIN) -> None:
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status"
        said: dict[str, Any] = {"uid": meta["uid"]}
        if about.version is not None:
            said["annotations"] = {BINDING_VERSION: str(about.version)}
        body = with_report({"metadata": said, "status": status}, about.report)
        await self._patch(path, body, STRATEGIC)

    async def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = _decode(await self._client.request("GET", _path(kind, namespace, name)))
        except ApiError as error:
            if error.not_found:
                return None
            raise ControlPlaneError(error.message) from None
        return found

    async def record_event(self, event: dict[str, Any]) -> None:
        root = f"/api/v1/namespaces/{event['metadata']['namespace']}/events"
        try:
            await self._client.request("POST", root, body=_encode(event))
            return
        except ApiError as error:
            if not error.conflict:
                raise ControlPlaneError(error.message) from None
        path = f"{root}/{event['metadata']['name']}"
        try:
            found = _decode(await self._client.request("GET", path))
        except ApiError as error:
            raise ControlPlaneError(error.message) from None
        await self._patch(path, {"count": found.get("count", 1) + 1, "lastTimestamp": event["lastTimestamp"]})

    async def delete_pod(self, pod: dict[str, Any]) -> None:
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


def cluster_of(access: Access) -> str:
    """What tells one cluster from another: the authorities that are trusted for it; or else where it is."""
    authorities = own_authorities(access)
    return hashlib.sha256(b"".join(authorities)).hexdigest() if authorities else access.server


def own_authorities(access: Access) -> tuple[bytes, ...]:
    """The certificates (DER) of those that vouch for this cluster, and not for half the world."""
    found = [] if access.tls is None else sorted(access.tls.get_ca_certs(binary_form=True))
    return tuple(found) if len(found) <= OWN_AUTHORITIES else ()


def _path(kind: str, namespace: str, name: str) -> str:
    match kind:
        case "ConfigMap" | "Secret":
            return f"/api/v1/namespaces/{namespace}/{kind.lower()}s/{name}"
        case "Node":
            return f"/api/v1/nodes/{name}"
        case _:
            raise ValueError(f"no agent reads a {kind}")


def _problem(error: ApiError) -> ControlPlaneError:
    stale = error.not_found or error.conflict
    return StaleError(error.message) if stale else ControlPlaneError(error.message)


def _read(change: Change) -> tuple[_Meta, bytes | None]:
    match change:
        case ObjectSeen(item=body) if isinstance(body, bytes):
            return _decode_meta(body).metadata, body
        case ObjectGone(item=body) if isinstance(body, bytes):
            return _decode_meta(body).metadata, None
        case _:
            raise TypeError(f"a change that no raw reflector tells: {change}")
