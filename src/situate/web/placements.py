"""The stream of placements: what was decided, as it happens.

Our own control plane has PlacementEvents. On another cluster, its schedulers' Events tell the same with fewer words.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

import msgspec

from situate.kube.client import Client
from situate.kube.errors import ApiError, from_status
from situate.web.limits import MAX_PLACEMENTS

OWN: Final = "/apis/situate.dev/v1alpha1"
FOREIGN: Final = "/api/v1"
IDLE_S: Final = 150.0
RETRY_S: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
REASONS: Final = {
    "Scheduled": "bound",
    "FailedScheduling": "waiting",
    "Preempted": "evicted",
    "TaintManagerEviction": "evicted",
}
"""The Events of schedulers and of the taint manager, in our words."""
UNTOLD: Final = ("running", "succeeded", "gone")
"""What is no decision."""
_GONE: Final = 410


class PlacementFeed:
    """The newest placements. `run` it until it is cancelled."""

    def __init__(self, client: Client, namespace: str, moved: Callable[[], None]) -> None:
        self._client = client
        self._within = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
        self._moved = moved
        self._kept: deque[tuple[int, dict[str, Any]]] = deque(maxlen=MAX_PLACEMENTS)
        self._at = "0"
        self._foreign = False
        self._seen: dict[str, None] = {}
        self.last = 0
        """The number of the newest."""
        self.problem = ""

    def after(self, number: int) -> list[dict[str, Any]]:
        """Those after a number, the oldest first."""
        return [one for at, one in self._kept if at > number]

    async def run(self) -> None:
        failures = 0
        while True:
            try:
                await self._watch()
                failures, self.problem = 0, ""
            except ApiError as error:
                if error.not_found and not self._foreign:
                    self._foreign, self._at = True, ""
                    continue
                if error.gone or error.status == _GONE:
                    self._at = "" if self._foreign else "0"
                self.problem = f"placements cannot be followed: {error.message}"
                self._moved()
                failures += 1
                await asyncio.sleep(RETRY_S[min(failures, len(RETRY_S)) - 1])

    async def _watch(self) -> None:
        """One connection, until it ends."""
        params = {"watch": "true", "allowWatchBookmarks": "true"}
        if self._at:
            params["resourceVersion"] = self._at
        path = f"{FOREIGN}{self._within}/events" if self._foreign else f"{OWN}{self._within}/placementevents"
        async with self._client.stream(path, params=params, idle_s=IDLE_S) as lines:
            while batch := await lines.batch():
                for line in batch:
                    self._take(msgspec.json.decode(line))
                self.problem = ""
                self._moved()

    def _take(self, frame: dict[str, Any]) -> None:
        """Raises ApiError for an error in the stream."""
        found = frame["object"]
        if frame["type"] == "ERROR":
            raise from_status(0, msgspec.json.encode(found))
        self._at = str(found["metadata"].get("resourceVersion") or self._at)
        if frame["type"] in ("BOOKMARK", "DELETED") or self._at in self._seen:
            return
        told = _of_event(found) if self._foreign else _of_placement(found)
        if told is None:
            return
        self._seen[self._at] = None
        if len(self._seen) > 2 * MAX_PLACEMENTS:
            del self._seen[next(iter(self._seen))]
        self.last += 1
        self._kept.append((self.last, told))


def _of_placement(found: dict[str, Any]) -> dict[str, Any] | None:
    if found.get("event") in UNTOLD:
        return None
    pod = found.get("pod") or {}
    return {
        "time": found.get("time", ""),
        "event": found.get("event", ""),
        "pod": f"{found['metadata'].get('namespace', '')}/{pod.get('name', '')}",
        "node": found.get("node", ""),
        "scheduler": found.get("scheduler", ""),
        "reason": found.get("reason", ""),
        "message": found.get("message", ""),
    }


def _of_event(found: dict[str, Any]) -> dict[str, Any] | None:
    what = found.get("involvedObject") or {}
    event = REASONS.get(str(found.get("reason") or ""))
    if event is None or what.get("kind") != "Pod":
        return None
    source = found.get("reportingComponent") or (found.get("source") or {}).get("component") or ""
    message = str(found.get("message") or "")
    # "Successfully assigned shop/web-1 to node-3"
    node = message.rpartition(" to ")[2] if event == "bound" else ""
    return {
        "time": found.get("lastTimestamp") or found.get("eventTime") or "",
        "event": event,
        "pod": f"{what.get('namespace', '')}/{what.get('name', '')}",
        "node": node,
        "scheduler": source,
        "reason": found.get("reason", ""),
        "message": "" if node else message,
    }
