"""Pods whose schedulerName nobody serves: their status and their PlacementDecision say so.

No engine decides on such a pod, so nobody else would. A pod is told after a while: a scheduler that is not ours, and
publishes nothing, may bind it meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import msgspec

from situate.core.changes import Change, PodGone, PodSeen
from situate.core.model.pod import Pod
from situate.core.state.cluster import FINISHED_PHASES
from situate.loop.logs import Log
from situate.server.errors import StatusError
from situate.server.objects import Object
from situate.server.placing.binding import with_condition
from situate.server.placing.decisions import Details
from situate.server.placing.write_request import PodWriteRequest
from situate.server.registry.cache import Cache
from situate.server.registry.registry import Registry
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import Target
from situate.server.resources import BY_KIND
from situate.server.scheduling.port import SCHEDULER
from situate.server.scheduling.publishing import MAP
from situate.store.errors import StoreError
from situate.wire.bodies import seconds_time

AFTER_S: Final = 5.0
"""How long a pod waits before its condition says so; twice that at most."""
MOST: Final = 10_000
"""How many pods may wait for that. The rest follow when they change, or when the scheduler restarts."""
REASON: Final = "UnknownScheduler"
MESSAGE: Final = 'no known scheduler serves the schedulerName "{}"'
PODS: Final = BY_KIND["v1", "Pod"]

_log = Log(__name__)


class _Profile(msgspec.Struct):
    scheduler_name: str = msgspec.field(default="", name="schedulerName")


class _Configuration(msgspec.Struct):
    profiles: list[_Profile] = []


class _Published(msgspec.Struct):
    data: dict[str, str] = {}


_decode_map: Final = msgspec.json.Decoder(_Published).decode
_decode_configuration: Final = msgspec.json.Decoder(_Configuration).decode


def published_names(cache: Cache) -> set[str]:
    """The schedulerNames that the published configurations have profiles for."""
    held = cache.get(MAP.resource, MAP.namespace, MAP.name)
    names: set[str] = set()
    try:
        texts = {} if held is None else _decode_map(held.value).data
    except msgspec.DecodeError:
        return names
    for text in texts.values():
        try:
            names.update(one.scheduler_name for one in _decode_configuration(text).profiles)
        except msgspec.DecodeError:
            continue
    return names


class UnservedPods:
    """Hears every change, and tells the pods that wait for a scheduler that there is not."""

    def __init__(self, registry: Registry, served: Collection[str], wall_ns: Callable[[], int]) -> None:
        self._registry = registry
        self._served = frozenset(served)
        self._wall_ns = wall_ns
        self._heard: dict[str, Pod] = {}

    def hear(self, changes: Sequence[Change]) -> None:
        served = self._served
        for change in changes:
            if isinstance(change, PodSeen):
                if change.pod.spec.scheduler_name not in served and _waits(change.pod):
                    self._hear(change.pod)
            elif isinstance(change, PodGone) and self._heard:
                self._heard.pop(change.pod.uid, None)

    def _hear(self, pod: Pod) -> None:
        if len(self._heard) < MOST:
            self._heard.setdefault(pod.metadata.uid, pod)

    async def run(self, after_s: float = AFTER_S) -> None:
        """Until cancelled."""
        due: list[Pod] = []
        while True:
            await asyncio.sleep(after_s)
            others = published_names(self._registry.cache) if due else set()
            for pod in due:
                self._heard.pop(pod.metadata.uid, None)
                if pod.spec.scheduler_name not in others:
                    await self._tell(pod)
            due = list(self._heard.values())

    async def _tell(self, pod: Pod) -> None:
        meta, message = pod.metadata, MESSAGE.format(pod.spec.scheduler_name)

        def change(found: Object, held: StoredObject) -> Object:
            status: dict[str, Any] = found.setdefault("status", {})
            if held.uid == meta.uid and not found["spec"].get("nodeName") and not _reported(status):
                told = {"type": "PodScheduled", "status": "False", "reason": REASON, "message": message}
                with_condition(status, told, seconds_time(self._wall_ns()))
            return found

        request = PodWriteRequest(details=Details(reason=REASON, message=message))
        try:
            await self._registry.modify(Target(PODS, meta.namespace, meta.name), change, SCHEDULER, request=request)
        except (StatusError, StoreError) as error:
            _log.v(2).info(
                "A pod was not told that nobody serves it", pod=f"{meta.namespace}/{meta.name}", err=str(error)
            )


def _waits(pod: Pod) -> bool:
    return (
        not pod.spec.node_name
        and not pod.spec.scheduling_gates
        and pod.metadata.deletion_timestamp is None
        and pod.status.phase not in FINISHED_PHASES
    )


def _reported(status: dict[str, Any]) -> bool:
    """Whether a scheduler has said something about it."""
    return any(one.get("type") == "PodScheduled" for one in status.get("conditions", ()))
