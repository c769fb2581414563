"""The control plane of an agent that talks to an API server over HTTP."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final

import msgspec

from situate.agent.control_plane import (
    NO_ORIGIN,
    AcquiredLease,
    ControlPlaneError,
    LeaseRenewal,
    NodeUpdate,
    NotServedError,
    PodUpdate,
    SnapshotUpdate,
    StaleError,
    StatusOrigin,
)
from situate.agent.node_objects import (
    LEASES,
    acquired_after,
    acquisition,
    check_term,
    lease_annotations,
    lease_body,
    token_request,
    with_report,
)
from situate.core.changes import Change, ObjectGone, ObjectSeen
from situate.core.model.base import Model
from situate.core.reconcile.nodes.reports import AgentReport
from situate.kube.access import Access
from situate.kube.client import REQUEST_S, Client
from situate.kube.discovery import served_version
from situate.kube.errors import ApiError
from situate.kube.kinds import WatchedKind
from situate.kube.reflector import LineBatches, ListWatchClient, Reflector
from situate.wire.bodies import micro_time
from situate.wire.metadata import Metadata, decode_metadata
from situate.wire.snapshot_increments import ACCEPT, IncrementReader, MissedError
from situate.wire.watch import RawReader

MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
BINDING_VERSION: Final = "situate.dev/binding-version"
LEASE_CALL_S: Final = 4.0
"""The timeout of one renewal. It is short, because the lease expires meanwhile."""
OWN_AUTHORITIES: Final = 8
"""A trust store with more certificates is that of the system, and does not identify a cluster."""
TRIES: Final = 5
"""How often to write a lease that others write as well."""
CONTENDED: Final = "other clients keep writing the lease of node {}"
SLICE_PATH: Final = "/apis/resource.k8s.io/v1/resourceslices"
BOUND: Final = "spec.nodeName!="
LEASE_PATH: Final = f"/apis/coordination.k8s.io/v1/namespaces/{LEASES}/leases"
SNAPSHOTS: Final = WatchedKind(Model, "nodesnapshots", "situate.dev", ("v1alpha1",))

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


class HttpControlPlane:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._leases: dict[str, dict[str, Any]] = {}
        """The leases as the server last returned them, by node."""
        self._acquiring: dict[str, tuple[str, AcquiredLease]] = {}
        """Acquisitions under way: the renewTime that was sent, and the term."""

    async def register_node(self, node: dict[str, Any], report: AgentReport | None = None) -> None:
        body = with_report(node, report)
        meta = body["metadata"]
        with _errors():
            try:
                await self._client.request("POST", "/api/v1/nodes", body=_encode(body))
                return
            except ApiError as error:
                if not error.conflict:
                    raise
        path = f"/api/v1/nodes/{meta['name']}"
        patch = {"metadata": {"annotations": meta.get("annotations", {})}, "status": body["status"]}
        # A strategic merge keeps the conditions of other writers.
        await self._patch(f"{path}/status", patch, STRATEGIC)
        found = await self.get("Node", "", meta["name"]) or {}
        labels = found.get("metadata", {}).get("labels", {})
        if any(labels.get(key) != value for key, value in meta.get("labels", {}).items()):
            await self._patch(path, {"metadata": {"labels": meta["labels"]}})

    # -- the lease ---------------------------------------------------------------------------------------------------

    async def acquire_lease(self, node: str, lease_s: int, least: int = 0, *, fenced: bool = False) -> AcquiredLease:
        for _ in range(TRIES):
            found = await self._get(f"{LEASE_PATH}/{node}", LEASE_CALL_S)
            spec = {} if found is None else found["spec"]
            sent, acquired = self._acquiring.get(node, ("", None))
            # If only the response was lost, nobody else has had the lease since: keep the term.
            if acquired is None or spec.get("renewTime") != sent:
                acquired = acquired_after(spec, least)
            now = micro_time(time.time_ns())
            self._acquiring[node] = (now, acquired)
            if await self._write_lease(node, acquisition(acquired, lease_s, least, fenced=fenced), found, now):
                del self._acquiring[node]
                return acquired
        raise ControlPlaneError(CONTENDED.format(node))

    async def renew_lease(self, node: str, renewal: LeaseRenewal) -> None:
        """Write on top of the known version of the lease, so that it cannot be taken from another agent."""
        found = self._leases.get(node)
        if found is not None and await self._write_lease(node, renewal, found):
            return
        for _ in range(TRIES):
            found = await self._get(f"{LEASE_PATH}/{node}", LEASE_CALL_S)
            if found is not None:
                check_term(node, found["spec"], renewal)
            if await self._write_lease(node, renewal, found):
                return
        raise ControlPlaneError(CONTENDED.format(node))

    async def _write_lease(self, node: str, renewal: LeaseRenewal, found: dict[str, Any] | None, now: str = "") -> bool:
        """Whether the lease was still the version `found`."""
        body = lease_body(node, renewal, now or micro_time(time.time_ns()))
        method, path = "POST", LEASE_PATH
        if found is not None:
            meta = {name: value for name, value in found["metadata"].items() if name != "managedFields"}
            annotations = lease_annotations(meta.get("annotations", {}), renewal, body["spec"]["renewTime"])
            body = {**found, "metadata": {**meta, "annotations": annotations}, "spec": body["spec"]}
            method, path = "PUT", f"{LEASE_PATH}/{node}"
        with _errors():
            try:
                response = await self._client.request(method, path, body=_encode(body), timeout_s=LEASE_CALL_S)
            except ApiError as error:
                self._leases.pop(node, None)
                if error.conflict or error.not_found:
                    return False
                raise
        self._leases[node] = _decode(response)
        return True

    # -- watches -----------------------------------------------------------------------------------------------------

    async def watch_pods(self, node: str = "") -> AsyncIterator[PodUpdate]:
        selector = f"spec.nodeName={node}" if node else BOUND
        async for change in self._follow(WatchedKind(Model, "pods", field_selector=selector)):
            if change is None:
                yield PodUpdate("", "", None, listed=True)
            else:
                meta, body = change
                version = int(meta.resource_version) if meta.resource_version.isdigit() else 0
                yield PodUpdate(meta.namespace, meta.name, body, version=version)

    async def watch_snapshots(self, node: str = "", since: int = 0) -> AsyncIterator[SnapshotUpdate]:
        with _errors():
            if await served_version(self._client, SNAPSHOTS) is None:
                raise NotServedError("the server has no NodeSnapshots")
        kind = replace(SNAPSHOTS, field_selector=f"metadata.name={node}" if node else "")
        async for change in self._follow(kind, str(since or ""), _IncrementClient(self._client)):
            if change is not None:
                meta, body = change
                yield SnapshotUpdate(meta.name, int(meta.resource_version), body)

    async def watch_nodes(self, node: str = "") -> AsyncIterator[NodeUpdate]:
        seen = False
        async for change in self._follow(
            WatchedKind(Model, "nodes", field_selector=f"metadata.name={node}" if node else "")
        ):
            if change is None and node and not seen:
                yield NodeUpdate(node, None)
            if change is not None:
                seen = True
                yield NodeUpdate(change[0].name, change[1])

    async def _follow(
        self, kind: WatchedKind, since: str = "", client: ListWatchClient | None = None
    ) -> AsyncIterator[tuple[Metadata, bytes | None] | None]:
        """The objects, then None when the initial list is complete, then every change."""
        updates: asyncio.Queue[tuple[Metadata, bytes | None] | None] = asyncio.Queue()

        def put(changes: Sequence[Change]) -> None:
            for change in changes:
                updates.put_nowait(_read(change))

        reflector = Reflector(client or self._client, kind, put, reader=RawReader(), since=since)

        async def put_end_of_list() -> None:
            await reflector.synced.wait()
            updates.put_nowait(None)

        tasks = [asyncio.create_task(one) for one in (reflector.run(), put_end_of_list())]
        try:
            while True:
                yield await updates.get()
        finally:
            for task in tasks:
                task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.gather(*tasks)

    # -- pods --------------------------------------------------------------------------------------------------------

    async def report_status(
        self, pod: dict[str, Any], status: dict[str, Any], origin: StatusOrigin = NO_ORIGIN
    ) -> None:
        meta: dict[str, Any] = {"uid": pod["metadata"]["uid"]}
        if origin.version is not None:
            meta["annotations"] = {BINDING_VERSION: str(origin.version)}
        body = with_report({"metadata": meta, "status": status}, origin.report)
        await self._patch(f"{_pod_path(pod)}/status", body, STRATEGIC)

    async def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        return await self._get(_path(kind, namespace, name))

    async def set_finalizers(self, volume: dict[str, Any], finalizers: list[str]) -> None:
        meta = volume["metadata"]
        own = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"], "finalizers": finalizers or None}
        await self._patch(_path("PersistentVolume", "", meta["name"]), {"metadata": own})

    async def request_token(self, pod: dict[str, Any], audience: str, life_s: int) -> str:
        account = pod["spec"].get("serviceAccountName", "")
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/serviceaccounts/{account}/token"
        with _errors():
            answer = await self._client.request("POST", path, body=_encode(token_request(pod, audience, life_s)))
            return str(_decode(answer)["status"]["token"])

    async def list_slices(self, node: str) -> list[dict[str, Any]]:
        found = await self._get(f"{SLICE_PATH}?fieldSelector=spec.nodeName%3D{node}") or {}
        items: list[dict[str, Any]] = found.get("items") or []
        return items

    async def put_slice(self, body: dict[str, Any]) -> None:
        with _errors():
            try:
                await self._client.request("POST", SLICE_PATH, body=_encode(body))
                return
            except ApiError as error:
                if not error.conflict:
                    raise
        await self._patch(
            f"{SLICE_PATH}/{body['metadata']['name']}", {"metadata": body["metadata"], "spec": body["spec"]}
        )

    async def delete_slice(self, name: str) -> None:
        with _errors(may_be_stale=True):
            await self._client.request("DELETE", f"{SLICE_PATH}/{name}")

    async def record_event(self, event: dict[str, Any]) -> None:
        root = f"/api/v1/namespaces/{event['metadata']['namespace']}/events"
        path = f"{root}/{event['metadata']['name']}"
        with _errors():
            try:
                await self._client.request("POST", root, body=_encode(event))
                return
            except ApiError as error:
                if not error.conflict:
                    raise
            found = _decode(await self._client.request("GET", path))
        await self._patch(path, {"count": found.get("count", 1) + 1, "lastTimestamp": event["lastTimestamp"]})

    async def delete_pod(self, pod: dict[str, Any]) -> None:
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
        with _errors(may_be_stale=True):
            await self._client.request("DELETE", _pod_path(pod), body=_encode(options))

    async def _get(self, path: str, timeout_s: float = REQUEST_S) -> dict[str, Any] | None:
        with _errors():
            try:
                found: dict[str, Any] = _decode(await self._client.request("GET", path, timeout_s=timeout_s))
            except ApiError as error:
                if error.not_found:
                    return None
                raise
        return found

    async def _patch(self, path: str, body: dict[str, Any], content_type: str = MERGE) -> None:
        with _errors(may_be_stale=True):
            await self._client.request("PATCH", path, body=_encode(body), content_type=content_type)


class _IncrementClient:
    """A client that watches NodeSnapshots by increments where the server sends them, and reads them whole."""

    def __init__(self, client: Client) -> None:
        self.request = client.request
        self._client = client

    @asynccontextmanager
    async def stream(
        self, path: str, *, params: Mapping[str, str] | None = None, idle_s: float
    ) -> AsyncIterator[_WholeSnapshots]:
        async with self._client.stream(path, params=params, accept=ACCEPT, idle_s=idle_s) as lines:
            yield _WholeSnapshots(lines)


class _WholeSnapshots:
    """The lines of one watch. An increment that does not apply ends it as if its version were too old (410), so that
    the reflector lists everything."""

    def __init__(self, lines: LineBatches) -> None:
        self._lines = lines
        self._reader = IncrementReader()

    async def batch(self) -> list[bytes]:
        try:
            return [self._reader.line(line) for line in await self._lines.batch()]
        except (MissedError, msgspec.DecodeError) as error:
            raise ApiError(HTTPStatus.GONE, "Expired", str(error)) from None


@contextmanager
def _errors(*, may_be_stale: bool = False) -> Iterator[None]:
    """Turn an ApiError into a ControlPlaneError, or into a StaleError if the object is gone or another one now."""
    try:
        yield
    except ApiError as error:
        stale = may_be_stale and (error.not_found or (error.conflict and not error.modified))
        raise (StaleError if stale else ControlPlaneError)(error.message) from None


def cluster_of(access: Access) -> str:
    """An identity of the cluster: a hash of its own authorities, or else its address."""
    authorities = own_authorities(access)
    return hashlib.sha256(b"".join(authorities)).hexdigest() if authorities else access.server


def own_authorities(access: Access) -> tuple[bytes, ...]:
    """The CA certificates (DER) of this cluster; none if the kubeconfig trusts the system's store."""
    found = [] if access.tls is None else sorted(access.tls.get_ca_certs(binary_form=True))
    return tuple(found) if len(found) <= OWN_AUTHORITIES else ()


def _path(kind: str, namespace: str, name: str) -> str:
    match kind:
        case "ConfigMap" | "Secret":
            return f"/api/v1/namespaces/{namespace}/{kind.lower()}s/{name}"
        case "ResourceClaim":
            return f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{name}"
        case "PersistentVolumeClaim":
            return f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}"
        case "PersistentVolume":
            return f"/api/v1/persistentvolumes/{name}"
        case "Node":
            return f"/api/v1/nodes/{name}"
        case _:
            raise ValueError(f"an agent does not read a {kind}")


def _pod_path(pod: dict[str, Any]) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def _read(change: Change) -> tuple[Metadata, bytes | None]:
    match change:
        case ObjectSeen(item=body) if isinstance(body, bytes):
            return decode_metadata(body), body
        case ObjectGone(item=body) if isinstance(body, bytes):
            return decode_metadata(body), None
        case _:
            raise TypeError(f"not a change of a raw reflector: {change}")
