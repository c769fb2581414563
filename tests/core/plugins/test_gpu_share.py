"""GpuShare: which nodes have a device for a pod, and which device it gets."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from builders import node, pod
from gpu_builders import gpu_config, gpu_node, share, whole
from situate.core.contract import Refusal, Wake, WakeEvent
from situate.core.engine.framework import build_frameworks
from situate.core.model.annotations import GPU_DEVICES, GPU_MEMORY
from situate.core.model.gpu import GPU_RESOURCE
from situate.core.model.pod import Pod
from situate.core.place.filtering import run_filters
from situate.core.plugins.gpu_share import (
    NO_MEMORY,
    NOT_WHOLE,
    TOO_FEW,
    TOO_FULL,
    TOO_SMALL,
    DeviceRule,
    GpuShare,
)
from situate.core.state.cluster import Cluster
from situate.core.state.devices import need_of
from situate.core.state.view import View
from situate.wire.config import load_config

FITS = 0


def cluster_of(*pods: Pod, **fields: Any) -> Cluster:
    """One node with two devices; the pods are bound to it."""
    made = Cluster()
    made.load([gpu_node("n1", **fields)], (), [replace(one, spec=replace(one.spec, node_name="n1")) for one in pods])
    return made


def code(cluster: Cluster, asked: Pod) -> int:
    plugin, kind, view = GpuShare(), cluster.class_of(asked), View(cluster)
    verdict = plugin.check(kind, view)
    assert isinstance(verdict, np.ndarray)
    assert plugin.checker_at(kind, view)(0) == verdict[0], "the twin says the same"
    return int(verdict[0])


@pytest.mark.parametrize(
    "bound, asked, expected",
    [
        pytest.param([], share("x", 1000), FITS, id="an empty device"),
        pytest.param([share("a", 500)], share("x", 500), FITS, id="the rest of one"),
        pytest.param(
            [share("a", 600, devices="0"), share("b", 600, devices="1")],
            share("x", 500),
            TOO_FULL,
            id="never two devices, though both together have room",
        ),
        pytest.param([share("a", 1)], whole("x", 2), NOT_WHOLE, id="a whole device is one that nobody has a share of"),
        pytest.param([share("a", 1)], whole("x", 1), FITS, id="one of two is whole"),
        pytest.param([], whole("x", 3), TOO_FEW, id="more devices than there are"),
        pytest.param([whole("a", 2)], share("x", 1), TOO_FULL, id="whole devices are nobody else's"),
    ],
)
def test_which_nodes_fit(bound: list[Pod], asked: Pod, expected: int) -> None:
    assert code(cluster_of(*bound), asked) == expected


@pytest.mark.parametrize(
    "bound, asked, expected",
    [
        pytest.param([], share("x", 100, memory="8Gi"), FITS, id="enough"),
        pytest.param([], share("x", 100, memory="9Gi"), TOO_SMALL, id="more than a device has"),
        pytest.param(
            [share("a", 100, memory="5Gi", devices="0"), share("b", 100, memory="5Gi", devices="1")],
            share("x", 100, memory="4Gi"),
            NO_MEMORY,
            id="more than is free on one",
        ),
        pytest.param(
            [share("a", 950, devices="0"), share("b", 100, memory="5Gi", devices="1")],
            share("x", 100, memory="4Gi"),
            NO_MEMORY,
            id="room on one and memory on the other",
        ),
        pytest.param([], whole("x", 2, memory="8Gi"), FITS, id="whole ones with enough"),
        pytest.param([], whole("x", 2, memory="9Gi"), TOO_SMALL, id="whole ones that are too small"),
    ],
)
def test_memory_is_asked_of_a_single_device(bound: list[Pod], asked: Pod, expected: int) -> None:
    assert code(cluster_of(*bound, labels={GPU_MEMORY: "8Gi"}), asked) == expected


def test_a_node_that_does_not_say_how_much_memory_its_devices_have_is_not_for_who_asks_for_some() -> None:
    assert code(cluster_of(), share("x", 100, memory="1Gi")) == TOO_SMALL


def test_who_asks_for_no_gpu_is_not_looked_at() -> None:
    cluster = cluster_of()
    assert GpuShare().check(cluster.class_of(pod("web", cpu="1")), View(cluster)) is None


def test_who_asks_for_what_cannot_be_is_told_so() -> None:
    cluster = cluster_of()
    verdict = GpuShare().check(cluster.class_of(share("x", 1500)), View(cluster))
    text = 'annotation situate.dev/gpu-milli: "1500" is not a whole number from 1 to 1000'
    assert verdict == Refusal(text, eviction_helps=False)


def test_the_message_counts_nodes_by_reason() -> None:
    cluster = cluster_of(share("a", 600, devices="0"), share("b", 600, devices="1"))
    cluster.add_node(node("n2", cpu="4", memory="8Gi", pods="10"))
    profile = build_frameworks(load_config(gpu_config("GpuShare"), "test.yaml"))["default-scheduler"].profile
    filtered = run_filters(profile, cluster.class_of(share("x", 500)), View(cluster))
    codes = dict(zip([one.name for one in profile.filters], filtered.codes, strict=True))["GpuShare"]
    assert codes is not None
    texts = [GpuShare.reasons[one - 1].text for one in codes[:2].tolist()]
    assert texts == ["node(s) didn't have enough room on a single GPU", "node(s) didn't have enough GPUs"]


@pytest.mark.parametrize(
    "rule, expected",
    [("BestFit", "1"), ("WorstFit", "3"), ("FirstFit", "0")],
)
def test_which_device_a_share_gets(rule: DeviceRule, expected: str) -> None:
    bound = [share(f"p{at}", milli, devices=str(at)) for at, milli in enumerate((500, 700, 800))]
    cluster = cluster_of(*bound, gpus=4)
    kind = cluster.class_of(share("x", 300))
    assert GpuShare(device=rule).assign(kind, View(cluster), 0) == {GPU_DEVICES: expected}
    assert GpuShare(device=rule).assign(kind, View(cluster).at(0), 0) == {GPU_DEVICES: expected}


def test_whole_devices_are_the_lowest_that_are_free() -> None:
    cluster = cluster_of(share("a", 10, devices="1"), gpus=4)
    assert GpuShare().assign(cluster.class_of(whole("x", 2)), View(cluster), 0) == {GPU_DEVICES: "0,2"}


def test_a_device_with_too_little_memory_is_not_given() -> None:
    cluster = cluster_of(share("a", 500, memory="6Gi", devices="0"), labels={GPU_MEMORY: "8Gi"})
    assert GpuShare().assign(cluster.class_of(share("x", 300, memory="4Gi")), View(cluster), 0) == {GPU_DEVICES: "1"}


def test_nothing_is_written_on_who_asks_for_nothing_or_does_not_fit() -> None:
    cluster = cluster_of(whole("a", 2))
    assert GpuShare().assign(cluster.class_of(pod("web")), View(cluster), 0) == {}
    assert GpuShare().assign(cluster.class_of(share("x")), View(cluster), 0) == {}


def test_only_a_pod_that_had_a_device_wakes_who_waits_for_one() -> None:
    cluster = cluster_of()
    waits, had, other = (cluster.class_of(one) for one in (share("x"), whole("a"), pod("b", cpu="1")))
    plugin = GpuShare()
    assert plugin.wakes(waits, WakeEvent(Wake.POD_DELETED, pod=had, node_name="n1"))
    assert not plugin.wakes(waits, WakeEvent(Wake.POD_DELETED, pod=other, node_name="n1"))
    assert plugin.wakes(waits, WakeEvent(Wake.NODE_ADDED, node=gpu_node("n2")))


ASKS = st.one_of(
    st.builds(
        lambda milli, memory: (milli, 1, memory), st.sampled_from((1, 250, 300, 500, 999, 1000)), st.integers(0, 9)
    ),
    st.builds(lambda count, memory: (1000, count, memory), st.integers(1, 4), st.integers(0, 9)),
)


def asking(name: str, asks: tuple[int, int, int], **fields: Any) -> Pod:
    milli, count, memory = asks
    said = f"{memory}Gi" if memory else ""
    return share(name, milli, memory=said, **fields) if count == 1 else whole(name, count, memory=said, **fields)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 8)), min_size=1, max_size=3),
    st.lists(st.tuples(ASKS, st.integers(0, 2)), max_size=6),
    ASKS,
)
def test_it_says_of_all_nodes_what_a_count_by_hand_says_of_each(
    nodes: list[tuple[int, int]], bound: list[tuple[tuple[int, int, int], int]], asks: tuple[int, int, int]
) -> None:
    cluster = Cluster()
    for at, (gpus, each) in enumerate(nodes):
        labels = {GPU_MEMORY: f"{each}Gi"} if each else {}
        cluster.add_node(gpu_node(f"n{at}", gpus=gpus, labels=labels))
    for at, (one, where) in enumerate(bound):
        cluster.add_pod(asking(f"p{at}", one, node_name=f"n{where % len(nodes)}"))
    kind = cluster.class_of(asking("x", asks))
    plugin, view = GpuShare(), View(cluster)
    verdict = plugin.check(kind, view)
    assert isinstance(verdict, np.ndarray)
    need, shown = need_of(kind, GPU_RESOURCE), view.devices(GPU_RESOURCE)
    check_at = plugin.checker_at(kind, view)
    for row, (gpus, each) in enumerate(nodes):
        devices = list(zip(shown.free[row].tolist(), shown.memory[row].tolist(), strict=True))[:gpus]
        fit = [room >= need.milli and memory >= need.memory for room, memory in devices]
        fits = sum(fit) >= need.devices
        assert (verdict[row] == FITS) == fits == (check_at(row) == FITS)
        assert check_at(row) == verdict[row] == plugin.check(kind, view.at(row))[0]  # type: ignore[index]
        assert (
            GpuShare.reasons[int(verdict[row]) - 1].eviction_helps
            == (gpus >= need.devices and (not need.memory or each << 30 >= need.memory))
            or fits
        )
        given = plugin.assign(kind, view, row).get(GPU_DEVICES, "")
        assert bool(given) == fits
        if fits:
            chosen = [int(one) for one in given.split(",")]
            assert len(chosen) == need.devices
            assert all(fit[one] for one in chosen)
