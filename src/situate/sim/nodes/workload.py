"""What people ask for in a world, and what they change of it: workloads of a few pods each, all of which fit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from situate.core.reconcile.nodes.taints import NOT_READY, OUT_OF_SERVICE, UNREACHABLE
from situate.server.errors import StatusError
from situate.server.registry.registry import Registry
from situate.server.requests import SYSTEM, DeleteOptions, Object, Target
from situate.server.resources import BY_KIND, Resource
from situate.sim.nodes.plant import Plant
from situate.sim.nodes.story import Story

__all__ = ["JOBS", "People", "Wanted"]

SPACE: Final = "default"
RESOURCES: Final = {
    "Deployment": BY_KIND["apps/v1", "Deployment"],
    "StatefulSet": BY_KIND["apps/v1", "StatefulSet"],
    "Job": BY_KIND["batch/v1", "Job"],
    "Pod": BY_KIND["v1", "Pod"],
}
JOBS: Final = RESOURCES["Job"]
PODS: Final = RESOURCES["Pod"]
NODES: Final = BY_KIND["v1", "Node"]
RETRY_S: Final = 1.0
NOT_FOUND, CONFLICT = 404, 409
NEVER: Final = "-"


@dataclass(slots=True)
class Wanted:
    """So many pods of a workload."""

    kind: str
    name: str
    replicas: int


class People:
    """They ask until they are heard: the control plane may be away."""

    def __init__(self, plant: Plant, dice: Random, story: Story, patience_s: tuple[int, ...]) -> None:
        self.wanted: dict[str, Wanted] = {}
        self._plant = plant
        self._dice = dice
        self._story = story
        self._patience_s = patience_s
        self._rolled = 0

    async def do(self, what: Callable[[Registry], Awaitable[object]]) -> None:
        """As the control plane itself, so by its clock and at its pace."""
        while True:
            process = self._plant.process
            if process is not None and process.ready:
                task = process.owner.begin(_quietly(what, process.registry), name="people")
                await asyncio.wait([task])
                if not task.cancelled() and task.exception() is None and task.result():
                    return
            await asyncio.sleep(RETRY_S)

    # -- workloads -----------------------------------------------------------------------------------------------------

    async def begin(self) -> None:
        dice = self._dice
        for number in range(dice.randint(1, 2)):
            await self._make("Deployment", f"web-{number}", dice.randint(2, 6))
        for number in range(dice.randint(1, 2)):
            await self._make("StatefulSet", f"db-{number}", dice.randint(1, 4))
        if dice.random() < 0.5:
            await self._make("Job", "job", dice.randint(1, 4))
        for number in range(dice.randint(0, 2)):
            await self._make("Pod", f"lone-{number}", 1)

    async def _make(self, kind: str, name: str, replicas: int) -> None:
        self._story.say(f"people want {kind} {name} with {replicas}")
        body = self._body(kind, name, replicas)
        resource = RESOURCES[kind]
        self.wanted[name] = Wanted(kind, name, replicas)
        await self.do(lambda registry: registry.create(Target(resource, SPACE), body, SYSTEM))

    def _body(self, kind: str, name: str, replicas: int) -> Object:
        made: Object = {"apiVersion": RESOURCES[kind].api_version, "kind": kind, "metadata": {"name": name}}
        template = self._template(name, ends=kind == "Job")
        if kind == "Pod":
            made["metadata"]["labels"] = template["metadata"]["labels"]
            return {**made, "spec": template["spec"]}
        if kind == "Job":
            spec = {"template": template, "completions": replicas, "parallelism": replicas, "backoffLimit": 100}
            return {**made, "spec": spec}
        spec = {"template": template, "replicas": replicas, "selector": {"matchLabels": {"app": name}}}
        if kind == "StatefulSet":
            spec |= {"serviceName": name, "podManagementPolicy": self._dice.choice(["Parallel", "OrderedReady"])}
        return {**made, "spec": spec}

    def _template(self, name: str, *, ends: bool) -> Object:
        dice = self._dice
        lasts = f"{dice.uniform(1, 40):.1f}" if ends else NEVER
        takes = f"{dice.choice([0.0, 0.5, 2.0, 20.0]):.1f}"
        spec: Object = {
            "containers": [
                {
                    "name": "main",
                    "image": "none",
                    "command": ["hollow", lasts, "0", takes],
                    "resources": {"requests": {"cpu": f"{dice.randint(1, 4) * 100}m"}},
                }
            ],
            "terminationGracePeriodSeconds": dice.choice([1, 2, 5, 10]),
            "tolerations": self._tolerations(),
        }
        if ends:
            spec["restartPolicy"] = "OnFailure"
        return {"metadata": {"labels": {"app": name}}, "spec": spec}

    def _tolerations(self) -> list[Object]:
        seconds = self._dice.choice(self._patience_s)
        return [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
            for key in (NOT_READY, UNREACHABLE)
        ]

    # -- changes -------------------------------------------------------------------------------------------------------

    async def change_something(self) -> None:
        """Scale, roll, or delete a pod."""
        one = self._dice.choice([each for each in self.wanted.values() if each.kind in ("Deployment", "StatefulSet")])
        match self._dice.choice(["scale", "scale", "roll", "delete"]):
            case "scale":
                one.replicas = self._dice.randint(1, 6)
                self._story.say(f"people scale {one.name} to {one.replicas}")
                # As wanted when it is heard: of two who wait to be heard, the later may be heard first.
                await self._patch(RESOURCES[one.kind], one.name, lambda: {"spec": {"replicas": one.replicas}})
            case "roll":
                self._rolled += 1
                self._story.say(f"people roll {one.name}")
                note = {"metadata": {"annotations": {"rolled": str(self._rolled)}}}
                await self._patch(RESOURCES[one.kind], one.name, lambda: {"spec": {"template": note}})
            case _:
                await self._delete_one(one)

    async def _delete_one(self, one: Wanted) -> None:
        process = self._plant.process
        if process is None:
            return
        names = [held.name for held in process.registry.cache.all(PODS, SPACE) if held.labels.get("app") == one.name]
        if names:
            name = self._dice.choice(sorted(names))
            self._story.say(f"people delete pod {name}")
            await self.do(lambda registry: registry.delete(Target(PODS, SPACE, name), SYSTEM, DeleteOptions()))

    async def _patch(self, resource: Resource, name: str, patch: Callable[[], Object]) -> None:
        await self.do(lambda registry: registry.patch(Target(resource, SPACE, name), "merge", patch(), SYSTEM))

    # -- nodes ---------------------------------------------------------------------------------------------------------

    async def delete_node(self, name: str) -> None:
        self._story.say(f"people delete node {name}")
        await self.do(lambda registry: registry.delete(Target(NODES, "", name), SYSTEM, DeleteOptions()))

    async def out_of_service(self, name: str, *, out: bool) -> None:
        self._story.say(f"people say that {name} is {'out of service' if out else 'in service again'}")

        def change(found: Object, _held: Any) -> Object:
            taints = [one for one in found["spec"].get("taints", ()) if one["key"] != OUT_OF_SERVICE]
            if out:
                taints.append({"key": OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"})
            spec = {key: value for key, value in found["spec"].items() if key != "taints"}
            return {**found, "spec": {**spec, "taints": taints} if taints else spec}

        await self.do(lambda registry: registry.modify(Target(NODES, "", name), change, SYSTEM))


async def _quietly(what: Callable[[Registry], Awaitable[object]], registry: Registry) -> bool:
    """Whether it is done, or need not be."""
    try:
        await what(registry)
    except StatusError as error:
        return error.code in (NOT_FOUND, CONFLICT)
    return True
