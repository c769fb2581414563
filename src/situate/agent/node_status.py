"""The node's status: when the agent registers the node, and when it reports its status again.

The lease shows that the node is alive. Every scheduler reads the Node object, so the agent writes it rarely: at once if
a condition changed, after a minute if anything else did, and every five minutes otherwise.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from situate.agent import host
from situate.agent.clock import Clock
from situate.agent.control_plane import ControlPlane, ControlPlaneError
from situate.agent.kubelet_server import Endpoint
from situate.agent.lease import NodeLease
from situate.agent.settings import NodeSettings
from situate.agent.worker import PodWorker
from situate.loop.logs import Log

LOOK_S: Final = 10.0
"""How often the agent looks at the machine."""
SMALL_S: Final = 60.0
"""A change that is not of a condition waits this long after the last report, and later changes go with it."""
STATUS_S: Final = 300.0
"""How often the agent reports a status that does not change."""
RETRY_S: Final = 1.0

_log = Log(__name__)
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


class NodeStatusManager:
    """Registers the node and keeps its status current."""

    def __init__(
        self,
        control_plane: ControlPlane,
        settings: NodeSettings,
        facts: host.Facts,
        clock: Clock,
        lease: NodeLease,
        workers: Callable[[], Sequence[PodWorker]],
    ) -> None:
        self.registered = asyncio.Event()
        self.node: dict[str, Any] | None = None
        """The Node as last seen."""
        self.endpoint: Endpoint | None = None
        """Where the agent serves logs."""
        self._control_plane = control_plane
        self._settings = settings
        self._facts = facts
        self._clock = clock
        self._lease = lease
        self._workers = workers
        self._status: dict[str, Any] | None = None
        """As last reported."""
        self._due = asyncio.Event()

    async def run(self) -> None:
        """Register the node, then report its status whenever it is due."""
        await self._lease.held.wait()
        reported_at, clock = 0.0, self._clock
        while True:
            for worker in self._workers():
                worker.check_logs()
            body = self._body()
            due = next_due(self._status, body["status"], reported_at)
            if self._due.is_set() or clock.monotonic() >= due:
                self._due.clear()
                await self._register(body)
                self._status, reported_at = body["status"], clock.monotonic()
                self.registered.set()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._due.wait()

    async def _register(self, body: dict[str, Any]) -> None:
        while True:
            try:
                return await self._control_plane.register_node(body, self._lease.next_report())
            except ControlPlaneError as error:
                _log.warning("Cannot register the node; retrying", err=str(error))
                await self._clock.sleep(RETRY_S)

    def _body(self) -> dict[str, Any]:
        settings = self._settings
        short = host.pressure(settings.directory)
        pods = [worker.pod for worker in self._workers()]
        now_ns, before = self._clock.wall_ns(), self._status or {}
        return host.node_object(
            settings.name, self._facts, short, now_ns, settings.labels, before, pods=pods, endpoint=self.endpoint
        )

    async def watch(self) -> None:
        """Watch the Node. If it was deleted or is not ready, report at once."""
        await self.registered.wait()
        while True:
            newest = 0
            try:
                async for update in self._control_plane.watch_nodes(self._settings.name):
                    node = None if update.body is None else _decode(update.body)
                    version = newest if node is None else int(node["metadata"].get("resourceVersion") or newest)
                    if version < newest:
                        continue  # a newer version overtook it
                    self.node, newest = node, version
                    if node is None or not is_ready(node):
                        self._due.set()
            except ControlPlaneError as error:
                _log.v(2).info("Cannot watch the node; retrying", err=str(error))
            await self._clock.sleep(RETRY_S)


def next_due(before: Mapping[str, Any] | None, now: Mapping[str, Any], reported_at: float) -> float:
    """When to report the status `now`, if `before` was reported at `reported_at`. -inf: at once. Pure."""
    if before is None or _conditions(before) != _conditions(now):
        return float("-inf")
    rest = [{name: value for name, value in one.items() if name != "conditions"} for one in (before, now)]
    return reported_at + (STATUS_S if rest[0] == rest[1] else SMALL_S)


def _conditions(status: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    return sorted((one["type"], one["status"], one.get("reason", "")) for one in status.get("conditions", ()))


def is_ready(obj: Mapping[str, Any]) -> bool:
    """Whether the condition Ready of a node is True."""
    conditions = obj.get("status", {}).get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
