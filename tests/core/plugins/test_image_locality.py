"""ImageLocality prefers nodes that have the pod's images, by size and by how many nodes have them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situate.core.model.meta import ObjectMeta
from situate.core.model.node import ContainerImage, Node, NodeStatus
from situate.core.model.pod import Container, Pod, PodSpec
from situate.core.model.volumes import ImageSource, Volume
from situate.core.plugins.image_locality import ImageLocality, full_name
from situate.core.state.cluster import Cluster
from situate.core.state.view import View
from situate.core.versions import V1_37

MIB = 1 << 20


def node(name: str, sizes: dict[str, int]) -> Node:
    images = tuple(ContainerImage(names=(image,), size_bytes=size) for image, size in sizes.items())
    return Node(metadata=ObjectMeta(name=name), status=NodeStatus(images=images))


def cluster_of(*sizes: dict[str, int]) -> Cluster:
    cluster = Cluster()
    for at, own in enumerate(sizes):
        cluster.add_node(node(f"n{at}", own))
    return cluster


def pod(images: list[str], init: list[str] | None = None, volumes: list[str] | None = None) -> Pod:
    spec = PodSpec(
        containers=tuple(Container(name=f"c{at}", image=image) for at, image in enumerate(images)),
        init_containers=tuple(Container(name=f"i{at}", image=image) for at, image in enumerate(init or [])),
        volumes=tuple(Volume(name=f"v{at}", image=ImageSource(reference=one)) for at, one in enumerate(volumes or [])),
    )
    return Pod(metadata=ObjectMeta(name="p"), spec=spec)


def score(cluster: Cluster, asking: Pod) -> list[int]:
    view = View(cluster).scoring(np.ones(cluster.nodes.size, np.bool_))
    return list(map(int, ImageLocality().score(cluster.class_of(asking), view)))


@pytest.mark.parametrize(
    "image,expected",
    [
        pytest.param("nginx", "nginx:latest", id="no tag means latest"),
        pytest.param("nginx:1.27", "nginx:1.27", id="a tag stays"),
        pytest.param("host:5000/nginx", "host:5000/nginx:latest", id="the port of a registry is no tag"),
        pytest.param("host:5000/nginx:1", "host:5000/nginx:1", id="a tag after the port of a registry stays"),
        pytest.param("nginx@sha256:ab", "nginx@sha256:ab", id="a digest stays"),
    ],
)
def test_full_name(image: str, expected: str) -> None:
    assert full_name(image) == expected


def test_a_node_with_the_image_scores_by_size_and_spread() -> None:
    cluster = cluster_of({"app:v1": 500 * MIB}, {})
    # Half of the nodes have 500 MiB: 250 MiB, between 23 and 1000.
    assert score(cluster, pod(["app:v1"])) == [100 * (250 - 23) // (1000 - 23), 0]


def test_an_untagged_image_is_found_under_latest() -> None:
    assert score(cluster_of({"app:latest": 2000 * MIB}), pod(["app"])) == [100]


def test_what_is_small_counts_for_nothing_and_what_is_huge_for_no_more_than_100() -> None:
    assert score(cluster_of({"app:v1": 23 * MIB}), pod(["app:v1"])) == [0]
    assert score(cluster_of({"app:v1": 9000 * MIB}), pod(["app:v1"])) == [100]


def test_init_containers_raise_the_bar_and_image_volumes_do_not() -> None:
    cluster = cluster_of({"app:v1": 300 * MIB, "tool:v1": 200 * MIB, "data:v1": 400 * MIB})
    assert score(cluster, pod(["app:v1"], ["tool:v1"])) == [100 * (500 - 23) // (2000 - 23)]
    assert score(cluster, pod(["app:v1"], volumes=["data:v1"])) == [100 * (700 - 23) // (1000 - 23)]


def test_an_image_counts_for_each_container_that_has_it() -> None:
    cluster = cluster_of({"app:v1": 300 * MIB})
    assert score(cluster, pod(["app:v1", "app:v1"])) == [100 * (600 - 23) // (2000 - 23)]


def test_images_that_no_node_has_score_0_for_all_without_an_array_of_zeros() -> None:
    cluster = cluster_of({"app:v1": 500 * MIB}, {})
    view = View(cluster)
    first = ImageLocality().score(cluster.class_of(pod(["none:v1"])), view)
    assert first.tolist() == [0, 0]
    assert first.strides == (0,)


def test_the_size_is_that_of_the_first_node_that_has_it() -> None:
    cluster = cluster_of({}, {"app:v1": 600 * MIB}, {"app:v1": 60 * MIB})
    expected = 100 * (400 - 23) // (1000 - 23)
    assert score(cluster, pod(["app:v1"])) == [0, expected, expected]


def test_an_image_that_a_node_lists_twice_has_its_first_size() -> None:
    cluster = Cluster()
    listed = (ContainerImage(names=("app:v1",), size_bytes=600 * MIB), ContainerImage(names=("app:v1",), size_bytes=1))
    cluster.add_node(Node(metadata=ObjectMeta(name="n0"), status=NodeStatus(images=listed)))
    assert score(cluster, pod(["app:v1"])) == [100 * (600 - 23) // (1000 - 23)]


def test_a_narrowed_view_has_the_score_of_its_row() -> None:
    cluster = cluster_of({"app:v1": 500 * MIB}, {})
    kind = cluster.class_of(pod(["app:v1"]))
    assert [ImageLocality().score(kind, View(cluster).at(row)).tolist() for row in (0, 1)] == [[23], [0]]


def test_scores_follow_a_node_that_pulls_the_image() -> None:
    cluster = cluster_of({"app:v1": 500 * MIB}, {})
    before = score(cluster, pod(["app:v1"]))
    cluster.add_node(node("n1", {"app:v1": 500 * MIB}))
    assert before[1] == 0
    assert score(cluster, pod(["app:v1"])) == [100 * (500 - 23) // (1000 - 23)] * 2


IMAGES = ["a:1", "b:1", "c:1"]
SIZES = st.fixed_dictionaries({image: st.integers(0, 1500 * MIB) for image in IMAGES})


@settings(max_examples=100)
@given(
    SIZES,
    st.lists(st.sets(st.sampled_from(IMAGES)), min_size=1, max_size=6),
    st.lists(st.sampled_from(IMAGES), min_size=1, max_size=3),
    st.lists(st.sampled_from(IMAGES), max_size=2),
)
def test_scores_are_those_of_each_node_alone(
    sizes: dict[str, int], held: list[set[str]], containers: list[str], volumes: list[str]
) -> None:
    cluster = cluster_of(*({image: sizes[image] for image in sorted(own)} for own in held))
    expected = []
    for own in held:
        total = 0
        for image in containers + volumes:
            if image in own:
                total += int(sizes[image] * (sum(image in other for other in held) / len(held)))
        bounded = max(23 * MIB, min(total, 1000 * MIB * len(containers)))
        expected.append(100 * (bounded - 23 * MIB) // (1000 * MIB * len(containers) - 23 * MIB))
    assert score(cluster, pod(containers, volumes=volumes)) == expected


def test_by_the_rules_of_1_37_image_volumes_raise_the_bar_too() -> None:
    cluster = cluster_of({"app:v1": 300 * MIB, "data:v1": 400 * MIB})
    view = View(cluster).scoring(np.ones(1, np.bool_))
    scores = ImageLocality().with_rules(V1_37).score(cluster.class_of(pod(["app:v1"], volumes=["data:v1"])), view)
    assert scores.tolist() == [100 * (700 - 23) // (2000 - 23)]
