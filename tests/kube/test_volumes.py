"""Volumes on an API server that fails: what it answers is looked into. The rules are in tests/loop/scheduling."""

from typing import Any

import pytest

from loop.scheduling.storage import Storage
from loop.scheduling.worlds import KubeWorld, PortWorld, kube, play
from situate.core.changes import VolumesBound
from situate.loop.scheduling import pre_bind


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pre_bind, "LOOK_S", 0.01)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param({"drop": "after"}, id="the answer is lost"),
        pytest.param({"drop": "before"}, id="the connection breaks"),
        pytest.param({"status": 500}, id="500"),
        pytest.param({"status": 500, "done": True}, id="500 though it was done"),
        pytest.param({"status": 409, "reason": "Conflict"}, id="409"),
        pytest.param({"status": 429, "reason": "TooManyRequests"}, id="429"),
    ],
)
def test_a_write_that_may_have_failed_is_looked_into_and_tried_again(fault: dict[str, Any]) -> None:
    async def scenario(world: PortWorld) -> None:
        assert isinstance(world, KubeWorld)
        storage = await Storage.of(world, provision=True)
        world.server.fault("PATCH", "/persistentvolumes/", **fault)
        world.server.fault("PATCH", "/persistentvolumeclaims/", **fault)
        await storage.begin()
        await world.add_volume("made")
        await storage.bind_claim("data", "pv-1")
        await storage.bind_claim("fresh", "made")
        assert await world.answers() == [VolumesBound(storage.effect.pod, 1)]

    play(kube, scenario)


def test_what_was_put_together_is_undone_if_the_rest_is_refused() -> None:
    async def scenario(world: PortWorld) -> None:
        assert isinstance(world, KubeWorld)
        storage = await Storage.of(world, provision=True)
        world.server.fault("PATCH", "/persistentvolumeclaims/", status=403, reason="Forbidden", message="not you")
        await storage.begin()
        assert await storage.failure() == "not you"
        assert "claimRef" not in world.volume()["spec"]
        assert world.volume()["metadata"]["annotations"] == {}

    play(kube, scenario)


def test_an_object_that_cannot_be_read_is_a_failure() -> None:
    async def scenario(world: PortWorld) -> None:
        assert isinstance(world, KubeWorld)
        storage = await Storage.of(world)
        world.server.fault("GET", "/persistentvolumes/pv-1", status=403, reason="Forbidden", message="not you")
        await storage.begin()
        assert await storage.failure() == "not you"
        assert not world.server.asked("PATCH")

    play(kube, scenario)
