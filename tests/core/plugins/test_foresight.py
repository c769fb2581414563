"""Foresight: the node, and the device, where a pod leaves the least GPU over once others have come."""

from collections.abc import Sequence
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import pod
from gpu_builders import gpu_node, share, whole
from situate.core.model.annotations import GPU_DEVICES
from situate.core.model.gpu import GPU_RESOURCE
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.place.bind_annotations import bind_annotations, with_annotations
from situate.core.place.placer import Placer
from situate.core.place.profile import Profile, Weighted
from situate.core.plugins.foresight import Foresight
from situate.core.plugins.fragmentation import Fragmentation
from situate.core.plugins.gpu_share import GpuShare
from situate.core.plugins.node_resources_fit import NodeResourcesFit
from situate.core.plugins.support.gpu_mix import ExpectedPod
from situate.core.state.cluster import Cluster
from situate.core.state.devices import need_of
from situate.core.state.view import View

MIX = (
    ExpectedPod(5, 3000, milli=800),
    ExpectedPod(6, 11_000),
    ExpectedPod(4, 8000, milli=470),
    ExpectedPod(2, 4000, milli=160),
    ExpectedPod(1, 24_000, devices=2),
)


def cluster_of(nodes: Sequence[Node], *pods: Pod) -> Cluster:
    made = Cluster()
    made.load(nodes, (), pods)
    return made


def foresight(*mix: ExpectedPod, now: int = 0, packing: int = 0, scarcity: int = 0) -> Foresight:
    return Foresight(Fragmentation(mix=mix, packing=packing), now=now, scarcity=scarcity)


def scores(plugin: Foresight | Fragmentation, cluster: Cluster, asked: Pod) -> list[int]:
    view = View(cluster, feasible=np.ones(cluster.nodes.size, np.bool_))
    return [int(score) for score in plugin.score(cluster.class_of(asked), view)]


def test_cpu_that_the_last_gpu_of_a_node_will_need_is_left_alone() -> None:
    """Each expected pod still fits on either node, so the next pod loses nothing; but the second would."""
    tight, wide = gpu_node("tight", gpus=2, cpu="16"), gpu_node("wide", gpus=2, cpu="64")
    cluster = cluster_of([tight, wide])
    asked = pod("x", cpu="4", memory="1Gi")
    mix = (ExpectedPod(1, 8000),)
    assert scores(Fragmentation(mix=mix, packing=0), cluster, asked) == [100, 100]
    assert scores(foresight(*mix), cluster, asked) == [0, 100]


def test_a_share_goes_to_the_device_whose_rest_another_share_can_fill() -> None:
    """500 beside 300 leaves 200, which nobody can use; 500 on its own leaves 500, which somebody can."""
    bound = share("a", 300, devices="0", node_name="n")
    cluster = cluster_of([gpu_node("n", gpus=2)], bound)
    mix = (ExpectedPod(1, 1000, milli=500), ExpectedPod(1, 1000, milli=700))
    given = foresight(*mix).assign(cluster.class_of(share("x", 500)), View(cluster), 0)
    assert given == {GPU_DEVICES: "1"}


def test_whole_devices_are_given_as_fragmentation_gives_them() -> None:
    cluster = cluster_of([gpu_node("n", gpus=3)], share("a", 300, devices="0", node_name="n"))
    plugin = foresight(*MIX)
    asked = cluster.class_of(whole("x", 2))
    assert plugin.assign(asked, View(cluster), 0) == {GPU_DEVICES: "1,2"}
    assert plugin.assign(cluster.class_of(pod("y")), View(cluster), 0) == {}


def test_a_share_that_fits_nowhere_gets_nothing() -> None:
    cluster = cluster_of([gpu_node("n", gpus=1)], share("a", 600, devices="0", node_name="n"))
    assert foresight(*MIX).assign(cluster.class_of(share("x", 500)), View(cluster), 0) == {}


def test_the_next_pod_counts_as_much_as_is_said() -> None:
    """A pod of 8 whole devices would lose its only node; in the futures others fill that one as well."""
    eight, used = gpu_node("eight", gpus=8, cpu="96"), gpu_node("used", gpus=8, cpu="96")
    cluster = cluster_of([eight, used], whole("a", 1, devices="0", node_name="used", cpu="1"))
    mix = (ExpectedPod(50, 1000), ExpectedPod(5, 8000, devices=8))
    asked = whole("x", 1, cpu="1")
    near = scores(foresight(*mix, now=1000), cluster, asked)
    assert near == [0, 100]


def test_the_last_nodes_with_the_cpu_that_rare_pods_need_are_left_to_them() -> None:
    """Either node would fill up with small pods, but only one has 120 cpus for the large one."""
    large, other = gpu_node("large", gpus=8, cpu="128"), gpu_node("other", gpus=8, cpu="96")
    cluster = cluster_of([large, other])
    mix = (ExpectedPod(20, 8000), ExpectedPod(1, 120_000, devices=8))
    asked = whole("x", 1, requests={"cpu": "8"})
    assert scores(foresight(*mix, scarcity=100), cluster, asked) == [0, 100]


def test_a_model_that_others_insist_on_is_left_to_them() -> None:
    nodes = [gpu_node("t4", gpus=2, cpu="64", labels={"model": "T4"}), gpu_node("any", gpus=2, cpu="64")]
    mix = (ExpectedPod(1, 8000), ExpectedPod(1, 8000, nodes=(("model", ("T4",)),)))
    asked = whole("x", 1, requests={"cpu": "8"})
    assert scores(foresight(*mix, scarcity=100), cluster_of(nodes), asked) == [0, 100]


def test_a_share_leaves_the_last_whole_device_to_a_pod_that_needs_it() -> None:
    """On its own, a future would rather put 500 beside another 500 to come than beside 300."""
    bound = share("a", 300, devices="0", node_name="n")
    cluster = cluster_of([gpu_node("n", gpus=2), gpu_node("small", gpus=1, cpu="1")], bound)
    mix = (ExpectedPod(1, 1000, milli=500), ExpectedPod(1, 1000, milli=700), ExpectedPod(9, 2000))
    kind = cluster.class_of(share("x", 500))
    assert foresight(*mix[:2]).assign(kind, View(cluster), 0) == {GPU_DEVICES: "1"}
    assert foresight(*mix, scarcity=100).assign(kind, View(cluster), 0) == {GPU_DEVICES: "0"}


def test_pods_without_a_gpu_are_expected_to_take_cpu() -> None:
    """`lean` has cpu enough for this pod and one with a GPU, but not for another without a GPU as well."""
    lean, rich = gpu_node("lean", gpus=1, cpu="24"), gpu_node("rich", gpus=1, cpu="200")
    mix = (ExpectedPod(1, 9000),)
    asked = pod("x", cpu="8", memory="1Gi")
    others = (ExpectedPod(1, 8000, devices=0),)
    ignoring = Foresight(Fragmentation(mix=mix, packing=0), now=0, scarcity=0)
    expecting = Foresight(Fragmentation(mix=mix, packing=0), now=0, scarcity=0, others=others)
    cluster = cluster_of([lean, rich])
    assert scores(ignoring, cluster, asked) == [100, 100]
    assert scores(expecting, cluster, asked) == [0, 100]


def test_cpu_that_others_could_use_is_left_to_them_even_if_no_gpu_depends_on_it() -> None:
    """Either node's GPU will be used. `even` has cpu for two more pods, `odd` for one, and 3 that nobody could use."""
    even, odd = gpu_node("even", gpus=1, cpu="17"), gpu_node("odd", gpus=1, cpu="12")
    mix, others = (ExpectedPod(1, 1000),), (ExpectedPod(1, 8000, devices=0),)
    cluster, asked = cluster_of([even, odd]), pod("x", cpu="3", memory="1Gi")

    def plugin(scarcity: int) -> Foresight:
        return Foresight(Fragmentation(mix=mix, packing=0), now=0, scarcity=scarcity, others=others)

    assert scores(plugin(0), cluster, asked) == [100, 100]
    assert scores(plugin(100), cluster, asked) == [0, 100]


def test_without_a_mix_the_bound_pods_are_expected() -> None:
    nodes = [gpu_node("tight", gpus=2, cpu="16"), gpu_node("wide", gpus=2, cpu="64"), gpu_node("third")]
    bound = [whole(f"b{at}", 1, devices=str(at), node_name="third", requests={"cpu": "8"}) for at in range(2)]
    cluster = cluster_of(nodes, *bound)
    plugin = Foresight(Fragmentation(packing=0), now=0)
    assert scores(plugin, cluster, pod("x", cpu="4", memory="1Gi"))[:2] == [0, 100]


def test_where_nobody_is_expected_all_nodes_are_equal() -> None:
    cluster = cluster_of([gpu_node("a"), gpu_node("b", gpus=0)])
    assert scores(Foresight(Fragmentation(packing=0)), cluster, pod("x")) == [100, 100]


# ── kept answers ────────────────────────────────────────────────────────────────────────────────────────────────────

ASKS = (
    lambda name: share(name, 800, cpu="3"),
    lambda name: whole(name, 1, requests={"cpu": "11"}),
    lambda name: share(name, 470, cpu="8"),
    lambda name: share(name, 160, cpu="4"),
    lambda name: whole(name, 2, requests={"cpu": "24"}),
    lambda name: pod(name, cpu="12"),
)


def placed(seed: int, *, cache: bool) -> list[tuple[int, str]]:
    """Where pods went, one after another, and which device each got; some leave again."""
    dice = Random(seed)
    cluster = Cluster()
    for at in range(5):
        cluster.add_node(gpu_node(f"n{at}", gpus=dice.choice((1, 2, 4)), cpu=str(dice.choice((16, 32, 64)))))
    plugin = foresight(*MIX, now=30, packing=20, scarcity=100)
    profile = Profile("p", (NodeResourcesFit(), GpuShare()), (Weighted(plugin, 1),), assigners=(GpuShare(), plugin))
    placer = Placer(cluster, profile, cache=cache)
    went = []
    for number in range(25):
        asked = dice.choice(ASKS)(f"p{number}")
        kind = cluster.class_of(asked)
        row = placer.choose(kind)
        notes = bind_annotations(profile, kind, View(cluster), row) if row >= 0 else ()
        if row >= 0:
            free = View(cluster).devices(GPU_RESOURCE).free[row]
            devices = [int(one) for one in dict(notes).get(GPU_DEVICES, "").split(",") if one]
            need = need_of(kind, GPU_RESOURCE)
            assert len(devices) == need.devices
            assert all(free[device] >= need.milli for device in devices)
            cluster.put(with_annotations(asked, notes), kind, row)
        went.append((row, dict(notes).get(GPU_DEVICES, "")))
    return went


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_answers_that_are_kept_are_those_that_are_worked_out_anew(seed: int) -> None:
    assert placed(seed, cache=True) == placed(seed, cache=False)
