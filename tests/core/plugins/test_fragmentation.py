"""Fragmentation: what a pod would leave of no use for the pods that are expected, by node and by device."""

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import pod
from gpu_builders import gpu_node, share, whole
from situate.core.model.annotations import GPU_DEVICES, GPU_MILLI
from situate.core.model.gpu import GPU_RESOURCE
from situate.core.model.pod import Pod
from situate.core.place.bind_annotations import bind_annotations, with_annotations
from situate.core.place.placer import Placer
from situate.core.place.profile import Profile, Weighted
from situate.core.place.scoring import totals
from situate.core.plugins.fragmentation import Fragmentation
from situate.core.plugins.gpu_share import GpuShare, fitting
from situate.core.plugins.node_resources_fit import NodeResourcesFit
from situate.core.plugins.support.gpu_mix import SCALE, ExpectedPod
from situate.core.state.classes import CPU, MEMORY, PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.devices import need_of
from situate.core.state.view import View


def cluster_of(nodes: Sequence[Any], *pods: Pod) -> Cluster:
    made = Cluster()
    made.load(nodes, (), pods)
    return made


def scores(plugin: Fragmentation, cluster: Cluster, asked: Pod) -> list[int]:
    view = View(cluster, feasible=np.ones(cluster.nodes.size, np.bool_))
    return [int(score) for score in plugin.score(cluster.class_of(asked), view)]


def exactly(*mix: ExpectedPod, **fields: Any) -> Fragmentation:
    """By the loss alone."""
    return Fragmentation(mix=mix, packing=0, **fields)


# ── the formula, by hand ────────────────────────────────────────────────────────────────────────────────────────────


def by_hand(mix: Sequence[ExpectedPod], free: Sequence[int], cpu: int, memory: int, labels: dict[str, str]) -> float:
    """How much of what is free the mix can use, weighed: straight from the words."""
    total = 0
    for one in mix:
        weight = round(one.weight / sum(each.weight for each in mix) * SCALE)
        if (one.milli_cpu and one.milli_cpu > cpu) or (one.memory and one.memory > memory):
            continue
        if any(labels.get(key) not in values for key, values in one.nodes):
            continue
        fits = [room for room in free if room >= one.milli]
        if len(fits) >= one.devices:
            total += weight * sum(fits)
    return total


def least_loss(mix: Sequence[ExpectedPod], cluster: Cluster, kind: PodClass, row: int) -> tuple[float, list[int]]:
    """What placing costs at best, and on which devices it costs that."""
    view = View(cluster)
    shown, known = view.devices(GPU_RESOURCE), view.node(row)
    assert known is not None
    free = shown.free[row][: int(shown.count[row])].tolist()
    cpu = int(view.allocatable(CPU)[row] - view.requested(CPU)[row])
    memory = int(view.allocatable(MEMORY)[row] - view.requested(MEMORY)[row])
    labels = dict(known.metadata.labels)
    need = need_of(kind, GPU_RESOURCE)
    before = by_hand(mix, free, cpu, memory, labels)
    left = (cpu - kind.requests.milli_cpu, memory - kind.requests.memory, labels)
    if not need.devices:
        return before - by_hand(mix, free, *left), []
    found = fitting(need, free, [0] * len(free))
    tries = [found[: need.devices]] if need.whole else [[one] for one in found]
    costs = []
    for devices in tries:
        after = [room - need.milli if at in devices else room for at, room in enumerate(free)]
        costs.append(before - by_hand(mix, after, *left))
    best = min(costs)
    return best, [devices[0] for devices, cost in zip(tries, costs, strict=True) if cost == best]


MODELS = ("A100", "T4", "P100")

TYPICAL = st.builds(
    lambda weight, cpu, memory, ask, models: ExpectedPod(
        weight, cpu * 1000, memory << 30, ask[0], ask[1], (("model", tuple(models)),) if models else ()
    ),
    st.integers(1, 9),
    st.integers(0, 6),
    st.integers(0, 6),
    st.one_of(
        st.tuples(st.just(1), st.sampled_from((100, 250, 500, 700))), st.tuples(st.integers(1, 4), st.just(1000))
    ),
    st.lists(st.sampled_from(MODELS), unique=True, max_size=2),
)
ASKED = st.one_of(
    st.builds(
        lambda milli, cpu: share("x", milli, cpu=str(cpu), memory="1Gi"),
        st.sampled_from((100, 300, 500)),
        st.integers(1, 4),
    ),
    st.builds(lambda gpus: whole("x", gpus, cpu="2", memory="1Gi"), st.integers(1, 3)),
    st.just(pod("x", cpu="3", memory="2Gi")),
)
"""`memory` of a share here is that of the pod: its container's request."""


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    cluster = Cluster()
    count = draw(st.integers(1, 4))
    for at in range(count):
        labels = {"model": draw(st.sampled_from(MODELS))}
        room = {"cpu": str(draw(st.integers(2, 16))), "memory": f"{draw(st.integers(2, 16))}Gi"}
        cluster.add_node(gpu_node(f"n{at}", gpus=draw(st.integers(0, 4)), labels=labels, **room))
    for at in range(draw(st.integers(0, 6))):
        where = f"n{draw(st.integers(0, count - 1))}"
        milli = draw(st.sampled_from((100, 300, 500, 900)))
        cluster.add_pod(share(f"p{at}", milli, cpu="1", node_name=where))
    return cluster


@settings(max_examples=150, deadline=None)
@given(clusters(), st.lists(TYPICAL, min_size=1, max_size=5), ASKED)
def test_the_loss_is_what_the_words_say_and_the_device_is_where_it_is_least(
    cluster: Cluster, mix: list[ExpectedPod], asked: Pod
) -> None:
    plugin, kind, view = exactly(*mix), cluster.class_of(asked), View(cluster)
    check = GpuShare().check(kind, view)
    fits = np.ones(view.size, np.bool_) if check is None else check == 0
    found = plugin.loss(kind, view)
    for row in np.flatnonzero(fits).tolist():
        cost, devices = least_loss(mix, cluster, kind, row)
        assert found[row] == cost
        given = plugin.assign(kind, view.at(row), 0)
        assert given == plugin.assign(kind, view, row)
        if need_of(kind, GPU_RESOURCE).milli < 1000 and devices:
            assert int(given[GPU_DEVICES]) in devices


# ── what it leads to ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_share_goes_where_it_breaks_no_whole_device() -> None:
    cluster = cluster_of([gpu_node("n1"), gpu_node("n2")], share("a", 500, devices="1", node_name="n2"))
    plugin = exactly(ExpectedPod(devices=2), ExpectedPod(milli=500))
    assert scores(plugin, cluster, share("x", 500)) == [0, 100]
    assert plugin.assign(cluster.class_of(share("x", 500)), View(cluster), 1) == {GPU_DEVICES: "1"}


def test_a_node_that_no_expected_pod_can_use_is_free_to_take() -> None:
    """By its model, its cpu or its memory."""
    nodes = [
        gpu_node("fit", labels={"model": "A100"}),
        gpu_node("other", labels={"model": "T4"}),
        gpu_node("slow", cpu="2", labels={"model": "A100"}),
        gpu_node("small", memory="1Gi", labels={"model": "A100"}),
    ]
    plugin = exactly(ExpectedPod(milli_cpu=4000, memory=2 << 30, nodes=(("model", ("A100", "H100")),)))
    assert scores(plugin, cluster_of(nodes), share("x", 300)) == [0, 100, 100, 100]


def test_who_asks_for_no_gpu_is_kept_off_the_nodes_whose_gpus_need_their_cpu() -> None:
    nodes = [gpu_node("n1", cpu="8"), gpu_node("n2", gpus=0, cpu="8")]
    plugin = exactly(ExpectedPod(milli_cpu=6000))
    assert scores(plugin, cluster_of(nodes), pod("x", cpu="4")) == [0, 100]


def test_emptier_nodes_are_left_alone_where_losses_are_equal() -> None:
    cluster = cluster_of([gpu_node("n1"), gpu_node("n2")], whole("a", devices="0", node_name="n2"))
    asked = whole("x")
    assert scores(exactly(ExpectedPod()), cluster, asked) == [100, 100]
    assert scores(Fragmentation(mix=(ExpectedPod(),), packing=100), cluster, asked) == [0, 100]


def test_losses_within_a_quantum_are_equal() -> None:
    nodes = [gpu_node("n1", gpus=1), gpu_node("n2", gpus=1)]
    bound = [share("a", 500, devices="0", node_name="n1"), share("b", 480, devices="0", node_name="n2")]
    mix = (ExpectedPod(milli=100), ExpectedPod(milli=20))
    cluster = cluster_of(nodes, *bound)
    asked = share("x", 490)
    apart = scores(exactly(*mix), cluster, asked)
    assert apart[0] != apart[1]
    assert scores(exactly(*mix, quantum=1000), cluster, asked) == [100, 100]


def test_weights_may_be_raised() -> None:
    """As they are, the common pod decides; made equal, the other one does."""
    cluster = cluster_of([gpu_node("n1"), gpu_node("n2")], share("a", 300, devices="0", node_name="n1"))
    mix = (ExpectedPod(weight=5, milli=700), ExpectedPod(weight=1, devices=2))
    asked = share("x", 300)
    losses = [
        exactly(*mix, weight_exponent=one).loss(cluster.class_of(asked), View(cluster)).tolist() for one in (1, 0)
    ]
    assert losses[0] != losses[1]


def test_without_a_mix_the_pods_that_are_bound_are_expected() -> None:
    nodes = [gpu_node("n1"), gpu_node("n2")]
    busy = [whole(f"w{at}", 2, node_name="n3") for at in range(4)]
    bound = share("a", 500, devices="1", node_name="n2")
    cluster = cluster_of([*nodes, gpu_node("n3", gpus=8)], *busy, bound)
    plugin = Fragmentation(packing=0)
    first, second, _ = scores(plugin, cluster, share("x", 500))
    assert first < second, "whole pairs are expected, so none is broken"


def test_where_nothing_is_bound_pods_such_as_this_one_are_expected() -> None:
    cluster = cluster_of([gpu_node("n1", cpu="3"), gpu_node("n2", cpu="4")])
    assert scores(Fragmentation(packing=0), cluster, share("x", 500, cpu="2")) == [0, 100]


def test_where_nothing_is_bound_and_nothing_asked_for_all_nodes_are_equal() -> None:
    cluster = cluster_of([gpu_node("n1", cpu="3"), gpu_node("n2", gpus=0)])
    assert scores(Fragmentation(packing=0), cluster, pod("x", cpu="2")) == [100, 100]


def test_what_was_kept_is_what_is_found_from_scratch_over_a_history() -> None:
    """With the mix that is bound, which moves; with and without what is kept of the answers."""
    for plugin in (Fragmentation(), Fragmentation(mix=(ExpectedPod(3, 4000), ExpectedPod(2, 0, 0, 1, 250)), quantum=5)):
        _same_with_and_without_cache(plugin, Random(7))


def _same_with_and_without_cache(plugin: Fragmentation, dice: Random) -> None:
    nodes = [gpu_node(f"n{at}", gpus=dice.choice((2, 4, 8)), cpu=str(dice.choice((8, 32)))) for at in range(12)]
    cluster = cluster_of(nodes)
    profile = Profile("p", (NodeResourcesFit(), GpuShare()), (Weighted(plugin, 1),), assigners=(GpuShare(), plugin))
    kept, scratch = Placer(cluster, profile), Placer(cluster, profile, cache=False)
    bound: list[str] = []
    for at in range(120):
        asked = (
            whole(f"p{at}", dice.choice((1, 2)), cpu="1")
            if dice.random() < 0.3
            else share(f"p{at}", dice.choice((100, 250, 500)), cpu=str(dice.choice((1, 2))))
        )
        kind = cluster.class_of(asked)
        row = kept.choose(kind)
        assert row == scratch.choose(kind)
        if row >= 0:
            cluster.put(with_annotations(asked, bind_annotations(profile, kind, View(cluster), row)), kind, row)
            bound.append(f"default/p{at}")
        elif bound:
            cluster.remove_pod(bound.pop(dice.randrange(len(bound))))
        if dice.random() < 0.05:
            cluster.add_node(gpu_node(f"n{dice.randrange(12)}", gpus=dice.choice((2, 4, 8))))
    assert len(bound) > 20


def test_an_overlay_has_the_scores_of_the_cluster_that_it_shows() -> None:
    nodes = [gpu_node("n1"), gpu_node("n2")]
    stays, goes = share("a", 500, devices="0", node_name="n1"), whole("b", devices="1", node_name="n2")
    plugin = exactly(ExpectedPod(), ExpectedPod(milli=500))
    cluster = cluster_of(nodes, stays, goes)
    asked = cluster.class_of(share("x", 300))
    come = share("c", 200)
    view = View(cluster)
    plugin.loss(asked, view)
    overlay = view.without(view.pods_on(1)).plus([(cluster.class_of(come), 1)], ["1"])
    real = cluster_of(nodes, stays, share("c", 200, devices="1", node_name="n2"))
    expected = plugin.loss(real.class_of(share("x", 300)), View(real)).tolist()
    assert plugin.loss(asked, overlay).tolist() == expected
    assert plugin.loss(asked, overlay.at(1)).tolist() == expected[1:]
    profile = Profile("p", (), (Weighted(plugin, 1),))
    assert len(totals(profile, asked, overlay, np.ones(2, np.bool_))) == 2


def test_the_request_of_a_share_is_as_good_as_its_annotation() -> None:
    advertised = {GPU_MILLI: "2000"}
    cluster = cluster_of([gpu_node("n1", allocatable=advertised)])
    asked = pod("x", requests={GPU_MILLI: "500"})
    assert Fragmentation().assign(cluster.class_of(asked), View(cluster), 0) == {GPU_DEVICES: "0"}


@pytest.mark.parametrize("plugin", [Fragmentation(), GpuShare()])
def test_nothing_is_written_where_nothing_fits(plugin: Fragmentation | GpuShare) -> None:
    cluster = cluster_of([gpu_node("n1")], whole("a", 2, node_name="n1"))
    assert plugin.assign(cluster.class_of(share("x")), View(cluster), 0) == {}
    assert plugin.assign(cluster.class_of(whole("x")), View(cluster), 0) == {}
