"""A Lease behind an API server, for elections and fleets."""

from __future__ import annotations

import socket
import time
from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec

from situate.kube.client import REQUEST_S, Client
from situate.kube.errors import ApiError
from situate.loop.leases import API, LeaseError, LeaseObject, lease_errors
from situate.loop.logs import Log
from situate.wire.bodies import micro_time

WATCH_S: Final = 300
"""How long one watch lasts at most."""
WATCH_GRACE_S: Final = 30.0
EVENT_S: Final = 1.0
"""How long to wait for the event about the election: less than anybody waits for a leader."""
NOTE_CHARS: Final = 1_024
INSTANCE_CHARS: Final = 128

_log = Log(__name__)


class ApiLeaseStore:
    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        *,
        component: str = "default-scheduler",
        timeout_s: float = REQUEST_S,
    ) -> None:
        self.namespace = namespace
        self.name = name
        self._client = client
        self._component = component
        self._timeout_s = timeout_s
        self._path = f"/apis/{API}/namespaces/{namespace}/leases"

    async def read(self) -> LeaseObject | None:
        try:
            return await self._request("GET", f"{self._path}/{self.name}")
        except LeaseError as error:
            if error.reason == "NotFound":
                return None
            raise

    async def create(self, lease: LeaseObject) -> LeaseObject:
        return await self._request("POST", self._path, lease)

    async def update(self, lease: LeaseObject) -> LeaseObject:
        return await self._request("PUT", f"{self._path}/{self.name}", lease)

    async def _request(self, method: str, path: str, body: LeaseObject | None = None) -> LeaseObject:
        sent = None if body is None else msgspec.json.encode(body)
        with lease_errors(ApiError):
            return decoded(await self._client.request(method, path, body=sent, timeout_s=self._timeout_s))

    async def watch(self) -> AsyncIterator[LeaseObject]:
        params = {"watch": "true", "fieldSelector": f"metadata.name={self.name}", "timeoutSeconds": str(WATCH_S)}
        with lease_errors(ApiError):
            async with self._client.stream(self._path, params=params, idle_s=WATCH_S + WATCH_GRACE_S) as lines:
                async for line in lines:
                    event = decoded(line)
                    lease = event.get("object") or {}
                    ours = lease.get("metadata", {}).get("name") == self.name
                    if event.get("type") in ("ADDED", "MODIFIED") and ours:
                        yield lease

    async def announce(self, lease: LeaseObject, note: str) -> None:
        """The event that kube-scheduler records, too."""
        metadata = lease.get("metadata") or {}
        body = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"{self.name}.{time.time_ns():x}", "namespace": self.namespace},
            "eventTime": micro_time(time.time_ns()),
            "type": "Normal",
            "reason": "LeaderElection",
            "action": "LeaderElection",
            "note": note[:NOTE_CHARS],
            "regarding": {
                "apiVersion": API,
                "kind": "Lease",
                "namespace": self.namespace,
                "name": self.name,
                "uid": str(metadata.get("uid") or ""),
                "resourceVersion": str(metadata.get("resourceVersion") or ""),
            },
            "reportingController": self._component,
            "reportingInstance": f"{self._component}-{socket.gethostname()}"[:INSTANCE_CHARS],
        }
        path = f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events"
        try:
            await self._client.request("POST", path, body=msgspec.json.encode(body), timeout_s=EVENT_S)
        except ApiError as error:
            _log.v(2).info("Event was not recorded", err=error.message)


def decoded(body: bytes) -> dict[str, Any]:
    """A JSON object of the server's. Raises ApiError."""
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise ApiError(0, "NotJSON", f"the answer cannot be read: {error}") from None
