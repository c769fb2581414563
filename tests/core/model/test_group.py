"""Pod groups of all API groups, in all the versions that are read."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from situate.core.model.custom_groups.coscheduling import CoschedulingPodGroup
from situate.core.model.group import (
    PodGroup,
    disrupted_whole,
    is_scheduled,
    min_count,
    topology_key,
)
from situate.core.model.validate import problems_of
from situate.wire.objects import Source, read_objects

META = {"name": "train", "namespace": "default"}


def group(**spec: Any) -> PodGroup:
    return msgspec.convert({"metadata": META, "spec": spec}, PodGroup)


@pytest.mark.parametrize(
    "spec, expected",
    [
        pytest.param({"schedulingPolicy": {"gang": {"minCount": 4}}}, 4, id="a gang says how many"),
        pytest.param({"schedulingPolicy": {"basic": {}}}, 0, id="a basic group is no gang"),
        pytest.param({}, 0, id="a group without a policy is no gang"),
    ],
)
def test_how_many_must_be_placed(spec: dict[str, Any], expected: int) -> None:
    assert min_count(group(**spec)) == expected


@pytest.mark.parametrize(
    "type, status, expected",
    [
        pytest.param("PodGroupScheduled", "True", True, id="v1alpha2"),
        pytest.param("PodGroupInitiallyScheduled", "True", True, id="v1beta1"),
        pytest.param("PodGroupInitiallyScheduled", "False", False, id="not yet"),
        pytest.param("DisruptionTarget", "True", False, id="something else is said of it"),
    ],
)
def test_a_group_says_that_it_was_scheduled(type: str, status: str, expected: bool) -> None:  # noqa: A002 - its name
    condition = {"type": type, "status": status}
    made = msgspec.convert({"metadata": META, "status": {"conditions": [condition]}}, PodGroup)
    assert is_scheduled(made) is expected


def test_the_coscheduling_plugins_group_says_it_in_min_member() -> None:
    made = msgspec.convert({"metadata": META, "spec": {"minMember": 3}}, CoschedulingPodGroup)
    assert (min_count(made), topology_key(made), disrupted_whole(made)) == (3, "", False)


@pytest.mark.parametrize(
    "spec, whole",
    [
        pytest.param({}, False, id="by default pods are evicted one by one"),
        pytest.param({"disruptionMode": "Pod"}, False, id="1.36's word for one by one"),
        pytest.param({"disruptionMode": "PodGroup"}, True, id="1.36's word for all together"),
        pytest.param({"disruptionMode": {"single": {}}}, False, id="1.37's choice of one by one"),
        pytest.param({"disruptionMode": {"all": {}}}, True, id="1.37's choice of all together"),
    ],
)
def test_whether_all_pods_go_when_one_does(spec: dict[str, Any], whole: bool) -> None:
    made = group(**spec)
    assert disrupted_whole(made) is whole
    assert problems_of(made) == []


def test_the_topology_key_is_that_of_the_first_constraint() -> None:
    assert topology_key(group(schedulingConstraints={"topology": [{"key": "rack"}]})) == "rack"
    assert topology_key(group(schedulingConstraints={"topology": []})) == ""
    assert topology_key(group()) == ""


@pytest.mark.parametrize(
    "spec, problem",
    [
        pytest.param(
            {"schedulingPolicy": {"gang": {"minCount": 0}}},
            "spec.schedulingPolicy.gang.minCount: Invalid value: 0: must be greater than or equal to 1",
            id="a gang of nobody",
        ),
        pytest.param(
            {"schedulingConstraints": {"topology": [{}]}},
            "spec.schedulingConstraints.topology[0].key: Required value",
            id="a constraint without a key",
        ),
        pytest.param(
            {"disruptionMode": "Half"},
            'spec.disruptionMode: Unsupported value: "Half": supported values: "Pod", "PodGroup"',
            id="a mode that is none",
        ),
    ],
)
def test_what_is_wrong_with_a_group_is_said(spec: dict[str, Any], problem: str) -> None:
    assert [str(one) for one in problems_of(group(**spec))] == [problem]


def test_a_negative_min_member_is_wrong() -> None:
    made = msgspec.convert({"metadata": META, "spec": {"minMember": -1}}, CoschedulingPodGroup)
    assert [one.path for one in problems_of(made)] == ["spec.minMember"]


def test_kinds_of_one_name_are_told_apart_by_their_group() -> None:
    data = b"""
{apiVersion: scheduling.k8s.io/v1alpha2, kind: PodGroup, metadata: {name: a}}
---
{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {name: b}}
---
{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: a}, spec: {minMember: 2}}
---
{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: a}, spec: {minMember: 3}}
---
{apiVersion: scheduling.run.ai/v2alpha2, kind: PodGroup, metadata: {name: a}, spec: {minMember: 4}}
---
{apiVersion: example.com/v1, kind: PodGroup, metadata: {name: a}}
"""
    objects = read_objects([Source("groups.yaml", data)])
    assert [one.metadata.name for one in objects.pod_groups] == ["a", "b"]
    assert [min_count(one) for one in objects.custom_pod_groups] == [2, 3, 4]
    assert objects.ignored == {"PodGroup (example.com/v1)": 1}
    assert {one.metadata.namespace for one in objects.named()} == {"default"}
