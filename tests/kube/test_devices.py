"""Devices on a fake API server, by a whole scheduler: what is seen of claims, what is written, and what is recorded."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from kube.test_scheduler import LIMIT_S, PODS, Server, World, node, pod
from situate.core.changes import ClaimsBound, ObjectSeen
from situate.core.effects import BindClaims
from situate.core.engine.engine import Engine
from situate.core.model.devices import DeviceClass, ResourceClaim, ResourceSlice
from situate.loop.history import History
from situate.loop.replay import Replay

API = "/apis/resource.k8s.io/v1"
CLAIMS, CLASSES, SLICES, RULES = (
    f"{API}/{name}" for name in ("resourceclaims", "deviceclasses", "resourceslices", "devicetaintrules")
)
DRIVER = "gpu.example.com"


class DeviceServer(Server):
    """It serves these kinds for devices, and tells this version."""

    kinds: tuple[str, ...] = ("resourceclaims", "deviceclasses", "resourceslices")
    version = "v1.36.4"

    def _do(self, method: str, path: str, query: dict[str, str], body: Any) -> dict[str, Any]:
        if path == "/version":
            return {"gitVersion": self.version}
        if path == API and self.kinds:
            return {"resources": [{"name": name, "verbs": ["list", "watch"]} for name in self.kinds]}
        return super()._do(method, path, query, body)


def play(tmp_path: Path, scenario: Callable[[World], Awaitable[None]], **fields: Any) -> None:
    async def run() -> None:
        server = DeviceServer()
        for name, value in fields.items():
            setattr(server, name, value)
        async with server, asyncio.timeout(LIMIT_S):
            server.put("/api/v1/nodes", node("n2"))
            for name in ("n1", "n2"):
                spec = {
                    "driver": DRIVER,
                    "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                    "nodeName": name,
                    "devices": [{"name": "g"}],
                }
                server.put(SLICES, {"metadata": {"name": f"{name}-s"}, "spec": spec})
            server.put(CLASSES, {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}})
            await scenario(World(server, tmp_path))

    asyncio.run(run())


def claim(name: str, **fields: Any) -> dict[str, Any]:
    asked = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"devices": {"requests": [asked]}}, **fields}


def claiming(name: str, of: str) -> dict[str, Any]:
    made = pod(name)
    made["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": of}]
    return made


def devices(world: World) -> dict[str, list[str]]:
    """Of each claim, on which node."""
    return {
        one["metadata"]["name"]: [
            result["pool"]
            for result in one.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
        ]
        for one in world.server.all(CLAIMS)
    }


def test_claims_are_seen_written_and_recorded_and_the_record_replays(tmp_path: Path) -> None:
    journal = tmp_path / "journal"

    async def scenario(world: World) -> None:
        world.server.put(CLAIMS, claim("a"))
        world.server.put(PODS, claiming("one", "a"))
        async with world.running(world.process(journal=journal)):
            first = await world.bound("one")
            world.server.put(CLAIMS, claim("b"))
            world.server.put(PODS, claiming("two", "b"))
            second = await world.bound("two")
        assert {first, second} == {"n1", "n2"}
        assert devices(world) == {"a": [first], "b": [second]}

    play(tmp_path, scenario)
    [folder] = journal.iterdir()
    history = History(folder)
    kinds, asked, answered = set(), 0, 0
    for step in history:
        for change in step.changes:
            if isinstance(change, ObjectSeen):
                kinds.add(type(change.item))
            answered += isinstance(change, ClaimsBound) and bool(change.claims)
        asked += sum(isinstance(effect, BindClaims) for effect in step.effects or ())
    assert {DeviceClass, ResourceSlice, ResourceClaim} <= kinds
    assert (asked, answered) == (2, 2)
    again = History(folder)
    assert list(Replay(again, Engine(again.header.config, batch=again.header.batch))) == []


def test_a_shadow_writes_no_claim(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.server.put(CLAIMS, claim("a"))
        world.server.put(PODS, claiming("one", "a"))
        process = world.process(shadow=True)
        async with world.running(process):
            await world.server.watching(CLAIMS)
            world.server.put(PODS, claiming("two", "a"))
            await asyncio.sleep(0.2)
        assert devices(world) == {"a": []}
        assert not world.server.asked("PATCH", "resourceclaims")

    play(tmp_path, scenario)


def test_a_server_without_devices_does_not_stop_the_scheduler(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.server.put(PODS, pod("plain"))
        world.server.put(PODS, claiming("one", "a"))
        async with world.running(world.process()):
            assert await world.bound("plain")
        assert "nodeName" not in world.server.get(PODS, "one", "default")["spec"]  # type: ignore[index]

    play(tmp_path, scenario, kinds=())


@pytest.mark.parametrize("version, node", [("v1.37.1", "n1"), ("v1.36.4", "n2")])
def test_taint_rules_are_followed_from_1_37_on(tmp_path: Path, version: str, node: str) -> None:
    async def scenario(world: World) -> None:
        taint = {"key": "broken", "effect": "NoSchedule"}
        world.server.put(RULES, {"metadata": {"name": "r"}, "spec": {"deviceSelector": {"pool": "n2"}, "taint": taint}})
        world.server.put(CLAIMS, claim("a"))
        async with world.running(world.process()):
            world.server.put(PODS, claiming("one", "a"))
            assert await world.bound("one") == node

    play(tmp_path, scenario, version=version, kinds=(*DeviceServer.kinds, "devicetaintrules"))


def test_an_extended_resource_gets_a_claim(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        made = pod("one")
        made["spec"]["containers"][0]["resources"]["requests"]["example.com/gpu"] = "1"
        async with world.running(world.process()):
            world.server.put(PODS, made)
            where = await world.bound("one")
        [(name, found)] = devices(world).items()
        assert found == [where]
        bound = world.server.get(PODS, "one", "default")
        assert bound is not None
        assert bound["status"]["extendedResourceClaimStatus"]["resourceClaimName"] == name

    play(tmp_path, scenario)
