"""The guarded bind looks at single GPUs, too: what a pod was given of one is nobody else's."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_builders import share, whole
from server.placing.world import World, tell
from situate.core.model.annotations import GPU_DEVICES, GPU_MILLI
from situate.core.model.gpu import GPU_RESOURCE
from situate.core.model.ledger import Ledger, LedgerPod, gpus_of, taken_gpus
from situate.core.model.pod import Pod
from situate.server.errors import StatusError


async def bind(world: World, name: str, milli: str, devices: str) -> str:
    """Create a pod with a share and bind it to a device; why not, or nothing."""
    await world.pod(name, metadata={"annotations": {GPU_MILLI: milli}})
    try:
        await world.binder.bind("default", name, "n1", annotations={GPU_DEVICES: devices})
    except StatusError as error:
        return f"{error.code} {[cause.reason for cause in error.causes]} {error.message}"
    return ""


def test_a_device_is_not_given_beyond_what_it_has_by_two_who_do_not_know_of_each_other() -> None:
    async def story(world: World) -> None:
        await world.node("n1", allocatable={GPU_RESOURCE: "2"})
        assert await bind(world, "a", "600", "0") == ""
        said = await bind(world, "b", "500", "0")
        assert said.startswith("409 ['FullNode']")
        assert "situate.dev/gpu-milli of device 0: asked 500, free 400, allocatable 1000" in said
        assert await bind(world, "c", "400", "0") == ""
        assert await bind(world, "d", "500", "1") == ""
        assert "nodeName" not in world.read("b")["spec"]
        ledger = world.ledger()
        assert ledger is not None
        assert [pod.gpus for pod in ledger.pods] == [("0/600",), ("0/400",), ("1/500",)]
        await world.delete_pod("a")
        assert await bind(world, "e", "600", "0") == "", "who leaves gives back what it had"

    tell(story)


@pytest.mark.parametrize(
    "pod, expected",
    [
        pytest.param(share("a", 300, devices="3"), ("3/300",), id="a share"),
        pytest.param(whole("a", 2, devices="0,1"), ("0/1000", "1/1000"), id="whole ones"),
        pytest.param(share("a", 300), (), id="who does not say which"),
        pytest.param(share("a", 300, devices="all"), (), id="what cannot be read"),
        pytest.param(share("a", 0, devices="0"), (), id="a share that cannot be"),
    ],
)
def test_what_a_pod_has_of_single_gpus(pod: Pod, expected: tuple[str, ...]) -> None:
    assert gpus_of(pod) == expected


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 1000)), max_size=8), st.integers(0, 2), st.integers(1, 1000)
)
def test_there_is_room_on_a_device_if_the_sum_says_so(held: list[tuple[int, int]], device: int, milli: int) -> None:
    pods = tuple(
        LedgerPod("default", f"p{at}", f"u{at}", 1, (), (f"{on}/{part}",)) for at, (on, part) in enumerate(held)
    )
    taken = sum(part for on, part in held if on == device)
    assert bool(taken_gpus(Ledger(pods), (f"{device}/{milli}",))) == (taken + milli > 1000)
