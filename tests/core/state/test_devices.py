"""Devices by node: what is free of each, as pods and nodes come and go."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gpu_builders import gpu_node, share, whole
from situate.core.model.annotations import GPU_DEVICES, GPU_MILLI
from situate.core.model.gpu import GPU_RESOURCE, GpuNeed
from situate.core.model.pod import Pod
from situate.core.state.audit import audit
from situate.core.state.cluster import Cluster
from situate.core.state.devices import level, settle
from situate.core.state.holders import device_users
from situate.core.state.view import LOAD, View


def cluster_of(*pods: Pod, **node: Any) -> Cluster:
    made = Cluster()
    made.load([gpu_node("n1", **node)], (), pods)
    return made


def free(cluster: Cluster, view: View | None = None) -> list[int]:
    shown = (view or View(cluster)).devices(GPU_RESOURCE)
    return [int(milli) for milli in shown.free[0][: int(shown.count[0])]]


def test_nothing_is_kept_until_somebody_asks() -> None:
    cluster = cluster_of(share(node_name="n1"))
    assert cluster.devices == {}
    assert free(cluster) == [500, 1000]
    assert list(cluster.devices) == [GPU_RESOURCE]


def test_asking_counts_as_reading_the_load() -> None:
    view = View(cluster_of())
    view.devices(GPU_RESOURCE)
    assert view.reads == LOAD


@pytest.mark.parametrize(
    "pods, expected",
    [
        pytest.param([share("a", 300, devices="1")], [1000, 700], id="the device that the annotation names"),
        pytest.param([share("a", 300), share("b", 300)], [400, 1000], id="the lowest that fits, without one"),
        pytest.param([share("a", 600), share("b", 600)], [400, 400], id="the next, where the lowest is too full"),
        pytest.param([share("a", 600), share("b", 600, devices="0")], [400, 400], id="after those that say"),
        pytest.param([whole("a", 2)], [0, 0], id="whole devices"),
        pytest.param([share("a", 300), whole("b")], [700, 0], id="a whole one is one that nobody has a share of"),
        pytest.param([share("a", 300, devices="7")], [1000, 1000], id="a device that the node does not have"),
        pytest.param([share("a", 300, devices="x")], [700, 1000], id="what cannot be read says nothing"),
        pytest.param([share("a", 0)], [1000, 1000], id="who cannot be given anything has nothing"),
        pytest.param(
            [share("a", 900), share("b", 900), share("c", 900)], [0, 100], id="too much is counted, and nothing is free"
        ),
    ],
)
def test_what_is_free(pods: list[Pod], expected: list[int]) -> None:
    bound = [replace(pod, spec=replace(pod.spec, node_name="n1")) for pod in pods]
    cluster = cluster_of(*bound)
    assert free(cluster) == expected
    later = cluster_of()
    assert free(later) == [1000, 1000]
    for pod in bound:
        later.add_pod(pod)
    assert free(later) == expected, "whenever they came"
    assert audit(cluster) == audit(later) == []
    for pod in bound:
        later.remove_pod(f"default/{pod.metadata.name}")
    assert free(later) == [1000, 1000]


def test_memory_is_counted_by_device_and_a_whole_device_has_all_of_it() -> None:
    pods = [
        share("a", 100, memory="4Gi", devices="0", node_name="n1"),
        share("b", 100, memory="6Gi", node_name="n1"),
        whole("c", devices="2", node_name="n1"),
    ]
    cluster = cluster_of(*pods, gpus=3, labels={"situate.dev/gpu-memory": "8Gi"})
    shown = View(cluster).devices(GPU_RESOURCE)
    assert (shown.memory[0][:3] >> 30).tolist() == [4, 2, 0]
    assert int(shown.each[0]) == 8 << 30


def test_a_pod_whose_devices_are_changed_by_somebody_is_counted_anew() -> None:
    cluster = cluster_of(share(devices="0", node_name="n1"))
    assert free(cluster) == [500, 1000]
    assert cluster.add_pod(share(devices="1", node_name="n1"))
    assert free(cluster) == [1000, 500]
    assert not cluster.add_pod(share(devices="1", node_name="n1"))


def test_a_pod_keeps_its_devices_while_its_node_is_away() -> None:
    """What pods of a class have in common is kept once, and which devices they have is not among it."""
    cluster = cluster_of(share("a", devices="0", node_name="n1"), share("b", devices="1", node_name="n1"))
    assert free(cluster) == [500, 500]
    cluster.remove_node("n1")
    cluster.add_node(gpu_node("n1"))
    assert free(cluster) == [500, 500]
    assert [cluster.pods.devices[row] for row in cluster.pods.rows.values()] == ["0", "1"]


def test_shares_make_another_class_and_devices_do_not() -> None:
    cluster = cluster_of()
    classes = [cluster.class_of(one) for one in (share("a", 300), share("b", 300, devices="1"), share("c", 301))]
    assert classes[0] is classes[1] is not classes[2]


def test_a_node_that_gets_more_devices_has_room() -> None:
    cluster = cluster_of(share(node_name="n1"), gpus=1)
    assert free(cluster) == [500]
    cluster.add_node(gpu_node("n1", gpus=12))
    assert free(cluster) == [500] + [1000] * 11
    assert audit(cluster) == []


def test_an_overlay_shows_devices_without_pods_and_with_others() -> None:
    cluster = cluster_of(share("a", 600, devices="1", node_name="n1"), share("b", 600, devices="0", node_name="n1"))
    view = View(cluster)
    gone = view.without(view.pods_on(0)[:1])
    assert free(cluster, gone) == [400, 1000]
    kind = cluster.class_of(share("c", 300))
    assert free(cluster, gone.plus([(kind, 0)])) == [100, 1000]
    assert free(cluster, gone.plus([(kind, 0), (kind, 0)], ["1", ""])) == [100, 700]
    assert free(cluster, gone.plus([(kind, 0)]).plus([(kind, 0)], ["1"]).at(0)) == [100, 700]
    assert free(cluster) == [400, 400], "and nothing was changed"


def test_the_pods_that_use_devices_are_counted_by_class() -> None:
    cluster = cluster_of(*(share(f"p{at}", 100, node_name="n1") for at in range(3)), whole("w", node_name="n1"))
    version, kinds = device_users(View(cluster), GPU_RESOURCE)
    assert sorted(kinds.values()) == [1, 3]
    for at in range(3, 5):
        cluster.add_pod(share(f"p{at}", 100, node_name="n1"))
    assert device_users(View(cluster), GPU_RESOURCE)[0] == version + 1, (
        "four is another level than three, and five is not"
    )


@given(st.integers(0, 1 << 20))
def test_a_level_is_a_count_rounded_down_by_less_than_a_half(count: int) -> None:
    assert count / 2 < level(count) <= count or level(count) == count == 0
    assert level(level(count)) == level(count)


NEEDS = st.one_of(
    st.builds(GpuNeed, st.just(1), st.integers(1, 1000), st.integers(0, 20)),
    st.builds(GpuNeed, st.integers(1, 5), st.just(1000)),
)


@settings(max_examples=100)
@given(
    st.integers(0, 4),
    st.integers(0, 16),
    st.lists(st.tuples(NEEDS, st.sampled_from(("", "0", "1", "0,1", "9"))), max_size=8),
)
def test_whatever_is_used_is_what_pods_took(count: int, each: int, holders: list[tuple[GpuNeed, str]]) -> None:
    used, memory = settle(count, each, holders)
    assert len(used) == len(memory) == count
    assert sum(used) <= sum(need.milli * need.devices for need, _ in holders)
    if all(text == "" for _, text in holders) and count:
        taken = sum(need.milli * min(need.devices, count) for need, _ in holders)
        assert sum(used) == taken, "who does not say where it is, is somewhere"


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, int, int, str]]:
    """(what, which, amount, devices)."""
    step = st.tuples(
        st.sampled_from(("share", "share", "whole", "gone", "node", "node gone")),
        st.integers(0, 5),
        st.sampled_from((100, 300, 500, 1000)),
        st.sampled_from(("", "0", "1", "2", "0,1")),
    )
    return draw(st.lists(step, min_size=1, max_size=25))


@settings(max_examples=80, deadline=None)
@given(histories())
def test_what_is_kept_is_what_a_recount_gives_after_any_history(steps: list[tuple[str, int, int, str]]) -> None:
    cluster = Cluster()
    cluster.add_node(gpu_node("n0"))
    for what, which, amount, devices in steps:
        View(cluster).devices(GPU_RESOURCE)
        at = f"n{which % 3}"
        match what:
            case "share":
                cluster.add_pod(share(f"p{which}", amount, devices=devices, node_name=at))
            case "whole":
                cluster.add_pod(whole(f"p{which}", 1 + amount // 500, devices=devices, node_name=at))
            case "gone":
                cluster.remove_pod(f"default/p{which}")
            case "node":
                cluster.add_node(gpu_node(at, gpus=which))
            case _:
                cluster.remove_node(at)
        assert audit(cluster) == []


def test_an_audit_notices_a_device_that_is_counted_wrongly() -> None:
    cluster = cluster_of(share(node_name="n1"))
    View(cluster).devices(GPU_RESOURCE)
    cluster.pods.devices[0] = "1"
    assert any("free" in line for line in audit(cluster))


def test_annotations_that_are_not_about_devices_are_not_kept() -> None:
    cluster = cluster_of(share(annotations={"note": "x"}, node_name="n1"))
    assert cluster.pods.devices == {}
    kind = cluster.class_of(share(annotations={"note": "x", GPU_DEVICES: "0"}))
    assert kind.annotations == {GPU_MILLI: "500"}
