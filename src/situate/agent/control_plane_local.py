"""The control plane of an agent that runs in the server's own process."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final

from msgspec import convert

from situate.agent.control_plane import (
    NO_ORIGIN,
    AcquiredLease,
    ControlPlaneError,
    LeaseRenewal,
    NodeUpdate,
    PodUpdate,
    SnapshotUpdate,
    StaleError,
    StatusOrigin,
    StatusReport,
)
from situate.agent.node_objects import (
    LEASES,
    acquired_after,
    acquisition,
    check_term,
    lease_annotations,
    lease_body,
    token_request,
    with_own,
    with_report,
)
from situate.agent.pod_status import merge_status
from situate.core.model.storage import PersistentVolumeSpec
from situate.core.reconcile.nodes.reports import REPORT, AgentReport
from situate.core.reconcile.volumes.provisioner import hostnames
from situate.loop.drive import describe_error
from situate.server.errors import StatusError
from situate.server.identity.tokens.token_requests import TokenRequests
from situate.server.placing.bind_transaction import BINDING_VERSION
from situate.server.registry.batch import Modification
from situate.server.registry.ports import StatusWrite
from situate.server.registry.registry import Registry
from situate.server.registry.stored_object import StoredObject
from situate.server.registry.watchers import WatchEvent
from situate.server.requests import SYSTEM, Caller, DeleteOptions, Object, Target, WatchOptions
from situate.server.resources import BY_KIND
from situate.wire.bodies import micro_time
from situate.wire.errors import is_modified

PODS: Final = BY_KIND["v1", "Pod"]
NODES: Final = BY_KIND["v1", "Node"]
LEASE: Final = BY_KIND["coordination.k8s.io/v1", "Lease"]
EVENTS: Final = BY_KIND["v1", "Event"]
ACCOUNTS: Final = BY_KIND["v1", "ServiceAccount"]
VOLUMES: Final = BY_KIND["v1", "PersistentVolume"]
SNAPSHOTS: Final = BY_KIND["situate.dev/v1alpha1", "NodeSnapshot"]
SLICES: Final = BY_KIND["resource.k8s.io/v1", "ResourceSlice"]
READ: Final = {
    "ConfigMap": BY_KIND["v1", "ConfigMap"],
    "Secret": BY_KIND["v1", "Secret"],
    "Node": NODES,
    "ResourceClaim": BY_KIND["resource.k8s.io/v1", "ResourceClaim"],
    "PersistentVolumeClaim": BY_KIND["v1", "PersistentVolumeClaim"],
    "PersistentVolume": VOLUMES,
}
BOUND: Final = "spec.nodeName!="
STALE: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)


class LocalControlPlane:
    """A ControlPlane on the registry, without HTTP."""

    def __init__(self, registry: Registry, tokens: TokenRequests | None = None) -> None:
        """`tokens`: who issues the tokens of pods; hollow nodes need none."""
        self._registry = registry
        self._tokens = tokens

    async def register_node(self, node: dict[str, Any], report: AgentReport | None = None) -> None:
        name, body = node["metadata"]["name"], with_report(node, report)

        def change(found: Object, held: StoredObject) -> Object:
            meta = found["metadata"]
            labels = {**meta.get("labels", {}), **body["metadata"].get("labels", {})}
            annotations = {**meta.get("annotations", {}), **node["metadata"].get("annotations", {})}
            own = {"labels": labels, **({"annotations": annotations} if annotations else {})}
            made = with_report({**found, "metadata": {**meta, **own}}, report)
            return {**made, "status": with_own(found.get("status", {}), body["status"])}

        with _errors(HTTPStatus.CONFLICT):
            request = _status_write(report)
            await self._create_or_modify(Target(NODES, "", name, "status"), body, change, _caller(name), request)

    async def acquire_lease(self, node: str, lease_s: int, least: int = 0, *, fenced: bool = False) -> AcquiredLease:
        acquired = AcquiredLease(max(least, 1))

        def change(found: Object, held: StoredObject) -> Object:
            nonlocal acquired
            acquired = acquired_after(found.get("spec", {}), least)
            return _renewed(found, node, acquisition(acquired, lease_s, least, fenced=fenced))

        body = _lease(node, acquisition(acquired, lease_s, least, fenced=fenced))
        with _errors():
            await self._create_or_modify(Target(LEASE, LEASES, node), body, change, _caller(node))
        return acquired

    async def renew_lease(self, node: str, renewal: LeaseRenewal) -> None:
        change = _renewing(node, renewal)
        with _errors():
            target = Target(LEASE, LEASES, node)
            await self._create_or_modify(target, _lease(node, renewal), change, _caller(node))

    async def renew_leases(self, renewals: Sequence[tuple[str, LeaseRenewal]]) -> Sequence[ControlPlaneError | None]:
        changes = [Modification(Target(LEASE, LEASES, node), _renewing(node, renewal)) for node, renewal in renewals]
        outcomes = await self._together(changes)
        for at, (node, renewal) in enumerate(renewals):
            if outcomes[at] is not None and self._registry.cache.get(LEASE, LEASES, node) is None:  # it was deleted
                outcomes[at] = await _outcome(self.renew_lease(node, renewal))
        return outcomes

    async def _create_or_modify(
        self,
        target: Target,
        body: Object,
        change: Callable[[Object, StoredObject], Object],
        caller: Caller,
        request: StatusWrite | None = None,
    ) -> None:
        if self._registry.cache.get(target.resource, target.namespace, target.name) is None:
            await self._registry.create(Target(target.resource, target.namespace), body, caller)
        else:
            await self._registry.modify(target, change, caller, altered=False, request=request)

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
        """Watch from revision `since`. If it is 0 or compacted, begin with everything there is."""
        options = whole = WatchOptions(
            fields=fields, initial_events=True, resource_version_match="NotOlderThan", bookmarks=True
        )
        if since:
            options = replace(whole, initial_events=None, resource_version_match="", resource_version=str(since))
        with _errors():
            try:
                watch = await self._registry.watch(target, options)
            except StatusError as error:
                if error.code != HTTPStatus.GONE:
                    raise
                watch = await self._registry.watch(target, whole)
        try:
            async for event in watch:
                yield event
        finally:
            await watch.aclose()

    async def report_status(
        self, pod: dict[str, Any], status: dict[str, Any], origin: StatusOrigin = NO_ORIGIN
    ) -> None:
        report = _reporting(StatusReport(pod, status, origin))
        with _errors(*STALE):
            await self._registry.modify(
                report.target, report.change, _caller(pod["spec"]["nodeName"]), altered=False, request=report.request
            )

    async def report_statuses(self, reports: Sequence[StatusReport]) -> Sequence[ControlPlaneError | None]:
        return await self._together([_reporting(one) for one in reports], *STALE)

    async def _together(self, changes: Sequence[Modification], *stale: int) -> list[ControlPlaneError | None]:
        try:
            outcomes = await self._registry.modify_each(changes)
        except StatusError as error:
            outcomes = [error] * len(changes)
        return [None if one is None else _control_plane_error(one, stale) for one in outcomes]

    async def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        held = self._registry.cache.get(READ[kind], namespace, name)
        return None if held is None else held.object(READ[kind])

    async def set_finalizers(self, volume: dict[str, Any], finalizers: list[str]) -> None:
        meta, (node, *_) = volume["metadata"], hostnames(convert(volume["spec"], PersistentVolumeSpec))

        def change(found: Object, held: StoredObject) -> Object:
            rest = {key: value for key, value in found["metadata"].items() if key != "finalizers"}
            return {**found, "metadata": {**rest, **({"finalizers": finalizers} if finalizers else {})}}

        with _errors(*STALE):
            await self._registry.modify(
                Target(VOLUMES, "", meta["name"]),
                change,
                _caller(node),
                uid=meta["uid"],
                resource_version=meta["resourceVersion"],
            )

    async def request_token(self, pod: dict[str, Any], audience: str, life_s: int) -> str:
        if self._tokens is None:
            raise ControlPlaneError("nobody issues tokens here")
        target = Target(ACCOUNTS, pod["metadata"]["namespace"], pod["spec"].get("serviceAccountName", ""), "token")
        with _errors():
            answer = self._tokens.create(target, token_request(pod, audience, life_s), _caller(pod["spec"]["nodeName"]))
        return str(answer["status"]["token"])

    async def list_slices(self, node: str) -> list[dict[str, Any]]:
        found = (held.object(SLICES) for held in self._registry.cache.all(SLICES))
        return [one for one in found if one["spec"].get("nodeName") == node]

    async def put_slice(self, body: dict[str, Any]) -> None:
        meta, caller = body["metadata"], _caller(body["spec"]["nodeName"])
        with _errors():
            held = self._registry.cache.get(SLICES, "", meta["name"])
            if held is None:
                await self._registry.create(Target(SLICES), body, caller)
            else:
                found = held.object(SLICES)
                changed = {**found, "metadata": {**found["metadata"], **meta}, "spec": body["spec"]}
                await self._registry.update(Target(SLICES, "", meta["name"]), changed, caller)

    async def delete_slice(self, name: str) -> None:
        with _errors(HTTPStatus.NOT_FOUND):
            await self._registry.delete(Target(SLICES, "", name), SYSTEM)

    async def record_event(self, event: dict[str, Any]) -> None:
        meta, caller = event["metadata"], _caller(event["source"]["host"])

        def change(found: Object, held: StoredObject) -> Object:
            return {**found, "count": found.get("count", 1) + 1, "lastTimestamp": event["lastTimestamp"]}

        with _errors():
            try:
                await self._registry.create(Target(EVENTS, meta["namespace"]), event, caller)
            except StatusError as error:
                if error.code != HTTPStatus.CONFLICT:
                    raise
                await self._registry.modify(Target(EVENTS, meta["namespace"], meta["name"]), change, caller)

    async def delete_pod(self, pod: dict[str, Any]) -> None:
        meta = pod["metadata"]
        with _errors(*STALE):
            target, options = Target(PODS, meta["namespace"], meta["name"]), DeleteOptions(grace_s=0, uid=meta["uid"])
            await self._registry.delete(target, _caller(pod["spec"]["nodeName"]), options)


@contextmanager
def _errors(*stale: int) -> Iterator[None]:
    """Turn a StatusError into a ControlPlaneError, or into a StaleError if it has one of these codes."""
    try:
        yield
    except StatusError as error:
        raise _control_plane_error(error, stale) from None


def _control_plane_error(error: Exception, stale: Sequence[int]) -> ControlPlaneError:
    if isinstance(error, ControlPlaneError):
        return error
    if isinstance(error, StatusError):
        may_retry = error.code not in stale or is_modified(error.code, error.message)
        return (ControlPlaneError if may_retry else StaleError)(error.message)
    return ControlPlaneError(describe_error(error))


async def _outcome(call: Awaitable[None]) -> ControlPlaneError | None:
    try:
        await call
    except ControlPlaneError as error:
        return error
    return None


def _renewing(node: str, renewal: LeaseRenewal) -> Callable[[Object, StoredObject], Object]:
    def change(found: Object, held: StoredObject) -> Object:
        check_term(node, found.get("spec", {}), renewal)
        return _renewed(found, node, renewal)

    return change


def _reporting(report: StatusReport) -> Modification:
    meta, node, origin = report.pod["metadata"], report.pod["spec"]["nodeName"], report.origin

    def change(found: Object, held: StoredObject) -> Object:
        if found["metadata"]["uid"] != meta["uid"] or found["spec"].get("nodeName") != node:
            raise StatusError(HTTPStatus.CONFLICT, "Conflict", "the pod is another one, or was bound again")
        made = with_report(_with_version(found, origin.version), origin.report)
        return {**made, "status": merge_status(found.get("status", {}), report.status)}

    return Modification(Target(PODS, meta["namespace"], meta["name"], "status"), change, _status_write(origin.report))


def _lease(node: str, renewal: LeaseRenewal) -> Object:
    return lease_body(node, renewal, micro_time(time.time_ns()))


def _status_write(report: AgentReport | None) -> StatusWrite | None:
    return None if report is None else StatusWrite({REPORT: str(report)})


def _renewed(found: Object, node: str, renewal: LeaseRenewal) -> Object:
    meta, spec = found["metadata"], _lease(node, renewal)["spec"]
    annotations = lease_annotations(meta.get("annotations", {}), renewal, spec["renewTime"])
    rest = {name: value for name, value in meta.items() if name != "annotations"}
    return {
        **found,
        "metadata": {**rest, "annotations": annotations} if annotations else rest,
        "spec": {**found.get("spec", {}), **spec},
    }


def _with_version(pod: Object, version: int | None) -> Object:
    """Add the version of the binding, which the server compares with the pod's own."""
    if version is None:
        return pod
    meta = pod["metadata"]
    return {**pod, "metadata": {**meta, "annotations": {**meta.get("annotations", {}), BINDING_VERSION: str(version)}}}


def _caller(node: str) -> Caller:
    return Caller(f"system:node:{node}", ("system:nodes", "system:authenticated"), agent="situate-agent")
