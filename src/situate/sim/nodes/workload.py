"""What users create and change: workloads of a few pods each, all of which fit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from situate.core.reconcile.nodes.eviction import REBIND
from situate.core.reconcile.nodes.taints import NOT_READY, OUT_OF_SERVICE, UNREACHABLE
from situate.server.errors import StatusError
from situate.server.registry.registry import Registry
from situate.server.requests import SYSTEM, DeleteOptions, Object, Target
from situate.server.resources import BY_KIND, Resource
from situate.sim.nodes.control_plane import SimulatedControlPlane
from situate.sim.nodes.run_log import RunLog

SPACE: Final = "default"
RESOURCES: Final = {
    "Deployment": BY_KIND["apps/v1", "Deployment"],
    "StatefulSet": BY_KIND["apps/v1", "StatefulSet"],
    "Job": BY_KIND["batch/v1", "Job"],
    "Pod": BY_KIND["v1", "Pod"],
}
PODS: Final = RESOURCES["Pod"]
NODES: Final = BY_KIND["v1", "Node"]
RETRY_S: Final = 1.0
NOT_FOUND, CONFLICT = 404, 409
NEVER: Final = "-"


@dataclass(slots=True)
class DesiredWorkload:
    kind: str
    name: str
    replicas: int
    moves: bool = True
    """Its pods run elsewhere when their node is lost."""
    most: int = 6
    """Users scale it to so many at most."""


class Users:
    """They retry until a request succeeds, because the control plane may be away."""

    def __init__(
        self, control_plane: SimulatedControlPlane, rng: Random, log: RunLog, patience_s: tuple[int, ...]
    ) -> None:
        self.workloads: dict[str, DesiredWorkload] = {}
        self._control_plane = control_plane
        self._rng = rng
        self._log = log
        self._patience_s = patience_s
        self._rolled = 0
        self._patching: dict[str, asyncio.Lock] = {}

    async def do(self, what: Callable[[Registry], Awaitable[object]]) -> None:
        """Run a request as the control plane, with its clock and pauses."""
        while True:
            process = self._control_plane.reached()
            if process is not None:
                task = process.actor.begin(_quietly(what, process.registry), name="people")
                await asyncio.wait([task])
                if not task.cancelled() and task.exception() is None and task.result():
                    return
            await asyncio.sleep(RETRY_S)

    # -- workloads -----------------------------------------------------------------------------------------------------

    async def begin(self) -> None:
        rng = self._rng
        for number in range(rng.randint(1, 2)):
            await self.make("Deployment", f"web-{number}", rng.randint(2, 6))
        for number in range(rng.randint(1, 2)):
            await self.make("StatefulSet", f"db-{number}", rng.randint(1, 4))
        if rng.random() < 0.5:
            await self.make("Job", "job", rng.randint(1, 4))
        for number in range(rng.randint(0, 2)):
            await self.make("Pod", f"lone-{number}", 1, moves=False)
        for number in range(rng.randint(0, 2)):
            await self.make("Pod", f"moving-{number}", 1)

    async def make(
        self,
        kind: str,
        name: str,
        replicas: int,
        *,
        moves: bool = True,
        most: int = 6,
        more: Callable[[Object], None] | None = None,
    ) -> None:
        """`more` adds to the spec of its pods."""
        self._log.record(f"users create {kind} {name} with {replicas}")
        body = self._body(kind, name, replicas)
        if more is not None:
            more(body["spec"] if kind == "Pod" else body["spec"]["template"]["spec"])
        resource = RESOURCES[kind]
        if kind == "Pod" and moves:
            body["metadata"]["annotations"] = {REBIND: "true"}
        self.workloads[name] = DesiredWorkload(kind, name, replicas, moves, most)
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
            spec |= {"serviceName": name, "podManagementPolicy": self._rng.choice(["Parallel", "OrderedReady"])}
        return {**made, "spec": spec}

    def _template(self, name: str, *, ends: bool) -> Object:
        rng = self._rng
        lasts = f"{rng.uniform(1, 40):.1f}" if ends else NEVER
        takes = f"{rng.choice([0.0, 0.5, 2.0, 20.0]):.1f}"
        spec: Object = {
            "containers": [
                {
                    "name": "main",
                    "image": "none",
                    "command": ["hollow", lasts, "0", takes],
                    "resources": {"requests": {"cpu": f"{rng.randint(1, 4) * 100}m"}},
                }
            ],
            "terminationGracePeriodSeconds": rng.choice([1, 2, 5, 10]),
            "tolerations": self._tolerations(),
        }
        if ends:
            spec["restartPolicy"] = "OnFailure"
        return {"metadata": {"labels": {"app": name}}, "spec": spec}

    def _tolerations(self) -> list[Object]:
        seconds = self._rng.choice(self._patience_s)
        return [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
            for key in (NOT_READY, UNREACHABLE)
        ]

    # -- changes -------------------------------------------------------------------------------------------------------

    async def change_something(self) -> None:
        """Scale, restart, or delete a pod."""
        one = self._rng.choice([each for each in self.workloads.values() if each.kind in ("Deployment", "StatefulSet")])
        match self._rng.choice(["scale", "scale", "roll", "delete"]):
            case "scale":
                one.replicas = self._rng.randint(1, one.most)
                self._log.record(f"users scale {one.name} to {one.replicas}")
                # The value at the time of the request: other changes may have come while this one waited.
                await self._patch(RESOURCES[one.kind], one.name, lambda: {"spec": {"replicas": one.replicas}})
            case "roll":
                self._rolled += 1
                self._log.record(f"users restart {one.name}")
                note = {"metadata": {"annotations": {"rolled": str(self._rolled)}}}
                await self._patch(RESOURCES[one.kind], one.name, lambda: {"spec": {"template": note}})
            case _:
                await self._delete_one(one)

    async def _delete_one(self, one: DesiredWorkload) -> None:
        process = self._control_plane.reached()
        if process is None:
            return
        names = [held.name for held in process.registry.cache.all(PODS, SPACE) if held.labels.get("app") == one.name]
        if names:
            name = self._rng.choice(sorted(names))
            self._log.record(f"users delete pod {name}")
            await self.do(lambda registry: registry.delete(Target(PODS, SPACE, name), SYSTEM, DeleteOptions()))

    async def _patch(self, resource: Resource, name: str, patch: Callable[[], Object]) -> None:
        """One request for an object at a time: through two servers, the older of two could be the last."""
        async with self._patching.setdefault(name, asyncio.Lock()):
            await self.do(lambda registry: registry.patch(Target(resource, SPACE, name), "merge", patch(), SYSTEM))

    # -- nodes ---------------------------------------------------------------------------------------------------------

    async def delete_node(self, name: str) -> None:
        self._log.record(f"users delete node {name}")
        await self.do(lambda registry: registry.delete(Target(NODES, "", name), SYSTEM, DeleteOptions()))

    async def out_of_service(self, name: str, *, out: bool) -> None:
        self._log.record(f"users mark {name} as {'out of service' if out else 'in service'}")

        def change(found: Object, _held: Any) -> Object:
            taints = [one for one in found["spec"].get("taints", ()) if one["key"] != OUT_OF_SERVICE]
            if out:
                taints.append({"key": OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"})
            spec = {key: value for key, value in found["spec"].items() if key != "taints"}
            return {**found, "spec": {**spec, "taints": taints} if taints else spec}

        await self.do(lambda registry: registry.modify(Target(NODES, "", name), change, SYSTEM))


async def _quietly(what: Callable[[Registry], Awaitable[object]], registry: Registry) -> bool:
    """Whether it is done or unnecessary."""
    try:
        await what(registry)
    except StatusError as error:
        return error.code in (NOT_FOUND, CONFLICT)
    return True
