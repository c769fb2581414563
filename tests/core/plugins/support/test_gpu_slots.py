"""How many of the expected pods still fit, and what the room for them is worth."""

from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_builders import gpu_node, share, whole
from situate.core.model.gpu import GPU_RESOURCE, GpuNeed
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.plugins.support.gpu_mix import ExpectedPod, Rows, configured_mix, rows_of
from situate.core.plugins.support.gpu_slots import UNIT, Slots, prices, room, room_after, slots_of
from situate.core.state.classes import CPU, MEMORY
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

ONE, EIGHT = ExpectedPod(9, 8000), ExpectedPod(1, 64_000, devices=8)
HUGE = ExpectedPod(1, 120_000, devices=8)
T4 = ExpectedPod(5, 8000, nodes=(("model", ("T4",)),))


def asked(nodes: Sequence[Node], *mix: ExpectedPod, pods: Sequence[Pod] = ()) -> tuple[Slots, Rows]:
    cluster = Cluster()
    cluster.load(nodes, (), pods)
    view = View(cluster)
    devices = view.devices(GPU_RESOURCE)
    found = slots_of(configured_mix(mix, 1.0, view), view.allocatable(CPU), view.allocatable(MEMORY), devices.count)
    assert found is not None
    return found, rows_of(view, devices, np.arange(view.size))


def test_pods_that_fit_on_the_same_empty_nodes_share_their_room() -> None:
    nodes = [gpu_node("a", gpus=8, cpu="96"), gpu_node("b", gpus=8, cpu="128"), gpu_node("c", gpus=2, cpu="16")]
    slots, at = asked(nodes, ONE, ExpectedPod(3, 4000, milli=300), EIGHT, HUGE)
    by_node = (room(slots, at) > 0).tolist()
    assert sorted(zip(*by_node, strict=True)) == [(False, True, False), (True, True, False), (True, True, True)]


def test_room_is_what_pods_could_use_for_lack_of_devices_cpu_or_labels() -> None:
    nodes = [
        gpu_node("eight", gpus=8, cpu="96"),
        gpu_node("little-cpu", gpus=8, cpu="20"),
        gpu_node("t4", gpus=2, cpu="96", labels={"model": "T4"}),
    ]
    slots, at = asked(nodes, T4, pods=[whole("p", 1, devices="0", node_name="t4")])
    assert (room(slots, at) // UNIT).tolist() == [[0], [0], [1000]]
    slots, at = asked(nodes, ONE)
    assert (room(slots, at) // UNIT).tolist() == [[8000], [2000], [2000]]
    slots, at = asked(nodes, ExpectedPod(1, 1000, milli=300), pods=[share("p", 500, devices="0", node_name="t4")])
    assert (room(slots, at) // UNIT).tolist() == [[8 * 900], [8 * 900 - 4 * 300], [300 + 900]]


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 1000), st.integers(0, 40), st.integers(0, 3))
def test_room_after_is_the_room_that_is_left_once_the_pod_is_there(milli: int, cpu: int, device: int) -> None:
    mix = (ONE, ExpectedPod(2, 3000, milli=470), ExpectedPod(1, 9000, devices=2))
    nodes = [gpu_node("n", gpus=4, cpu="48")]
    slots, before = asked(nodes, *mix)
    foretold = room_after(slots, before, GpuNeed(1, milli), cpu * 1000, 0, np.array([device]))
    _, after = asked(nodes, *mix, pods=[share("p", milli, devices=str(device), node_name="n", cpu=str(cpu))])
    assert foretold.tolist() == room(slots, after).tolist()
    foretold = room_after(slots, before, GpuNeed(2, 1000), cpu * 1000, 0)
    _, after = asked(nodes, *mix, pods=[whole("p", 2, devices="0,1", node_name="n", requests={"cpu": str(cpu)})])
    assert foretold.tolist() == room(slots, after).tolist()


def test_room_is_dear_only_where_most_of_it_is_needed() -> None:
    nodes = [gpu_node(f"n{at}", gpus=8, cpu="96") for at in range(10)] + [gpu_node("small", gpus=1)]
    slots, at = asked(nodes, ONE, EIGHT)
    rooms = room(slots, at).sum(axis=0)
    eight = slots.each.index(8000)
    dear = [int(prices(slots, rooms // (10 if full else 1), 81_000)[eight]) for full in (False, True)]
    assert 0 < dear[0] < UNIT // 2
    assert dear[1] == UNIT
    assert prices(slots, rooms, 0).tolist() == [0, 0]
    assert prices(slots, rooms * 0, 81_000).tolist() == [0, 0]
