"""The control plane as agents have it: in the server's process."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from server.placing.world import World, tell
from situate.agent.direct import RegistryPlane
from situate.agent.plane import StaleError

Story = Callable[[World, RegistryPlane], Awaitable[None]]


def told(story: Story) -> None:
    async def on(world: World) -> None:
        await world.node()
        await world.pod(nodeName="n1")
        await story(world, RegistryPlane(world.registry))

    tell(on)


RUNNING: dict[str, Any] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def test_a_report_about_this_binding_is_taken() -> None:
    async def story(world: World, plane: RegistryPlane) -> None:
        await plane.report(world.read("p"), RUNNING, 1)
        assert world.read("p")["status"]["phase"] == "Running"

    told(story)


def test_a_report_about_another_binding_is_stale() -> None:
    async def story(world: World, plane: RegistryPlane) -> None:
        with pytest.raises(StaleError):
            await plane.report(world.read("p"), RUNNING, 2)
        assert world.read("p")["status"].get("phase") != "Running"

    told(story)


@pytest.mark.parametrize("part, name, value", [("metadata", "uid", "another"), ("spec", "nodeName", "another")])
def test_a_report_about_another_pod_is_stale(part: str, name: str, value: str) -> None:
    async def story(world: World, plane: RegistryPlane) -> None:
        pod = world.read("p")
        with pytest.raises(StaleError):
            await plane.report({**pod, part: {**pod[part], name: value}}, RUNNING)

    told(story)


def test_the_snapshot_says_which_binding_it_is() -> None:
    async def story(world: World, plane: RegistryPlane) -> None:
        snapshot = await plane.read("NodeSnapshot", "", "n1")
        assert snapshot is not None
        assert [(one["name"], one["bindingVersion"]) for one in snapshot["spec"]["pods"]] == [("p", 1)]
        assert await plane.read("ConfigMap", "default", "none") is None

    told(story)


def test_the_same_event_again_counts() -> None:
    async def story(world: World, plane: RegistryPlane) -> None:
        from situate.agent.telling import event_body
        from situate.server.asking import Target
        from situate.server.resources import BY_KIND

        event = event_body(world.read("p"), "n1", "Warning", "Unhealthy", "no answer", "c", world.now_ns)
        for _ in range(3):
            await plane.tell(event)
        (held,) = (await world.registry.list(Target(BY_KIND["v1", "Event"], "default"))).items
        found = held.object(BY_KIND["v1", "Event"])
        assert (found["count"], found["involvedObject"]["fieldPath"]) == (3, "spec.containers{c}")

    told(story)


def test_pods_are_told_and_then_what_changes() -> None:
    async def story(world: World, plane: RegistryPlane) -> None:
        reads = plane.pods("n1")
        first, end = await anext(reads), await anext(reads)
        assert (first.name, first.body is not None, end.listed) == ("p", True, True)
        await world.pod("q", nodeName="n1")
        await plane.remove(world.read("p"))
        later = [await anext(reads), await anext(reads)]
        assert [(one.name, one.body is None) for one in later] == [("q", False), ("p", True)]
        await reads.aclose()  # type: ignore[attr-defined]

    told(story)


def test_a_pod_that_is_gone_cannot_be_removed_again() -> None:
    async def story(world: World, plane: RegistryPlane) -> None:
        pod = world.read("p")
        await plane.remove(pod)
        with pytest.raises(StaleError):
            await plane.remove(pod)
        await asyncio.sleep(0)

    told(story)
