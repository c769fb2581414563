"""Events about pods, told in the background: a few words for people, lost rather than waited for."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from situate.agent.control_plane import ControlPlane, ControlPlaneError
from situate.loop.logs import Log
from situate.wire.bodies import seconds_time

__all__ = ["EventRecorder", "event_body"]

WAITING: Final = 256
"""How many may wait to be told; more are dropped."""
LONGEST: Final = 1_024

_log = Log(__name__)


class EventRecorder:
    """`run` it until cancelled."""

    def __init__(self, plane: ControlPlane, node: str, wall_ns: Callable[[], int] = time.time_ns) -> None:
        self._wall_ns = wall_ns
        self._plane = plane
        self._node = node
        self._waiting: asyncio.Queue[dict[str, Any]] = asyncio.Queue(WAITING)

    def tell(
        self, pod: Mapping[str, Any], kind: Literal["Normal", "Warning"], reason: str, message: str, container: str = ""
    ) -> None:
        try:
            self._waiting.put_nowait(event_body(pod, self._node, kind, reason, message, container, self._wall_ns()))
        except asyncio.QueueFull:
            _log.v(2).info("An event is dropped", reason=reason, pod=pod["metadata"]["name"])

    async def run(self) -> None:
        while True:
            event = await self._waiting.get()
            try:
                await self._plane.record_event(event)
            except ControlPlaneError as error:
                _log.v(2).info("An event is not taken", reason=event["reason"], err=str(error))


def event_body(
    pod: Mapping[str, Any], node: str, kind: str, reason: str, message: str, container: str, now_ns: int
) -> dict[str, Any]:
    """The same words about the same pod are the same event, which then counts."""
    meta, now = pod["metadata"], seconds_time(now_ns)
    place = ""
    if container:
        init = any(one["name"] == container for one in pod["spec"].get("initContainers", ()))
        place = f"spec.{'initContainers' if init else 'containers'}{{{container}}}"
    number = zlib.crc32("\0".join((meta["uid"], reason, message, place)).encode())
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{meta['name'][:200]}.{number:08x}", "namespace": meta["namespace"]},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": meta["namespace"],
            "name": meta["name"],
            "uid": meta["uid"],
            **({"fieldPath": place} if place else {}),
        },
        "reason": reason,
        "message": message[:LONGEST],
        "source": {"component": "situate-agent", "host": node},
        "reportingComponent": "situate-agent",
        "reportingInstance": node,
        "type": kind,
        "count": 1,
        "firstTimestamp": now,
        "lastTimestamp": now,
    }
