"""Records events about pods in the background. An event may be dropped: a worker never waits for it."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from situate.agent.control_plane import ControlPlane, ControlPlaneError
from situate.loop.logs import Log
from situate.wire.bodies import seconds_time

QUEUE_SIZE: Final = 256
"""Events beyond these are dropped."""
MAX_MESSAGE: Final = 1_024

_log = Log(__name__)


class PodEventRecorder:
    """`run` it until cancelled."""

    def __init__(self, control_plane: ControlPlane, node: str, wall_ns: Callable[[], int] = time.time_ns) -> None:
        self._control_plane = control_plane
        self._node = node
        self._wall_ns = wall_ns
        self._queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(QUEUE_SIZE)

    def record(
        self, pod: Mapping[str, Any], kind: Literal["Normal", "Warning"], reason: str, message: str, container: str = ""
    ) -> None:
        try:
            self._queue.put_nowait(event_body(pod, self._node, kind, reason, message, container, self._wall_ns()))
        except asyncio.QueueFull:
            _log.v(2).info("Dropped an event", reason=reason, pod=pod["metadata"]["name"])

    async def run(self) -> None:
        while True:
            event = await self._queue.get()
            try:
                await self._control_plane.record_event(event)
            except ControlPlaneError as error:
                _log.v(2).info("Cannot record an event", reason=event["reason"], err=str(error))
            except Exception as error:  # noqa: BLE001 - of one event
                _log.error("Cannot record an event", reason=event["reason"], err=f"{type(error).__name__}: {error}")


def event_body(
    pod: Mapping[str, Any], node: str, kind: str, reason: str, message: str, container: str, now_ns: int
) -> dict[str, Any]:
    """The name is a hash of pod, reason, message and container, so that equal events become one with a count."""
    meta, now = pod["metadata"], seconds_time(now_ns)
    message = message.encode(errors="replace").decode()  # a value from a Secret need not be text
    field = ""
    if container:
        init = any(one["name"] == container for one in pod["spec"].get("initContainers", ()))
        field = f"spec.{'initContainers' if init else 'containers'}{{{container}}}"
    digest = zlib.crc32("\0".join((meta["uid"], reason, message, field)).encode())
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{meta['name'][:200]}.{digest:08x}", "namespace": meta["namespace"]},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": meta["namespace"],
            "name": meta["name"],
            "uid": meta["uid"],
            **({"fieldPath": field} if field else {}),
        },
        "reason": reason,
        "message": message[:MAX_MESSAGE],
        "source": {"component": "situate-agent", "host": node},
        "reportingComponent": "situate-agent",
        "reportingInstance": node,
        "type": kind,
        "count": 1,
        "firstTimestamp": now,
        "lastTimestamp": now,
    }
