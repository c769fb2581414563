"""How pods name their gang."""

from __future__ import annotations

from typing import Any

import pytest

from builders import pod
from situate.core.gang.naming import (
    GangName,
    GangSource,
    gang_of,
    gang_of_group,
    size_said,
    topology_said,
    wants_disruption_of_all,
)
from situate.core.model.custom_groups.kind import CustomGroupKind
from situate.core.model.custom_groups.table import CUSTOM_GROUP_KINDS
from situate.core.model.meta import ObjectMeta
from situate.core.model.pod import PodSchedulingGroup
from situate.core.state.cluster import Cluster


def test_a_pod_without_a_group_and_labels_is_in_no_gang() -> None:
    assert gang_of(pod()) is None
    assert gang_of(pod(labels={"app": "web"})) is None
    assert gang_of(pod(scheduling_group=PodSchedulingGroup())) is None


@pytest.mark.parametrize(
    "fields, source",
    [
        pytest.param(
            {"scheduling_group": PodSchedulingGroup(pod_group_name="train")}, GangSource.POD_GROUP, id="by its spec"
        ),
        pytest.param(
            {"labels": {"scheduling.x-k8s.io/pod-group": "train"}}, GangSource.COSCHEDULING, id="by the plugin's label"
        ),
        pytest.param(
            {"annotations": {"scheduling.k8s.io/group-name": "train"}}, GangSource.VOLCANO, id="by Volcano's annotation"
        ),
        pytest.param(
            {"annotations": {"scheduling.volcano.sh/group-name": "train"}},
            GangSource.VOLCANO,
            id="by Volcano's other annotation",
        ),
        pytest.param({"annotations": {"pod-group-name": "train"}}, GangSource.KAI, id="by KAI's annotation"),
        pytest.param(
            {"labels": {"situate.dev/gang": "train", "situate.dev/gang-size": "3"}},
            GangSource.LABELS,
            id="by our labels",
        ),
    ],
)
def test_a_pod_names_its_gang(fields: dict[str, Any], source: GangSource) -> None:
    assert gang_of(pod(namespace="ml", **fields)) == GangName(source, "ml", "train")


def test_of_several_ways_the_most_official_counts() -> None:
    labels = {"scheduling.x-k8s.io/pod-group": "b", "situate.dev/gang": "c"}
    group = PodSchedulingGroup(pod_group_name="a")
    named = [gang_of(pod(labels=labels, scheduling_group=group)), gang_of(pod(labels=labels))]
    assert [one and one.name for one in named] == ["a", "b"]


def test_of_the_kinds_of_others_the_first_in_the_table_counts_and_our_labels_come_last() -> None:
    annotations = {"pod-group-name": "c", "scheduling.k8s.io/group-name": "b"}
    labels = {"situate.dev/gang": "d"}
    named = [
        gang_of(pod(labels={**labels, "scheduling.x-k8s.io/pod-group": "a"}, annotations=annotations)),
        gang_of(pod(labels=labels, annotations=annotations)),
        gang_of(pod(labels=labels, annotations={"pod-group-name": "c"})),
        gang_of(pod(labels=labels, annotations={"pod-group-name": ""})),
    ]
    assert [one and one.name for one in named] == ["a", "b", "c", "d"]


@pytest.mark.parametrize("kind", CUSTOM_GROUP_KINDS, ids=lambda kind: kind.owner)
def test_a_group_of_others_defines_the_gang_that_its_pods_name(kind: CustomGroupKind) -> None:
    group = kind.model(metadata=ObjectMeta(name="train", namespace="ml"))
    for key in kind.pod_labels:
        assert gang_of(pod(namespace="ml", labels={key: "train"})) == gang_of_group(group)
    for key in kind.pod_annotations:
        assert gang_of(pod(namespace="ml", annotations={key: "train"})) == gang_of_group(group)


@pytest.mark.parametrize(
    "text, size",
    [("3", 3), ("0", None), ("-1", None), ("three", None), ("1.5", None), ("1" * 7, None), ("", None), ("³", None)],
)
def test_a_size_is_a_whole_number_from_one_up(text: str, size: int | None) -> None:
    assert size_said(pod(labels={"situate.dev/gang-size": text})) == size


def test_a_topology_key_is_said_by_a_short_name_in_a_label_or_whole_in_an_annotation() -> None:
    key = "situate.dev/gang-topology"
    assert topology_said(pod(labels={key: "zone"})) == "topology.kubernetes.io/zone"
    assert topology_said(pod(labels={key: "rack"})) == "rack"
    assert topology_said(pod(labels={key: "rack"}, annotations={key: "example.com/rack"})) == "example.com/rack"
    assert topology_said(pod()) == ""


def test_only_all_means_all() -> None:
    assert wants_disruption_of_all(pod(labels={"situate.dev/gang-disruption": "all"}))
    assert not wants_disruption_of_all(pod(labels={"situate.dev/gang-disruption": "single"}))


def test_pods_that_differ_in_their_group_alone_are_one_class() -> None:
    cluster = Cluster()
    grouped = [pod(name, scheduling_group=PodSchedulingGroup(pod_group_name=name)) for name in ("a", "b")]
    assert len({cluster.class_of(one).id for one in (*grouped, pod("c"))}) == 1
