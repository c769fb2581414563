"""Drift with everything at work: a node changes, and the pods that no longer belong there run elsewhere."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from server.controllers.test_registry_controllers import DEPLOYMENT, EVENT, POD, World, template, world
from situate.core.reconcile.drift import move_drifted
from situate.core.reconcile.effects import ReconcileResult
from situate.core.reconcile.objects import ObjectLister
from situate.loop.controllers import runner
from situate.server.requests import SYSTEM, Object, Target
from situate.server.resources import BY_KIND

NODE = BY_KIND["v1", "Node"]
BUDGET = BY_KIND["policy/v1", "PodDisruptionBudget"]
QUICK_MS = 50


def story(told: Callable[[World], Awaitable[None]], monkeypatch: pytest.MonkeyPatch, *, moves: bool = True) -> None:
    monkeypatch.setattr(runner, "DRIFT_MS", QUICK_MS)

    async def run() -> None:
        async with world(moves_drifted=moves) as made:
            await made.until(lambda: len(made.all(NODE, "")) == 3)
            for node in ("node-1", "node-2"):
                await label(made, node, "ssd")
            await told(made)

    asyncio.run(run())


async def label(made: World, node: str, disk: str | None) -> None:
    patch = {"metadata": {"labels": {"disk": disk}}}
    await made.registry.patch(Target(NODE, "", node), "merge", patch, SYSTEM)


async def deploy(made: World, replicas: int, cpu: str = "100m") -> None:
    pods = template(app="web")
    pods["spec"]["nodeSelector"] = {"disk": "ssd"}
    pods["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": pods}
    await made.create(DEPLOYMENT, {"metadata": {"name": "web"}, "spec": spec})
    await made.until(lambda: len(ready(made)) == replicas)


async def protect(made: World, at_least: int, allowed: int) -> None:
    spec = {"minAvailable": at_least, "selector": {"matchLabels": {"app": "web"}}}
    await made.create(BUDGET, {"metadata": {"name": "web"}, "spec": spec})
    await made.until(lambda: (made.one(BUDGET, "web") or {}).get("status", {}).get("disruptionsAllowed") == allowed)


def ready(made: World) -> list[Object]:
    return [
        pod
        for pod in made.all(POD)
        if "deletionTimestamp" not in pod["metadata"]
        and any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", ()))
    ]


def on(made: World, node: str) -> int:
    return sum(pod["spec"].get("nodeName") == node for pod in made.all(POD))


def test_pods_whose_node_lost_its_label_run_elsewhere_and_the_budget_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    async def told(made: World) -> None:
        await deploy(made, 6)
        await protect(made, 5, 1)
        assert on(made, "node-1") > 1
        fewest = len(ready(made))
        await label(made, "node-1", None)

        def moved() -> bool:
            nonlocal fewest
            fewest = min(fewest, len(ready(made)))
            return on(made, "node-1") == 0 and len(ready(made)) == 6

        await made.until(moved)
        assert fewest >= 5
        assert on(made, "node-2") == 6
        told_why = [event["message"] for event in made.all(EVENT) if event["reason"] == "DriftEviction"]
        text = "Evicting from node-1: its labels do not have disk=ssd, which the pod's nodeSelector asks for"
        assert text in told_why

    story(told, monkeypatch)


def test_a_node_that_shrank_keeps_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    async def told(made: World) -> None:
        await deploy(made, 4, "1")
        assert (on(made, "node-1"), on(made, "node-2")) == (2, 2)
        patch = {"status": {"allocatable": {"cpu": "1"}}}
        await made.registry.patch(Target(NODE, "", "node-1", "status"), "merge", patch, SYSTEM)
        await made.until(lambda: (on(made, "node-1"), on(made, "node-2"), len(ready(made))) == (1, 3, 4))

    story(told, monkeypatch)


def test_a_budget_that_allows_nothing_keeps_them_there(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = count_looks(monkeypatch)

    async def told(made: World) -> None:
        await deploy(made, 2)
        await protect(made, 2, 0)
        before = {pod["metadata"]["uid"] for pod in made.all(POD)}
        await label(made, "node-1", None)
        after = len(looks) + 3
        await made.until(lambda: len(looks) > after)
        assert {pod["metadata"]["uid"] for pod in made.all(POD)} == before

    story(told, monkeypatch)


def test_nobody_looks_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = count_looks(monkeypatch)

    async def told(made: World) -> None:
        await label(made, "node-1", None)
        await deploy(made, 2)

    story(told, monkeypatch, moves=False)
    assert looks == []


def count_looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    looks: list[int] = []

    def look(objects: ObjectLister, now: int) -> ReconcileResult:
        looks.append(now)
        return move_drifted(objects, now)

    monkeypatch.setattr(runner, "move_drifted", look)
    return looks
