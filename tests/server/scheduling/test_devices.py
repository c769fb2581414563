"""Devices of pods that are placed in our own control plane: written in claims before the bind, and given once."""

import asyncio
from typing import Any

from server.placing.world import World, pod_object
from server.scheduling.stories import scheduling, tell, until
from server.scheduling.test_scheduler import node_of
from situate.core.config.decode import decode as decode_config
from situate.core.config.defaults import with_defaults
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import SYSTEM, Object, Target
from situate.server.resources import BY_KIND
from situate.server.scheduling.scheduler import SchedulerSettings

API, DRIVER, RESOURCE = "resource.k8s.io/v1", "gpu.example.com", "example.com/gpu"
CLAIMS = BY_KIND[API, "ResourceClaim"]


async def devices(world: World, count: int, **device: Any) -> None:
    """A node with so many devices, and the class behind which they are."""
    await world.node("n1", cpu="16")
    mine = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    spec: Object = {"selectors": [mine], "extendedResourceName": RESOURCE}
    await world.create({"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": spec})
    spec = {
        "driver": DRIVER,
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "n1",
        "devices": [{"name": f"g{at}", **device} for at in range(count)],
    }
    await world.create({"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec})


async def claim(world: World, name: str) -> None:
    asked = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
    meta, spec = {"name": name, "namespace": "default"}, {"devices": {"requests": [asked]}}
    await world.create({"apiVersion": API, "kind": "ResourceClaim", "metadata": meta, "spec": spec})


async def claiming(world: World, name: str, of: str) -> None:
    await world.pod(name, cpu="100m", resourceClaims=[{"name": "gpu", "resourceClaimName": of}])


async def extended(world: World, name: str) -> None:
    body = pod_object(name, cpu="100m")
    asked = body["spec"]["containers"][0]["resources"]["requests"]
    body["spec"]["containers"][0]["resources"] = {"requests": {**asked, RESOURCE: "1"}, "limits": {RESOURCE: "1"}}
    await world.create(body)


def claims(world: World) -> dict[str, Object]:
    return {held.name: held.object(CLAIMS) for held in world.registry.cache.all(CLAIMS)}


def given(world: World) -> list[str]:
    """The devices of all claims."""
    allocated = [one.get("status", {}).get("allocation", {}) for one in claims(world).values()]
    return sorted(result["device"] for one in allocated for result in one.get("devices", {}).get("results", ()))


def test_pods_with_claims_and_with_extended_resources_are_bound() -> None:
    async def story(world: World) -> None:
        await devices(world, 3)
        async with scheduling(world):
            await claim(world, "own")
            await claim(world, "shared")
            for name, of in (("a", "own"), ("b", "shared"), ("c", "shared")):
                await claiming(world, name, of)
            await extended(world, "e")
            await until(lambda: all(node_of(world, name) == "n1" for name in "abce"))
        assert given(world) == ["g0", "g1", "g2"]
        users = [one["name"] for one in claims(world)["shared"]["status"]["reservedFor"]]
        assert sorted(users) == ["b", "c"]
        status = world.read("e")["status"]["extendedResourceClaimStatus"]
        assert claims(world)[status["resourceClaimName"]]["status"]["reservedFor"][0]["name"] == "e"

    tell(story)


def test_the_next_pod_follows_when_a_device_is_free() -> None:
    async def story(world: World) -> None:
        await devices(world, 1)
        async with scheduling(world):
            await claim(world, "first")
            await claiming(world, "a", "first")
            await until(lambda: node_of(world, "a") == "n1")
            await claim(world, "second")
            await claiming(world, "b", "second")
            await until(lambda: "cannot allocate all claims" in str(world.read("b")["status"]))

            def deallocate(one: Object, _held: StoredObject) -> Object:
                one["status"] = {}
                return one

            await world.registry.modify(Target(CLAIMS, "default", "first"), deallocate, SYSTEM)
            await until(lambda: node_of(world, "b") == "n1")
        assert given(world) == ["g0"]

    tell(story)


def test_devices_that_keep_their_pod_from_every_node_are_taken_back() -> None:
    """The claim has a device of a node that is cordoned now."""

    async def story(world: World) -> None:
        await devices(world, 1)
        await world.node("n2", cpu="16")
        spec = {
            "driver": DRIVER,
            "pool": {"name": "n2", "generation": 1, "resourceSliceCount": 1},
            "nodeName": "n2",
            "devices": [{"name": "h"}],
        }
        await world.create({"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": "t"}, "spec": spec})
        await claim(world, "c")
        result = {"request": "r", "driver": DRIVER, "pool": "n1", "device": "g0"}
        where = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}

        def allocate(one: Object, _held: StoredObject) -> Object:
            one["status"] = {"allocation": {"devices": {"results": [result]}, "nodeSelector": where}}
            return one

        await world.registry.modify(Target(CLAIMS, "default", "c"), allocate, SYSTEM)
        await world.change_node("n1", unschedulable=True)
        async with scheduling(world):
            await claiming(world, "a", "c")
            await until(lambda: node_of(world, "a") == "n2")
        assert given(world) == ["h"]

    tell(story)


def test_devices_that_are_never_ready_are_taken_back_and_tried_again() -> None:
    args = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "DynamicResourcesArgs", "bindingTimeout": "1s"}
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    profile = {"pluginConfig": [{"name": "DynamicResources", "args": args}]}
    config = with_defaults(decode_config({**head, "profiles": [profile]}))

    async def story(world: World) -> None:
        await devices(world, 1, bindingConditions=["Attached"], bindingFailureConditions=["Broken"])
        async with scheduling(world, SchedulerSettings(config, elects=False)):
            await claim(world, "c")
            await claiming(world, "a", "c")
            await until(lambda: given(world) == ["g0"])
            await until(lambda: "device binding timeout: claim=c" in str(world.read("a")["status"]))
            await until(lambda: given(world) == [])
            await until(lambda: given(world) == ["g0"])
            condition = {"type": "Attached", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
            ready = [{"driver": DRIVER, "pool": "n1", "device": "g0", "conditions": [condition]}]

            def report(one: Object, _held: StoredObject) -> Object:
                one["status"]["devices"] = ready
                return one

            await world.registry.modify(Target(CLAIMS, "default", "c"), report, SYSTEM)
            await until(lambda: node_of(world, "a") == "n1")

    tell(story)


def test_two_schedulers_give_no_device_twice() -> None:
    """Both decide on every pod; the server refuses what would give a device twice."""

    async def story(world: World) -> None:
        await devices(world, 4)
        async with scheduling(world), scheduling(world):
            for at in range(4):
                await claim(world, f"c{at}")
                await claiming(world, f"p{at}", f"c{at}")
                await extended(world, f"e{at}")
            await until(lambda: len(given(world)) == 4 and sum(bool(node_of(world, one)) for one in names) == 4)
            await asyncio.sleep(0.05)
            assert len(set(given(world))) == len(given(world))

    names = [f"{kind}{at}" for kind in "pe" for at in range(4)]
    tell(story)
