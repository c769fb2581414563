"""The PodGroup kinds of other schedulers: what their fields mean for a gang, and which of them have no effect."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest

from situate.core.model.custom_groups.coscheduling import CoschedulingPodGroup
from situate.core.model.custom_groups.kai import MAX_SUB_GROUPS, KaiPodGroup
from situate.core.model.custom_groups.kind import UNKNOWN, CustomGroupKind, CustomPodGroup
from situate.core.model.custom_groups.table import CUSTOM_GROUP_KINDS, ignored_fields
from situate.core.model.custom_groups.volcano import VolcanoPodGroup
from situate.core.model.group import PodGroup, disrupted_whole, is_scheduled, min_count, topology_key
from situate.core.model.named import GroupObject
from situate.core.model.validate import problems_of
from situate.wire.errors import InputError
from situate.wire.objects import decode

META = {"name": "train", "namespace": "default"}
KINDS = pytest.mark.parametrize("kind", CUSTOM_GROUP_KINDS, ids=lambda kind: kind.owner)


def group(model: type[CustomPodGroup], **spec: Any) -> CustomPodGroup:
    return decode(model, msgspec.json.encode({"metadata": META, "spec": spec}))


def subgroup(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, **fields}


@KINDS
def test_min_member_is_how_many_must_be_placed(kind: CustomGroupKind) -> None:
    made = group(kind.model, minMember=3)
    assert (min_count(made), topology_key(made), disrupted_whole(made), is_scheduled(made)) == (3, "", False, False)
    assert ignored_fields(made) == ()


@KINDS
def test_a_group_without_a_minimum_is_no_gang(kind: CustomGroupKind) -> None:
    assert [min_count(group(kind.model, **spec)) for spec in ({}, {"minMember": None}, {"minMember": 0})] == [0, 0, 0]


@KINDS
@pytest.mark.parametrize("value", ["3", 1.5, True, [3], 1 << 31])
def test_a_minimum_of_a_wrong_type_is_an_error_that_names_the_field(kind: CustomGroupKind, value: Any) -> None:
    with pytest.raises(InputError) as caught:
        group(kind.model, minMember=value)
    assert caught.value.path == "spec.minMember"


@KINDS
def test_a_negative_minimum_is_wrong(kind: CustomGroupKind) -> None:
    assert [one.path for one in problems_of(group(kind.model, minMember=-1))] == ["spec.minMember"]


@KINDS
def test_every_known_field_without_effect_is_named_with_what_holds_instead(kind: CustomGroupKind) -> None:
    for path, instead in kind.ignores.items():
        value: Any = ["x"]
        for part in reversed(path.split(".")):
            value = {part: value}
        if path in ("subGroups", "minSubGroup"):
            value = {"subGroups": [subgroup("a")], "minSubGroup": 1}
        said = ignored_fields(group(kind.model, minMember=1, **value))
        assert (f"spec.{path}", instead) in [(one.path, one.instead) for one in said]


@KINDS
def test_a_field_of_a_later_release_is_named_too_and_an_empty_one_is_not(kind: CustomGroupKind) -> None:
    made = group(kind.model, minMember=1, invented={"a": 1}, queue="", minResources={}, subGroups=[], other=None)
    assert [(one.path, one.instead) for one in ignored_fields(made)] == [("spec.invented", UNKNOWN)]


def test_fields_are_named_in_order_and_of_an_object_only_those_without_effect() -> None:
    constraint = {"topology": "t", "requiredTopologyLevel": "rack", "preferredTopologyLevel": "host"}
    made = group(KaiPodGroup, queue="q", minMember=2, topologyConstraint=constraint)
    assert [one.path for one in ignored_fields(made)] == [
        "spec.queue",
        "spec.topologyConstraint.preferredTopologyLevel",
        "spec.topologyConstraint.topology",
    ]
    assert topology_key(made) == "rack"
    assert problems_of(made) == []


def test_a_level_that_is_no_label_is_wrong() -> None:
    made = group(KaiPodGroup, topologyConstraint={"requiredTopologyLevel": "no label!"})
    assert {one.path for one in problems_of(made)} == {"spec.topologyConstraint.requiredTopologyLevel"}


@pytest.mark.parametrize(
    "spec, expected",
    [
        pytest.param({"subGroups": [subgroup("a", minMember=2), subgroup("b", minMember=3)]}, 5, id="all of them"),
        pytest.param(
            {"minSubGroup": 1, "subGroups": [subgroup("a", minMember=2), subgroup("b", minMember=3)]},
            2,
            id="the smallest of them",
        ),
        pytest.param(
            {"minMember": 4, "subGroups": [subgroup("a", minMember=2), subgroup("b", minMember=3)]},
            4,
            id="the group's own minimum counts first",
        ),
        pytest.param(
            {
                "subGroups": [
                    subgroup("low", parent="top", minMember=2),
                    subgroup("other", parent="top", minMember=5),
                    subgroup("top", minSubGroup=1),
                    subgroup("single"),
                ]
            },
            3,
            id="those below others, and one pod where there is no minimum",
        ),
        pytest.param({"minSubGroup": 9, "subGroups": [subgroup("a", minMember=2)]}, 2, id="more than there are"),
        pytest.param({"minSubGroup": 0, "subGroups": [subgroup("a", minMember=2)]}, 0, id="none of them"),
        pytest.param(
            {"subGroups": [subgroup("a", parent="b"), subgroup("b", parent="a"), subgroup("c", minMember=2)]},
            2,
            id="a circle counts for nothing",
        ),
        pytest.param({"subGroups": [subgroup("", minMember=2)]}, 2, id="one without a name"),
    ],
)
def test_subgroups_of_kai_need_at_least_so_many_pods(spec: dict[str, Any], expected: int) -> None:
    assert min_count(group(KaiPodGroup, **spec)) == expected


def test_a_long_chain_and_many_subgroups_of_one_name_are_counted_at_once() -> None:
    chain = [subgroup(f"s{at}", parent=f"s{at - 1}" if at else None, minMember=1) for at in range(MAX_SUB_GROUPS)]
    assert min_count(group(KaiPodGroup, subGroups=chain)) == 1
    doubled = [subgroup(f"s{at}", parent=f"s{at - 1}" if at else None, minMember=1) for at in range(60) for _ in "ab"]
    assert min_count(group(KaiPodGroup, subGroups=doubled)) == 1


def test_a_group_with_too_many_subgroups_is_an_error_that_names_them() -> None:
    with pytest.raises(InputError) as caught:
        group(KaiPodGroup, subGroups=[subgroup(f"s{at}") for at in range(MAX_SUB_GROUPS + 1)])
    assert caught.value.path == "spec.subGroups"
    assert str(MAX_SUB_GROUPS) in str(caught.value)


def test_the_table_names_every_group_label_and_annotation_once() -> None:
    assert [one.model for one in CUSTOM_GROUP_KINDS] == [CoschedulingPodGroup, VolcanoPodGroup, KaiPodGroup]
    keys = [key for one in CUSTOM_GROUP_KINDS for key in (*one.pod_labels, *one.pod_annotations)]
    assert len(set(keys)) == len(keys)
    assert get_args(GroupObject) == (PodGroup, *(one.model for one in CUSTOM_GROUP_KINDS))
    assert len({one.group for one in CUSTOM_GROUP_KINDS}) == len(CUSTOM_GROUP_KINDS)
    assert all(not one.acts_on & one.ignores.keys() for one in CUSTOM_GROUP_KINDS)
