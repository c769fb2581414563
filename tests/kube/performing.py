"""A performer before a fake API server, and all that it tells.

def test_...() -> None:
    async def scenario(world: World) -> None: ...
    play(scenario)
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from kube.fake_server import FakeServer, Object
from situate.core.changes import Change, PodRef
from situate.core.model.devices import ResourceClaim
from situate.core.model.group import PodGroup
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim
from situate.kube.client import Client
from situate.kube.port import KubeSchedulingPort
from situate.loop.metrics import Metrics
from situate.loop.scheduling.performer import Performer
from situate.loop.scheduling.view import EngineView
from situate.wire.objects import decode_pod

PODS = "/api/v1/pods"
EVENTS = "/apis/events.k8s.io/v1/events"
START_NS = 1_767_225_600_123_456_789  # 2026-01-01T00:00:00.123456789Z
WITHIN_S = 5.0


class Seen(EngineView):
    """What the engine would know: objects as they were when `see` was called."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self.volumes: dict[str, PersistentVolume] = {}
        self.claims: dict[tuple[str, str], PersistentVolumeClaim] = {}
        self.groups: dict[tuple[str, str], PodGroup] = {}
        self.resource_claims: dict[tuple[str, str], ResourceClaim] = {}
        self.version = 0

    @property
    def storage_version(self) -> int:
        return self.version

    def pod(self, ref: PodRef) -> Pod | None:
        found = self.pods.get(ref.key)
        return found if found is not None and found.metadata.uid == ref.uid else None

    def scheduler_of(self, ref: PodRef) -> tuple[str, str]:
        found = self.pod(ref)
        return ("", "") if found is None else (found.spec.scheduler_name, found.metadata.resource_version)

    def node(self, name: str) -> Node | None:
        return self.nodes.get(name)

    def volume(self, name: str) -> PersistentVolume | None:
        return self.volumes.get(name)

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        return self.claims.get((namespace, name))

    @property
    def devices_version(self) -> int:
        return self.version

    def resource_claim(self, namespace: str, name: str) -> ResourceClaim | None:
        return self.resource_claims.get((namespace, name))

    def csi_node(self, name: str) -> CSINode | None:
        return None

    def group(self, namespace: str, name: str) -> PodGroup | None:
        return self.groups.get((namespace, name))


class Counted(Metrics):
    """What the performer counts."""

    def __init__(self) -> None:
        self.now: dict[str, int] = {}
        self.most: dict[str, int] = {}
        self.failures: list[str] = []
        self.drops: list[str] = []

    def in_flight(self, operation: str, change: int) -> None:
        self.now[operation] = self.now.get(operation, 0) + change
        self.most[operation] = max(self.most.get(operation, 0), self.now[operation])

    def failed(self, operation: str) -> None:
        self.failures.append(operation)

    def dropped(self, operation: str) -> None:
        self.drops.append(operation)


def kube_performer(
    client: Client, objects: EngineView, tell: Callable[[list[Change]], None], **options: Any
) -> Performer:
    """A performer over a KubeSchedulingPort; each takes the options that it knows."""
    port_options = {name: options.pop(name) for name in ("term", "groups") if name in options}
    clocks = {name: options[name] for name in ("may_write", "now_ns") if name in options}
    port = KubeSchedulingPort(client, client, objects, host="host-1", **clocks, **port_options)
    return Performer(port, objects, tell, component="default-scheduler", **options)


class World:
    def __init__(self, server: FakeServer, client: Client) -> None:
        self.server = server
        self.client = client
        self.seen = Seen()
        self.counted = Counted()
        self.leads = True
        self.now_ns = START_NS
        self.told: list[Change] = []
        self._heard = asyncio.Event()
        self.performer = self.new_performer()

    def new_performer(self, **options: Any) -> Performer:
        return kube_performer(
            self.client,
            self.seen,
            self.hear,
            may_write=lambda: self.leads,
            now_ns=lambda: self.now_ns,
            metrics=self.counted,
            **options,
        )

    def hear(self, changes: list[Change]) -> None:
        self.told.extend(changes)
        self._heard.set()

    async def answers(self, count: int = 1) -> list[Change]:
        """Wait for so many answers in all; then a little more, for any that nobody should give."""
        async with asyncio.timeout(WITHIN_S):
            while len(self.told) < count:
                self._heard.clear()
                await self._heard.wait()
        await self.quiet()
        return self.told

    async def quiet(self) -> None:
        """Until nothing is under way at all."""
        async with asyncio.timeout(WITHIN_S):
            await self.until(lambda: not self.performer.busy)

    async def until(self, true: Callable[[], object]) -> None:
        async with asyncio.timeout(WITHIN_S):
            while not true():
                await asyncio.sleep(0.001)

    # -- pods --------------------------------------------------------------------------------------------------------

    def add_pod(self, name: str = "web", **spec: Any) -> PodRef:
        """A waiting pod, on the server and seen."""
        containers = [{"name": "c", "image": "i"}]
        body = {
            "metadata": {"name": name, "namespace": "default", "generation": 3},
            "spec": {"schedulerName": "default-scheduler", "containers": containers, **spec},
        }
        made = self.server.put(PODS, body)
        self.see_pod(name)
        return PodRef("default", name, made["metadata"]["uid"])

    def see_pod(self, name: str = "web") -> None:
        self.seen.pods[f"default/{name}"] = decode_pod(json.dumps(self.get_pod(name)).encode())

    def get_pod(self, name: str = "web") -> Object:
        found = self.server.get(PODS, name, "default")
        if found is None:
            raise LookupError(name)
        return found

    def change_pod(self, name: str = "web", **metadata: Any) -> None:
        """Changed on the server, and not seen yet."""
        pod = json.loads(json.dumps(self.get_pod(name)))
        pod["metadata"].update(metadata)
        self.server.put(PODS, pod)

    def replace_pod(self, name: str = "web") -> None:
        """Gone, and another of its name made; neither has been seen yet."""
        seen = dict(self.seen.pods)
        self.server.remove(PODS, name, "default")
        self.add_pod()
        self.seen.pods = seen

    def bind_pod(self, node: str, name: str = "web") -> None:
        pod = json.loads(json.dumps(self.get_pod(name)))
        pod["spec"]["nodeName"] = node
        self.server.put(PODS, pod)


def play(scenario: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        async with FakeServer() as server, Client(server.access(), qps=-1) as client:
            world = World(server, client)
            await scenario(world)
            await world.performer.drain(0)

    asyncio.run(run())
