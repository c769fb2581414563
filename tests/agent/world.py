"""A control plane in memory for agents, and pods to give it."""

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from situate.agent.agent import NodeAgent
from situate.agent.control_plane import (
    NO_ORIGIN,
    AcquiredLease,
    ControlPlaneError,
    LeaseLostError,
    LeaseRenewal,
    NodeUpdate,
    PodUpdate,
    SnapshotUpdate,
    StaleError,
    StatusOrigin,
)
from situate.agent.pod_lifecycle import RestartBackoff
from situate.agent.pod_status import merge_status
from situate.agent.process import ProcessRuntime, ProcessSettings
from situate.agent.settings import NodeSettings
from situate.core.reconcile.nodes.reports import AgentReport

WITHIN_S = 20.0
QUICK = RestartBackoff(first_ms=50, most_ms=400)
NODE = "this"
PYTHON = os.path.realpath(sys.executable)
"""Not that of the virtual environment: a container's user may not be able to enter its directory."""


def container(name: str = "c", *command: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "none", **({"command": list(command)} if command else {}), **more}


def shell(script: str, name: str = "c", **more: Any) -> dict[str, Any]:
    return container(name, "sh", "-c", script, **more)


def pod(*containers: dict[str, Any], name: str = "p", uid: str = "", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default", "uid": uid or f"uid-{name}"},
        "spec": {
            "nodeName": NODE,
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 5,
            "containers": list(containers),
            **spec,
        },
        "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]},
    }


class FakePlane:
    """Keeps what it is told, and tells it to whoever follows, as a server does."""

    def __init__(self) -> None:
        self.pods_held: dict[str, dict[str, Any]] = {}
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.events: list[dict[str, Any]] = []
        self.reports: list[tuple[str, dict[str, Any], StatusOrigin]] = []
        self.node_reports: list[AgentReport | None] = []
        self.asked_since: list[int] = []
        self.nodes_held: dict[str, dict[str, Any]] = {}
        self.renewals: list[LeaseRenewal] = []
        self.terms: dict[str, int] = {}
        self.lease_s = 40
        self.version = 0
        """Of the node's snapshot."""
        self.unlisted: list[str] = []
        """Pods that the snapshot does not have."""
        self.configuration: dict[str, Any] = {}
        self.away = False
        self._followers: list[asyncio.Queue[Any]] = []
        self._node_followers: list[asyncio.Queue[Any]] = []
        self._snapshot_followers: list[asyncio.Queue[Any]] = []

    # -- for tests ---------------------------------------------------------------------------------------------------

    def put(self, body: dict[str, Any]) -> None:
        self.pods_held[body["metadata"]["name"]] = body
        self._tell(body)
        self.tell_snapshot()

    def tell_snapshot(self, version: int = 0) -> None:
        """The node's snapshot, as it is now, in the next version or in this one."""
        self.version += 1
        for follower in self._snapshot_followers:
            for node in {NODE: 0, **self.nodes_held}:
                follower.put_nowait(self._snapshot(node, version or self.version))

    def _snapshot(self, node: str, version: int) -> SnapshotUpdate:
        pods = [
            {"uid": one["metadata"]["uid"], "bindingVersion": 1}
            for name, one in self.pods_held.items()
            if one["spec"]["nodeName"] == node
            and one["status"].get("phase") not in ("Succeeded", "Failed")
            and name not in self.unlisted
        ]
        spec = {"pods": pods, "configuration": self.configuration}
        body = {"metadata": {"name": node, "resourceVersion": str(version)}, "spec": spec}
        return SnapshotUpdate(node, version, json.dumps(body).encode())

    def tell_late(self, **spec: Any) -> None:
        """What the node was once: it is told only now, and is not so any more."""
        node = self.nodes_held[NODE]
        for follower in self._node_followers:
            follower.put_nowait(NodeUpdate(NODE, json.dumps({**node, "spec": spec}).encode()))

    def think(self, ready: str, name: str = NODE) -> None:
        """The node's state, as the control plane sees it."""
        node = self.nodes_held[name]
        status = {**node["status"], "conditions": [{"type": "Ready", "status": ready}]}
        self.nodes_held[name] = {**node, "status": status}
        for follower in self._node_followers:
            follower.put_nowait(NodeUpdate(name, json.dumps(self.nodes_held[name]).encode()))

    def ask_to_go(self, name: str, grace_s: int = 5) -> None:
        body = self.pods_held[name]
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + grace_s))
        meta = {**body["metadata"], "deletionTimestamp": at, "deletionGracePeriodSeconds": grace_s}
        self.put({**body, "metadata": meta})

    def drop(self, name: str) -> None:
        body = self.pods_held.pop(name)
        for follower in self._followers:
            follower.put_nowait(PodUpdate(body["metadata"]["namespace"], name, None))
        self.tell_snapshot()

    def cut(self) -> None:
        """Nobody is answered any more."""
        self.away = True
        for follower in (*self._followers, *self._node_followers, *self._snapshot_followers):
            follower.put_nowait(None)

    def status(self, name: str = "p") -> dict[str, Any]:
        found: dict[str, Any] = self.pods_held[name]["status"]
        return found

    def state(self, name: str = "p", number: int = 0, of: str = "containerStatuses") -> dict[str, Any]:
        statuses = self.status(name).get(of) or [{}] * (number + 1)
        found: dict[str, Any] = statuses[number]
        return found

    def phase(self, name: str = "p") -> str:
        return str(self.status(name).get("phase"))

    def is_ready(self, name: str = "p") -> bool:
        conditions = {one["type"]: one["status"] for one in self.status(name).get("conditions", ())}
        return conditions.get("Ready") == "True"

    def said(self, reason: str) -> list[str]:
        return [one["message"] for one in self.events if one["reason"] == reason]

    # -- for agents --------------------------------------------------------------------------------------------------

    async def register_node(self, node: dict[str, Any], report: AgentReport | None = None) -> None:
        self._check()
        self.node_reports.append(report)
        self.nodes_held[node["metadata"]["name"]] = node

    async def acquire_lease(self, node: str, lease_s: int, least: int = 0, *, fenced: bool = False) -> AcquiredLease:
        self._check()
        before = self.terms.get(node, 0)
        taken = AcquiredLease(max(before + 1, least), before, self.lease_s)
        self.terms[node], self.lease_s = taken.term, lease_s
        return taken

    async def renew_lease(self, node: str, renewal: LeaseRenewal) -> None:
        self._check()
        if self.terms[node] != renewal.term:
            raise LeaseLostError("taken")
        self.lease_s = renewal.lease_s
        self.renewals.append(renewal)

    async def watch_pods(self, node: str = "") -> AsyncIterator[PodUpdate]:
        there = [_read(body) for body in self.pods_held.values()]
        async for read in self._follow(self._followers, [*there, PodUpdate("", "", None, listed=True)]):
            yield read

    async def watch_snapshots(self, node: str = "", since: int = 0) -> AsyncIterator[SnapshotUpdate]:
        self.asked_since.append(since)
        held = {NODE: 0, **self.nodes_held}
        there = [self._snapshot(one, max(self.version, 1)) for one in held] if since != self.version else []
        async for read in self._follow(self._snapshot_followers, there):
            yield read

    async def watch_nodes(self, node: str = "") -> AsyncIterator[NodeUpdate]:
        there = [NodeUpdate(name, json.dumps(body).encode()) for name, body in self.nodes_held.items()]
        async for read in self._follow(self._node_followers, there):
            yield read

    async def _follow(self, followers: list[asyncio.Queue[Any]], there: list[Any]) -> AsyncIterator[Any]:
        self._check()
        follower: asyncio.Queue[Any] = asyncio.Queue()
        for read in there:
            follower.put_nowait(read)
        followers.append(follower)
        try:
            while (read := await follower.get()) is not None:
                yield read
            raise ControlPlaneError("gone away")
        finally:
            followers.remove(follower)

    async def report_status(self, pod: dict[str, Any], status: dict[str, Any], about: StatusOrigin = NO_ORIGIN) -> None:
        self._check()
        held = self.pods_held.get(pod["metadata"]["name"])
        if held is None or held["metadata"]["uid"] != pod["metadata"]["uid"]:
            raise StaleError("another pod")
        self.reports.append((pod["metadata"]["name"], status, about))
        self.put({**held, "status": merge_status(held["status"], status)})

    async def request_token(self, pod: dict[str, Any], audience: str, life_s: int) -> str:
        return f"token of {pod['metadata']['name']}"

    async def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        self._check()
        return self.nodes_held.get(name) if kind == "Node" else self.objects.get((kind, name))

    async def set_finalizers(self, volume: dict[str, Any], finalizers: list[str]) -> None:
        self._check()
        self.objects["PersistentVolume", volume["metadata"]["name"]]["metadata"]["finalizers"] = finalizers

    async def record_event(self, event: dict[str, Any]) -> None:
        self._check()
        self.events.append(event)

    async def delete_pod(self, pod: dict[str, Any]) -> None:
        self._check()
        if pod["metadata"]["name"] not in self.pods_held:
            raise StaleError("gone")
        self.drop(pod["metadata"]["name"])

    def _check(self) -> None:
        if self.away:
            raise ControlPlaneError("away")

    def _tell(self, body: dict[str, Any]) -> None:
        for follower in self._followers:
            follower.put_nowait(_read(body))


def _read(body: dict[str, Any]) -> PodUpdate:
    return PodUpdate(body["metadata"]["namespace"], body["metadata"]["name"], json.dumps(body).encode())


async def until(check: Callable[[], object]) -> None:
    """Wait until something is so; the test's own time limit ends it."""
    while True:
        with contextlib.suppress(LookupError, TypeError):
            if check():
                return
        await asyncio.sleep(0.01)


def agent_of(plane: Any, directory: Path, *, log_bytes: int = 1 << 20, processes: int = 200, **more: Any) -> NodeAgent:
    settings = NodeSettings(NODE, directory, backoff=more.pop("backoff", QUICK), **more)
    limits = ProcessSettings(log_bytes=log_bytes, log_files=3, processes=processes, fence=directory / "fence")
    return NodeAgent(plane, settings, lambda changed: ProcessRuntime(directory / "pods", changed, settings=limits))


@asynccontextmanager
async def running(agent: NodeAgent) -> AsyncIterator[NodeAgent]:
    """An agent that is told to stop at the end, whatever happens."""
    working = asyncio.create_task(agent.run())
    ready = asyncio.create_task(agent.ready.wait())
    try:
        await asyncio.wait([working, ready], return_when=asyncio.FIRST_COMPLETED)
        yield agent
    finally:
        ready.cancel()
        working.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await working


def story(told: Callable[[], Awaitable[None]]) -> None:
    """Have it happen, within a time."""

    async def run() -> None:
        async with asyncio.timeout(WITHIN_S):
            await told()

    asyncio.run(run())


def processes_with(mark: str) -> list[int]:
    """Processes of this machine that have this in their command line, and have not ended; shims do not."""
    return sorted(_with(mark))


def _with(mark: str) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if mark.encode() in (entry / "cmdline").read_bytes():
                    yield int(entry.name)
