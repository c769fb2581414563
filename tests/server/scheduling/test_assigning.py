"""What plugins of the scheduler in the server's process write on a pod is written in the transaction that binds it."""

from gpu_builders import gpu_config
from server.placing.world import World
from server.scheduling.stories import scheduling, tell, until
from situate.core.model.annotations import GPU_DEVICES, GPU_MILLI
from situate.core.model.gpu import GPU_RESOURCE
from situate.server.scheduling.scheduler import SchedulerSettings
from situate.wire.config import load_config

SETTINGS = SchedulerSettings(config=load_config(gpu_config(), "test.yaml"), elects=False)


def given(world: World, name: str) -> str:
    """The devices that stand on a pod; empty until it is bound."""
    read = world.read(name)
    bound = bool(read["spec"].get("nodeName"))
    devices = str(read["metadata"].get("annotations", {}).get(GPU_DEVICES, ""))
    assert bound == bool(devices), "never one without the other"
    return devices


def test_the_device_lands_on_the_pod_with_its_bind() -> None:
    async def story(world: World) -> None:
        await world.node("n1", allocatable={GPU_RESOURCE: "2"})
        async with scheduling(world, SETTINGS):
            for name, milli in (("a", "600"), ("b", "600"), ("c", "400")):
                await world.pod(name, metadata={"annotations": {GPU_MILLI: milli, "kept": "yes"}})
                await until(lambda name=name: bool(given(world, name)))  # type: ignore[misc]
        assert [given(world, name) for name in ("a", "b", "c")] == ["0", "1", "0"]
        assert world.read("a")["metadata"]["annotations"]["kept"] == "yes"

    tell(story)


def test_a_scheduler_that_begins_anew_knows_which_devices_are_taken() -> None:
    async def story(world: World) -> None:
        await world.node("n1", allocatable={GPU_RESOURCE: "2"})
        async with scheduling(world, SETTINGS):
            await world.pod("a", metadata={"annotations": {GPU_MILLI: "300"}})
            await until(lambda: bool(given(world, "a")))
        async with scheduling(world, SETTINGS):
            await world.pod("b", metadata={"annotations": {GPU_MILLI: "800"}})
            await until(lambda: bool(given(world, "b")))
        assert [given(world, name) for name in ("a", "b")] == ["0", "1"]

    tell(story)
