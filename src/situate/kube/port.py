"""Writes what a scheduler decides to an API server, and returns the outcomes.

An answer that is lost is settled by reading the object, never by guessing: `binding`, `conditions` and `eviction` each
know how for their kind of request.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar, assert_never

from situate.core.changes import BindDone, BindFailed, EvictDone, EvictFailed, PodRef
from situate.core.effects import Bind, Evict, Report, SetCondition, SetGroupCondition
from situate.core.model.base import Model
from situate.core.model.devices import ResourceClaim
from situate.core.model.pod import Pod
from situate.core.model.storage import PersistentVolume, PersistentVolumeClaim
from situate.kube.binding import bind_pod
from situate.kube.client import Client
from situate.kube.conditions import GroupApi, StatusWriter
from situate.kube.errors import ApiError
from situate.kube.eviction import evict_pod
from situate.kube.pods import READ_S, read_pod
from situate.kube.resource_claims import read_resource_claim, write_resource_claim
from situate.loop.scheduling.port import (
    BindClaim,
    ClaimError,
    ClaimOutcome,
    ClaimWrite,
    EventNames,
    EventSeries,
    InFlightLimits,
    PodNote,
    ReleaseVolume,
    ReserveVolume,
    SelectNode,
    VolumeError,
    VolumeOutcome,
    VolumeWrite,
    WriteOutcome,
)
from situate.loop.scheduling.view import EngineView
from situate.wire.bodies import event as event_body
from situate.wire.bodies import series
from situate.wire.errors import InputError
from situate.wire.objects import decode
from situate.wire.patches import MERGE, STRATEGIC, bind_volume, release_volume, select_node, series_patch

IN_FLIGHT: Final = InFlightLimits(binds=48, notes=8, evictions=4, volumes=4, claims=32, events=4)
"""Enough binds: a server that answers in 10 ms does 4,800 a second. Few notes and events, so that they leave the rate
limit to binds. Without events, which have their own client, these are a client's connections (96), so that no request
waits for one while its timeout runs."""
WRITE_S: Final = 15.0
EVENTS: Final = "/apis/events.k8s.io/v1"
EVENT_S: Final = 30.0

_Object = TypeVar("_Object", bound=Model)


class KubeSchedulingPort:
    """The SchedulingPort of an API server."""

    limits = IN_FLIGHT
    nominates_reserved = False

    def __init__(
        self,
        client: Client,
        events_client: Client,
        objects: EngineView,
        *,
        host: str | None = None,
        may_write: Callable[[], bool],
        term: Callable[[], int | None] = lambda: None,
        now_ns: Callable[[], int] = time.time_ns,
        groups: Callable[[], GroupApi] = GroupApi,
    ) -> None:
        self.names = EventNames(socket.gethostname() if host is None else host)
        self._client = client
        self._events_client = events_client
        self._may_write = may_write
        self._term = term
        self._now_ns = now_ns
        self._status = StatusWriter(client, objects, may_write, now_ns, groups=groups)

    async def bind(self, bind: Bind, pod: Pod | None) -> BindDone | BindFailed:
        version = "" if pod is None else self._status.version(pod)
        answer = await bind_pod(self._client, bind, pod, version, self._may_write, self._term)
        if isinstance(answer, BindDone):
            self._status.forget(bind.pod)
        return answer

    async def bind_each(self, binds: Sequence[tuple[Bind, Pod | None]]) -> Sequence[BindDone | BindFailed]:
        return [await self.bind(bind, pod) for bind, pod in binds]

    async def note(self, note: PodNote, superseded: Callable[[], bool]) -> WriteOutcome:
        return await self._status.write(note, superseded)

    async def note_group(self, condition: SetGroupCondition) -> WriteOutcome:
        return await self._status.write_group(condition)

    async def evict(self, evict: Evict) -> EvictDone | EvictFailed:
        return await evict_pod(self._client, evict, self._may_write, self._now_ns)

    # -- volumes -----------------------------------------------------------------------------------------------------

    async def read_volume(self, name: str) -> PersistentVolume | None:
        return await self._read(PersistentVolume, _volume_path(name))

    async def read_claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        return await self._read(PersistentVolumeClaim, _claim_path(namespace, name))

    async def _read(self, kind: type[_Object], path: str) -> _Object | None:
        try:
            return decode(kind, await self._client.request("GET", path, timeout_s=READ_S))
        except ApiError as error:
            if error.not_found:
                return None
            raise VolumeError(error.message) from None
        except InputError as error:
            raise VolumeError(f"{path} cannot be read: {error}") from None

    async def write_volume(self, write: VolumeWrite) -> VolumeOutcome:
        match write:
            case ReserveVolume(volume, claim):
                meta, kept = claim.metadata, volume.spec.claim_ref is not None
                ref = PodRef(meta.namespace, meta.name, meta.uid)
                patch = bind_volume(volume.metadata.resource_version, ref, meta.resource_version, annotate=not kept)
                path = _volume_path(volume.metadata.name)
            case ReleaseVolume(volume):
                path, patch = _volume_path(volume.metadata.name), release_volume(volume.metadata.resource_version)
            case SelectNode(claim, node):
                meta = claim.metadata
                path, patch = _claim_path(meta.namespace, meta.name), select_node(meta.uid, meta.resource_version, node)
            case BindClaim():
                return VolumeOutcome()  # the cluster's volume controller does that
            case _:
                assert_never(write)
        try:
            await self._client.request("PATCH", path, body=patch, content_type=MERGE, timeout_s=WRITE_S)
        except ApiError as error:
            return VolumeOutcome(error.message, retry=error.conflict or error.temporary)
        return VolumeOutcome()

    # -- claims for devices ------------------------------------------------------------------------------------------

    async def read_resource_claim(self, namespace: str, name: str) -> ResourceClaim | None:
        return await read_resource_claim(self._client, namespace, name)

    async def write_resource_claim(self, write: ClaimWrite) -> ClaimOutcome:
        return await write_resource_claim(self._client, write, self._now_ns)

    async def read_pod(self, ref: PodRef) -> Pod | None:
        try:
            found = await read_pod(self._client, ref)
        except ApiError as error:
            raise ClaimError(error.message) from None
        return found if found is not None and found.metadata.uid == ref.uid else None

    # -- events ------------------------------------------------------------------------------------------------------

    def wrote_event(self, report: Report) -> bool:
        return False

    def details(self, condition: SetCondition) -> None:
        return None

    async def write_event(self, event: EventSeries) -> WriteOutcome:
        path, client = f"{EVENTS}/namespaces/{event.report.pod.namespace or 'default'}/events", self._events_client
        try:
            if event.written:
                patch, path = series_patch(event.count, event.last_ns), f"{path}/{event.name}"
                await client.request("PATCH", path, body=patch, content_type=STRATEGIC, timeout_s=EVENT_S)
            else:
                await client.request("POST", path, body=_event_body(event), timeout_s=EVENT_S)
        except ApiError as error:
            if error.not_found and event.written:
                return WriteOutcome.MISSING
            if error.conflict and not event.written:
                return WriteOutcome.EXISTS
            if error.status == 0:
                return WriteOutcome.UNREACHABLE
            return WriteOutcome.BUSY if error.temporary else WriteOutcome.REFUSED
        return WriteOutcome.DONE


def _event_body(event: EventSeries) -> bytes:
    report = event.report
    return event_body(
        event.name,
        event.at_ns,
        report.pod,
        controller=event.controller,
        instance=event.instance,
        kind=report.type,
        reason=report.reason,
        action=report.action,
        note=report.note,
        version=event.version,
        related=report.related,
        repeated=series(event.count, event.last_ns) if event.count > 1 else b"",
    )


def _volume_path(name: str) -> str:
    return f"/api/v1/persistentvolumes/{name}"


def _claim_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}"
