"""The futures of a node: what pods that are expected, coming one after another, leave of its free GPUs and cpu."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_builders import gpu_node
from situate.core.plugins.support.gpu_futures import (
    MOST_KEPT,
    Expected,
    Futures,
    Room,
    cpu_price,
    expected,
    futures_of,
    left_over,
)
from situate.core.plugins.support.gpu_mix import ExpectedPod, configured_mix
from situate.core.state.cluster import Cluster
from situate.core.state.view import View


def made(
    *mix: ExpectedPod,
    count: int = 4,
    per_device: int = 6,
    most: int = 4,
    nodes: int = 1,
    others: Sequence[Expected] = (),
) -> Futures:
    cluster = Cluster()
    for at in range(nodes):
        cluster.add_node(gpu_node(f"n{at}", gpus=most, labels={"model": f"m{at}"}))
    found = futures_of(configured_mix(mix, 1.0, View(cluster)), others, count, per_device, most)
    assert found is not None
    return found


def room(*free: int, cpu: int = 64_000, memory: int = 0, count: int = 4, kind: int = 0) -> Room:
    return tuple(sorted(free)), cpu, memory, count, kind


# ── the words, step by step ─────────────────────────────────────────────────────────────────────────────────────────


def by_hand(pods: tuple[Expected, ...], where: Room) -> tuple[int, int]:
    """Each pod that fits goes to the fullest device with room for it, or takes the devices that it needs whole."""
    free, cpu, memory = list(where[0]), where[1], where[2]
    for one in pods:
        fits = [at for at, milli in enumerate(free) if milli >= one.milli]
        if one.milli_cpu > cpu or (one.memory and one.memory > memory) or len(fits) < one.devices:
            continue
        for at in sorted(fits, key=lambda at: free[at])[: one.devices]:
            free[at] -= one.milli
        cpu -= one.milli_cpu
        memory -= one.memory
    return sum(free), cpu


TYPICAL = st.builds(
    lambda weight, cpu, memory, need: ExpectedPod(weight, cpu * 1000, memory, *need),
    st.integers(1, 20),
    st.integers(1, 16),
    st.sampled_from((0, 0, 4, 9)),
    st.sampled_from(((1, 100), (1, 300), (1, 470), (1, 810), (1, 1000), (2, 1000), (4, 1000))),
)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(TYPICAL, min_size=1, max_size=6),
    st.lists(st.sampled_from((1000, 1000, 810, 530, 190, 60)), max_size=4),
    st.integers(0, 40_000),
    st.integers(0, 20),
    st.lists(
        st.builds(Expected, st.integers(1, 9000), st.just(0), st.just(0), st.just(0), st.just(1 << 19), st.just(-1)),
        max_size=2,
    ),
)
def test_what_is_left_is_what_playing_pod_by_pod_leaves(
    mix: list[ExpectedPod], free: list[int], cpu: int, memory: int, others: list[Expected]
) -> None:
    futures = made(*mix, others=others)
    where = room(*free, cpu=cpu, memory=memory)
    played = tuple(map(sum, zip(*(by_hand(future.pods, where) for future in futures.futures), strict=True)))
    assert left_over(futures, where) == played
    assert left_over(futures, where) == played, "and it is remembered"


# ── what a future is made of ────────────────────────────────────────────────────────────────────────────────────────


def test_a_future_has_the_mix_in_its_proportions() -> None:
    mix = (ExpectedPod(6, 1000), ExpectedPod(3, 2000, milli=500), ExpectedPod(1, 3000, devices=2))
    for future in made(*mix, count=8, per_device=25).futures:
        counts = Counter(pod.milli_cpu for pod in future.pods)
        assert len(future.pods) == 100
        assert counts[1000] == pytest.approx(60, abs=3)
        assert counts[2000] == pytest.approx(30, abs=3)
        assert counts[3000] == pytest.approx(10, abs=3)


def test_futures_begin_differently() -> None:
    mix = [ExpectedPod(1, cpu * 1000) for cpu in range(1, 9)]
    assert len({future.pods[:4] for future in made(*mix, count=8).futures}) == 8


def test_the_order_in_which_a_mix_is_written_makes_no_difference() -> None:
    mix = (ExpectedPod(3, 1000), ExpectedPod(2, 2000, milli=500), ExpectedPod(2, 1000, devices=2))
    asks = [[(pod.milli_cpu, pod.devices, pod.milli) for pod in future.pods] for future in made(*mix).futures]
    other = [[(pod.milli_cpu, pod.devices, pod.milli) for pod in future.pods] for future in made(*mix[::-1]).futures]
    assert asks == other


def test_a_small_node_has_a_short_future() -> None:
    """Three pods for each device: the second share of 400 comes too late for a node with one device."""
    futures = made(ExpectedPod(1, 1000, milli=10), count=1, per_device=3)
    assert left_over(futures, room(1000, cpu=9000, count=1)) == (970, 6000)
    assert left_over(futures, room(1000, cpu=13_000, count=4)) == (880, 1000)


def test_without_cpu_all_that_is_free_is_left() -> None:
    futures = made(ExpectedPod(1, 4000))
    assert left_over(futures, room(1000, 1000, cpu=3999)) == (2000 * 4, 3999 * 4)
    assert left_over(futures, room(1000, 1000, cpu=4000)) == (1000 * 4, 0)
    assert left_over(futures, room(1000, 1000, cpu=8001)) == (0, 4)


def test_pods_without_gpus_go_on_taking_cpu_when_all_gpus_are_in_use() -> None:
    other = Expected(3000, 0, 0, 0, 1 << 20, -1)
    futures = made(ExpectedPod(1, 4000), others=[other])
    assert left_over(futures, room(cpu=10_000)) == (0, 1000 * 4)
    assert left_over(futures, room(1000, cpu=10_000)) == (0, 0)


def test_without_memory_too() -> None:
    futures = made(ExpectedPod(1, 0, memory=10))
    assert left_over(futures, room(1000, memory=9))[0] == 1000 * 4
    assert left_over(futures, room(1000, memory=10))[0] == 0


def test_a_pod_goes_only_where_its_labels_are() -> None:
    futures = made(ExpectedPod(1, 1000, nodes=(("model", ("m1",)),)), nodes=2)
    assert futures.labels is not None
    other, its_own = (room(1000, kind=int(kind)) for kind in futures.labels)
    assert left_over(futures, other)[0] == 1000 * 4
    assert left_over(futures, its_own)[0] == 0


@pytest.mark.parametrize(
    "free_gpu, free_cpu, price",
    [
        pytest.param(8000, 64_000, 8, id="all of it is needed: a GPU for every 8 cpus"),
        pytest.param(8000, 32_000, 8, id="more than there is: no more than that"),
        pytest.param(8000, 128_000, 1, id="half of it is needed: an eighth"),
        pytest.param(8000, 0, 8, id="nothing is left"),
        pytest.param(0, 64_000, 0, id="no GPU is left to be used with it"),
    ],
)
def test_unused_cpu_is_worth_the_gpus_that_it_would_let_the_mix_use(free_gpu: int, free_cpu: int, price: int) -> None:
    assert cpu_price(made(ExpectedPod(1, 4000, milli=500)), free_gpu, free_cpu, 64) == price


def test_pods_without_gpus_make_cpu_scarcer_and_what_needs_no_cpu_makes_it_worthless() -> None:
    other = Expected(8000, 0, 0, 0, 1 << 20, -1)
    assert cpu_price(made(ExpectedPod(1, 8000), others=[other]), 1000, 16_000, 64) == 4
    assert cpu_price(made(ExpectedPod(1, 0)), 1000, 16_000, 64) == 0


def test_nobody_is_expected_where_the_mix_is_empty() -> None:
    cluster = Cluster()
    cluster.add_node(gpu_node("n"))
    mix = configured_mix((), 1.0, View(cluster))
    assert expected(mix) == []
    assert futures_of(mix, (), 4, 4, 2) is None


def test_what_is_remembered_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("situate.core.plugins.support.gpu_futures.MOST_KEPT", 3)
    futures = made(ExpectedPod(1, 1000))
    for cpu in range(10):
        left_over(futures, room(1000, cpu=cpu))
        assert len(futures.kept) <= 3
    assert MOST_KEPT > 3


def test_the_shares_of_a_mix_are_read_back_exactly() -> None:
    mix = tuple(ExpectedPod(1, 1000, milli=milli) for milli in (1, 50, 470, 999))
    cluster = Cluster()
    cluster.add_node(gpu_node("n"))
    found = expected(configured_mix(mix, 1.0, View(cluster)))
    assert sorted(pod.milli for pod in found) == [1, 50, 470, 999]
    assert np.unique([pod.devices for pod in found]).tolist() == [1]
