"""pods/ephemeralcontainers: what may be added to a pod, and who says that nobody runs it."""

import asyncio
from typing import Any

import pytest

from server.registry.stories import World, no, pod, tell
from situate.server.admission.ephemeral_containers import NODE, NOT_RUN, POD, EphemeralContainers
from situate.server.registry.cache import Cache
from situate.server.registry.warning import collecting
from situate.server.requests import SYSTEM, Object, Target
from situate.store.memory import MemoryStore

SUBRESOURCE = "ephemeralcontainers"


def debugger(name: str = "d", **more: Any) -> Object:
    return {"name": name, "image": "i", **more}


def with_debuggers(held: Object, *debuggers: Object, **spec: Any) -> Object:
    return {**held, "spec": {**held["spec"], "ephemeralContainers": list(debuggers), **spec}}


def test_ephemeral_containers_come_and_nothing_else_changes() -> None:
    async def story(world: World) -> None:
        held = await world.create(pod("a"))
        new = await world.update(with_debuggers(held, debugger(), activeDeadlineSeconds=5), SUBRESOURCE)
        assert [one["name"] for one in new["spec"]["ephemeralContainers"]] == ["d"]
        assert "activeDeadlineSeconds" not in new["spec"]
        assert new["metadata"]["generation"] == held["metadata"]["generation"] + 1
        both = await world.update(with_debuggers(new, *new["spec"]["ephemeralContainers"], debugger("e")), SUBRESOURCE)
        assert [one["name"] for one in both["spec"]["ephemeralContainers"]] == ["d", "e"]

    tell(story)


@pytest.mark.parametrize(
    "debuggers, why",
    [
        pytest.param([], 'existing ephemeral containers "d" may not be removed', id="is gone"),
        pytest.param([debugger(image="j")], 'existing ephemeral containers "d" may not be changed', id="has changed"),
        pytest.param([debugger("c")], 'Duplicate value: "c"', id="has a container's name"),
        pytest.param(
            [debugger(ports=[{"containerPort": 1}])], "cannot be set for an Ephemeral Container", id="has ports"
        ),
    ],
)
def test_ephemeral_containers_are_refused_when_one(debuggers: list[Object], why: str) -> None:
    async def story(world: World) -> None:
        held = await world.update(with_debuggers(await world.create(pod("a")), debugger()), SUBRESOURCE)
        code, _, message = await no(world.update(with_debuggers(held, *debuggers), SUBRESOURCE))
        assert (code, why in message) == (422, True)

    tell(story)


def test_the_pod_itself_does_not_take_them() -> None:
    async def story(world: World) -> None:
        held = await world.create(pod("a"))
        assert (await no(world.update(with_debuggers(held, debugger()))))[0] == 422

    tell(story)


@pytest.mark.parametrize(
    "runtime, warned", [("hollow://1", True), ("process://1", True), ("containerd://2", False), ("", False)]
)
def test_only_a_kubelet_runs_them_and_others_say_so(
    runtime: str, warned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Held:
        def object(self, _resource: object) -> Object:
            return {"status": {"nodeInfo": {"containerRuntimeVersion": runtime}}}

    cache = Cache(MemoryStore())
    monkeypatch.setattr(
        cache, "get", lambda resource, _space, name: Held() if (resource, name) == (NODE, "n") else None
    )
    plugin = EphemeralContainers(cache)
    bound = {"spec": {"nodeName": "n"}}
    with collecting() as said:
        asyncio.run(plugin.admit("update", Target(POD, "default", "a", SUBRESOURCE), bound, bound, SYSTEM))
        asyncio.run(plugin.admit("update", Target(POD, "default", "a"), bound, bound, SYSTEM))
    assert said == ([NOT_RUN.format("n")] if warned else [])
