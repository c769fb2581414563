"""Devices in worlds with agents and a control plane: what the machines publish, and who claims it.

Everything is drawn from a random source of its own, so a world without devices is what it always was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from random import Random
from typing import Any, Final

from situate.agent.control_plane import ControlPlaneError
from situate.agent.node_devices import PUBLISHED, DevicePublisher, DeviceSet
from situate.server.requests import SYSTEM, Object, Target
from situate.server.resources import BY_KIND
from situate.sim.nodes.machine import Machine
from situate.sim.nodes.network import NetworkControlPlane
from situate.sim.nodes.virtual_time import Actor
from situate.sim.nodes.workload import SPACE, Users

SHARE: Final = 0.3
"""The share of worlds with devices."""
DRIVER: Final = "gpu.example.com"
CLASS: Final = "gpu"
RESOURCE: Final = "example.com/gpu"
"""The extended resource that the class serves."""
TEMPLATE: Final = "one-gpu"
SHARED: Final = "shared-gpu"
EACH: Final = 8
"""The devices of a machine: those of two are enough for everybody, with rollouts and pods that still stop."""
SETS: Final = (DeviceSet("*", DRIVER, [{"name": "gpu-{index}", "count": EACH}]),)
LOOK_S: Final = 5.0
"""How often a driver looks whether its slices are there."""
API: Final = "resource.k8s.io/v1"


class DeviceDriver:
    """Publishes the devices of a machine while it is on. They go with its Node, and are published again."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._plane = NetworkControlPlane(machine.link)
        self._publisher = DevicePublisher(self._plane, SETS)
        self._actor = Actor(f"driver {machine.name}", machine.clock)

    def begin(self) -> None:
        self._actor.begin(self._run())

    async def end(self) -> None:
        self._plane.severed = True
        await self._actor.end()

    async def _run(self) -> None:
        while True:
            if self._machine.on:
                try:
                    if await self._is_outdated():
                        await self._publisher.publish(self._machine.name)
                except ControlPlaneError:
                    pass  # the control plane is away: it looks again
            await asyncio.sleep(LOOK_S)

    async def _is_outdated(self) -> bool:
        """Whether there is a Node of this machine that does not own its slices."""
        node = await self._plane.get("Node", "", self._machine.name)
        if node is None:
            return False
        found = await self._plane.list_slices(self._machine.name)
        mine = [one for one in found if PUBLISHED in one["metadata"].get("labels", {})]
        uid = node["metadata"]["uid"]
        return not mine or any(one["metadata"]["ownerReferences"][0]["uid"] != uid for one in mine)


class DeviceWorkloads:
    """Create what claims devices: by template, together, and as an extended resource."""

    def __init__(self, users: Users, rng: Random) -> None:
        self._users = users
        self._rng = rng

    async def begin(self) -> None:
        rng, users = self._rng, self._users
        asked = [{"name": "gpu", "exactly": {"deviceClassName": CLASS, "allocationMode": "ExactCount", "count": 1}}]
        spec = {"devices": {"requests": asked}}
        selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
        await self._create("DeviceClass", CLASS, {"selectors": [selector], "extendedResourceName": RESOURCE})
        await self._create("ResourceClaimTemplate", TEMPLATE, {"spec": spec})
        await self._create("ResourceClaim", SHARED, spec)
        by_template = _claiming({"name": "gpu", "resourceClaimTemplateName": TEMPLATE})
        together = _claiming({"name": "gpu", "resourceClaimName": SHARED})
        await users.make("Deployment", "trainer", rng.randint(1, 3), most=3, more=by_template)
        if rng.random() < 0.5:
            await users.make("StatefulSet", "shard", rng.randint(1, 2), most=2, more=by_template)
        if rng.random() < 0.7:
            await users.make("Deployment", "sharer", rng.randint(1, 3), most=3, more=together)
        if rng.random() < 0.7:
            await users.make("Deployment", "extended", rng.randint(1, 2), most=2, more=_with_limit)

    async def _create(self, kind: str, name: str, spec: Object) -> None:
        resource = BY_KIND[API, kind]
        body = {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}
        target = Target(resource, SPACE if resource.namespaced else "")
        await self._users.do(lambda registry: registry.create(target, body, SYSTEM))


def _claiming(claim: Mapping[str, str]) -> Any:
    """What makes a pod claim a device."""

    def change(spec: Object) -> None:
        spec["resourceClaims"] = [dict(claim)]
        spec["containers"][0]["resources"]["claims"] = [{"name": claim["name"]}]

    return change


def _with_limit(spec: Object) -> None:
    """Have a pod ask for a device as an extended resource."""
    resources = spec["containers"][0]["resources"]
    resources["limits"] = {RESOURCE: "1"}
    resources["requests"] |= {RESOURCE: "1"}
